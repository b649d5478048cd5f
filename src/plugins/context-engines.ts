// Which engine keeps a conversation short: the default one, or the one that `context.engine` names. Installing one chooses nothing.

import { join } from "node:path";
import type { Logger } from "../home/log.ts";
import { type Clock, within } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import { importDefault } from "../kit/lazy.ts";
import type { Message } from "../llm/messages.ts";
import type { ToolDefinition } from "../llm/wire.ts";

export type EngineFactory = (model: EngineModel) => ContextEngine | Promise<ContextEngine>;

interface EngineSearch {
  /** `context.engine`. */
  readonly name: string;
  readonly model: EngineModel;
  /** Folders that may hold `context_engine/<name>/`, the package's first, then the home's. */
  readonly pluginFolders: readonly string[];
  /** Asked before code of a folder runs; rejects when it may not. */
  verify?(folder: string): Promise<void>;
  /** The default engine. */
  readonly standard: () => ContextEngine | Promise<ContextEngine>;
  readonly log: Pick<Logger, "warn">;
  readonly clock: Clock;
}

const LOADS_WITHIN_MS = 10_000;

const registered = new Map<string, EngineFactory>();

/** For plugins. It is used when `context.engine` names it. Returns how to take it back. */
export function registerContextEngine(name: string, factory: EngineFactory): () => void {
  registered.set(name, factory);
  return () => {
    if (registered.get(name) === factory) registered.delete(name);
  };
}

export interface OpenedEngine {
  readonly engine: ContextEngine;
  /** Why it is not the one that was named, for the user; null when it is. */
  readonly complaint: string | null;
}

/** Never fails: where the named engine is unknown or broken, the default one serves. */
export async function openContextEngine(search: EngineSearch): Promise<OpenedEngine> {
  const { name, log } = search;
  if (isStandard(name)) return { engine: await search.standard(), complaint: null };
  let complaint = `There is no context engine "${name}"`;
  let cause: unknown;
  try {
    const engine = await within(() => load(search), LOADS_WITHIN_MS, search.clock);
    if (engine) return { engine: guardEngine(checked(engine, name), log), complaint: null };
  } catch (error) {
    cause = error;
    complaint = `The context engine "${name}" could not be loaded (${messageOf(error)})`;
  }
  complaint += "; using the default one. It is set by context.engine in config.yaml.";
  log.warn(complaint, cause);
  return { engine: await search.standard(), complaint };
}

async function load(search: EngineSearch): Promise<ContextEngine | null> {
  const factory = registered.get(search.name) ?? (await findFactory(search));
  return (await factory?.(search.model)) ?? null;
}

async function findFactory({ name, pluginFolders, verify }: EngineSearch): Promise<EngineFactory | null> {
  if (!/^[\w-]+$/.test(name)) return null;
  const folders = pluginFolders.map((folder) => join(folder, "context_engine", name));
  return (await importDefault(folders, "an engine", verify)) as EngineFactory | null; // what it makes is checked when it is made
}

function checked(engine: ContextEngine, name: string): ContextEngine {
  const missing = (["compress", "shouldCompress", "updateFromResponse"] as const).filter(
    (member) => typeof engine?.[member] !== "function",
  );
  if (missing.length > 0) throw new Error(`the engine "${name}" lacks ${missing.join(", ")}`);
  return engine;
}

// What keeps a conversation inside the model's window. One engine serves a conversation; `context.engine` names it.

/**
 * - `compress` resolves to the shorter list, or to the very same list when nothing was done; it never changes what it was given.
 * - `onSessionStart`, `onSessionEnd` and `onSessionReset` mark real boundaries of a conversation, not turns.
 * - It is made within ten seconds and done at a boundary within five; what it throws in between is logged, and the conversation goes on.
 * - `compress` ends with its signal; one that does not is left behind.
 * - Tools of an engine are offered to the model like all others and come to `handleToolCall`.
 */
