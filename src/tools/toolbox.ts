// The tools of one session, collected once: what the model is shown, and how its calls are answered.
import type { Config } from "../home/config/schema.ts";
import type { Logger } from "../home/log.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { ToolDefinition } from "../llm/wire.ts";
import type { Environment } from "../sandbox/environment.ts";
import type { AvailabilityCache } from "./availability.ts";
import type { TextOrigin, ToolContext } from "./context.ts";
import { toolDefinitions } from "./definitions.ts";
import { dispatch, prepareArguments, toolError } from "./dispatch.ts";
import { noteToolCall } from "./file-activity.ts";
import { early, type ToolOutput, type ToolRegistry } from "./registry.ts";
import { limitResult, limitTurn, resultLimit, sizeLimits } from "./result-size.ts";
import { environmentResultStore } from "./result-store.ts";
import { createToolState, type OwnedToolState } from "./state.ts";
import { chooseToolsets, type ToolsetAnswer } from "./toolsets.ts";

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
  /**
   * Why a tool of this session is not there now (its server is gone), in words for the model; null = nobody knows it. May wait a while
   * for a tool that is on its way.
   */
  explainMissing?(name: string, signal: AbortSignal): Promise<string | null>;
}

/**
 * - `definitions` never changes after opening: same order, same bytes in every request.
 * - `call` never rejects; a tool outside this session answers like one that does not exist.
 */
export interface Toolbox {
  readonly definitions: readonly ToolDefinition[];
  readonly names: ReadonlySet<string>;
  readonly toolsets: readonly string[];
  /** Configured MCP servers of this session, connected or not. */
  readonly servers: readonly string[];
  /** Toolset names nobody knows. */
  readonly unknown: readonly string[];
  readonly state: OwnedToolState;
  call(name: string, args: Arguments, ctx: ToolContext): Promise<ToolOutput>;
  prepare(name: string, args: Arguments): Arguments;
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

export interface SizedResult {
  readonly callId: string;
  readonly name: string;
  readonly text: string;
}

export async function openToolbox(options: ToolboxOptions): Promise<Toolbox> {
  const chosen = chooseToolsets(options, options.registry);
  const facts = { env: (name: string) => options.env(name), platform: options.platform };
  const wanted = chosen.tools.filter((name) => options.only?.has(name) ?? true);
  const definitions = await toolDefinitions(wanted, { ...options, facts });
  return makeToolbox(options, chosen, definitions, createToolState());
}

function makeToolbox(
  options: ToolboxOptions,
  chosen: ToolsetAnswer,
  definitions: readonly ToolDefinition[],
  state: OwnedToolState,
): Toolbox {
  const { registry, environment, config } = options;
  const names = new Set(definitions.map((definition) => definition.function.name));
  const limits = sizeLimits(options.contextLength);
  const entryOf = (name: string) => (names.has(name) ? registry.get(name) : undefined);
  return {
    definitions,
    names,
    toolsets: chosen.toolsets,
    servers: chosen.servers,
    unknown: chosen.unknown,
    state,
    async call(name, args, ctx) {
      const missing = names.has(name) && !entryOf(name) ? await options.explainMissing?.(name, ctx.signal) : null;
      if (!entryOf(name)) return toolError(missing ?? `Unknown tool: ${name}`);
      noteToolCall(state, name);
      return dispatch(registry, name, args, ctx);
    },
    prepare(name, args) {
      const entry = entryOf(name);
      return entry ? prepareArguments(entry, args) : args;
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
    withDefinitions: (others) => makeToolbox(options, chosen, others, state),
  };
}
