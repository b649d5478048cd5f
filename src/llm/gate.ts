// Every model call of the program passes here: caps are checked, the call is metered, one ledger row is written.
import { UserError } from "../kit/errors.ts";
import type { Usage } from "./usage.ts";
import type { ModelEvent, ModelRequest, Target } from "./wire.ts";

export type Task =
  | "main"
  | "subagent"
  | "background_review"
  | "flush_memories"
  | "compression"
  | "title_generation"
  | "vision"
  | "web_extract"
  | "approval"
  | "mcp"
  | "curator"
  | "skills_hub"
  | "goal_judge"
  | "triage_specifier"
  | "kanban_decomposer"
  | "plugin"
  | "image_generation"
  | "text_to_speech"
  | "transcription";

/** Who pays for a call, and for what. */
export interface CallPurpose {
  readonly task: Task;
  readonly sessionId: string | null;
  readonly turn?: number;
  readonly jobId?: string;
}

/** Why a request may begin with other bytes than the one before it. Anything else that changes them is a defect. */
export type PrefixCause =
  | "compression"
  | "prune"
  | "model"
  | "selection"
  | "reload"
  | "rewind"
  | "ephemeral"
  | "client"
  | "image_lost"
  | "repair";

/** How much of a request was the same as the one before it, and who broke it where. */
export interface PrefixReport {
  /** Of system text, tool list and messages. */
  readonly bytes?: number;
  /** Absent for calls that continue nothing. */
  readonly commonBytes?: number;
  readonly brokeOwner?: string;
  readonly brokeOffset?: number;
  readonly cause?: PrefixCause;
}

export type CostStatus = "actual" | "estimated" | "included" | "unknown";

/** One row of the ledger (`model_calls`). `null` tokens = not reported, `null` cost = unknown; neither is ever 0 by default. */
export interface CallRecord extends CallPurpose, PrefixReport {
  readonly model: string;
  readonly provider: string;
  readonly baseUrl: string;
  readonly apiMode: string;
  /** Unix seconds. */
  readonly startedAt: number;
  readonly ms: number;
  readonly outcome: "ok" | "error" | "aborted" | "refused" | "reserved";
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly cacheReadTokens: number | null;
  readonly cacheWriteTokens: number | null;
  readonly reasoningTokens: number | null;
  readonly costUsd: number | null;
  readonly costStatus: CostStatus;
  readonly costSource: string | null;
}

export type CapScope = "call" | "session" | "job" | "goal" | "day";
interface Cap {
  readonly usd: number | null;
  readonly tokens: number | null;
}
/** `goal`: of each standing goal; its calls have a job id that begins with `GOAL_ACCOUNT`. */
export type Caps = Readonly<Record<Exclude<CapScope, "goal">, Cap>> & { readonly goal?: Cap };

export const GOAL_ACCOUNT = "goal:";

/** `session` covers the whole lineage, `day` the local calendar day of this home. */
export type SpendingScope = { readonly session: string } | { readonly job: string } | { readonly day: Date };

export interface SpendingLimit {
  readonly scope: SpendingScope;
  readonly usd: number | null;
  readonly tokens: number | null;
}

export type Reservation =
  | { readonly reservation: number }
  /** The first limit, by its place in the list, that this call would pass; spent = booked and reserved so far. */
  | { readonly exceeded: number; readonly unit: "usd" | "tokens"; readonly spent: number };

/**
 * The port to the ledger. The session store satisfies it.
 *
 * - `reserveCall` decides and reserves in one step, for all processes of the home: what is under way counts as if it were spent. The row it
 *   is given (`outcome: "reserved"`) holds the estimate.
 * - A reservation counts until `recordCall` puts what really was in its place. It dies with its process, and after an hour whatever happens.
 */
export interface Ledger {
  recordCall(call: CallRecord, reservation?: number): Promise<void>;
  reserveCall(call: CallRecord, limits: readonly SpendingLimit[]): Promise<Reservation>;
}

/** What is paid for without being a question to a chat model: a picture, speech, a transcript. */
export interface PaidCall extends Pick<Target, "model" | "provider" | "baseUrl" | "apiKey" | "keyHosts"> {
  /** The kind of endpoint, as the ledger names it. */
  readonly apiMode: string;
  /** What it is made from; caps in tokens go by its length. */
  readonly input: string;
}

/** What came back; `usage` null when the server did not count. */
export interface PaidAnswer<T> {
  readonly value: T;
  readonly usage: PaidUsage | null;
}

export type PaidUsage = Pick<Usage, "inputTokens" | "outputTokens">;

/** What a paid call took; `usd` null = unknown. */
export interface PaidCost {
  readonly usd: number | null;
  readonly status: CostStatus;
}

/** A cap or a key of another host keeps a paid call from leaving. The message is for the user. */
export class CallRefusedError extends UserError {
  override name = "CallRefusedError";
}

/**
 * The one gate.
 *
 * - Caps are checked before anything leaves; a refusal yields `failed` with code `budget_exceeded` and no traffic.
 * - Exactly one ledger row per call, whatever its end; a ledger that fails is reported through `onDefect`, never thrown at the turn.
 * - Events pass through without delay, untouched but for `usage`, which gains its cost.
 * - Within one session and destination each request must begin with the bytes of the last answered one. A break that nobody announced is
 *   reported through `onDefect` with its owner; the call goes on.
 */
export interface ModelGate {
  stream(request: ModelRequest, purpose: CallPurpose, signal: AbortSignal): AsyncIterable<ModelEvent>;
  /** The same caps and the same ledger for a paid call. Rejects with `CallRefusedError` before anything left, else with what `send` threw. */
  pay<T>(
    call: PaidCall,
    purpose: CallPurpose,
    send: () => Promise<PaidAnswer<T>>,
    signal: AbortSignal,
  ): Promise<PaidAnswer<T> & { readonly cost: PaidCost }>;
  /** Announces that requests of this session may begin differently from here on, and why. */
  expectNewPrefix(sessionId: string, cause: PrefixCause): void;
}
