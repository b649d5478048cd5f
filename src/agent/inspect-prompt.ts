// The prompt a conversation would begin with, built by the same steps and sent nowhere: no session, no network, no key.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { contextLengthOf } from "../llm/catalogue/context-length.ts";
import { modelSettings, ProviderError } from "../llm/providers/settings.ts";
import { estimateTokens } from "../llm/usage.ts";
import type { Target, ToolDefinition } from "../llm/wire.ts";
import { openMemory } from "../memory/open.ts";
import type { Backend } from "../prompt/contract.ts";
import { type BuiltPrompt, buildPrompt, type PromptContext } from "../prompt/open.ts";
import { configuredBackend } from "../prompt/probes/host.ts";
import { layoutOf } from "../prompt/session-prompts.ts";
import type { Environment } from "../sandbox/environment.ts";
import { openAgentSkills } from "../skills/open.ts";
import { messagesCost } from "./compression/boundaries.ts";
import { chooseTarget } from "./open-model.ts";
import type { OpenRequest } from "./open-request.ts";
import { focusToolsets, hashedChoice, openTools, toolHashes } from "./open-tools.ts";
import type { OpenAgent } from "./opened.ts";

interface InspectRequest {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly cwd: string;
  readonly platform: string;
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly contextLength?: number | undefined;
  /** A model that was chosen already, instead of all of these. */
  readonly target?: InspectedPrompt["target"] | undefined;
  /** Instead of the tools this platform would get. */
  readonly toolNames?: readonly string[] | undefined;
  readonly systemMessage?: string | undefined;
  readonly ignoreRules?: boolean | undefined;
}

export interface InspectedPrompt {
  readonly build: BuiltPrompt;
  readonly target: Pick<Target, "model" | "provider" | "contextLength" | "windowAssumed">;
  /** What is not sure about it. */
  readonly notes: readonly string[];
  readonly definitions: readonly ToolDefinition[];
  readonly toolsets: readonly string[];
}

export async function inspectPrompt(request: InspectRequest): Promise<InspectedPrompt> {
  const { home, clock, cwd, platform } = request;
  const target = request.target ?? (await targetToLookAt(request));
  const config = home.config();
  const memory = request.ignoreRules ? null : await openMemory({ ...home, clock, log: home.log.child("memory") });
  const without = memory?.enabled ? [] : ["memory"];
  const asked: OpenRequest = {
    ...{ home, clock, cwd, platform, source: "cli", interactive: true, ignoreRules: request.ignoreRules },
    store: () => Promise.reject(new Error("looking at a prompt opens no store")),
  };
  await (await import("../plugins/shared.ts")).registerPluginTools(asked);
  const backend = await configuredBackend(config.terminal, {
    ...{ cwd, userHome: home.osHome, hermesHome: home.paths, environment: home.environment(), unattended: false },
  });
  const environment = nowhere(cwd, backend);
  const toolChoice = {
    ...{ environment, contextLength: target.contextLength, without },
    toolsets: await focusToolsets(asked, cwd, null),
    only: request.toolNames && new Set(request.toolNames),
  };
  const tools = await openTools(asked, toolChoice);
  const { toolNames = [...tools.names].sort() } = request;
  const { definitions } = tools;
  const context: PromptContext = {
    request: asked,
    cwd,
    backend: async () => backend,
    toolNames,
    toolsets: tools.toolsets,
    ...toolHashes(tools, config, hashedChoice(asked, toolChoice)),
    memory,
    skills: await openAgentSkills(home, clock),
    startedAt: clock.now() / 1000,
    systemMessage: request.systemMessage ?? null,
  };
  const build = await buildPrompt(context, target, "");
  const notes = target.windowAssumed ? [assumedWindow(target)] : [];
  return { build, target, notes, definitions, toolsets: tools.toolsets };
}

const assumedWindow = ({ model, contextLength }: InspectedPrompt["target"]) =>
  `Nobody says how large the window of ${model || "the model"} is: ${contextLength.toLocaleString("en-US")} tokens are assumed, and project files are cut as for an unknown window. Say it with model.context_length.`;

/** The model the user would talk to; one that has no key yet, or is only named here, can be looked at as well. */
async function targetToLookAt(request: InspectRequest): Promise<InspectedPrompt["target"]> {
  const { home } = request;
  const settings = modelSettings(home.config());
  const chosen = await chooseOffline(request);
  const named = request.model !== undefined || request.provider !== undefined;
  const usable = chosen && (!named || chosen.provider !== "demo" || request.provider === "demo");
  const model = usable ? chosen.model : (request.model ?? settings.default ?? "");
  const provider = usable ? chosen.provider : (request.provider ?? settings.provider ?? "");
  if (request.contextLength !== undefined) return { model, provider, contextLength: request.contextLength };
  if (usable) return { model, provider, contextLength: chosen.contextLength, windowAssumed: chosen.windowAssumed };
  const window = await contextLengthOf({ provider, model, baseUrl: "", configured: settings.contextLength });
  const assumed = window.source === "default" ? ({ windowAssumed: true } as const) : {};
  return { model, provider, contextLength: window.tokens, ...assumed };
}

