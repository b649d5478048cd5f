// The tools of one session, collected once: what the model is shown, and how its calls are answered.
import type { Config } from "../../home/config/schema.ts";
import type { Logger } from "../../home/log.ts";
import { messageOf } from "../../kit/errors.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import type { ToolDefinition } from "../../llm/wire.ts";
import type { Environment } from "../../sandbox/environment.ts";
import { noteToolCall } from "../files/workspace.ts";
import { type AvailabilityCache, type DefinitionSource, toolDefinitions } from "./availability.ts";
import type { StateKey, TextOrigin, ToolContext, ToolState } from "./context.ts";
import { prepareArguments, runTool, toolError } from "./dispatch.ts";
import { early, type ToolEntry, type ToolOutput, type ToolRegistry } from "./registry.ts";
import { environmentResultStore, limitResult, limitTurn, resultLimit, type SizeLimits, sizeLimits } from "./results.ts";
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

export interface SessionToolsOptions {
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

/** Tools of a session that come from elsewhere than the registry: a memory provider, a context engine, the program around it. */
export interface ForeignTools {
  readonly definitions: readonly ToolDefinition[];
  readonly textOrigin?: TextOrigin;
  call(name: string, args: Arguments, ctx: ToolContext): Promise<ToolOutput>;
}

interface SizedResult {
  readonly callId: string;
  readonly name: string;
  readonly text: string;
}

/** A list as it is sent, and every name that may be called with it. */
interface List {
  readonly definitions: readonly ToolDefinition[];
  readonly listed: ReadonlySet<string>;
  /** The list and what waits behind it. */
  readonly names: ReadonlySet<string>;
  readonly canSearch: boolean;
}

/**
 * The tools of one session: what the model is shown, and how its calls are answered.
 *
 * - `definitions` keeps order and bytes in every request; only `add`, `use` and `swap` change it, each on the user's word.
 * - `call` never rejects; a tool outside this session answers like one that does not exist.
 * - Tools that are not in the list are reached through its bridges, also those that came after the list was made.
 */
export class SessionTools {
  readonly state: OwnedToolState;
  /** Toolset names nobody knows. */
  readonly unknown: readonly string[];
  readonly #selection: Selection;
  readonly #limits: SizeLimits;
  readonly #foreign: Map<string, ForeignTools>;
  /** Set in a review: the list stays whole for the prefix, calls of other tools are refused. */
  readonly #allowed: ReadonlySet<string> | null;
  #chosen: ToolsetAnswer;
  /** Behind the list, in their own order. */
  #appended: readonly ToolDefinition[];
  #list: List;

  /** The list a new session begins with. */
  static async open(options: SessionToolsOptions): Promise<SessionTools> {
    const selection = new Selection(options);
    return new SessionTools(selection, await firstList(selection));
  }

  /** A list that is known already. */
  static of(options: SessionToolsOptions, definitions: readonly ToolDefinition[]): SessionTools {
    return new SessionTools(new Selection(options), definitions);
  }

  private constructor(
    selection: Selection,
    definitions: readonly ToolDefinition[],
    of?: { readonly foreign: Map<string, ForeignTools>; readonly allowed: ReadonlySet<string> },
  ) {
    const { options, chosen } = selection;
    this.#selection = selection;
    this.#chosen = options.only
      ? { ...chosen, toolsets: toolsetsOf(options.only, chosen.toolsets, options.registry) }
      : chosen;
    this.unknown = chosen.unknown;
    this.state = createToolState();
    this.#limits = sizeLimits(options.contextLength);
    this.#foreign = of?.foreign ?? new Map();
    this.#allowed = of?.allowed ?? null;
    this.#appended = [];
    this.#list = this.#listOf(definitions);
  }

  get definitions(): readonly ToolDefinition[] {
    return this.#list.definitions;
  }

  /** Every name that may be called, deferred tools included. */
  get names(): ReadonlySet<string> {
    return this.#list.names;
  }

  get toolsets(): readonly string[] {
    return this.#chosen.toolsets;
  }

  /** Configured MCP servers of this session, connected or not. */
  get servers(): readonly string[] {
    return this.#chosen.servers;
  }

