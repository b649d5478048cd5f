// Commands about the prompt: what fills the window, the personality, rebuilding it.

import type { Share, WindowContext, WindowUse } from "../agent/inspect-prompt.ts";
import { said, t } from "../home/language/words.ts";
import { padWide } from "../kit/formats.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";

const MAX_LISTED = 15;
const COLUMNS = 20;
const CELLS = 100;
const SYMBOLS = ["█", "▓", "▒", "◆", "■", "●", "▲", "▚"];
const FREE = "·";

const context: CommandDefinition = {
  name: "context",
  aliases: ["ctx"],
  description: "show what fills the context window",
  category: "Session",
  editor: true,
  argsHint: "[all|prompt [block]]",
  subcommands: ["all", "prompt"],
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const [word = "", block, ...more] = args.split(/\s+/);
    if (word === "prompt" && more.length === 0) return showPrompt(block, ctx);
    if (word !== "" && word !== "all")
      return ctx.warn(`/context takes nothing, "all" or "prompt [block]", not "${args}".`);
    const { windowUse, windowLists } = await import("../agent/inspect-prompt.ts");
    const use = await windowUse(windowContext(ctx));
    const parts = [summary(use, ctx), ...(ctx.terminal ? [grid(use)] : []), legend(use)];
    if (word === "all") {
      const { files, skills, toolsets } = await windowLists(windowContext(ctx));
      parts.push(...list("Files", files), ...list("Skills in the index", skills), ...list("Toolsets", toolsets));
    }
    ctx.say(parts.join("\n\n"));
  },
};

const windowContext = ({ conversation, home, clock, cwd, platform }: CommandContext): WindowContext => ({
  ...{ conversation, home, clock, cwd, platform },
});

function summary({ contextLength, free }: WindowUse, { conversation }: CommandContext): string {
  const used = contextLength - free;
  const measured = conversation.agent.lastOutcome?.lastPromptTokens ?? null;
  const last = measured === null ? "" : ` ${t("The last request took {count}.", { count: figure(measured) })}`;
  return (
    t("{model}: about {used} of {window} tokens in use ({share}).", {
      model: conversation.target.model,
      used: figure(used),
      window: figure(contextLength),
      share: percent(used, contextLength),
    }) + last
  );
}

/** One cell is one percent; a non-zero share has at least one. */
function grid(use: WindowUse): string {
  const cells = use.categories.map(({ tokens }) =>
    tokens === 0 ? 0 : Math.max(1, Math.round((tokens / use.contextLength) * CELLS)),
  );
  const drawn = cells.map((count, at) => (SYMBOLS[at] ?? "█").repeat(count)).join("");
  const whole = [...drawn.padEnd(CELLS, FREE)].slice(0, CELLS);
  return Array.from({ length: CELLS / COLUMNS }, (_, row) =>
    whole.slice(row * COLUMNS, (row + 1) * COLUMNS).join(" "),
  ).join("\n");
}

function legend({ categories, free, contextLength }: WindowUse): string {
  const rows = categories.map(({ label, tokens }, at) => ({ symbol: SYMBOLS[at] ?? "█", label, tokens }));
  return [...rows, { symbol: FREE, label: "Free space", tokens: free }]
    .filter(({ tokens }) => tokens > 0)
    .map(
      ({ symbol, label, tokens }) =>
        `${symbol} ${padWide(said(label), 20)} ${figure(tokens).padStart(9)}  ${percent(tokens, contextLength).padStart(6)}`,
    )
    .join("\n");
}

function list(title: string, shares: readonly Share[]): readonly string[] {
  if (shares.length === 0) return [];
  const shown = shares.slice(0, MAX_LISTED).map(({ label, tokens }) => `${figure(tokens).padStart(9)}  ${label}`);
  const rest = shares.length > MAX_LISTED ? [`           and ${shares.length - MAX_LISTED} more`] : [];
  return [[said(title), ...shown, ...rest].join("\n")];
}