async function chooseOffline({ home, model, provider }: InspectRequest): Promise<Target | null> {
  try {
    return (await chooseTarget(home, { model, provider }, { offline: true })).target;
  } catch (error) {
    if (error instanceof ProviderError) return null;
    throw error;
  }
}

/** Tools are listed, never called. */
function nowhere(cwd: string, backend: Backend | undefined): Environment {
  const refuse = () => Promise.reject(new Error("looking at a prompt runs no commands"));
  return {
    ...{ kind: "none", cwd, tempDir: cwd, home: cwd, isolated: true },
    execute: refuse,
    spawn: refuse,
    setCwd: () => undefined,
    cleanup: async () => undefined,
    ...(backend?.type === "sandbox" && {
      confinement: {
        ...backend,
        allowsWrite: () => false,
        holdsStill: () => false,
        changedOutside: async () => undefined,
      },
    }),
  };
}

// What fills the model's window right now, by kind: for whoever wonders where the room went.

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

interface WindowLists {
  readonly files: readonly Share[];
  readonly skills: readonly Share[];
  readonly toolsets: readonly Share[];
}

interface PromptPiece {
  readonly id: string;
  readonly text: string;
}

export interface WindowContext {
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

export async function windowUse(context: WindowContext): Promise<WindowUse> {
  const { conversation } = context;
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
  for (const { id, text } of await promptPieces(context)) add(CATEGORY_OF[id] ?? "System prompt", estimateTokens(text));
  for (const tool of conversation.definitions) add(categoryOf(tool), estimateTokens(JSON.stringify(tool)));
  add("Conversation", messagesCost(await conversation.store.load(conversation.agent.sessionId)));
  const categories = [...sums].map(([label, tokens]) => ({ label, tokens }));
  const used = categories.reduce((sum, { tokens }) => sum + tokens, 0);
  return { contextLength, categories, free: Math.max(0, contextLength - used) };
}

/** The prompt in force, or the one the first message would get; a text of which nothing is known is one piece. */
export async function promptPieces(context: WindowContext): Promise<readonly PromptPiece[]> {
  const { store, agent } = context.conversation;
  const record = await store.getPrompt(agent.sessionId);
  if (!record || record.prompt === "") return (await inspect(context)).build.blocks;
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
export async function windowLists(context: WindowContext): Promise<WindowLists> {
  const { registry } = await import("../tools/toolset/registry.ts");
  const { build } = await inspect(context);
  const index = (await promptPieces(context)).find(({ id }) => id === "skills_index")?.text ?? "";
  const entries = index.split("\n").flatMap((line) => {
    const names = /^ {2}.+ \[names only\]: (.+)$/.exec(line)?.[1]?.split(", ") ?? [];
    const name = /^ {4}- ([^:]+)/.exec(line)?.[1];
    return name === undefined
      ? names.map((label) => ({ label, tokens: estimateTokens(label) }))
      : [{ label: name, tokens: estimateTokens(line) }];
  });
  const bySet = Map.groupBy(context.conversation.definitions, ({ function: { name } }) =>
    name.startsWith("mcp_") ? "mcp" : (registry.get(name)?.toolset ?? "other"),
  );
  return {
    files: largestFirst(build.contextFiles.map(({ path, tokens }) => ({ label: context.home.display(path), tokens }))),
    skills: largestFirst(entries),
    toolsets: largestFirst(
      [...bySet].map(([label, tools]) => ({ label, tokens: estimateTokens(JSON.stringify(tools)) })),
    ),
  };
}

function inspect({ conversation, home, clock, cwd, platform }: WindowContext) {
  const { target, toolNames, ignoresRules: ignoreRules } = conversation;
  return inspectPrompt({ home, clock, cwd, platform, target, toolNames, ignoreRules });
}

function categoryOf({ function: { name } }: ToolDefinition): string {
  if (name.startsWith("mcp_")) return "MCP";
  return name === "delegate_task" ? "Subagent definitions" : "Tool definitions";
}

const largestFirst = (shares: readonly Share[]) =>
  shares.filter(({ tokens }) => tokens > 0).toSorted((a, b) => b.tokens - a.tokens || (a.label < b.label ? -1 : 1));
