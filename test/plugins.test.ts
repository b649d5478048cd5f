// Plugins and shell hooks through the real door of the agent.
import assert from "node:assert/strict";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { withoutFence } from "../src/prompt/fence.ts";
import { startSite } from "./support/engines/chromium.ts";
import { type Talk, talk } from "./support/talk.ts";

const manifest = (name: string, more = "") => `name: ${name}\nversion: 1.0.0\ndescription: a test\n${more}`;
const plugin = (name: string, code: string, more = "") => ({
  [`plugins/${name}/plugin.yaml`]: manifest(name, more),
  [`plugins/${name}/index.mjs`]: code,
});
const enabled = (...names: string[]) => `plugins:\n  enabled: [${names.join(", ")}]\n`;

/** A plugin that writes every event it hears into a file of the home. */
const listener = (events: readonly string[]) => `
import { appendFileSync } from "node:fs";
import { join } from "node:path";
export default (ctx) => {
  for (const event of ${JSON.stringify(events)})
    ctx.registerHook(event, (facts) => appendFileSync(join(ctx.hermesHome, "heard.jsonl"), JSON.stringify({ event, facts }) + "\\n"));
};`;
const heard = async ({ homeDir }: Talk) =>
  (await readFile(join(homeDir, "heard.jsonl"), "utf8").catch(() => ""))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { event: string; facts: Record<string, unknown> });

// biome-ignore lint/suspicious/noExplicitAny: a request body
const toolNames = (body: any): string[] => body.tools.map((tool: { function: { name: string } }) => tool.function.name);
// biome-ignore lint/suspicious/noExplicitAny: a request body
const lastOf = (body: any, role: string): string =>
  body.messages.findLast((message: { role: string }) => message.role === role)?.content ?? "";

const ECHO = `export default (ctx) => {
  ctx.registerTool({ name: "t_echo", description: "Says it again", parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    handler: ({ text }) => "echo " + text });
};`;

test("a plugin's tool is offered and answers, and what it registered is written down", async (t) => {
  const conversation = await talk(t, { config: enabled("t_one"), home: plugin("t_one", ECHO) });
  const { server } = conversation;
  server.script({ toolCalls: [{ name: "t_echo", arguments: { text: "hi" } }] }, { text: "done" });
  await conversation.say("go");
  assert.ok(toolNames(server.last.body).includes("t_echo"));
  assert.equal(lastOf(server.last.body, "tool"), "echo hi");
  const outlines = JSON.parse(await readFile(join(conversation.homeDir, "cache/plugin_outlines.json"), "utf8"));
  assert.equal(Object.values<{ tools: unknown[] }>(outlines.plugins)[0]?.tools.length, 1);
});

test("a plugin that is installed but not switched on stays out, and one that is switched off wins over switched on", async (t) => {
  const conversation = await talk(t, {
    config: "plugins:\n  enabled: [t_two]\n  disabled: [t_two]\n",
    home: { ...plugin("t_two", ECHO), ...plugin("t_three", ECHO) },
  });
  conversation.server.script({ text: "ok" });
  await conversation.say("go");
  assert.ok(!toolNames(conversation.server.last.body).includes("t_echo"));
});

test("a plugin that throws, one that hands over nonsense and one without code are named once; the turn goes on", async (t) => {
  const conversation = await talk(t, {
    config: enabled("t_bad", "t_odd", "t_py"),
    home: {
      ...plugin(
        "t_bad",
        `export default (ctx) => { ctx.registerHook("pre_tool_call", () => {}); throw new Error("no luck"); };`,
      ),
      ...plugin("t_odd", `export default (ctx) => ctx.registerTool({ name: "x y" });`),
      "plugins/t_py/plugin.yaml": manifest("t_py"),
      "plugins/t_py/__init__.py": "def register(ctx): pass\n",
    },
  });
  const notes = conversation.conversation.notes.join("\n");
  assert.match(notes, /Plugin "t_bad" could not be loaded: no luck\. It is skipped/);
  assert.match(notes, /Plugin "t_odd" could not be loaded: "x y" is not a valid name for a tool/);
  assert.doesNotMatch(notes, /t_py/);
  conversation.server.script({ text: "fine" });
  const events = await conversation.say("go");
  assert.equal(events.at(-1)?.type, "done");
});

