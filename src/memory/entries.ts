// What a memory write answers. The shapes are read by models, displays and the command line alike.
import { lengthOf, type MemoryTarget } from "./format.ts";
import { longUsage, shortUsage } from "./usage.ts";

export interface MemorySuccess {
  readonly success: true;
  readonly done: true;
  readonly target: MemoryTarget;
  readonly usage: string;
  readonly entry_count: number;
  readonly message: string;
  readonly note: string;
}

export interface MemoryStaged {
  readonly success: true;
  readonly staged: true;
  readonly pending_id: string;
  readonly message: string;
}

export type FailureCode =
  | "unavailable"
  | "bad_target"
  | "target_disabled"
  | "bad_action"
  | "missing_content"
  | "empty_content"
  | "missing_old_text"
  | "threat"
  | "delimiter"
  | "no_match"
  | "ambiguous"
  | "over_limit"
  | "batch_failed"
  | "drift"
  | "unreadable"
  | "write_failed"
  | "denied"
  | "give_up";

export interface MemoryFailure {
  readonly success: false;
  readonly code: FailureCode;
  /** For the model: what happened and what to do instead. */
  readonly error: string;
  readonly done?: true;
  readonly current_entries?: readonly string[];
  readonly usage?: string;
  readonly matches?: readonly string[];
  readonly drift_backup?: string;
  readonly remediation?: string;
}

export type MemoryResult = MemorySuccess | MemoryStaged | MemoryFailure;

/** The entries themselves are left out: a model that saw them tended to write them again. */
export function succeed(
  target: MemoryTarget,
  entries: readonly string[],
  limit: number,
  message: string,
): MemorySuccess {
  return {
    success: true,
    done: true,
    target,
    usage: longUsage(lengthOf(entries), limit),
    entry_count: entries.length,
    message,
    note: "Saved and complete. Do not repeat this write; go on with the conversation.",
  };
}

export function fail(code: FailureCode, error: string, extra: Partial<MemoryFailure> = {}): MemoryFailure {
  return { success: false, code, error, ...extra };
}

const SHOWS_ENTRIES: ReadonlySet<FailureCode> = new Set(["missing_old_text", "no_match", "over_limit", "batch_failed"]);
const SHOWS_USAGE: ReadonlySet<FailureCode> = new Set(["missing_old_text", "over_limit", "batch_failed"]);

/** Adds what is stored now to the failures that a model can only mend when it sees it. */
export function withState(failure: MemoryFailure, entries: readonly string[], limit: number): MemoryFailure {
  return {
    ...failure,
    ...(SHOWS_ENTRIES.has(failure.code) ? { current_entries: entries } : {}),
    ...(SHOWS_USAGE.has(failure.code) ? { usage: shortUsage(lengthOf(entries), limit) } : {}),
  };
}
