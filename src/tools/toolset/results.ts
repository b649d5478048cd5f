// Keeps tool results from filling the model's window: what is too long moves to a file and leaves a preview behind.

import { createHash } from "node:crypto";
import { messageOf } from "../../kit/errors.ts";
import type { Environment } from "../../sandbox/environment.ts";
import type { ToolEntry } from "./registry.ts";

const PREVIEW_CHARS = 1500;
const CHARS_PER_TOKEN = 4;
const PER_RESULT = { share: 0.15, floor: 8_000, cap: 100_000 };
const PER_TURN = { share: 0.3, floor: 16_000, cap: 200_000 };

/** Saves a text where the tools of this session can read it, and says where. The environment's own writer satisfies it. */
interface ResultStore {
  /** Resolves to the path; rejects when the text could not be written whole. */
  save(fileName: string, text: string): Promise<string>;
}

export interface SizeLimits {
  readonly perResult: number;
  readonly perTurn: number;
}

/** Limits for a model's window; an unknown window gets the caps. */
export function sizeLimits(contextLength: number): SizeLimits {
  return { perResult: scale(contextLength, PER_RESULT), perTurn: scale(contextLength, PER_TURN) };
}

/** How long one result of this tool may be: what the tool itself says is final when it limits itself, else the smaller of both. */
export function resultLimit(entry: ToolEntry | undefined, limits: SizeLimits): number {
  const own = entry?.traits.maxResultChars;
  if (own === Number.POSITIVE_INFINITY) return own;
  return Math.min(own ?? limits.perResult, limits.perResult);
}

/** One result within its limit: itself, or the block that stands in for it. */
export async function limitResult(callId: string, text: string, limit: number, store: ResultStore): Promise<string> {
  return text.length <= limit ? text : persistResult(callId, text, store);
}

/** All results of a turn within the turn's limit: the longest move out first. Order and length of the list stay. */
export async function limitTurn<Result extends { readonly callId: string; readonly text: string }>(
  results: readonly Result[],
  limit: number,
  store: ResultStore,
): Promise<Result[]> {
  const limited = [...results];
  const byLength = limited.map((result, index) => ({ index, length: result.text.length }));
  byLength.sort((a, b) => b.length - a.length);
  let total = byLength.reduce((sum, { length }) => sum + length, 0);
  for (const { index } of byLength) {
    const result = limited[index];
    // A block that is already a preview would only grow.
    if (total <= limit || !result || result.text.length <= 2 * PREVIEW_CHARS) break;
    if (result.text.startsWith("<persisted-output>")) continue;
    const text = await persistResult(result.callId, result.text, store);
    total += text.length - result.text.length;
    limited[index] = { ...result, text };
  }
  return limited;
}

/** The beginning of a text, cut at a line's end if that keeps more than half; and whether something was cut. */
export function generatePreview(text: string, max: number = PREVIEW_CHARS): [preview: string, hasMore: boolean] {
  if (text.length <= max) return [text, false];
  const newline = text.lastIndexOf("\n", max - 1);
  const end = newline > max / 2 ? newline + 1 : max;
  // Never cut a character of two code units in half.
  return [text.slice(0, /[\uD800-\uDBFF]$/.test(text.slice(0, end)) ? end - 1 : end), true];
}

/** A file name for a call id: safe on every file system, and different for different ids. */
export function resultFileName(callId: string): string {
  const safe = callId.replace(/[^A-Za-z0-9_.-]/g, "_").slice(0, 120);
  const onlyDots = /^\.*$/.test(safe);
  if (safe === callId && !onlyDots) return `${safe}.txt`;
  return `${onlyDots ? "tool_result" : safe}_${createHash("sha256").update(callId).digest("hex").slice(0, 12)}.txt`;
}

async function persistResult(callId: string, text: string, store: ResultStore): Promise<string> {
  const [preview, hasMore] = generatePreview(text);
  const size = `${text.length.toLocaleString("en-US")} characters`;
  try {
    const path = await store.save(resultFileName(callId), text);
    return [
      "<persisted-output>",
      `This result was too long (${size}).`,
      `Full output saved to: ${path}`,
      "Read it in parts with read_file (offset and limit).",
      "",
      `Preview (first ${preview.length} characters):`,
      `${preview}${hasMore ? "\n..." : ""}`,
      "</persisted-output>",
    ].join("\n");
  } catch (error) {
    const reason = messageOf(error);
    return `${preview}\n\n[Truncated: the result had ${size} and could not be saved (${reason})]`;
  }
}

