// What the index of terms adds to an explicit query: SQLite's own indexes know no term under three characters, and to them a Latin word
// that is glued to other script (用docker运行) is part of one long word.
import type { StoreCore } from "../core.ts";
import { decodeText, plainText } from "../sessions.ts";
import type { RowFilter } from "./filter.ts";
import type { Postings } from "./postings.ts";
import { type Expression, type QueryPart, wantedTerms } from "./query.ts";
import type { TermIndex } from "./term-index.ts";
import { fold, gluedTerm, hanTermsOf, splitScripts } from "./words.ts";

/** Places of all texts that may hold what the expression wants, ascending; null when the index cannot tell. */
export function placesFor(index: TermIndex, expression: Expression): Int32Array | null {
  if (expression.type === "term") return placesOfTerm(index, expression.text);
  const left = placesFor(index, expression.left);
  if (expression.type === "not") return left;
  const right = placesFor(index, expression.right);
  if (expression.type === "or") return left && right && unite(left, right);
  return left && right ? intersect(left, right) : (left ?? right);
}

function placesOfTerm(index: TermIndex, term: string): Int32Array | null {
  const terms = hanTermsOf(term);
  if (terms.length === 0) return null;
  return terms.map((one) => index.postings(one).places).reduce(intersect);
}

export function intersect(a: Int32Array, b: Int32Array): Int32Array {
  const out = new Int32Array(Math.min(a.length, b.length));
  let size = 0;
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const difference = (a[i] ?? 0) - (b[j] ?? 0);
    if (difference === 0) out[size++] = a[i] ?? 0;
    if (difference <= 0) i++;
    if (difference >= 0) j++;
  }
  return out.subarray(0, size);
}

function unite(a: Int32Array, b: Int32Array): Int32Array {
  return Int32Array.from(new Set([...a, ...b])).sort();
}

/** Ids in the order of time. */
export function idsByTime(index: TermIndex, places: Int32Array, order: "newest" | "oldest"): readonly number[] {
  const { at, id } = index.texts();
  const sorted = [...places].sort((a, b) => (at[a] ?? 0) - (at[b] ?? 0) || a - b);
  if (order === "newest") sorted.reverse();
  return sorted.map((place) => id[place] ?? 0);
}

interface GluedHit {
  readonly id: number;
  readonly timestamp: number;
  /** On the scale of SQLite's `rank`: the lower, the better. */
  readonly rank: number;
}

interface GluedRequest {
  readonly parts: readonly QueryPart[];
  readonly expression: Expression;
  readonly filter: RowFilter;
}

/** Rows that hold the words of the query, at least one of them glued to a script without blanks. */
export async function gluedRows(
  core: StoreCore,
  index: TermIndex,
  request: GluedRequest,
): Promise<readonly GluedHit[]> {
  const wanted = wantedTerms(request.parts);
  const words = [...new Set(wanted.flatMap((term) => splitScripts(fold(term))))];
  const prefixes = new Set(
    request.parts.flatMap((part) => (part.type === "term" && part.prefix ? [fold(part.text)] : [])),
  );
  const glued = words.map((word) => gluedPostings(index, word, prefixes.has(word)));
  const places = Int32Array.from(new Set(glued.flatMap(({ places }) => [...places]))).sort();
  if (places.length === 0) return [];
  const { id, count } = index.texts();
  const ids = JSON.stringify(Array.from(places, (place) => id[place] ?? 0));
  const rows = await core.read(() =>
    core.db.all<{
      id: number;
      timestamp: number;
      content: Uint8Array | null;
      tool_name: string | null;
      tool_calls: Uint8Array | null;
    }>(
      `SELECT m.id, m.timestamp, CAST(m.content AS BLOB) AS content, m.tool_name, CAST(m.tool_calls AS BLOB) AS tool_calls
       FROM json_each(?) CROSS JOIN messages m ON m.id = json_each.value CROSS JOIN sessions s ON s.id = m.session_id
       WHERE ${request.filter.sql}`,
      ids,
      ...request.filter.values,
    ),
  );
  const rarity = words.map((_, n) => idf(glued[n]?.places.length ?? 0, count));
  return rows.flatMap(({ id, timestamp, content, tool_name, tool_calls }) => {
    const columns = [plainText(content, core.log), tool_name ?? "", decodeText(tool_calls) ?? ""].map((text) =>
      splitScripts(fold(text)),
    );
    if (!holds(request.expression, columns)) return [];
    return [{ id, timestamp, rank: -rankOf(columns.flat(), words, rarity) }];
  });
}

function gluedPostings(index: TermIndex, word: string, prefix: boolean): Postings {
  if (!prefix) return index.postings(gluedTerm(word));
  const all = [...index.termsFrom(gluedTerm(word)).keys()].flatMap((term) => [...index.postings(term).places]);
  return { places: Int32Array.from(all), counts: new Uint8Array(all.length) };
}

function holds(expression: Expression, columns: readonly (readonly string[])[]): boolean {
  if (expression.type === "term") {
    const words = splitScripts(fold(expression.text));
    return columns.some((column) => hasRun(column, words, expression.prefix ?? false));
  }
  const left = holds(expression.left, columns);
  if (expression.type === "or") return left || holds(expression.right, columns);
  return left && holds(expression.right, columns) === (expression.type === "and");
}

function hasRun(column: readonly string[], words: readonly string[], prefix: boolean): boolean {
  const last = words.length - 1;
  return column.some((_, at) =>
    words.every((word, n) => {
      const found = column[at + n];
      return found !== undefined && (prefix && n === last ? found.startsWith(word) : found === word);
    }),
  );
}

const AVERAGE_WORDS = 12;

/** The formula of FTS5. */
function rankOf(tokens: readonly string[], words: readonly string[], rarity: readonly number[]): number {
  const length = 1.2 * (0.25 + (0.75 * tokens.length) / AVERAGE_WORDS);
  return words.reduce((sum, word, n) => {
    const count = tokens.filter((token) => token === word).length;
    return sum + ((rarity[n] ?? 0) * count * 2.2) / (count + length);
  }, 0);
}

const idf = (holders: number, all: number) => Math.max(1e-6, Math.log((all - holders + 0.5) / (holders + 0.5)));
