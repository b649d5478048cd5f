// From what a command printed to what the model reads: cut, without control sequences, without secrets.
import { appendFile, mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { stripAnsi } from "../kit/ansi.ts";
import type { ExecuteResult } from "../sandbox/environment.ts";
import type { ToolContext } from "./context.ts";

const HEAD_SHARE = 0.4;
const SAVED_CHARS = 5_000_000;
const KEPT_MS = 7 * 24 * 3600 * 1000;

type Printed = Pick<ExecuteResult, "output" | "omittedChars" | "headChars">;

export interface PresentedOutput {
  readonly output: string;
  /** Result fields that say what was left out and where it is. */
  readonly truncation: Readonly<Record<string, unknown>>;
}

export async function presentOutput(result: Printed, ctx: ToolContext, tip = ""): Promise<PresentedOutput> {
  const clean = (text: string) => ctx.redact(stripAnsi(text)).trim();
  const cut = cutMiddle({ ...result, output: result.output + tip }, ctx.config.tool_output.max_bytes);
  if (!cut) return { output: clean(result.output + tip), truncation: {} };
  const saved = await saveWhole(result, ctx);
  return { output: clean(cut.text), truncation: { output_total_chars: cut.total, ...saved } };
}

/** Head and tail with a line between them that says how much is missing; null when nothing has to go. */
function cutMiddle(
  { output, omittedChars, headChars }: Printed,
  limit: number,
): { text: string; total: number } | null {
  const total = output.length + omittedChars;
  if (total <= limit) return null;
  const headWished = Math.floor(limit * HEAD_SHARE);
  // Where the environment itself dropped the middle, the cut may only be wider.
  const head = wholeEnd(output, omittedChars > 0 ? Math.min(headWished, headChars) : headWished);
  const tailStart = wholeEnd(output, Math.max(output.length - (limit - headWished), omittedChars > 0 ? headChars : 0));
  const omitted = total - head - (output.length - tailStart);
  return { text: output.slice(0, head) + gap(omitted, total) + output.slice(tailStart), total };
}

/** What stands where the middle of an output was. */
export const gap = (omitted: number, total: number) =>
  `\n\n... [OUTPUT TRUNCATED - ${omitted} chars omitted out of ${total} total] ...\n\n`;

/** The same place, or one before it when it lies inside a character of two code units. */
function wholeEnd(text: string, at: number): number {
  return at > 0 && at < text.length && /[\uD800-\uDBFF]/.test(text.charAt(at - 1)) ? at - 1 : at;
}

async function saveWhole({ output, omittedChars, headChars }: Printed, ctx: ToolContext) {
  const directory = join(ctx.home.cacheDir, "terminal-output");
  const now = ctx.clock.now();
  const stamp = new Date(now).toISOString().replace(/[^0-9]/g, "");
  const path = join(directory, `${stamp}-${Math.floor(ctx.clock.random() * 0xffffff).toString(16)}.txt`);
  const lost = `\n\n... [${omittedChars} chars were not kept] ...\n\n`;
  const parts = omittedChars > 0 ? [output.slice(0, headChars), lost, output.slice(headChars)] : [output];
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await removeOld(directory, now);
    // Part by part: megabytes are not joined only to be taken apart again.
    let room = SAVED_CHARS;
    for (const part of parts) {
      const text = ctx.redact(stripAnsi(part)).slice(0, room);
      room -= text.length;
      await appendFile(path, text, { mode: 0o600 });
    }
    return {
      full_output_path: path,
      truncation_note: "The middle is missing here; the whole output is in full_output_path",
    };
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