test("a memory or an engine is registered as what makes it; anything else is refused in words that help", async (t) => {
  const conversation = await talk(t, {
    config: enabled("t_made", "t_alone", "t_engine"),
    home: {
      ...plugin("t_made", `export default (ctx) => ctx.registerMemoryProvider("t_made", { name: "t_made" });`),
      ...plugin("t_alone", `export default (ctx) => ctx.registerMemoryProvider({ name: "t_alone" });`),
      ...plugin("t_engine", `export default (ctx) => ctx.registerContextEngine("t_engine");`),
    },
  });
  const notes = conversation.conversation.notes.join("\n");
  assert.match(notes, /memory provider t_made: the second argument must be a function that makes it, not an object/);
  assert.match(notes, /an object, given first, is not a valid name for a memory provider/);
  assert.match(notes, /context engine t_engine: the second argument must be a function that makes it, not undefined/);
});

test("a tool of ours is not replaced without leave, and is with it", async (t) => {
  const code = `export default (ctx) => {
    ctx.registerTool({ name: "clarify", description: "mine", override: true, handler: () => "mine" });
    ctx.registerTool({ name: "t_other", description: "other", handler: () => "other" });
  };`;
  const conversation = await talk(t, { config: enabled("t_over"), home: plugin("t_over", code) });
  assert.match(
    conversation.conversation.notes.join("\n"),
    /tool clarify was refused: .*plugins\.entries\.t_over\.allow_tool_override/,
  );
  conversation.server.script({ text: "ok" });
  await conversation.say("go");
  assert.ok(toolNames(conversation.server.last.body).includes("t_other"), "it loads on without that tool");

  const allowed = await talk(t, {
    config: `${enabled("t_over")}  entries:\n    t_over:\n      allow_tool_override: true\n`,
    home: plugin("t_over", code),
  });
  assert.deepEqual(allowed.conversation.notes, []);
  allowed.server.script({ toolCalls: [{ name: "clarify", arguments: { question: "?" } }] }, { text: "ok" });
  await allowed.say("go");
  assert.equal(lastOf(allowed.server.last.body, "tool"), "mine");
});

test("every event of a turn is told in its order, with its facts", async (t) => {
  const events =
    "on_session_start pre_llm_call pre_api_request post_api_request pre_tool_call post_tool_call transform_tool_result transform_terminal_output transform_llm_output post_llm_call on_session_end on_session_finalize on_session_reset".split(
      " ",
    );
  const conversation = await talk(t, { config: enabled("t_ear"), home: plugin("t_ear", listener(events)) });
  conversation.server.script(
    { toolCalls: [{ name: "terminal", arguments: { command: "echo hello" } }] },
    { text: "bye" },
  );
  await conversation.say("go");
  await conversation.conversation.close("new_session", "next-id");
  const told = await heard(conversation);
  assert.deepEqual(
    told.map(({ event }) => event),
    [
      ...["on_session_start", "pre_llm_call", "pre_api_request", "post_api_request", "pre_tool_call"],
      ...[
        "transform_terminal_output",
        "post_tool_call",
        "transform_tool_result",
        "pre_api_request",
        "post_api_request",
      ],
      ...["transform_llm_output", "post_llm_call", "on_session_end", "on_session_finalize", "on_session_reset"],
    ],
  );
  const facts = (event: string) => told.find((one) => one.event === event)?.facts ?? {};
  assert.equal(facts("pre_llm_call").user_message, "go");
  assert.equal(facts("pre_llm_call").is_first_turn, true);
  assert.deepEqual(facts("pre_tool_call").args, { command: "echo hello" });
  assert.equal(facts("post_tool_call").status, "ok");
  assert.equal(facts("transform_terminal_output").returncode, 0);
  assert.equal(facts("post_llm_call").assistant_response, "bye");
  assert.equal(facts("on_session_end").completed, true);
  assert.equal(facts("on_session_reset").session_id, "next-id");
});

const TWELVE = `twelve\n${"and a long story about each of them ".repeat(20)}`.trim();

