// What a memory write answers. The shapes are read by models, displays and the command line alike.
import { countCodePoints } from "../kit/code-points.ts";

interface MemorySuccess {
  readonly success: true;
  readonly done: true;
  readonly target: MemoryTarget;
  readonly usage: string;
  readonly entry_count: number;
  readonly message: string;
  readonly note: string;
}

interface MemoryStaged {
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

/** Adds what is stored now to the failures that a model can only fix when it sees it. */
export function withState(failure: MemoryFailure, entries: readonly string[], limit: number): MemoryFailure {
  return {
    ...failure,
    ...(SHOWS_ENTRIES.has(failure.code) ? { current_entries: entries } : {}),
    ...(SHOWS_USAGE.has(failure.code) ? { usage: shortUsage(lengthOf(entries), limit) } : {}),
  };
}

// The two memory files as text: entries joined by a line that holds nothing but a section sign.

export const TARGETS = ["memory", "user"] as const;
export type MemoryTarget = (typeof TARGETS)[number];

export const FILE_NAMES: Readonly<Record<MemoryTarget, string>> = { memory: "MEMORY.md", user: "USER.md" };

const SIGN = "§";
const DELIMITER = `\n${SIGN}\n`;

/** The entries of a file, trimmed, the first of equal ones kept. Blank lines around a delimiter, CRLF and one BOM mean nothing. */
export function parseEntries(text: string): readonly string[] {
  const pieces: string[][] = [[]];
  for (const line of plainLines(text.startsWith("\ufeff") ? text.slice(1) : text)) {
    if (trimText(line) === SIGN) pieces.push([]);
    else pieces.at(-1)?.push(line);
  }
  const entries = pieces.map((lines) => trimText(lines.join("\n"))).filter((entry) => entry !== "");
  return [...new Set(entries)];
}

export function renderEntries(entries: readonly string[]): string {
  const text = entries.join(DELIMITER);
  // Reading drops one BOM; a first entry that begins with one, as only a hand edit makes it, must keep it to be found and removed.
  return text.startsWith("\ufeff") ? `\ufeff${text}` : text;
}

/** What limits are measured by: code points of the file. */
export function lengthOf(entries: readonly string[]): number {
  return countCodePoints(entries.join(DELIMITER));
}

/** A text as it is stored: trimmed, line ends as LF, no halves of surrogate pairs (a file cannot hold them). */
export function tidyText(text: string): string {
  return trimText(plainLines(text.toWellFormed()).join("\n"));
}

/** A line of its own with the sign would read as two entries. */
export function hasDelimiterLine(text: string): boolean {
  return plainLines(text).some((line) => trimText(line) === SIGN);
}

/** Unlike `String.prototype.trim` it leaves U+FEFF, so that the threat scan sees it. */
function trimText(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && BLANK.test(text.charAt(start))) start++;
  while (end > start && BLANK.test(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

const BLANK = /^\p{White_Space}$/u;

function plainLines(text: string): string[] {
  const lines = text.split("\n");
  const last = lines.length - 1;
  return lines.map((line, index) => (index < last ? withoutReturns(line) : line));
}

function withoutReturns(line: string): string {
  let end = line.length;
  while (end > 0 && line.charAt(end - 1) === "\r") end--;
  return line.slice(0, end);
}

// How full a store is, in words for the prompt and for results.

/** `67% — 1,474/2,200 chars` */
export function longUsage(current: number, limit: number): string {
  const percent = limit > 0 ? Math.min(100, Math.floor((100 * current) / limit)) : 100;
  return `${percent}% — ${shortUsage(current, limit)} chars`;
}

/** `1,474/2,200` */
export function shortUsage(current: number, limit: number): string {
  return `${withCommas(current)}/${withCommas(limit)}`;
}

// Not toLocaleString: its first call loads locale data for tens of milliseconds, and every start of an agent counts its memory.
export function withCommas(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}