async function showPrompt(block: string | undefined, ctx: CommandContext): Promise<void> {
  const { promptPieces } = await import("../agent/inspect-prompt.ts");
  const { estimateTokens } = await import("../llm/usage.ts");
  const pieces = await promptPieces(windowContext(ctx));
  if (block !== undefined) {
    const piece = pieces.find(({ id }) => id === block);
    if (!piece)
      return ctx.warn(`There is no block "${block}" in this prompt. It has: ${pieces.map(({ id }) => id).join(", ")}.`);
    return ctx.say(piece.text);
  }
  const sizes = pieces.map(({ id, text }) => `${figure(estimateTokens(text)).padStart(9)}  ${id}`);
  ctx.say([pieces.map(({ text }) => text).join("\n\n"), ["tokens     block", ...sizes].join("\n")].join("\n\n"));
}

const figure = (count: number) => Math.round(count).toLocaleString("en-US");
const percent = (part: number, whole: number) => `${((part / whole) * 100).toFixed(1)} %`;

const personality: CommandDefinition = {
  name: "personality",
  description: "set a personality; none clears it",
  category: "Configuration",
  argsHint: "[name]",
  async values(typed, { home }) {
    const { knownPersonalities } = await import("../prompt/personalities.ts");
    const known = Object.entries(knownPersonalities(home.config().agent.personalities));
    const named = known.map(([value, entry]) => ({ value, about: aboutOf(entry) })).toSorted(byName);
    return { replaces: typed, values: [...named, { value: "none", about: "no personality" }] };
  },
  async run(args, ctx) {
    const { activePersonality, findPersonality } = await import("../prompt/overlay.ts");
    const { knownPersonalities } = await import("../prompt/personalities.ts");
    const known = knownPersonalities(ctx.home.config().agent.personalities);
    if (args === "") {
      const [first = "", ...more] = ctx.home.config().agent.system_prompt.trim().split("\n");
      const active = activePersonality([first, ...more].join("\n"), known) ?? first;
      return ctx.say(describePersonalities(known, active || "none"));
    }
    const found = findPersonality(args, known);
    if (found.type === "unknown")
      return ctx.warn(`There is no personality "${args}". Known: ${found.known.join(", ")}, none.`);
    await ctx.home.setConfigKeys({
      "agent.system_prompt": found.type === "set" ? found.text : "",
      "display.personality": found.type === "set" ? found.name : "none",
    });
    const forced = ctx.home.override("HERMES_EPHEMERAL_SYSTEM_PROMPT");
    if (forced) return ctx.warn("Saved, but HERMES_EPHEMERAL_SYSTEM_PROMPT is set and takes precedence.");
    ctx.say(
      found.type === "set"
        ? `Personality: ${found.name}, from the next message on. The system prompt is not changed.`
        : "No personality from the next message on.",
    );
  },
};

const byName = (a: { readonly value: string }, b: { readonly value: string }) => (a.value < b.value ? -1 : 1);

function describePersonalities(known: Readonly<Record<string, unknown>>, active: string): string {
  const names = Object.keys(known).sort();
  const width = Math.max(...names.map((name) => name.length));
  const lines = names.map((name) => `  ${name.padEnd(width)}  ${said(aboutOf(known[name]))}`.trimEnd());
  return [
    `Active: ${active}`,
    ...lines,
    "/personality NAME sets one, /personality none clears it. Define your own in config.yaml: agent.personalities.",
  ].join("\n");
}

function aboutOf(value: unknown): string {
  const about =
    typeof value === "string"
      ? value
      : typeof value === "object" && value !== null && "description" in value
        ? String(value.description)
        : "";
  const [line = ""] = about.trim().split("\n");
  return line.length > 70 ? `${line.slice(0, 69)}…` : line;
}

const reloadPrompt: CommandDefinition = {
  name: "reload-prompt",
  aliases: ["reload_prompt"],
  description: "rebuild the system prompt from SOUL.md, project files, memory and skills",
  category: "Tools & Skills",
  async run(_args, ctx) {
    const { changed, warnings } = await ctx.conversation.reloadPrompt();
    for (const warning of warnings) ctx.warn(warning);
    ctx.say(
      changed
        ? "System prompt rebuilt. The provider's prompt cache for this conversation is lost, so the next request is billed in full."
        : "System prompt rebuilt: no changes, the prompt cache still works.",
    );
  },
};

export const PROMPT_COMMANDS: readonly CommandDefinition[] = [context, personality, reloadPrompt];