export interface ContextEngine {
  readonly name: string;
  readonly lastPromptTokens: number;
  readonly lastCompletionTokens: number;
  readonly lastTotalTokens: number;
  readonly thresholdTokens: number;
  readonly contextLength: number;
  readonly compressionCount: number;
  readonly protectFirstN: number;
  readonly protectLastN: number;
  /** After each call: what it really used. */
  updateFromResponse(usage: EngineUsage): void;
  shouldCompress(promptTokens?: number): boolean;
  compress(messages: readonly Message[], options?: CompressOptions): Promise<readonly Message[]>;
  /** Default false: the loop measures by itself. */
  shouldCompressPreflight?(messages: readonly Message[]): boolean;
  /** Default true. */
  hasContentToCompress?(messages: readonly Message[]): boolean;
  /** Why `shouldCompress` says no though the threshold is reached: `cooldown:<seconds>` or `ineffective`. */
  shouldCompressInfo?(promptTokens?: number): { readonly compress: boolean; readonly reason?: string };
  onSessionStart?(id: string, meta: SessionMeta): void | Promise<void>;
  onSessionEnd?(id: string, messages: readonly Message[]): void | Promise<void>;
  onSessionReset?(): void;
  getToolSchemas?(): readonly ToolDefinition[];
  handleToolCall?(name: string, args: Readonly<Record<string, unknown>>): Promise<string>;
  getStatus?(): Readonly<Record<string, unknown>>;
  updateModel?(model: EngineModel): void;
}

export interface EngineUsage {
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly totalTokens: number | null;
}

export interface EngineModel {
  readonly model: string;
  readonly contextLength: number;
  readonly baseUrl: string;
  readonly provider: string;
  readonly apiMode: string;
}

interface SessionMeta {
  readonly boundaryReason?: "compression";
  readonly oldSessionId?: string;
}

export interface CompressOptions {
  /** The whole request, prompt and tools included. */
  readonly currentTokens?: number | undefined;
  readonly focusTopic?: string | undefined;
  /** The user asked for it: thresholds, cooldowns and doubts do not count. */
  readonly force?: boolean | undefined;
  /** Keep exactly the last so many user turns. */
  readonly keepTurns?: number | undefined;
  /** The last result was still too long: each step halves what stays of the recent part. */
  readonly squeeze?: number | undefined;
  /** A summary that fails leaves everything as it is. Default: as the engine was made. */
  readonly abortOnSummaryFailure?: boolean | undefined;
  /** Lines that every summary carries word for word. */
  readonly pins?: readonly string[] | undefined;
  /** What a memory provider wants the summary to keep. */
  readonly notes?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The engine that serves when `context.engine` names no other. */
export const STANDARD_ENGINE = "compressor";

export const isStandard = (name: string) => name === STANDARD_ENGINE || name === "";

const BOUND_WITHIN_MS = 5000;

/** What the loop takes for granted when an engine has no answer. */
const OTHERWISE: Partial<{ readonly [Member in keyof ContextEngine]: unknown }> = {
  updateFromResponse: undefined,
  shouldCompress: false,
  shouldCompressPreflight: false,
  shouldCompressInfo: { compress: false },
  hasContentToCompress: true,
  getToolSchemas: [],
  getStatus: {},
  updateModel: undefined,
};

/**
 * An engine that somebody else wrote. What it throws when it is asked in passing is logged, and the conversation goes on as if it had said
 * nothing; failures of `compress` and at the bounds of a conversation are reported by the loop.
 */
export function guardEngine(engine: ContextEngine, log: Pick<Logger, "warn">): ContextEngine {
  return new Proxy(engine, {
    get(target, member) {
      // The engine itself is the receiver: private fields are not reached through a proxy.
      const value: unknown = Reflect.get(target, member, target);
      if (typeof value !== "function") return value;
      if (!Object.hasOwn(OTHERWISE, member)) return value.bind(target);
      const otherwise = OTHERWISE[member as keyof ContextEngine]; // one of its own keys
      const failed = (error: unknown) => {
        log.warn(`context engine "${target.name}": ${String(member)} failed`, error);
        return otherwise;
      };
      return (...args: readonly unknown[]) => {
        try {
          const given: unknown = Reflect.apply(value, target, args);
          if (!(given instanceof Promise)) return given;
          // Nobody waits here: a promise is no answer, and its failure must not end the process.
          given.catch(failed);
          return otherwise;
        } catch (error) {
          return failed(error);
        }
      };
    },
  });
}

/** Notifies an engine of the start or end of a conversation. The conversation does not wait longer than a limit, whatever the engine does. */
export async function notifyBound(
  { log, clock }: { readonly log: Pick<Logger, "warn">; readonly clock: Clock },
  notify: () => void | Promise<void> | undefined,
): Promise<void> {
  try {
    const notified = notify();
    if (notified) await within(() => notified, BOUND_WITHIN_MS, clock);
  } catch (error) {
    log.warn("the context engine failed at a boundary of the conversation", error);
  }
}
