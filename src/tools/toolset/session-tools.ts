// The tools of one session, collected once: what the model is shown, and how its calls are answered.
import type { Config } from "../../home/config/schema.ts";
import type { Logger } from "../../home/log.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import type { ToolDefinition } from "../../llm/wire.ts";
import type { Environment } from "../../sandbox/environment.ts";
import { noteToolCall } from "../files/workspace.ts";
import { type AvailabilityCache, type DefinitionSource, toolDefinitions } from "./availability.ts";
import type { StateKey, TextOrigin, ToolContext, ToolState } from "./context.ts";
import { dispatch, prepareArguments, toolError } from "./dispatch.ts";
import { early, type ToolEntry, type ToolOutput, type ToolRegistry } from "./registry.ts";
import { environmentResultStore, limitResult, limitTurn, resultLimit, sizeLimits } from "./results.ts";
import {
  BRIDGES,
  bridgeDefinitions,
  deferForeign,
  isDeferredCore,
  isForeign,
  listingFor,
  type SplitFacts,
  unwrapCall,
} from "./search-split.ts";
import { chooseToolsets, type ToolsetAnswer, toolsetsOf } from "./toolsets.ts";

type Arguments = Readonly<Record<string, unknown>>;

export interface ToolboxOptions {
  readonly registry: ToolRegistry;
  readonly availability: AvailabilityCache;
  readonly platform: string;
  readonly config: Config;
  /** `--toolsets` of this run. */
  readonly toolsets?: readonly string[];
  readonly delegated?: boolean;
  /** Nothing but these, whatever the toolsets say. */
  readonly only?: ReadonlySet<string>;
  readonly environment: Environment;
  readonly contextLength: number;
  readonly log: Logger;
  env(name: string): string | undefined;
  /** Ports the run has; tools that need another are no part of the session. */
  readonly ports?: ReadonlySet<string>;
  /**
   * Why a tool of this session is not there now (its server is gone), in words for the model; null = nobody knows it. May wait a while
   * for a tool that is on its way.
   */
  explainMissing?(name: string, signal: AbortSignal): Promise<string | null>;
}

/**
 * - `definitions` never changes after opening: same order, same bytes in every request.
 * - `call` never rejects; a tool outside this session answers like one that does not exist.
 * - Tools that are not in the list are reached through its bridges, also those that came after the list was made.
 */
export interface Toolbox {
  readonly definitions: readonly ToolDefinition[];
  /** Every name that may be called: the list and what waits behind it. */
  readonly names: ReadonlySet<string>;
  readonly toolsets: readonly string[];
  /** Configured MCP servers of this session, connected or not. */
  readonly servers: readonly string[];
  /** Toolset names nobody knows. */
  readonly unknown: readonly string[];
  readonly state: OwnedToolState;
  call(name: string, args: Arguments, ctx: ToolContext): Promise<ToolOutput>;
  prepare(name: string, args: Arguments): Arguments;
  /** The real call inside a call of a bridge; any other call as it is. */
  unwrap(name: string, args: Arguments): { readonly name: string; readonly args: Arguments };
  limitResult(result: SizedResult, ctx: { readonly sessionId: string }): Promise<string>;
  limitBatch(results: readonly SizedResult[], ctx: { readonly sessionId: string }): Promise<readonly string[]>;
  textOrigin(name: string): TextOrigin | undefined;
  isParallelTool(name: string): boolean;
  timeoutMs(name: string, args: Arguments): number | undefined;
  showsLife(name: string): boolean;
  hydrate(history: readonly HistoryMessage[]): void;
  /** The same tools and state behind another list: of an earlier run of the session, or of a reload. */
  withDefinitions(definitions: readonly ToolDefinition[]): Toolbox;
}

interface SizedResult {
  readonly callId: string;
  readonly name: string;
  readonly text: string;
}

