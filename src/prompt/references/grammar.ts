// `@file:src/a.ts:3-9`, `@folder:docs`, `@diff`, `@pic.png`: things a user's message points at.

type ReferenceKind = "file" | "folder" | "git" | "url" | "diff" | "staged";

export interface Reference {
  readonly kind: ReferenceKind;
  /** As typed, without the punctuation of the sentence around it. */
  readonly raw: string;
  /** Empty for `diff` and `staged`. */
  readonly value: string;
  readonly range?: LineRange;
  /** Only the name of a picture, without a kind: a reference if there is such a file, else plain text. */
  readonly ifExists?: true;
  /** Where it begins in the message, in UTF-16 units. */
  readonly index: number;
}

/** 1-based, both ends included. */
export interface LineRange {
  readonly from: number;
  readonly to: number;
}

// Not inside a word or a path: `user@example.com`, `a/@b`.
const START = /(?<![\p{Script=Latin}0-9_/])@(?:(diff|staged)(?![\p{L}\p{N}_])|(file|folder|git|url):|(?=[^\s@]))/gu;
// Bounded, because it is tried behind every `@`.
const PICTURE =
  /(?:`([^`\n]{1,300}\.(?:png|jpe?g|gif|webp))`|"([^"\n]{1,300}\.(?:png|jpe?g|gif|webp))"|'([^'\n]{1,300}\.(?:png|jpe?g|gif|webp))'|([^\s@"'`]{1,300}?\.(?:png|jpe?g|gif|webp))(?!\.?[\p{Script=Latin}0-9_]))/iuy;
const QUOTED = /(?:`([^`\n]+)`|"([^"\n]+)"|'([^'\n]+)')/y;
// Chinese sentences have no blanks: a mark before the next reference ends this one.
const BARE = /(?:(?![，。；！？、]@)\S)+/y;
const RANGE = /:(\d+)(?:-(\d+))?/y;
const TRAILING = new Set(",.;!?，。；！？、");
const CLOSING: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };
const BALANCED = new Set("()[]{}`");

export function findReferences(message: string): readonly Reference[] {
  const found: Reference[] = [];
  let end = 0;
  for (const match of message.matchAll(START)) {
    if (match.index < end) continue;
    const reference = readReference(message, match.index, match[0], match[1], match[2]);
    if (!reference) continue;
    found.push(reference);
    end = reference.index + reference.raw.length;
  }
  return found;
}

function readReference(message: string, index: number, start: string, plain?: string, kind?: string): Reference | null {
  if (plain !== undefined) return { kind: plain as ReferenceKind, raw: start, value: "", index }; // the pattern allows no other
  const at = index + start.length;
  if (kind === undefined) return readPicture(message, index, at);
  const known = kind as ReferenceKind; // the pattern allows no other
  const quoted = matchAt(QUOTED, message, at);
  if (quoted) {
    const value = quoted[1] ?? quoted[2] ?? quoted[3] ?? "";
    const after = at + quoted[0].length;
    const range = known === "file" ? matchAt(RANGE, message, after) : null;
    const raw = message.slice(index, after + (range?.[0].length ?? 0));
    return { kind: known, raw, value, index, ...rangeOf(range) };
  }
  const word = withoutPunctuation(matchAt(BARE, message, at)?.[0] ?? "");
  if (word === "") return null;
  const raw = message.slice(index, at + word.length);
  const ranged = known === "file" ? /^(.+?):(\d+)(?:-(\d+))?$/s.exec(word) : null;
  if (!ranged) return { kind: known, raw, value: word, index };
  const [, value = "", ...numbers] = ranged;
  return { kind: known, raw, value, index, ...rangeOf(["", ...numbers]) };
}

function readPicture(message: string, index: number, at: number): Reference | null {
  const found = matchAt(PICTURE, message, at);
  const value = found?.slice(1).find((part) => part !== undefined);
  if (!found || value === undefined) return null;
  return { kind: "file", raw: message.slice(index, at + found[0].length), value, index, ifExists: true };
}

function rangeOf(match: readonly (string | undefined)[] | null): { range?: LineRange } {
  if (!match) return {};
  const from = Number(match[1]);
  return { range: { from, to: match[2] === undefined ? from : Number(match[2]) } };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** What belongs to the sentence, not to the path: full stops, closing brackets that were opened outside, a closing backtick. */
function withoutPunctuation(word: string): string {
  const counts = new Map<string, number>();
  for (const char of word) if (BALANCED.has(char)) counts.set(char, (counts.get(char) ?? 0) + 1);
  const count = (char: string) => counts.get(char) ?? 0;
  let end = word.length;
  for (; end > 0; end--) {
    const last = word[end - 1] ?? "";
    const open = CLOSING[last];
    const isUnopened = open !== undefined && count(last) > count(open);
    const isLone = last === "`" && count(last) === 1;
    if (!TRAILING.has(last) && !isUnopened && !isLone) break;
    counts.set(last, count(last) - 1);
  }
  return word.slice(0, end);
}

/** A path as it has to be typed behind `@file:`. */
export function formatReferenceValue(path: string): string {
  if (!/[\s()[\]{}`"']/.test(path)) return path;
  const mark = ["`", '"', "'"].find((quote) => !path.includes(quote));
  return mark === undefined ? path : `${mark}${path}${mark}`;
}
