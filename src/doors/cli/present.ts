// How sub-commands print, ask and read their arguments.
import { InvalidArgumentError } from "commander";
import { said } from "../../home/language/words.ts";
import { withoutControls } from "../../kit/strip-ansi.ts";
import type { ScreenQuestion } from "../choice-list.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { cellWidth, cut, padCells, wrapColumns, wrapLines } from "../terminal-text.ts";

export function print(ctx: Pick<CliContext, "io">, line: string, options?: { readonly asIs?: boolean }): void {
  ctx.io.out(`${line}\n`, options);
}

export function printJson(ctx: Pick<CliContext, "io">, value: unknown): void {
  print(ctx, JSON.stringify(value, null, 2), { asIs: true });
}

/** Names and values in two columns, for a person in his language. `width`: of the first column. */
export function factLines(
  ctx: Pick<CliContext, "io">,
  facts: readonly (readonly [name: string, value: string])[],
  width: number,
): readonly string[] {
  const read = (text: string) => (ctx.io.stdoutIsTerminal ? said(text) : text);
  const cells = Math.max(width, ...facts.map(([name]) => cellWidth(read(name)) + 2));
  const text = facts.map(([name, value]) => `${padCells(read(name), cells)}${read(value)}`.trimEnd()).join("\n");
  return ctx.io.stdoutIsTerminal ? wrapColumns(text, ctx.io.columns) : text.split("\n");
}

/** Columns that line up; those named in `right` are numbers. */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string {
  const count = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, at) => Math.max(...rows.map((row) => cellWidth(row[at] ?? ""))));
  const cell = (text: string, at: number) => {
    const width = widths[at] ?? 0;
    return right.includes(at) ? " ".repeat(width - cellWidth(text)) + text : padCells(text, width);
  };
  return rows.map((row) => row.map(cell).join("  ").trimEnd()).join("\n");
}

/** Stored text in a row of a table: nothing in it may break the line or drive the terminal. */
export function oneLine(text: string): string {
  return withoutControls(text).replace(/\s+/g, " ");
}

/** What the user typed, as a message repeats it. */
export const briefly = (text: string) => cut(oneLine(text), 60, "…");

/** A question that a terminal would break inside a word. What is typed follows its last line. */
export function wrapPrompt(prompt: string, columns: number): string {
  if (cellWidth(prompt) < columns) return prompt;
  const lines = wrapLines(prompt.trimEnd(), Math.max(20, columns - ROOM_TO_TYPE));
  return `${lines.join("\n")} `;
}

const ROOM_TO_TYPE = 10;

/** Ends the command unless the user says yes, here or with `-y`. */
export async function confirm(ctx: CliContext, question: string, flags: { yes?: true }): Promise<void> {
  if (flags.yes) return;
  const answer = await ctx.io.question(wrapPrompt(`${question} [y/N] `, ctx.io.columns));
  if (answer === null && !ctx.io.stdinIsTerminal)
    throw new ExitError(1, `${question} Not a terminal; pass -y to confirm.`);
  if (answer === null || !/^y(es)?$/i.test(answer.trim())) throw new ExitError(1, "Nothing was changed.");
}

/** A list to tick, saved with Enter; null when the user leaves it. Ends the command where nobody can answer. */
export async function tick<T>(
  ctx: CliContext,
  question: Pick<ScreenQuestion<T>, "title" | "choices" | "checked" | "onInterrupt"> & { readonly otherwise: string },
): Promise<readonly T[] | null> {
  const { otherwise, ...list } = question;
  if (!ctx.io.stdinIsTerminal || !ctx.io.stdoutIsTerminal)
    throw new ExitError(1, `This command is interactive and needs a terminal. Use ${otherwise}.`);
  const hint = "Space toggle · Enter save · Esc cancel · type to filter";
  return ctx.io.choose({ ...list, multiple: true, hint });
}

export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("Must be a whole number.");
  return Number(text);
}

/** How many of something to show. */
export function positiveNumber(text: string): number {
  const number = wholeNumber(text);
  if (number === 0) throw new InvalidArgumentError("Must be a whole number, 1 or more.");
  return number;
}

/** Local midnight of a bare day; anything else as JavaScript reads it. */
export function dateSeconds(text: string): number {
  const at = new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00` : text).getTime();
  if (Number.isNaN(at)) throw new InvalidArgumentError("Must be a date such as 2026-01-31.");
  return at / 1000;
}