function scale(contextLength: number, { share, floor, cap }: { share: number; floor: number; cap: number }): number {
  if (!Number.isFinite(contextLength) || contextLength <= 0) return cap;
  return Math.min(cap, Math.max(floor, Math.floor(contextLength * CHARS_PER_TOKEN * share)));
}

/** Saves long results inside the environment, below its temp directory, one folder per session (call ids repeat between sessions). */
export function environmentResultStore(environment: Environment, sessionId: string): ResultStore {
  const folder = `${environment.tempDir}/hermes-results/${sessionId.replace(/[^A-Za-z0-9_.-]/g, "_").replace(/^\.+/, "_")}`;
  return {
    async save(fileName, text) {
      const path = `${folder}/${fileName}`;
      const files = environment.files ?? (await import("../files/access.ts")).localFiles;
      await files.makeDirectory(folder);
      await files.write(path, text);
      return path;
    },
  };
}

// Where a text may be cut. A redactor knows a secret only while it is whole: half of one, left at a cut, would pass it.

/** Longer than any key block; as far as a cut is ever moved. */
const REACH = 8192;
/** So far every position is tried: most secrets are shorter. */
const CLOSE_BY = 64;

/**
 * The position nearest to `at`, before it (-1) or behind it (1), where the two sides redacted apart are the whole redacted.
 * Where there is none, the text within reach is given up.
 */
export function safeCut(text: string, at: number, direction: -1 | 1, redact: (text: string) => string): number {
  const from = Math.max(0, at - 2 * REACH);
  const to = Math.min(text.length, at + 2 * REACH);
  const whole = redact(text.slice(from, to));
  for (let step = 0; step < REACH; step = step < CLOSE_BY ? step + 1 : step * 2) {
    const position = wholeCharacter(text, clamp(at + direction * step, text.length));
    if (position <= from || position >= to) return position;
    if (redact(text.slice(from, position)) + redact(text.slice(position, to)) === whole) return position;
  }
  return wholeCharacter(text, clamp(at + direction * REACH, text.length));
}

/** A text in pieces of about this many characters that may be redacted one by one. */
export function* safePieces(text: string, size: number, redact: (text: string) => string): Generator<string> {
  let from = 0;
  while (text.length - from > size) {
    let to = wholeCharacter(text, from + Math.max(size, 2));
    while (to < text.length && !isSafe(text, to, redact)) to = wholeCharacter(text, clamp(to + CLOSE_BY, text.length));
    yield text.slice(from, to);
    from = to;
  }
  yield text.slice(from);
}

function isSafe(text: string, at: number, redact: (text: string) => string): boolean {
  const from = Math.max(0, at - 2 * REACH);
  const to = Math.min(text.length, at + 2 * REACH);
  return redact(text.slice(from, at)) + redact(text.slice(at, to)) === redact(text.slice(from, to));
}

/**
 * The same next to a gap whose text is gone, so that nobody can know what was cut: the broken line next to it is dropped.
 * `at` is where the text ends (-1) or begins (1).
 */
export function leaveBrokenLine(text: string, at: number, direction: -1 | 1): number {
  const far = clamp(at + direction * REACH, text.length);
  if (direction === 1) {
    const end = text.slice(at, far).indexOf("\n");
    return end === -1 ? wholeCharacter(text, far) : at + end + 1;
  }
  const end = text.slice(far, at).lastIndexOf("\n");
  return end === -1 ? wholeCharacter(text, far) : far + end + 1;
}

const clamp = (at: number, length: number) => Math.min(Math.max(at, 0), length);

/** The same position, or one before it when it lies inside a character of two code units. */
function wholeCharacter(text: string, at: number): number {
  return at > 0 && at < text.length && /[\uD800-\uDBFF]/.test(text.charAt(at - 1)) ? at - 1 : at;
}
