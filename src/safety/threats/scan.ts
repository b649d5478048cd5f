// Looks for threats in text that is to reach a model: orders in disguise, ways out for secrets, characters nobody sees.
import { countCodePoints, sliceCodePoints } from "../../kit/code-points.ts";
import { lazy } from "../../kit/lazy.ts";
import { anyOf, type Find, type Span } from "./matchers.ts";
import { THREAT_PATTERNS, type ThreatPattern, type ThreatScope } from "./patterns.ts";
import { bareView, fold, looseView, type View } from "./views.ts";

export type { ThreatScope };

/** Tells this scanner from every other: a build names its files by what is in them. Null from source, where tables change under one name. */
export const SCANNER = /(?<![\w-])[\w-]+\.cjs$/.exec(import.meta.url)?.[0] ?? null;

export interface Finding {
  readonly id: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in code points. */
  readonly column: number;
  /** At most 80 code points, on one line, nothing invisible in it. */
  readonly excerpt: string;
  readonly weight: "strong" | "weak";
}

/**
 * Every kind of threat in the whole text, each id once with its first match: invisible characters ascending, then the order of the
 * table. Same text and scope, same findings: the ids end up in prompts.
 */
export function scanForThreats(text: string, scope: ThreatScope): readonly Finding[] {
  const rank = RANK.get(scope);
  if (rank === undefined) throw new Error(`unknown threat scope: ${String(scope)}`);
  const look = lookInto(fold(text), scope);
  return [
    ...findInvisible(text).map(({ codePoint, index }) =>
      finding(`invisible_unicode_${codePointName(codePoint)}`, "strong", text, index, text.slice(index, index + 80)),
    ),
    ...THREAT_PATTERNS.flatMap((pattern) => {
      const found = (RANK.get(pattern.scope) ?? 0) > rank ? null : look(pattern);
      return found ? [finding(pattern.id, pattern.weight, text, originalIndex(text, found.index), found.excerpt)] : [];
    }),
  ];
}

interface Found {
  /** In the folded text. */
  readonly index: number;
  readonly excerpt: string;
}

/** Looks for one pattern: in the text itself, then in its views, each made when it is first asked for. */
function lookInto(folded: string, scope: ThreatScope): (pattern: ThreatPattern) => Found | null {
  const bare = lazy(() => bareView(folded));
  const loose = lazy(() => looseView(folded, bare()));
  const inText = (find: Find) => excerptAt(folded, find(folded), null);
  const inView = (find: Find, view: View | null) => view && excerptAt(view.text, find(view.text), view);
  return (pattern) => {
    const { needs, asWritten, divided, abroad } = pattern;
    const gated =
      (find: Find): Find =>
      (text) =>
        hasNeeds(text, needs) ? find(text) : null;
    const search = searcherOf(pattern, scope);
    return (
      inText(gated(search)) ??
      (asWritten ? null : inView(gated(search), bare())) ??
      (divided ? inView(gated(divided), loose()) : null) ??
      (abroad ? (bare() ? inView(abroad, bare()) : inText(abroad)) : null)
    );
  };
}

function excerptAt(text: string, span: Span | null, view: View | null): Found | null {
  if (span === null) return null;
  const excerpt = text.slice(span.index, Math.min(span.end, span.index + 240));
  return { index: view ? view.originalIndex(span.index) : span.index, excerpt };
}

/** What to do with a file that others wrote: one weak sign alone is no reason to withhold it. */
export function judgeFindings(findings: readonly Finding[]): "clean" | "flagged" | "blocked" {
  if (findings.length === 0) return "clean";
  const weak = new Set(findings.filter(({ weight }) => weight === "weak").map(({ id }) => id));
  return findings.some(({ weight }) => weight === "strong") || weak.size > 1 ? "blocked" : "flagged";
}

const RANK: ReadonlyMap<string, number> = new Map([
  ["all", 0],
  ["context", 1],
  ["strict", 2],
]);

function hasNeeds(folded: string, needs: readonly string[]): boolean {
  return needs.every((words) => words.split("|").some((word) => folded.includes(word)));
}

function searcherOf(pattern: { readonly find: Find; readonly strict?: Find }, scope: ThreatScope): Find {
  return scope === "strict" && pattern.strict ? anyOf(pattern.find, pattern.strict) : pattern.find;
}

function finding(id: string, weight: Finding["weight"], text: string, index: number, found: string): Finding {
  const lineStart = index === 0 ? 0 : text.lastIndexOf("\n", index - 1) + 1;
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < lineStart; at = text.indexOf("\n", at + 1)) line++;
  const column = countCodePoints(text.slice(lineStart, index)) + 1;
  const excerpt = sliceCodePoints(showInvisible(found.replace(/\s+/g, " ")), 0, 80);
  return { id, line, column, excerpt, weight };
}

// Patterns match normalised text; people look at the file. Normalising moves what stands behind a character that it takes apart.

/** Where in `text` the character stands that is at `index` of its NFKC form. Exact up to letters that join over a cut. */
function originalIndex(text: string, index: number): number {
  if (ASCII.test(text.slice(0, index + 1))) return index;
  let original = 0;
  let normal = 0;
  for (const [piece] of text.matchAll(PIECE)) {
    const length = piece.normalize("NFKC").length;
    if (normal + length > index) return original + withinPiece(piece, index - normal);
    normal += length;
    original += piece.length;
  }
  return text.length;
}

