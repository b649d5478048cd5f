// What the sub-commands of `hermes sessions` share.
import { InvalidArgumentError } from "commander";
import { findSession } from "../../sessions/resolve.ts";
import type { SessionStore } from "../../sessions/store.ts";
import { type CliContext, ExitError } from "./context.ts";
import { briefly } from "./session-table.ts";

export async function resolveSession(store: SessionStore, text: string): Promise<string> {
  const id = await findSession(store, text);
  if (id === null) throw notFound(text);
  return id;
}

export const notFound = (text: string) =>
  new ExitError(1, `No session fits "${briefly(text)}" (or several begin so). \`hermes sessions list\` shows them.`);

export async function confirm(ctx: CliContext, question: string, flags: { yes?: true }): Promise<void> {
  if (flags.yes) return;
  const answer = await ctx.io.question(`${question} [y/N] `);
  if (answer === null) throw new ExitError(1, `${question} Nobody to ask here: add -y to do it.`);
  if (!/^y(es)?$/i.test(answer.trim())) throw new ExitError(1, "Nothing was changed.");
}

export function print(ctx: CliContext, line: string): void {
  ctx.io.out(`${line}\n`);
}

export function printJson(ctx: CliContext, value: unknown): void {
  ctx.io.out(`${JSON.stringify(value, null, 2)}\n`);
}

export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("A whole number is expected.");
  return Number(text);
}

/** How many of something to show. */
export function positiveNumber(text: string): number {
  const number = wholeNumber(text);
  if (number === 0) throw new InvalidArgumentError("A whole number of 1 or more is expected.");
  return number;
}

/** Local midnight of a bare day; anything else as JavaScript reads it. */
export function dateSeconds(text: string): number {
  const at = new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00` : text).getTime();
  if (Number.isNaN(at)) throw new InvalidArgumentError("A date like 2026-01-31 is expected.");
  return at / 1000;
}

export const megabytes = (bytes: number) => (bytes / (1024 * 1024)).toFixed(1);
export const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
