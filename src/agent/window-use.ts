// What fills the model's window right now, by kind: for whoever wonders where the room went.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { estimateTokens } from "../llm/catalogue/estimate.ts";
import type { ToolDefinition } from "../llm/wire.ts";
import { layoutOf } from "../prompt/prompt-record.ts";
import { messagesCost } from "./compression/cost.ts";
import { inspectPrompt } from "./inspect-prompt.ts";
import type { OpenAgent } from "./opened.ts";

export interface Share {
  readonly label: string;
  /** Rough. */
  readonly tokens: number;
}

export interface WindowUse {
  readonly contextLength: number;
  /** In a fixed order, without free space; nothing is left out. */
  readonly categories: readonly Share[];
  readonly free: number;
}

export interface WindowLists {
  readonly files: readonly Share[];
  readonly skills: readonly Share[];
  readonly toolsets: readonly Share[];
}

export interface PromptPiece {
  readonly id: string;
  readonly text: string;
}

export interface WindowPlace {
  readonly conversation: Pick<OpenAgent, "agent" | "store" | "target" | "toolNames" | "definitions" | "ignoresRules">;
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly cwd: string;
  readonly platform: string;
}

const CATEGORY_OF: Readonly<Record<string, string>> = {
  context_files: "Rules",
  skills_index: "Skills",
  memory: "Memory",
  user_profile: "Memory",
  external_memory: "Memory",
};

export async function windowUse(place: WindowPlace): Promise<WindowUse> {
  const { conversation } = place;
  const { contextLength } = conversation.target;
  const sums = new Map(
    [
      "System prompt",
      "Tool definitions",
      "Rules",
      "Skills",
      "MCP",
      "Subagent definitions",
      "Memory",
      "Conversation",
    ].map((label) => [label, 0]),
  );
  const add = (label: string, tokens: number) => sums.set(label, (sums.get(label) ?? 0) + tokens);
  for (const { id, text } of await promptPieces(place)) add(CATEGORY_OF[id] ?? "System prompt", estimateTokens(text));
  for (const tool of conversation.definitions) add(categoryOf(tool), estimateTokens(JSON.stringify(tool)));
  add("Conversation", messagesCost(await conversation.store.load(conversation.agent.sessionId)));
  const categories = [...sums].map(([label, tokens]) => ({ label, tokens }));
  const used = categories.reduce((sum, { tokens }) => sum + tokens, 0);
  return { contextLength, categories, free: Math.max(0, contextLength - used) };
}

/** The prompt in force, or the one the first message would get; a text of which nothing is known is one piece. */
export async function promptPieces(place: WindowPlace): Promise<readonly PromptPiece[]> {
  const { store, agent } = place.conversation;
  const record = await store.getPrompt(agent.sessionId);
  if (!record || record.prompt === "") return (await inspect(place)).build.blocks;
  const blocks = layoutOf(record)?.blocks ?? [];
  if (blocks.length === 0) return [{ id: "system_prompt", text: record.prompt }];
  let at = 0;
  return blocks.map(({ id, length }) => {
    const text = record.prompt.slice(at, at + length).trimEnd();
    at += length;
    return { id, text };
  });
}

/** Largest first. Files are read as they are now; the prompt may have been built from older ones. */
export async function windowLists(place: WindowPlace): Promise<WindowLists> {
  const { registry } = await import("../tools/toolset/registry.ts");
  const { build } = await inspect(place);
  const index = (await promptPieces(place)).find(({ id }) => id === "skills_index")?.text ?? "";
  const entries = index.split("\n").flatMap((line) => {
    const names = /^ {2}.+ \[names only\]: (.+)$/.exec(line)?.[1]?.split(", ") ?? [];
    const name = /^ {4}- ([^:]+)/.exec(line)?.[1];
    return name === undefined
      ? names.map((label) => ({ label, tokens: estimateTokens(label) }))
      : [{ label: name, tokens: estimateTokens(line) }];
  });
  const bySet = Map.groupBy(place.conversation.definitions, ({ function: { name } }) =>
    name.startsWith("mcp_") ? "mcp" : (registry.get(name)?.toolset ?? "other"),
  );
  return {
    files: largestFirst(build.contextFiles.map(({ path, tokens }) => ({ label: place.home.display(path), tokens }))),
    skills: largestFirst(entries),
    toolsets: largestFirst(
      [...bySet].map(([label, tools]) => ({ label, tokens: estimateTokens(JSON.stringify(tools)) })),
    ),
  };
}

function inspect({ conversation, home, clock, cwd, platform }: WindowPlace) {
  const { target, toolNames, ignoresRules: ignoreRules } = conversation;
  return inspectPrompt({ home, clock, cwd, platform, target, toolNames, ignoreRules });
}

function categoryOf({ function: { name } }: ToolDefinition): string {
  if (name.startsWith("mcp_")) return "MCP";
  return name === "delegate_task" ? "Subagent definitions" : "Tool definitions";
}

const largestFirst = (shares: readonly Share[]) =>
  shares.filter(({ tokens }) => tokens > 0).toSorted((a, b) => b.tokens - a.tokens || (a.label < b.label ? -1 : 1));
