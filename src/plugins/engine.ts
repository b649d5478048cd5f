// What keeps a conversation inside the model's window. One engine serves a conversation; `context.engine` names it.
import type { Message } from "../llm/messages.ts";
import type { ToolDefinition } from "../llm/wire.ts";

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

export interface SessionMeta {
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