  /** Sorted in like the rest (the order is part of what is cached), or appended behind the list. Names that are taken stay what they are. */
  add(tools: ForeignTools, where: "sorted" | "behind"): void {
    const added = tools.definitions.filter(({ function: { name } }) => !this.names.has(name));
    for (const { function: of } of added) this.#foreign.set(of.name, tools);
    if (where === "behind") {
      this.#appended = [...this.#appended, ...added];
      this.#list = this.#listOf(this.#base());
    } else this.#list = this.#listOf(sorted([...this.#base(), ...added]));
  }

  /** Another list with the same tools and state behind it: the one an earlier run of the session sent. */
  use(definitions: readonly ToolDefinition[]): void {
    this.#list = this.#listOf(definitions);
  }

  /** Takes over what another opening of the same session chose. State stays: it belongs to the conversation, not to the list. */
  swap(other: SessionTools): void {
    this.#chosen = other.#chosen;
    for (const [name, tools] of other.#foreign) this.#foreign.set(name, tools);
    this.#list = this.#listOf(other.#base());
  }

  /** The same list with state of its own, of which only these tools run. */
  only(allowed: ReadonlySet<string>): SessionTools {
    const restricted = new SessionTools(this.#selection, this.#base(), { foreign: this.#foreign, allowed });
    restricted.#appended = this.#appended;
    restricted.#list = this.#list;
    return restricted;
  }

  /**
   * A call as hooks, displays and `call` take it: out of its bridge, with the tool's own key names, and declared types where the text left
   * no doubt.
   */
  prepare(name: string, args: Arguments): { readonly name: string; readonly args: Arguments } {
    const inner = name === "tool_call" && this.#list.canSearch ? unwrapCall(args, (other) => this.#entry(other)) : null;
    const call = inner ?? { name, args };
    const entry = this.#entry(call.name);
    return entry ? { name: call.name, args: prepareArguments(entry, call.args) } : call;
  }

  /** `args` as `prepare` gave them. */
  async call(name: string, args: Arguments, ctx: ToolContext): Promise<ToolOutput> {
    if (this.#allowed?.has(name) === false) {
      const those = [...this.#allowed].join(", ");
      return toolError(`${name} was not run: in a review only memory and skill tools are allowed (${those}).`);
    }
    if (this.#list.canSearch && BRIDGES.has(name)) return this.#search(name, args, ctx.signal);
    const foreign = this.#foreign.get(name);
    if (foreign) return callForeign(foreign, name, { args, ctx });
    const missing = this.names.has(name) && !this.#entry(name) ? await this.#explainMissing(name, ctx.signal) : null;
    const entry = this.#entry(name);
    if (!entry) return toolError(missing ?? `Unknown tool: ${name}`);
    if (!this.#list.listed.has(name) && !(await this.#selection.isAvailable(entry))) {
      const { unavailable } = await import("./search.ts");
      return unavailable(entry);
    }
    noteToolCall(this.state, name);
    return runTool(entry, args, ctx);
  }

  /** A text over its limit moves to a file; what comes back is what the model sees. */
  limitResult({ callId, name, text }: SizedResult, sessionId: string): Promise<string> {
    return limitResult(callId, text, resultLimit(this.#entry(name), this.#limits), this.#results(sessionId));
  }

  /** The same for all results of one answer together, largest first; in the order given. */
  async limitBatch(results: readonly SizedResult[], sessionId: string): Promise<readonly string[]> {
    return (await limitTurn(results, this.#limits.perTurn, this.#results(sessionId))).map(({ text }) => text);
  }

  textOrigin(name: string): TextOrigin | undefined {
    return this.#foreign.get(name)?.textOrigin ?? this.#entry(name)?.traits.textOrigin;
  }

  /** The MCP server it belongs to; null for a tool of anyone else. */
  serverOf(name: string): string | null {
    const toolset = this.#entry(name)?.toolset;
    return toolset?.startsWith("mcp-") ? toolset.slice("mcp-".length) : null;
  }

  /** Side by side with others, though the planner does not know it (MCP servers that say so). */
  isParallelTool(name: string): boolean {
    return this.#entry(name)?.traits.parallel === true;
  }

  /** It changes nothing, whatever it is called with. */
  isReadOnly(name: string): boolean {
    return this.#entry(name)?.traits.readOnly === true;
  }

  /** The tool's own time limit for this call. Some time later the loop gives it up; without one it waits. */
  timeoutMs(name: string, args: Arguments): number | undefined {
    return this.#entry(name)?.spec.timeoutMs?.(args, this.#selection.options.config);
  }

  /** The tool shows signs of life itself. */
  showsLife(name: string): boolean {
    return this.#entry(name)?.spec.showsLife === true;
  }

  /** A resumed conversation: tool families read back what they keep in it. */
  hydrate(history: readonly HistoryMessage[]): void {
    if (this.#allowed) return;
    for (const name of this.names) {
      const entry = this.#entry(name);
      if (entry) early(entry, "hydrate")?.(this.state, history);
    }
  }

  #listOf(base: readonly ToolDefinition[]): List {
    const definitions = this.#appended.length > 0 ? [...base, ...this.#appended] : base;
    const listed = new Set(definitions.map((definition) => definition.function.name));
    const canSearch = listed.has("tool_call");
    const names = new Set([...listed, ...(canSearch ? waitingBehind(listed, this.#selection) : [])]);
    return { definitions, listed, names, canSearch };
  }

  #base(): readonly ToolDefinition[] {
    const { definitions } = this.#list;
    return this.#appended.length > 0 ? definitions.slice(0, definitions.length - this.#appended.length) : definitions;
  }

  #entry(name: string): ToolEntry | undefined {
    return this.#list.listed.has(name) ? this.#selection.options.registry.get(name) : this.#selection.find(name);
  }

  #results(sessionId: string) {
    return environmentResultStore(this.#selection.options.environment, sessionId);
  }

  async #explainMissing(name: string, signal: AbortSignal): Promise<string | null> {
    return (await this.#selection.options.explainMissing?.(name, signal)) ?? null;
  }

  /** What ranks and describes is loaded with the first question. */
  async #search(bridge: string, args: Arguments, signal: AbortSignal): Promise<string> {
    const { answerBridge } = await import("./search.ts");
    return answerBridge(bridge, args, {
      source: { ...this.#selection.source, session: this.names },
      settings: this.#selection.split.settings,
      hidden: () => this.#selection.entries().filter(({ name }) => !this.#list.listed.has(name)),
      find: (name) => this.#entry(name),
      explainMissing: (name) => this.#explainMissing(name, signal),
    });
  }
}

async function callForeign(
  tools: ForeignTools,
  name: string,
  { args, ctx }: { readonly args: Arguments; readonly ctx: ToolContext },
): Promise<ToolOutput> {
  try {
    return await tools.call(name, args, ctx);
  } catch (error) {
    return toolError(`${name}: ${messageOf(error)}`);
  }
}

/** The tools a session may use, looked up anew when the registry changed: servers come and go. */
class Selection {
  readonly options: SessionToolsOptions;
  readonly chosen: ToolsetAnswer;
  readonly source: DefinitionSource;
  readonly split: SplitFacts;
  #live: { readonly generation: number; readonly names: ReadonlySet<string> } | null = null;

  constructor(options: SessionToolsOptions) {
    this.options = options;
    this.chosen = chooseToolsets(options, options.registry);
    const facts = {
      env: (name: string) => options.env(name),
      platform: options.platform,
      ports: options.ports ?? new Set(),
      sandboxed: options.environment.confinement !== undefined,
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
async function firstList(selection: Selection): Promise<readonly ToolDefinition[]> {
  const { source, split, chosen } = selection;
  const entries = selection.entries();
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
function waitingBehind(listed: ReadonlySet<string>, selection: Selection): readonly string[] {
  const entries = selection.entries();
  const foreignListed = entries.some(({ name, toolset }) => listed.has(name) && isForeign(toolset));
  return entries
    .filter((entry) => (isForeign(entry.toolset) ? !foreignListed : isDeferredCore(entry, selection.split)))
    .map(({ name }) => name);
}

/** State of tool families that lives as long as one agent. */
interface OwnedToolState extends ToolState {
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
