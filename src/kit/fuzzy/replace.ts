// Find and replace that forgives how a model quotes a file: nine strategies, from exact to similar. Pure.
import { findBlockAnchor, findContextAware } from "./approximate.ts";
import { findEscapeDrift, unescapeLikeRegion } from "./escapes.ts";
import { findEscaped, findExact, unescapeControls } from "./exact.ts";
import { describeMatches, describeNearest } from "./hints.ts";
import { applyEdits, type Edit, toLf } from "./line-endings.ts";
import { findIndentedLines, findTrimmedBoundary, findTrimmedLines } from "./lines.ts";
import { reindent } from "./reindent.ts";
import {
  type Haystack,
  haystackOf,
  type Match,
  type Strategy,
  type StrategyName,
  strategyNames,
} from "./strategies.ts";
import { keepTypography } from "./typography.ts";
import { findUnicodeNormalized } from "./unicode.ts";
import { findWhitespaceNormalized } from "./whitespace.ts";

export type FuzzyErrorCode =
  | "empty_old"
  | "blank_old"
  | "identical"
  | "ambiguous"
  | "approximate_replace_all"
  | "escape_drift"
  | "not_found";

export type FuzzyResult =
  | {
      readonly ok: true;
      readonly text: string;
      readonly strategy: StrategyName;
      readonly count: number;
      /** The region was only similar: show the diff. */
      readonly warning?: string;
    }
  | { readonly ok: false; readonly code: FuzzyErrorCode; readonly message: string };

export interface FuzzyOptions {
  readonly replaceAll?: boolean;
  /** Of several matches take the first instead of refusing: for callers that already know where to look. */
  readonly takeFirst?: boolean;
}

const strategies: Readonly<Record<StrategyName, Strategy>> = {
  exact: findExact,
  line_trimmed: findTrimmedLines,
  whitespace_normalized: findWhitespaceNormalized,
  indentation_flexible: findIndentedLines,
  escape_normalized: findEscaped,
  trimmed_boundary: findTrimmedBoundary,
  unicode_normalized: findUnicodeNormalized,
  block_anchor: findBlockAnchor,
  context_aware: findContextAware,
};

const approximate: ReadonlySet<StrategyName> = new Set(["block_anchor", "context_aware"]);

/** Replaces `old` by `replacement`. The first strategy with a match decides; line endings and everything outside the match stay. */
export function fuzzyReplace(
  text: string,
  old: string,
  replacement: string,
  { replaceAll = false, takeFirst = false }: FuzzyOptions = {},
): FuzzyResult {
  const wanted = toLf(old);
  const wish = toLf(replacement);
  if (wanted === "")
    return refuse("empty_old", "old_string cannot be empty. To create or overwrite a file, write it whole.");
  if (wanted.trim() === "")
    return refuse("blank_old", "old_string is only whitespace. Include the text around the place to change.");
  if (wanted === wish)
    return refuse("identical", "old_string and new_string are identical: there is nothing to change.");

  const haystack = haystackOf(toLf(text));
  const found = findFirst(haystack, wanted);
  if (!found) {
    const nearest = describeNearest(haystack, wanted);
    const reason = "Could not find a match for old_string in the file.";
    return refuse("not_found", nearest === "" ? reason : `${reason}\n\n${nearest}`);
  }
  const { strategy } = found;
  const matches = takeFirst && !replaceAll ? found.matches.slice(0, 1) : found.matches;
  if (matches.length > 1 && !replaceAll)
    return refuse(
      "ambiguous",
      `Found ${matches.length} matches for old_string. Provide more context to make it unique, or use replace_all=True.\n${describeMatches(haystack, matches)}`,
    );
  if (matches.length > 1 && approximate.has(strategy))
    return refuse(
      "approximate_replace_all",
      `Found ${matches.length} regions that are only similar to old_string (${strategy}); replace_all needs an exact text.\n${describeMatches(haystack, matches)}`,
    );

  const edits: Edit[] = [];
  for (const match of matches) {
    const region = haystack.text.slice(match.start, match.end);
    const drift = strategy === "exact" ? null : findEscapeDrift(wanted, wish, region);
    if (drift !== null)
      return refuse(
        "escape_drift",
        `Escape-drift detected: old_string and new_string hold ${drift}, the file has a plain ${drift.slice(1)} there. Send both again without the backslash.`,
      );
    edits.push({ start: match.start, end: match.end, text: fitReplacement(haystack, strategy, match, wanted, wish) });
  }
  return {
    ok: true,
    text: applyEdits(text, edits),
    strategy,
    count: edits.length,
    ...(approximate.has(strategy) && {
      warning: `The replaced region was only similar to old_string (${strategy}); check the diff.`,
    }),
  };
}

/** The edit is already in the text: a repeated call is no failure. */
export function isAlreadyApplied(text: string, old: string, replacement: string): boolean {
  const content = toLf(text);
  const wanted = toLf(old);
  const wish = toLf(replacement);
  return wish.trim().length >= 8 && content.includes(wish) && (wanted === wish || !content.includes(wanted));
}

function findFirst(haystack: Haystack, old: string): { strategy: StrategyName; matches: readonly Match[] } | null {
  for (const strategy of strategyNames) {
    const matches = strategies[strategy](haystack, old);
    if (matches.length > 0) return { strategy, matches };
  }
  return null;
}

/** The replacement as this region needs it. */
function fitReplacement(haystack: Haystack, strategy: StrategyName, match: Match, old: string, wish: string): string {
  if (strategy === "exact") return wish;
  const region = haystack.text.slice(match.start, match.end);
  const unescaped = unescapeLikeRegion(wish, region);
  const kept = match.pairs ? keepTypography(haystack.text, old, unescaped, match.pairs) : unescaped;
  return reindent(strategy === "escape_normalized" ? unescapeControls(old) : old, region, kept);
}

function refuse(code: FuzzyErrorCode, message: string): FuzzyResult {
  return { ok: false, code, message };
}
