// The diff that a file edit reports, short enough for the feed.
import type { Theme } from "./theme.ts";

const MAX_FILES = 6;
const MAX_LINES = 80;

/** The `diff` of a successful edit's result; null when there is none. */
export function diffOf(result: string): string | null {
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
  for (const line of diff.replace(/\n$/, "").split("\n")) {
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