export async function openToolbox(options: ToolboxOptions): Promise<Toolbox> {
  const session = new SessionTools(options);
  return makeToolbox(session, await firstList(session), createToolState());
}

/** The tools a session may use, looked up anew when the registry changed: servers come and go. */
class SessionTools {
  readonly options: ToolboxOptions;
  readonly chosen: ToolsetAnswer;
  readonly source: DefinitionSource;
  readonly split: SplitFacts;
  #live: { readonly generation: number; readonly names: ReadonlySet<string> } | null = null;

  constructor(options: ToolboxOptions) {
    this.options = options;
    this.chosen = chooseToolsets(options, options.registry);
    const facts = {
      env: (name: string) => options.env(name),
      platform: options.platform,
      ports: options.ports ?? new Set(),
    };
    const { registry, availability, log } = options;
    this.source = { registry, availability, log, facts };
    const { tools } = options.config;
    this.split = {
      settings: tools.tool_search,
      contextLength: options.contextLength,
      kanbanWorker: Boolean(options.env("HERMES_KANBAN_TASK")) && options.delegated !== true,
    };
  }

  get live(): ReadonlySet<string> {
    const { registry, only } = this.options;
    if (this.#live?.generation === registry.generation) return this.#live.names;
    const { tools } = this.#live ? chooseToolsets(this.options, registry) : this.chosen;
    const names = new Set(tools.filter((name) => (only?.has(name) ?? true) && this.#hasPort(name)));
    this.#live = { generation: registry.generation, names };
    return names;
  }

  #hasPort(name: string): boolean {
    const port = this.options.registry.get(name)?.traits.port;
    return port === undefined || this.options.ports?.has(port) === true;
  }

  entries(): readonly ToolEntry[] {
    return [...this.live].flatMap((name) => this.options.registry.get(name) ?? []);
  }

  find(name: string): ToolEntry | undefined {
    return this.live.has(name) ? this.options.registry.get(name) : undefined;
  }

  isAvailable(entry: ToolEntry): Promise<boolean> {
    return this.source.availability.isAvailable(entry, this.source.facts);
  }
}

/** The list a new session begins with. */
async function firstList(session: SessionTools): Promise<readonly ToolDefinition[]> {
  const { source, split, chosen } = session;
  const entries = session.entries();
  const deferred = entries.filter((entry) => isDeferredCore(entry, split)).map(({ name }) => name);
  const define = (some: readonly ToolEntry[]) =>
    toolDefinitions(
      some.map(({ name }) => name),
      { ...source, session: new Set(deferred) },
    );
  const foreign = entries.filter(({ toolset }) => isForeign(toolset));
  const foreignList = await define(foreign);
  const foreignWaits = deferForeign(foreignList, split);
  const waiting = entries.filter((entry) => (isForeign(entry.toolset) ? foreignWaits : deferred.includes(entry.name)));
  const own = entries.filter((entry) => !isForeign(entry.toolset) && !waiting.includes(entry));
  const list = [...(await define(own)), ...(foreignWaits ? [] : foreignList)];
  // A server that is late is reached by search as well.
  const searchable = waiting.length > 0 || chosen.servers.length > 0;
  if (split.settings.enabled === "off" || !searchable) return sorted(list);
  return sorted([...list, ...bridgeDefinitions(listingFor(waiting, split))]);
}

function sorted(definitions: readonly ToolDefinition[]): readonly ToolDefinition[] {
  return [...definitions].sort((a, b) => (a.function.name < b.function.name ? -1 : 1));
}

/** Tools that wait by choice. One that could not be offered when the list was made is left to the search. */
function waitingBehind(listed: ReadonlySet<string>, session: SessionTools): readonly string[] {
  const entries = session.entries();
  const foreignListed = entries.some(({ name, toolset }) => listed.has(name) && isForeign(toolset));
  return entries
    .filter((entry) => (isForeign(entry.toolset) ? !foreignListed : isDeferredCore(entry, session.split)))
    .map(({ name }) => name);
}

function makeToolbox(session: SessionTools, definitions: readonly ToolDefinition[], state: OwnedToolState): Toolbox {
  const { options, chosen, split } = session;
  const { registry, environment, config } = options;
  const listed = new Set(definitions.map((definition) => definition.function.name));
  const canSearch = listed.has("tool_call");
  const names = new Set([...listed, ...(canSearch ? waitingBehind(listed, session) : [])]);
  const limits = sizeLimits(options.contextLength);
  const entryOf = (name: string) => (listed.has(name) ? registry.get(name) : session.find(name));
  const explainMissing = async (name: string, signal: AbortSignal) =>
    (await options.explainMissing?.(name, signal)) ?? null;
  return {
    definitions,
    names,
    toolsets: options.only ? toolsetsOf(options.only, chosen.toolsets, registry) : chosen.toolsets,
    servers: chosen.servers,
    unknown: chosen.unknown,
    state,
    async call(name, args, ctx) {
      if (canSearch && BRIDGES.has(name)) return answer(name, args, ctx.signal);
      const missing = names.has(name) && !entryOf(name) ? await explainMissing(name, ctx.signal) : null;
      const entry = entryOf(name);
      if (!entry) return toolError(missing ?? `Unknown tool: ${name}`);
      if (!listed.has(name) && !(await session.isAvailable(entry))) {
        const { unavailable } = await import("./search.ts");
        return unavailable(entry);
      }
      noteToolCall(state, name);
      return dispatch(registry, name, args, ctx);
    },
    prepare(name, args) {
      const entry = entryOf(name);
      return entry ? prepareArguments(entry, args) : args;
    },
    unwrap(name, args) {
      const inner = name === "tool_call" && canSearch ? unwrapCall(args, entryOf) : null;
      return inner ?? { name, args };
    },
    limitResult: ({ callId, name, text }, { sessionId }) =>
      limitResult(callId, text, resultLimit(entryOf(name), limits), environmentResultStore(environment, sessionId)),
    async limitBatch(results, { sessionId }) {
      const limited = await limitTurn(results, limits.perTurn, environmentResultStore(environment, sessionId));
      return limited.map(({ text }) => text);
    },
    textOrigin: (name) => entryOf(name)?.traits.textOrigin,
    isParallelTool: (name) => entryOf(name)?.traits.parallel === true,
    timeoutMs: (name, args) => entryOf(name)?.spec.timeoutMs?.(args, config),
    showsLife: (name) => entryOf(name)?.spec.showsLife === true,
    hydrate(history) {
      for (const name of names) {
        const entry = entryOf(name);
        if (entry) early(entry, "hydrate")?.(state, history);
      }
    },
    withDefinitions: (others) => makeToolbox(session, others, state),
  };

  /** What ranks and describes is loaded with the first question. */
  async function answer(bridge: string, args: Arguments, signal: AbortSignal): Promise<string> {
    const { answerBridge } = await import("./search.ts");
    return answerBridge(bridge, args, {
      source: { ...session.source, session: names },
      settings: split.settings,
      hidden: () => session.entries().filter(({ name }) => !listed.has(name)),
      find: entryOf,
      explainMissing: (name) => explainMissing(name, signal),
    });
  }
}

/** State of tool families that lives as long as one agent. */
export interface OwnedToolState extends ToolState {
  /** Lets every family put away what it holds; afterwards the state starts empty. */
  dispose(): Promise<void>;
}

export function createToolState(): OwnedToolState {
  const values = new Map<StateKey<unknown>, unknown>();
  return {
    of<T>(key: StateKey<T>): T {
      if (!values.has(key)) values.set(key, key.create());
      return values.get(key) as T; // put there by the same key
    },
    async dispose() {
      const held = [...values];
      values.clear();
      await Promise.all(held.map(([key, value]) => key.dispose?.(value)));
    },
  };
}
