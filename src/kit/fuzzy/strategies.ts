// What a strategy finds, and the text it looks in.

export const strategyNames = [
  "exact",
  "line_trimmed",
  "whitespace_normalized",
  "indentation_flexible",
  "escape_normalized",
  "trimmed_boundary",
  "unicode_normalized",
  "block_anchor",
  "context_aware",
] as const;

export type StrategyName = (typeof strategyNames)[number];

/** A region of the text, with how parts of `old` and of the region stand for each other where a strategy knows it. */
export interface Match {
  readonly start: number;
  readonly end: number;
  readonly pairs?: readonly Pair[];
}

/** `old` from..to reads the same as the text start..end once typography is folded. */
export interface Pair {
  readonly oldStart: number;
  readonly oldEnd: number;
  readonly start: number;
  readonly end: number;
}

/** The text, with its lines split once for all strategies. */
export interface Haystack {
  readonly text: string;
  readonly lines: readonly string[];
  /** Where each line starts. */
  readonly starts: readonly number[];
}

export type Strategy = (haystack: Haystack, old: string) => readonly Match[];

export function haystackOf(text: string): Haystack {
  const lines = text.split("\n");
  const starts: number[] = [];
  let start = 0;
  for (const line of lines) {
    starts.push(start);
    start += line.length + 1;
  }
  return { text, lines, starts };
}

/** From the start of line `first` to the end of the last of `count` lines, without its line break. */
export function spanOfLines(haystack: Haystack, first: number, count: number): Match {
  const last = first + count - 1;
  return {
    start: haystack.starts[first] ?? 0,
    end: (haystack.starts[last] ?? 0) + (haystack.lines[last] ?? "").length,
  };
}

/** Leading blanks and tabs. */
export function indentOf(line: string): string {
  let end = 0;
  while (line[end] === " " || line[end] === "\t") end++;
  return line.slice(0, end);
}

export function isBlank(line: string): boolean {
  return line.trim() === "";
}
