// What a memory outside our two files has to offer. At most one is in use, chosen by `memory.provider`.
import type { Config } from "../../home/config/schema.ts";
import type { Logger } from "../../home/log.ts";
import type { HomePaths } from "../../home/paths.ts";
import type { Clock } from "../../kit/clock.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import type { MemoryTarget } from "../entries.ts";
import type { MemoryAction } from "../request.ts";

/**
 * One external memory, for one conversation.
 *
 * - Every member but the first three is optional; all may be asynchronous.
 * - Whatever throws is logged and ignored, whatever takes too long is no longer waited for: a turn never fails because of it.
 * - `prefetch`, `onPreCompress` and the tools are waited for. Everything that writes comes one after the other, in order, while turns go on.
 * - It gets what the user typed, never the text of a skill that was called with it.
 * - It must not write unless `agentContext` is `primary`.
 */
export interface MemoryProvider {
  readonly name: string;
  /** Looks at the configuration alone; no network. */
  isAvailable(): boolean | Promise<boolean>;
  initialize(sessionId: string, about: ProviderSession): void | Promise<void>;
  /** For the system prompt, once per build; empty = nothing. */
  systemPromptBlock?(): string | Promise<string>;
  onTurnStart?(turn: number, text: string, about: { readonly sessionId: string }): void | Promise<void>;
  /** What belongs to this message; empty = nothing. */
  prefetch?(
    query: string,
    about: { readonly sessionId: string; readonly signal: AbortSignal },
  ): string | Promise<string>;
  /** A turn is over: the next one may want the like. */
  queuePrefetch?(query: string, about: { readonly sessionId: string }): void | Promise<void>;
  /** After every turn that ended with an answer. */
  syncTurn?(
    user: string,
    assistant: string,
    about: { readonly sessionId: string; readonly messages: readonly HistoryMessage[] },
  ): void | Promise<void>;
  /** `{name, description, parameters}`, bare or as `{type: "function", function}`. A name of a core tool is refused. */
  getToolSchemas?(): readonly unknown[] | Promise<readonly unknown[]>;
  handleToolCall?(name: string, args: Readonly<Record<string, unknown>>): unknown;
  /** After a write to the built-in memory that is on disk, once per operation. */
  onMemoryWrite?(
    action: MemoryAction,
    target: MemoryTarget,
    content: string,
    meta: MemoryWriteFacts,
  ): void | Promise<void>;
  /** Text that the summary of what is about to go has to keep. */
  onPreCompress?(messages: readonly HistoryMessage[]): string | Promise<string>;
  onDelegation?(task: string, result: string, about: { readonly childSessionId: string }): void | Promise<void>;
  onSessionSwitch?(newSessionId: string, about: SessionSwitch): void | Promise<void>;
  /** The conversation is really over, not just a turn of it. */
  onSessionEnd?(messages: readonly HistoryMessage[]): void | Promise<void>;
  /** What `hermes memory setup` asks for. */
  getConfigSchema?(): readonly ProviderField[];
  saveConfig?(values: Readonly<Record<string, string>>, home: string): void | Promise<void>;
  /** Lines for `hermes memory status`. */
  status?(): readonly string[] | Promise<readonly string[]>;
  /** Files and folders of the home that a backup has to hold. */
  backupPaths?(): readonly string[];
  shutdown?(): void | Promise<void>;
}

export interface ProviderSession {
  readonly hermesHome: string;
  readonly platform: string;
  readonly agentContext: "primary" | "subagent" | "cron" | "flush";
  /** The profile. */
  readonly agentIdentity: string;
  readonly parentSessionId?: string | undefined;
  readonly userId?: string | undefined;
  readonly userName?: string | undefined;
  readonly chatId?: string | undefined;
  readonly threadId?: string | undefined;
  readonly gatewaySessionKey?: string | undefined;
  readonly sessionTitle?: string | undefined;
}

interface MemoryWriteFacts {
  readonly write_origin: string;
  readonly execution_context: string;
  readonly session_id: string | null;
  readonly parent_session_id: string | null;
  readonly platform: string | null;
  readonly tool_name: string;
  readonly old_text?: string;
}

export interface SessionSwitch {
  readonly parentSessionId?: string | undefined;
  /** Nothing of the old conversation is left. */
  readonly reset?: boolean;
  /** The last turns were taken back. */
  readonly rewound?: boolean;
}

export interface ProviderField {
  readonly key: string;
  readonly description: string;
  /** Kept in .env, under `env_var`. */
  readonly secret?: boolean;
  readonly required?: boolean;
  readonly default?: string;
  readonly choices?: readonly string[];
  /** Where the user gets it. */
  readonly url?: string;
  readonly env_var?: string;
}

/** The home a provider works for. */
export interface ProviderContext {
  readonly paths: HomePaths;
  config(): Config;
  env(name: string): string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** The plugins that came with the program; by default next to its code. */
  readonly packagePlugins?: string;
}

export type ProviderFactory = (context: ProviderContext) => MemoryProvider | Promise<MemoryProvider>;