test("the start and the stop of a sub-agent are told once, with its parent, role and report", async (t) => {
  const conversation = await talk(t, {
    config: `${enabled("t_kids")}delegation: { max_spawn_depth: 2 }\n`,
    home: plugin("t_kids", listener(["subagent_start", "subagent_stop"])),
  });
  const { server } = conversation;
  const delegate = (args: object) => ({ toolCalls: [{ name: "delegate_task", arguments: { ...args } }] });
  server.script(delegate({ tasks: [{ goal: "look up herons", role: "orchestrator" }, { goal: "fail at once" }] }));
  server.otherwise((request) => {
    const said = JSON.stringify(request.body.messages);
    if (said.includes("fail at once") && !said.includes("look up herons"))
      return { fault: "status", status: 400, body: { error: { message: "no such luck" } } };
    if (said.includes("count feathers") && !said.includes("look up herons")) return { text: TWELVE };
    if (
      said.includes("look up herons") &&
      request.body.messages.at(-1).role === "user" &&
      said.includes("focused worker")
    )
      return delegate({ goal: "count feathers" });
    return { text: "done" };
  });
  await conversation.say("go");
  const { sessionId } = conversation.conversation.agent;
  await conversation.conversation.close("cli_close");
  const told = (await heard(conversation)).map(({ event, facts }) => ({
    ...{ event, goal: facts.child_goal, role: facts.child_role, status: facts.child_status },
    own: facts.parent_session_id === sessionId,
    ms: typeof facts.duration_ms,
    summary: facts.child_summary,
  }));
  const of = (goal: string) => told.filter((one) => one.goal === goal);
  const start = { event: "subagent_start", status: undefined, ms: "undefined", summary: undefined };
  const stop = { event: "subagent_stop", status: "completed", ms: "number" };
  const heron = { goal: "look up herons", role: "orchestrator", own: true };
  const feathers = { goal: "count feathers", role: "leaf", own: false };
  assert.deepEqual(of("look up herons"), [
    { ...start, ...heron },
    { ...stop, ...heron, summary: "done" },
  ]);
  assert.deepEqual(of("count feathers"), [
    { ...start, ...feathers },
    { ...stop, ...feathers, summary: TWELVE },
  ]);
  const failed = of("fail at once");
  assert.deepEqual(
    failed.map(({ event, status }) => [event, status]),
    [
      ["subagent_start", undefined],
      ["subagent_stop", "failed"],
    ],
  );
  assert.match(String(failed[1]?.summary), /no such luck/);
  assert.equal(told.length, 6, "each once");
});

test("a hook blocks a call, another text takes a result's place, context rides on the message, an answer is changed", async (t) => {
  const code = `export default (ctx) => {
    ctx.registerHook("pre_tool_call", ({ tool_name }) => tool_name === "todo" ? { action: "block", message: "not today" } : undefined);
    ctx.registerHook("transform_terminal_output", ({ output }) => output.toUpperCase());
    ctx.registerHook("pre_llm_call", () => ({ context: "It is raining." }));
    ctx.registerHook("transform_llm_output", ({ response_text }) => response_text + "!");
  };`;
  const conversation = await talk(t, { config: enabled("t_rules"), home: plugin("t_rules", code) });
  const { server } = conversation;
  server.script(
    { toolCalls: [{ name: "todo", arguments: { todos: [] } }] },
    { toolCalls: [{ name: "terminal", arguments: { command: "echo quiet" } }] },
    { text: "so be it" },
  );
  const events = await conversation.say("go");
  assert.equal(lastOf(server.last.body, "user"), "go\n\nIt is raining.");
  const body = JSON.stringify(server.last.body);
  assert.match(body, /not today/);
  assert.match(body, /QUIET/);
  const done = events.at(-1);
  assert.equal(done?.type === "done" && done.outcome.finalText, "so be it!");
  assert.equal(done?.type === "done" && done.outcome.responseTransformed, true);
  const shown = events.findLast((event) => event.type === "text_end");
  assert.deepEqual([shown?.text, shown?.streamed], ["so be it!", false], "what was streamed is not what is said");
  const messages = await conversation.store.load(conversation.conversation.agent.sessionId);
  assert.equal(messages.find(({ role }) => role === "user")?.content, "go", "the stored text is what was typed");

  server.script({ text: "a picture" });
  const image = { type: "image_url", image_url: { url: "https://example.com/a.png" } } as const;
  for await (const _ of conversation.conversation.agent.run({ text: "look", parts: [image] }));
  assert.deepEqual(server.last.body.messages.at(-1).content, [
    { type: "text", text: "look" },
    image,
    { type: "text", text: "It is raining." },
  ]);
});

