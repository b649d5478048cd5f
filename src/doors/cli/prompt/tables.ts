// The window as a picture: which block takes how much of what the model can hold.

import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { sessionCwd } from "../../../agent/resume.ts";
import { countCodePoints } from "../../../kit/code-points.ts";
import { estimateTokens } from "../../../llm/usage.ts";
import { type CliContext, ExitError } from "../../cli-context.ts";
import { table } from "../present.ts";

interface Slice {
  readonly label: string;
  readonly tokens: number;
}

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const SHADES = ["█", "▓", "▒"];

/** One line per block, longest bar for the largest. */
export function blockBars(slices: readonly Slice[], columns: number): string {
  const most = Math.max(1, ...slices.map(({ tokens }) => tokens));
  const room = Math.max(8, Math.min(40, columns - 40));
  const rows = slices.map(({ label, tokens }) => [label, withCommas(tokens), bar((tokens / most) * room)]);
  return table(rows, [1]);
}

/** The whole window on one line: what is taken, by whom, and what is left for the conversation. */
export function windowBar(slices: readonly Slice[], contextLength: number, columns: number): string {
  const room = Math.max(20, Math.min(100, columns - 2));
  const taken = slices.filter(({ tokens }) => tokens > 0);
  const cells = taken.map(({ tokens }) => Math.max(1, Math.round((tokens / contextLength) * room)));
  const used = cells.reduce((sum, count) => sum + count, 0);
  const drawn = taken.map((_, at) => (SHADES[at] ?? "▒").repeat(cells[at] ?? 0)).join("");
  const rest = contextLength - taken.reduce((sum, { tokens }) => sum + tokens, 0);
  const share = (tokens: number) => `${((tokens / contextLength) * 100).toFixed(1)} %`;
  const legend = taken.map(({ label, tokens }, at) => `${SHADES[at] ?? "▒"} ${label} ${share(tokens)}`);
  return [
    `${drawn}${"░".repeat(Math.max(0, room - used))}`,
    [...legend, `░ free ${share(rest)} of ${withCommas(contextLength)} tokens`].join("   "),
  ].join("\n");
}

function bar(cells: number): string {
  const eighths = Math.max(1, Math.round(cells * 8));
  return "█".repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? "");
}

// Sizes of texts, as every view of the prompt shows them.

export interface TextSize {
  readonly chars: number;
  readonly bytes: number;
}

interface MeasuredText extends TextSize {
  /** Rough. */
  readonly tokens: number;
  readonly sha256: string;
}

export function sizeOf(text: string): TextSize {
  return { chars: countCodePoints(text), bytes: Buffer.byteLength(text) };
}

export function measure(text: string): MeasuredText {
  return { ...sizeOf(text), tokens: estimateTokens(text), sha256: createHash("sha256").update(text).digest("hex") };
}

export const withCommas = (count: number) => count.toLocaleString("en-US");

/** The folder to look from: the given one, else the one a conversation would work in. */
export async function folderOf(given: string | undefined, { home, cwd }: CliContext): Promise<string> {
  if (given === undefined) return (await sessionCwd(home, cwd)).cwd;
  const folder = resolve(cwd, given);
  const found = await stat(folder).catch(() => null); // reported below
  if (!found?.isDirectory()) throw new ExitError(2, `No such folder: ${given}. --cwd needs an existing folder.`);
  return folder;
}
