// A whole plugin: one tool, one hook, one slash command. Copy it and change it.

/** Called once, with the first use of the plugin. Everything it offers is registered in here. */
export default function register(ctx) {
  ctx.registerTool({
    name: "count_words",
    description: "Count the words of a text",
    parameters: {
      type: "object",
      properties: { text: { type: "string" } },
      required: ["text"],
    },
    handler: ({ text }) => JSON.stringify({ words: countWords(text) }),
  });

  // What it returns decides: nothing lets the call pass.
  ctx.registerHook("pre_tool_call", ({ tool_name, args }) => {
    const path = typeof args.path === "string" ? args.path : "";
    if (!/(^|\/)private(\/|$)/.test(path)) return undefined;
    return { action: "block", message: `${tool_name}: the folder "private" is not for the agent.` };
  });

  ctx.registerCommand({
    name: "words",
    description: "count the words of a text",
    argsHint: "[text]",
    run: (args) => `${countWords(args)} words`,
  });
}

export function countWords(text) {
  return text.split(/\s+/).filter((word) => word !== "").length;
}