const ASCII = /^[\x00-\x7f]*$/;
// Nothing ASCII ever joins what stands before it, so a piece may end there.
const PIECE = /[\x00-\x7f]+[^\x00-\x7f]{0,64}\p{M}*|[^\x00-\x7f]{1,64}\p{M}*/gu;

function withinPiece(piece: string, index: number): number {
  const plain = /^[\x00-\x7f]*/.exec(piece)?.[0].length ?? 0;
  if (index < plain - 1) return index;
  let original = Math.max(0, plain - 1);
  let normal = original;
  for (const char of piece.slice(original)) {
    normal += char.normalize("NFKC").length;
    if (normal > index) return original;
    original += char.length;
  }
  return original;
}

// Characters nobody sees and a model reads: zero-width ones, direction overrides, tags. Some writing needs a few of them.

interface InvisibleCharacter {
  readonly codePoint: number;
  /** Where it stands first, in UTF-16 units. */
  readonly index: number;
}

/** Each forbidden code point once, ascending. */
export function findInvisible(text: string): readonly InvisibleCharacter[] {
  const first = new Map<number, number>();
  for (const match of text.matchAll(INVISIBLE_OR_FLAG)) {
    const codePoint = match[0].codePointAt(0) ?? 0;
    if (codePoint === BLACK_FLAG || first.has(codePoint) || isNeeded(text, match.index, codePoint)) continue;
    first.set(codePoint, match.index);
  }
  return [...first].map(([codePoint, index]) => ({ codePoint, index })).sort((a, b) => a.codePoint - b.codePoint);
}

/** `U+200B`: at least four digits. */
export function codePointName(codePoint: number): string {
  return `U+${codePoint.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** The text with every character of the forbidden kind shown as `<U+200B>`. */
export function showInvisible(text: string): string {
  return text.replace(INVISIBLE_OR_FLAG, (match) => {
    const codePoint = match.codePointAt(0) ?? 0;
    return codePoint === BLACK_FLAG ? match : `<${codePointName(codePoint)}>`;
  });
}

const BLACK_FLAG = 0x1f3f4;
const ZWNJ = 0x200c;
const ZWJ = 0x200d;

// A flag of a region (England, Wales) is a black flag spelled on in tag letters; matched whole, so that its tags are not looked at alone.
const FLAG = "\\u{1F3F4}[\\u{E0030}-\\u{E0039}\\u{E0061}-\\u{E007A}]{1,8}\\u{E007F}";
const INVISIBLE =
  "[\\u200B-\\u200D\\u2060-\\u2064\\u2066-\\u2069\\uFEFF\\u202A-\\u202E\\u180E\\uFFF9-\\uFFFB" +
  "\\u{E0001}\\u{E0020}-\\u{E007F}\\u{E0100}-\\u{E01EF}]";
const INVISIBLE_OR_FLAG = new RegExp(`${FLAG}|${INVISIBLE}`, "gu");

function isNeeded(text: string, index: number, codePoint: number): boolean {
  if (codePoint !== ZWNJ && codePoint !== ZWJ) return false;
  // An emoji, a skin tone and a selector take at most four units; a letter of these scripts takes two.
  const before = text.slice(Math.max(0, index - 5), index);
  const after = text.slice(index + 1, index + 6);
  if (spelling().before.test(before) && spelling().after.test(after)) return true;
  if (VIRAMA_AT_END.test(before) && WORD_ENDS.test(after)) return true;
  return codePoint === ZWJ && EMOJI_AT_END.test(before) && EMOJI_AT_START.test(after);
}

// A consonant that has lost its vowel at the end of a word is written with a joiner in older Malayalam and Bengali.
const VIRAMA_AT_END = /[\u094D\u09CD\u0A4D\u0ACD\u0B4D\u0BCD\u0C4D\u0CCD\u0D4D\u0DCA]$/;
const WORD_ENDS = /^(?:$|[\s!-/:-@[-`{-~\u0964\u0965\u2010-\u201F])/;
const EMOJI_AT_END = /\p{Extended_Pictographic}(?:\uFE0F|[\u{1F3FB}-\u{1F3FF}]){0,2}$/u;
const EMOJI_AT_START = /^(?:\uFE0F|[\u{1F3FB}-\u{1F3FF}]){0,2}\p{Extended_Pictographic}/u;

// Scripts whose spelling needs the joiners. Script extensions, because vowel signs shared by several scripts belong to none.
const JOINING_SCRIPTS = [
  ...["Arabic", "Syriac", "Nko", "Mongolian", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya"],
  ...["Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Khmer", "Myanmar"],
];
// Putting such classes together takes milliseconds, and few texts ever need them.
const spelling = lazy(() => {
  const letter = `(?=[\\p{L}\\p{M}])[${JOINING_SCRIPTS.map((script) => `\\p{scx=${script}}`).join("")}]`;
  return { before: new RegExp(`${letter}$`, "u"), after: new RegExp(`^${letter}`, "u") };
});
