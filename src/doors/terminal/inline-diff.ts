// The diff that a file edit reports, short enough for the feed.
import { printable } from "./printable.ts";
import type { Theme } from "./theme.ts";

const MAX_FILES = 6;
const MAX_LINES = 80;

/** What a call changed: told to the screen alone, or as the `diff` of a successful result. Null when there is none. */
export function diffOf(event: {
  readonly result: string;
  readonly failed: boolean;
  readonly diff?: string;
}): string | null {
  return event.failed ? null : (event.diff ?? diffInResult(event.result));
}

function diffInResult(result: string): string | null {
  if (!result.startsWith("{")) return null;
  try {
    const value = JSON.parse(result);
    return typeof value.diff === "string" && value.diff !== "" && !value.error ? value.diff : null;
  } catch {
    return null; // not JSON: no diff to show
  }
}

export function diffLines(diff: string, theme: Theme): string[] {
  const out: string[] = [];
  let files = 0;
  let hidden = 0;
  for (const line of printable(diff).replace(/\n$/, "").split("\n")) {
    if (line.startsWith("--- ")) files++;
    if (files > MAX_FILES || out.length >= MAX_LINES) hidden++;
    else out.push(paint(line, theme));
  }
  if (hidden > 0) out.push(theme.dim(`... ${hidden} more line${hidden === 1 ? "" : "s"}`));
  return out;
}

function paint(line: string, theme: Theme): string {
  if (line.startsWith("+++") || line.startsWith("---")) return theme.bold(line);
  if (line.startsWith("@@")) return theme.accent(line);
  if (line.startsWith("+")) return theme.added(line);
  if (line.startsWith("-")) return theme.removed(line);
  return theme.dim(line);
}