test("a hook that throws and one that is rejected are said once; the others run, the turn goes on", async (t) => {
  const code = `export default (ctx) => {
    ctx.registerHook("pre_tool_call", () => { throw new Error("broken"); });
    ctx.registerHook("pre_tool_call", () => ({ action: "block", message: "second" }));
    ctx.registerHook("post_tool_call", () => { throw new Error("broken too"); });
  };`;
  const conversation = await talk(t, { config: enabled("t_throw"), home: plugin("t_throw", code) });
  const call = { toolCalls: [{ name: "todo", arguments: { todos: [] } }] };
  conversation.server.script(call, call, { text: "ok" });
  const events = await conversation.say("go");
  assert.match(JSON.stringify(conversation.server.last.body), /second/);
  const warned = events.flatMap((event) => (event.type === "status" && event.kind === "warn" ? [event.message] : []));
  assert.deepEqual(
    warned.filter((line) => /t_throw/.test(line)),
    ['plugin "t_throw": hook post_tool_call failed and is ignored: broken too. Details are in the log.'],
  );
});

test("approve asks a person and is refused where nobody is", async (t) => {
  const code = `export default (ctx) => ctx.registerHook("pre_tool_call", () => ({ action: "approve", message: "touches the list" }));`;
  const conversation = await talk(t, { config: enabled("t_ask"), home: plugin("t_ask", code) });
  conversation.server.script({ toolCalls: [{ name: "todo", arguments: { todos: [] } }] }, { text: "ok" });
  await conversation.say("go");
  assert.match(lastOf(conversation.server.last.body, "tool"), /needs a person's approval \(touches the list\)/);
});

test("a plugin calls tools on the one path: hooks see the call, and it asks the model through the gate", async (t) => {
  const code = `export default (ctx) => {
    const seen = [];
    ctx.registerHook("pre_tool_call", ({ tool_name }) => { seen.push(tool_name); });
    ctx.registerTool({ name: "t_inner", description: "calls", handler: async () => {
      const listed = await ctx.dispatchTool("terminal", { command: "echo inner" });
      const gone = await ctx.dispatchTool("nowhere", {});
      const said = await ctx.llm.complete({ prompt: "capital of France?" });
      return JSON.stringify({ seen, output: JSON.parse(listed).output, gone, said });
    } });
  };`;
  const conversation = await talk(t, { config: enabled("t_calls"), home: plugin("t_calls", code) });
  conversation.server.script({ toolCalls: [{ name: "t_inner", arguments: {} }] }, { text: "Paris" }, { text: "ok" });
  await conversation.say("go");
  const result = JSON.parse(lastOf(conversation.server.last.body, "tool"));
  assert.deepEqual(result.seen, ["t_inner", "terminal"]);
  assert.equal(result.output, "inner");
  assert.match(result.gone, /Unknown tool: nowhere/);
  assert.equal(result.said, "Paris");
});

test("foreign text that a plugin fetches comes with its fence, also through a script", async (t) => {
  const site = await startSite({ "/": `<title>T</title><p>${"The Heron leaves at noon. ".repeat(20)}</p>` });
  t.after(() => site.close());
  const code = `export default (ctx) => ctx.registerTool({ name: "t_fetch", description: "fetches", handler: async () => {
    const page = { urls: [${JSON.stringify(site.url)}] };
    const direct = await ctx.dispatchTool("web_extract", page);
    const code = "from hermes_tools import web_extract\\nprint(web_extract(" + JSON.stringify(page.urls) + "))";
    return JSON.stringify([direct, await ctx.dispatchTool("execute_code", { code })]);
  } });`;
  const conversation = await talk(t, {
    config: `${enabled("t_fetch")}security: { allow_private_urls: true }\nweb: { extract_backend: local }\n`,
    home: plugin("t_fetch", code),
  });
  conversation.server.script({ toolCalls: [{ name: "t_fetch", arguments: {} }] }, { text: "ok" });
  await conversation.say("go");
  const sent = lastOf(conversation.server.last.body, "tool");
  assert.match(sent, /^<untrusted_tool_result source="web_extract" id="\w+">[\s\S]*Heron leaves at noon/);
  const results: string[] = JSON.parse(withoutFence(sent));
  for (const result of results) assert.match(result, /^<untrusted-tool-result source="web_extract" /);
  assert.equal(results.length, 2);
});

test("a plugin sees the variables its manifest asks for and no others", async (t) => {
  const code = `export default (ctx) => ctx.registerTool({ name: "t_env", description: "env",
    handler: (args, call) => JSON.stringify([ctx.env("T_GIVEN"), ctx.env("OPENAI_API_KEY") ?? null, call.env("T_GIVEN"), call.env("OPENAI_API_KEY") ?? null]) });`;
  const conversation = await talk(t, {
    config: enabled("t_env"),
    home: plugin("t_env", code, "requires_env: [T_GIVEN]\n"),
    env: { T_GIVEN: "yes", OPENAI_API_KEY: "sk-secret-value-0123456789" },
  });
  conversation.server.script({ toolCalls: [{ name: "t_env", arguments: {} }] }, { text: "ok" });
  await conversation.say("go");
  assert.equal(lastOf(conversation.server.last.body, "tool"), '["yes",null,"yes",null]');
});

test("a session keeps its tools when a plugin is switched on meanwhile; the next one has them", async (t) => {
  const conversation = await talk(t, { home: plugin("t_late", ECHO) });
  conversation.server.script({ text: "one" }, { text: "two" }, { text: "three" });
  await conversation.say("go");
  const before = JSON.stringify((conversation.server.last.body as { tools: unknown }).tools);
  const file = join(conversation.homeDir, "config.yaml");
  await writeFile(file, `${await readFile(file, "utf8")}${enabled("t_late")}`);
  await conversation.resume();
  await conversation.say("again");
  assert.equal(JSON.stringify((conversation.server.last.body as { tools: unknown }).tools), before);
  await conversation.begin();
  await conversation.say("new");
  assert.ok(toolNames(conversation.server.last.body).includes("t_echo"));
});

test("a run with toolsets of its own has a plugin's tools when it names them", async (t) => {
  const conversation = await talk(t, {
    config: enabled("t_named"),
    home: plugin("t_named", ECHO),
    request: { toolsets: ["todo"] },
  });
  const { server } = conversation;
  server.script({ text: "one" }, { text: "two" }, { text: "three" });
  await conversation.say("go");
  assert.deepEqual(toolNames(server.last.body), ["todo"]);
  await conversation.resume({ toolsets: ["todo", "t_named"] });
  await conversation.say("with it");
  assert.deepEqual(toolNames(server.last.body), ["t_echo", "todo"], "who asks for other tools gets them");
});

test("a plugin that is switched on meanwhile is no other choice for a run with toolsets of its own", async (t) => {
  const request = { toolsets: ["todo"] };
  const conversation = await talk(t, { home: plugin("t_beside", ECHO), request });
  const { server, homeDir } = conversation;
  server.script({ text: "one" }, { text: "two" });
  await conversation.say("go");
  const first = server.last.body;
  const file = join(homeDir, "config.yaml");
  await writeFile(file, `${await readFile(file, "utf8")}${enabled("t_beside")}`);
  await writeFile(join(homeDir, "SOUL.md"), "You are a heron.\n");
  await conversation.resume(request);
  await conversation.say("again");
  assert.deepEqual(server.last.body.tools, first.tools);
  assert.deepEqual(server.last.body.messages[0], first.messages[0], "the prompt is not built anew");
});

test("plugins of a project load only when the user lets them", async (t) => {
  const project = {
    ".hermes/plugins/t_proj/plugin.yaml": manifest("t_proj"),
    ".hermes/plugins/t_proj/index.mjs": ECHO,
  };
  const off = await talk(t, { config: enabled("t_proj"), project });
  off.server.script({ text: "ok" });
  await off.say("go");
  assert.ok(!toolNames(off.server.last.body).includes("t_echo"));
  const on = await talk(t, { config: enabled("t_proj"), project, env: { HERMES_ENABLE_PROJECT_PLUGINS: "1" } });
  on.server.script({ text: "ok" });
  await on.say("go");
  assert.ok(toolNames(on.server.last.body).includes("t_echo"));
});

test("an npm package in the home's node_modules is a plugin by its keyword", async (t) => {
  const home = {
    "node_modules/t-pack/package.json": JSON.stringify({
      name: "t-pack",
      version: "2.0.0",
      keywords: ["hermes-agent-plugin"],
    }),
    "node_modules/t-pack/index.mjs": ECHO.replace('name: "t_echo"', 'name: "t_packed", toolset: "t_pack"'),
  };
  const conversation = await talk(t, { config: enabled("t-pack"), home });
  conversation.server.script({ text: "ok" });
  await conversation.say("go");
  assert.ok(toolNames(conversation.server.last.body).includes("t_packed"));
});

// --- shell hooks

async function script(home: Talk, name: string, text: string): Promise<string> {
  const path = join(home.osHome, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `#!/bin/sh\n${text}\n`);
  await chmod(path, 0o755);
  return path;
}

const hookConfig = (event: string, command: string, more = "") =>
  `hooks:\n  ${event}:\n    - command: ${command}\n${more}`;

test("a shell hook without consent is skipped where nobody can be asked; with --accept-hooks it gets its facts and blocks", async (t) => {
  const conversation = await talk(t, { config: hookConfig("pre_tool_call", "~/block.sh", "      matcher: todo\n") });
  await script(
    conversation,
    "block.sh",
    `cat > "$HERMES_HOME/in.json"; env > "$HERMES_HOME/env.txt"; echo '{"decision":"block","reason":"hands off"}'`,
  );
  const call = { toolCalls: [{ name: "todo", arguments: { todos: [] } }] };
  conversation.server.script(call, { text: "one" }, call, { text: "two" });
  const events = await conversation.say("go");
  assert.doesNotMatch(lastOf(conversation.server.last.body, "tool"), /hands off/);
  assert.ok(
    events.some((event) => event.type === "status" && /is skipped: you have not approved it yet/.test(event.message)),
  );
  await conversation.begin({ acceptHooks: true });
  await conversation.say("go");
  assert.match(lastOf(conversation.server.last.body, "tool"), /hands off/);
  const input = JSON.parse(await readFile(join(conversation.homeDir, "in.json"), "utf8"));
  assert.deepEqual(Object.keys(input), ["hook_event_name", "tool_name", "tool_input", "session_id", "cwd", "extra"]);
  assert.equal(input.tool_name, "todo");
  assert.deepEqual(input.tool_input, { todos: [] });
});

test("consent is for the bytes of the script: changed, it does not run until it is allowed again", async (t) => {
  const conversation = await talk(t, {
    config: hookConfig("pre_llm_call", "~/ctx.sh"),
    request: { interactive: true },
  });
  await script(conversation, "ctx.sh", `echo '{"context":"from the hook"}'`);
  const answered: string[] = [];
  const say = async (text: string, choice: "always" | "deny") => {
    for await (const event of conversation.conversation.agent.run({ text })) {
      if (event.type !== "ask" || event.request.question.kind !== "approval") continue;
      answered.push(event.request.question.description);
      event.request.answer({ choice } as never); // the question is an approval
    }
  };
  conversation.server.script({ text: "1" }, { text: "2" }, { text: "3" });
  await say("first", "always");
  assert.equal(lastOf(conversation.server.last.body, "user"), "first\n\nfrom the hook");
  await say("second", "deny");
  assert.equal(answered.length, 1, "asked once");
  await script(conversation, "ctx.sh", `echo '{"context":"something else"}'`);
  await say("third", "deny");
  assert.match(answered[1] ?? "", /changed since you approved it/);
  assert.equal(lastOf(conversation.server.last.body, "user"), "third");
  const kept = JSON.parse(await readFile(join(conversation.homeDir, "shell-hooks-allowlist.json"), "utf8"));
  assert.deepEqual(Object.keys(kept.approvals[0]), [
    "event",
    "command",
    "approved_at",
    "script_mtime_at_approval",
    "script_sha256",
  ]);
});

test("a hook that crashes, prints nonsense or takes too long is ignored; no shell runs it; our secrets are not in its environment", async (t) => {
  const conversation = await talk(t, {
    config: `hooks_auto_accept: true\nhooks:\n  pre_tool_call:\n    - command: ~/crash.sh\n    - command: ~/talk.sh\n    - command: ~/slow.sh\n      timeout: 1\n    - command: ~/args.sh 'a b' $HOME ; touch\n`,
    env: { OPENAI_API_KEY: "sk-secret-value-0123456789" },
  });
  await script(conversation, "crash.sh", `echo '{"decision":"block"}'; exit 3`);
  await script(conversation, "talk.sh", "echo I am fine");
  await script(conversation, "slow.sh", "sleep 30");
  await script(conversation, "args.sh", `printf '%s|' "$@" > "$HERMES_HOME/args.txt"; env > "$HERMES_HOME/env.txt"`);
  conversation.server.script({ toolCalls: [{ name: "todo", arguments: { todos: [] } }] }, { text: "ok" });
  const events = await conversation.say("go");
  assert.doesNotMatch(lastOf(conversation.server.last.body, "tool"), /lock/);
  assert.ok(
    events.some(
      (event) => event.type === "status" && /slow\.sh .* longer than 1 s and was stopped/.test(event.message),
    ),
  );
  assert.equal(await readFile(join(conversation.homeDir, "args.txt"), "utf8"), "a b|$HOME|;|touch|");
  assert.doesNotMatch(await readFile(join(conversation.homeDir, "env.txt"), "utf8"), /sk-secret/);
});
