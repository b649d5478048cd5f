// From what a command printed to what the model reads: cut, without control sequences, without secrets.
import { appendFile, mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { stripAnsi } from "../../kit/strip-ansi.ts";
import type { ExecuteResult } from "../../sandbox/environment.ts";
import type { ToolContext } from "../toolset/context.ts";
import { leaveBrokenLine, safeCut, safePieces } from "../toolset/results.ts";

const HEAD_SHARE = 0.4;
const SAVED_CHARS = 5_000_000;
const PIECE_CHARS = 64 * 1024;
const KEPT_MS = 7 * 24 * 3600 * 1000;

type Printed = Pick<ExecuteResult, "output" | "omittedChars" | "headChars">;

interface PresentedOutput {
  readonly output: string;
  /** Result fields that say what was left out and where it is. */
  readonly truncation: Readonly<Record<string, unknown>>;
}

export async function presentOutput(result: Printed, ctx: ToolContext, tip = ""): Promise<PresentedOutput> {
  const clean = (text: string) => ctx.redact(stripAnsi(text));
  const ends = endsOf({ ...result, output: result.output + tip });
  const cut = cutMiddle(ends, ctx.config.tool_output.max_bytes, clean);
  if (!cut) return { output: clean(ends.output).trim(), truncation: {} };
  const saved = await saveWhole(ends, ctx, clean);
  return {
    output: `${clean(cut.head)}${gap(cut.omitted, ends.total)}${clean(cut.tail)}`.trim(),
    truncation: { output_total_chars: ends.total, ...saved },
  };
}

/** What there is of an output; `headEnd` and `tailStart` differ where the environment dropped the middle. */
interface Ends {
  readonly output: string;
  readonly total: number;
  readonly headEnd: number;
  readonly tailStart: number;
}

function endsOf({ output, omittedChars, headChars }: Printed): Ends {
  const total = output.length + omittedChars;
  if (omittedChars === 0) return { output, total, headEnd: output.length, tailStart: output.length };
  return {
    output,
    total,
    headEnd: leaveBrokenLine(output, headChars, -1),
    tailStart: leaveBrokenLine(output, headChars, 1),
  };
}

/** Head and tail; null when nothing has to go. */
function cutMiddle({ output, total, headEnd, tailStart }: Ends, limit: number, clean: (text: string) => string) {
  if (total <= limit) return null;
  const headTarget = Math.floor(limit * HEAD_SHARE);
  const tailTarget = output.length - (limit - headTarget);
  const hasGap = total > output.length;
  // Where the environment itself dropped the middle, the cut may only be wider.
  const head = hasGap && headTarget >= headEnd ? headEnd : safeCut(output, headTarget, -1, clean);
  const tail = hasGap && tailTarget <= tailStart ? tailStart : safeCut(output, tailTarget, 1, clean);
  return { head: output.slice(0, head), tail: output.slice(tail), omitted: total - head - (output.length - tail) };
}

/** An output of at most `limit` characters, without secrets, half ones at the cut included. */
export function withoutMiddle(result: Printed, limit: number, clean: (text: string) => string): string {
  const ends = endsOf(result);
  const cut = cutMiddle(ends, limit, clean);
  return cut ? `${clean(cut.head)}${gap(cut.omitted, ends.total)}${clean(cut.tail)}` : clean(ends.output);
}

/** What stands where the middle of an output was. */
const gap = (omitted: number, total: number) =>
  `\n\n... [OUTPUT TRUNCATED - ${omitted} chars omitted out of ${total} total] ...\n\n`;

async function saveWhole(
  { output, total, headEnd, tailStart }: Ends,
  ctx: ToolContext,
  clean: (text: string) => string,
) {
  const directory = join(ctx.home.cacheDir, "terminal-output");
  const now = ctx.clock.now();
  const stamp = new Date(now).toISOString().replace(/[^0-9]/g, "");
  const path = join(directory, `${stamp}-${Math.floor(ctx.clock.random() * 0xffffff).toString(16)}.txt`);
  const lost = `\n\n... [${total - headEnd - (output.length - tailStart)} chars were not kept] ...\n\n`;
  const parts = total > output.length ? [output.slice(0, headEnd), lost, output.slice(tailStart)] : [output];
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await removeOld(directory, now);
    // Piece by piece: what cleaning megabytes leaves behind is more than the megabytes.
    let room = SAVED_CHARS;
    for (const piece of parts.flatMap((part) => [...safePieces(part, PIECE_CHARS, clean)])) {
      const text = clean(piece).slice(0, room);
      room -= text.length;
      await appendFile(path, text, { mode: 0o600 });
    }
    const kept =
      total > output.length ? `as much of it as was kept (${output.length} of ${total} characters)` : "all of it";
    return { full_output_path: path, truncation_note: `The middle is missing here; full_output_path has ${kept}` };
  } catch (error) {
    ctx.log.warn(`the full output of a command could not be saved to ${path}`, error);
    return { truncation_note: "The middle is missing and could not be saved; narrow the command to see it" };
  }
}

async function removeOld(directory: string, now: number): Promise<void> {
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    const age = await stat(path).then(
      (file) => now - file.mtimeMs,
      () => 0, // another run removed it first
    );
    if (age > KEPT_MS) await rm(path, { force: true });
  }
}

// What a person sees of a command that still runs.

const TAIL_CHARS = 8000;
const TAIL_LINES = 5;
const TAIL_EVERY_MS = 200;

/**
 * Hands on the last lines from time to time, until it is stopped. While a command prints, only lines that have ended: half a secret looks
 * like no secret. When it pauses, all there is.
 */
export class LastLines {
  readonly #show: (lines: string) => void;
  readonly #clean: (text: string) => string;
  #kept = "";
  #hasNew = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(show: (lines: string) => void, clean: (text: string) => string) {
    this.#show = show;
    this.#clean = clean;
  }

  push(piece: string): void {
    this.#kept = (this.#kept + piece.slice(-TAIL_CHARS)).slice(-TAIL_CHARS);
    this.#hasNew = true;
    this.#timer ??= setInterval(() => this.#look(), TAIL_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const end = Math.max(this.#kept.lastIndexOf("\n"), this.#kept.lastIndexOf("\r")) + 1;
    this.#tell(this.#hasNew ? this.#kept.slice(0, end) : this.#kept);
    if (!this.#hasNew) this.stop();
    this.#hasNew = false;
  }

  #tell(text: string): void {
    // Where the beginning is lost, so is that of the first line.
    const whole = this.#kept.length < TAIL_CHARS ? text : text.slice(text.indexOf("\n") + 1);
    const lines = this.#clean(stripAnsi(whole)).trimEnd().split("\n").slice(-TAIL_LINES).join("\n");
    if (lines.trim() !== "") this.#show(lines);
  }
}
