// The diff that a file edit reports, short enough for the feed: line numbers where there is room, and in changed lines the words that
// really differ.
import { said } from "../../home/language/words.ts";
import { plural } from "../../kit/formats.ts";
import { printable, type Theme } from "../terminal-text.ts";

const MAX_FILES = 6;
const MAX_LINES = 80;
const NUMBERS_FROM = 60;
/** Longer lines are not compared word by word. */
const MAX_WORDS = 250;
/** Lines that share less than this are different lines, not changed ones. */
const LEAST_COMMON = 0.4;

/** The diff of a call: from its event, or from `diff` in a successful result. Null when there is none. */
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

/** One line of a diff with its number in the file it belongs to. */
interface NumberedLine {
  readonly text: string;
  readonly number: number | null;
}

export function diffLines(diff: string, theme: Theme, width = 0): string[] {
  const { shown, hidden } = bounded(printable(diff).replace(/\n$/, "").split("\n"));
  const lines = numbered(shown);
  const digits = String(Math.max(0, ...lines.map(({ number }) => number ?? 0))).length;
  const painted = paintAll(lines, theme);
  const rows = lines.map(({ number }, at) => {
    const gutter = width < NUMBERS_FROM ? "" : theme.dim(`${`${number ?? ""}`.padStart(digits)} `);
    return gutter + (painted[at] ?? "");
  });
  return hidden > 0 ? [...rows, theme.dim(said(`... ${plural(hidden, "more line")}`))] : rows;
}

function bounded(lines: readonly string[]): { readonly shown: readonly string[]; readonly hidden: number } {
  let files = 0;
  const end = lines.findIndex((line, at) => {
    if (line.startsWith("--- ")) files++;
    return files > MAX_FILES || at >= MAX_LINES;
  });
  return end < 0 ? { shown: lines, hidden: 0 } : { shown: lines.slice(0, end), hidden: lines.length - end };
}

/** A hunk says how many lines it has: what looks like a header inside of it is a changed line. */
function numbered(lines: readonly string[]): readonly NumberedLine[] {
  let [before, after, endBefore, endAfter] = [0, 0, 0, 0];
  return lines.map((text) => {
    const inHunk = before < endBefore || after < endAfter;
    const [, from = "", removed = "1", to = "", added = "1"] =
      (!inHunk && /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))?/.exec(text)) || [];
    if (from !== "") {
      [before, after] = [Number(from), Number(to)];
      [endBefore, endAfter] = [before + Number(removed), after + Number(added)];
    }
    if (!inHunk || text.startsWith("\\")) return { text, number: null };
    if (text.startsWith("-")) return { text, number: before++ };
    if (text.startsWith("+")) return { text, number: after++ };
    before++;
    return { text, number: after++ };
  });
}

/** Runs of removed lines and the added ones behind them are compared in pairs. */
function paintAll(lines: readonly NumberedLine[], theme: Theme): readonly string[] {
  const painted = lines.map(({ text, number }) => paint(text, number, theme));
  for (let at = 0; at < lines.length; at++) {
    const removed = runOf(lines, at, "-");
    const added = runOf(lines, at + removed, "+");
    if (removed > 0 && removed === added) {
      for (let pair = 0; pair < removed; pair++) {
        const changed = changedWords(
          lines[at + pair]?.text.slice(1) ?? "",
          lines[at + removed + pair]?.text.slice(1) ?? "",
        );
        if (!changed) continue;
        painted[at + pair] = wordsPainted("-", changed.before, theme.removed, theme);
        painted[at + removed + pair] = wordsPainted("+", changed.after, theme.added, theme);
      }
    }
    at += Math.max(0, removed + added - 1);
  }
  return painted;
}

function runOf(lines: readonly NumberedLine[], from: number, mark: "-" | "+"): number {
  let count = 0;
  while (lines[from + count]?.number != null && lines[from + count]?.text.startsWith(mark)) count++;
  return count;
}

function paint(line: string, number: number | null, theme: Theme): string {
  if (number === null && /^(?:\+\+\+|---)/.test(line)) return theme.bold(line);
  if (number === null && line.startsWith("@@")) return theme.accent(line);
  if (line.startsWith("+")) return theme.added(line);
  if (line.startsWith("-")) return theme.removed(line);
  return theme.dim(line);
}

interface Word {
  readonly text: string;
  readonly isNew: boolean;
}

function wordsPainted(mark: string, words: readonly Word[], paintLine: (text: string) => string, theme: Theme): string {
  return paintLine(mark) + words.map(({ text, isNew }) => paintLine(isNew ? theme.changed(text) : text)).join("");
}

/** The words of two lines, marked where they differ; null when the lines have too little in common. */
export function changedWords(
  before: string,
  after: string,
): { readonly before: readonly Word[]; readonly after: readonly Word[] } | null {
  const [one, other] = [wordsOf(before), wordsOf(after)];
  if (one.length > MAX_WORDS || other.length > MAX_WORDS) return null;
  const common = commonWords(one, other);
  const shared = one.reduce(
    (sum, word, at) => sum + (common.before.has(at) && word.trim() !== "" ? word.length : 0),
    0,
  );
  const longest = Math.max(before.replace(/\s/g, "").length, after.replace(/\s/g, "").length);
  if (longest === 0 || shared / longest < LEAST_COMMON) return null;
  return { before: marked(one, common.before), after: marked(other, common.after) };
}

const wordsOf = (line: string): string[] => line.match(/[\p{L}\p{N}_]+|\s+|./gu) ?? [];

function marked(words: readonly string[], common: ReadonlySet<number>): readonly Word[] {
  const out: { text: string; isNew: boolean }[] = [];
  for (const [at, text] of words.entries()) {
    const isNew = !common.has(at);
    const last = out.at(-1);
    if (last?.isNew === isNew) last.text += text;
    else out.push({ text, isNew });
  }
  return out;
}

/** Places of a longest common subsequence. */
function commonWords(one: readonly string[], other: readonly string[]) {
  const width = other.length + 1;
  const lengths = new Uint16Array((one.length + 1) * width);
  const length = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = one.length - 1; i >= 0; i--)
    for (let j = other.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        one[i] === other[j] ? length(i + 1, j + 1) + 1 : Math.max(length(i + 1, j), length(i, j + 1));
  const before = new Set<number>();
  const after = new Set<number>();
  for (let i = 0, j = 0; i < one.length && j < other.length; ) {
    if (one[i] === other[j]) {
      before.add(i++);
      after.add(j++);
    } else if (length(i + 1, j) >= length(i, j + 1)) i++;
    else j++;
  }
  return { before, after };
}
