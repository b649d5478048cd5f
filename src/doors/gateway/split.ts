// A long message in parts that each stand for themselves: code stays code, a table has its header, nothing is lost, and no part is longer
// than its platform takes.

/** Room for ` (10/12)` behind each part. */
const COUNTER = 10;

interface SplitOptions {
  readonly max: number;
  /** How the platform counts: UTF-16 units, code points or bytes. */
  readonly length?: (text: string) => number;
  /** What a part becomes before it is sent; the limit holds for that. */
  readonly format?: (part: string) => string;
}

/** Every part, formatted, fits. A limit that leaves no room for anything still gives parts, of a character each at worst. */
export function splitMessage(text: string, { max, length = utf16, format = (part) => part }: SplitOptions): string[] {
  if (length(format(text)) <= max) return [text];
  // Formatting makes a text longer by what has to be escaped in it, so the limit of the source is found by trying.
  for (let limit = max; ; ) {
    const parts = numbered(cutIntoParts(text, limit, length));
    const longest = Math.max(...parts.map((part) => length(format(part))));
    if (longest <= max || limit <= COUNTER * 2) return parts;
    limit = Math.max(COUNTER * 2, Math.min(limit - 1, Math.floor((limit * max) / longest)));
  }
}

export const utf16 = (text: string) => text.length;
export const codePoints = (text: string) => [...text].length;
export const utf8Bytes = (text: string) => Buffer.byteLength(text);

interface Fence {
  readonly marks: string;
  readonly language: string;
}

function cutIntoParts(text: string, max: number, length: (text: string) => number): string[] {
  const parts: string[] = [];
  let fence: Fence | null = null;
  for (let rest = text; rest !== ""; ) {
    const prefix: string = fence ? `${fence.marks}${fence.language}\n` : "";
    if (length(prefix) + length(rest) <= max - COUNTER) {
      parts.push(closed(prefix + rest, fenceAtEnd(rest, fence)));
      break;
    }
    const room = max - COUNTER - length(prefix) - ((fence?.marks.length ?? 3) + 1);
    const budget = room < 1 ? Math.max(1, Math.floor(max / 2)) : room;
    const cut = cutWithin(rest, budget, length);
    const inTable = cutTable(rest, tableAround(rest, cut, fence), budget, length);
    if (inTable) {
      if (inTable.part !== "") parts.push(prefix + inTable.part);
      fence = null;
      rest = inTable.left;
      continue;
    }
    const body = rest.slice(0, cut);
    fence = fenceAtEnd(body, fence);
    parts.push(closed(prefix + body, fence));
    rest = afterCut(rest.slice(body.length), fence !== null);
    // A block that ends right here is closed already: no empty one begins the next part.
    const end: string | undefined = fence ? /^ {0,3}(?:`{3,}|~{3,})[ \t]*(?:\n|$)/.exec(rest)?.[0] : undefined;
    if (!fence || !end?.trim().startsWith(fence.marks)) continue;
    fence = null;
    rest = afterCut(rest.slice(end.length), false);
  }
  return parts;
}

const closed = (text: string, fence: Fence | null) => (fence ? `${text}\n${fence.marks}` : text);

/** Where to cut, by what is lost least: behind a line, behind a word, in a word; not inside inline code if that can be helped. */
function cutWithin(text: string, budget: number, length: (text: string) => number): number {
  const region = startOf(text, budget, length);
  const newline = region.lastIndexOf("\n");
  const space = region.lastIndexOf(" ");
  const cut = newline >= region.length / 2 ? newline : space > 0 ? space : region.length;
  const before = text.slice(0, cut);
  const ticks = [...before.matchAll(/(?<!\\)`/g)];
  const last = ticks.at(-1)?.index ?? 0;
  if (ticks.length % 2 === 0) return cut;
  const outside = Math.max(text.lastIndexOf(" ", last - 1), text.lastIndexOf("\n", last - 1));
  return last > 0 && outside > region.length / 4 ? outside : cut;
}

/** The longest beginning within the budget that cuts no character in two; at least one character. */
function startOf(text: string, budget: number, length: (text: string) => number): string {
  let low = 1;
  let high = Math.min(text.length, budget);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (length(text.slice(0, middle)) <= budget) low = middle;
    else high = middle - 1;
  }
  const splitsPair = /[\ud800-\udbff]/.test(text.charAt(low - 1)) && /[\udc00-\udfff]/.test(text.charAt(low));
  return text.slice(0, splitsPair ? Math.max(low - 1, low === 1 ? 2 : 1) : low);
}

/** In code one line end goes with the cut and the indentation stays; in prose all blanks go. */
function afterCut(rest: string, inCode: boolean): string {
  return inCode ? rest.replace(/^\r?\n/, "") : rest.trimStart();
}

function fenceAtEnd(body: string, open: Fence | null): Fence | null {
  return body.split("\n").reduce(fenceBehind, open);
}

/** The block that is open behind a line. */
function fenceBehind(open: Fence | null, line: string): Fence | null {
  const found = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})[ \t]*([^\s`]*)/.exec(line);
  if (!found) return open;
  const [, marks = "", language = ""] = found;
  if (open === null) return { marks, language };
  return marks.startsWith(open.marks) && line.trim() === marks ? null : open;
}

// Tables.

interface Table {
  readonly start: number;
  /** Where each of its lines ends: header, the line below it, rows. */
  readonly ends: readonly number[];
}

const endOf = ({ ends }: Table) => ends.at(-1) ?? 0;

function* tablesIn(text: string, open: Fence | null = null): Generator<Table> {
  let fence = open;
  const lineEnd = (from: number) => (text.indexOf("\n", from) + 1 || text.length + 1) - 1;
  for (let start = 0; start < text.length; ) {
    const end = lineEnd(start);
    const line = text.slice(start, end);
    const ruleEnd = lineEnd(end + 1);
    if (fence === null && end < text.length && isTableTop(line, text.slice(end + 1, ruleEnd))) {
      const ends = [end, ruleEnd];
      for (let from = ruleEnd + 1; from < text.length; from = (ends.at(-1) ?? from) + 1) {
        const rowEnd = lineEnd(from);
        if (!text.slice(from, rowEnd).includes("|")) break;
        ends.push(rowEnd);
      }
      yield { start, ends };
      start = (ends.at(-1) ?? end) + 1;
      continue;
    }
    fence = fenceBehind(fence, line);
    start = end + 1;
  }
}

/** A header, and the line of dashes below it. */
function isTableTop(header: string, rule: string): boolean {
  if (!header.includes("|") || !rule.includes("|") || !/^[\s|:-]*-[\s|:-]*$/.test(rule)) return false;
  const columns = cellsIn(rule);
  return (
    columns.every((cell) => /^:?-+:?$/.test(cell.trim())) && Math.abs(columns.length - cellsIn(header).length) <= 1
  );
}

const cellsIn = (line: string) =>
  line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, "")
    .split(PIPE);
const PIPE = /(?<!\\)\|/;

/** The table that a cut goes through. */
function tableAround(text: string, cut: number, fence: Fence | null): Table | null {
  for (const table of tablesIn(text, fence)) {
    if (table.start >= cut) return null;
    if (cut < endOf(table)) return table;
  }
  return null;
}

/** Cuts behind the table, before it, or between two rows: then the header comes again. Null: not even its header fits. */
function cutTable(
  text: string,
  table: Table | null,
  budget: number,
  length: (text: string) => number,
): { readonly part: string; readonly left: string } | null {
  if (table === null) return null;
  const { start, ends } = table;
  const fits = (end: number, from = 0) => length(text.slice(from, end)) <= budget;
  const end = endOf(table);
  if (fits(end)) return { part: text.slice(0, end), left: text.slice(end).trimStart() };
  const before = text.slice(0, start).trimEnd();
  const most = ends.findIndex((rowEnd) => !fits(rowEnd)) - 1;
  if (start > 0 && (before === "" || most < 2 || fits(end, start))) return { part: before, left: text.slice(start) };
  const [, topEnd = 0, firstEnd = 0] = ends;
  const top = text.slice(start, topEnd + 1);
  if (most >= 2) return { part: text.slice(0, ends[most]), left: top + text.slice((ends[most] ?? 0) + 1) };
  // One row alone is too long: it is cut in a cell, and what is left of that stays in its column.
  const row = text.slice(topEnd + 1, firstEnd);
  const room = budget - length(top);
  if (ends.length < 3 || room < 1) return null;
  const piece = row.slice(0, cutWithin(row, room, length));
  const columns = piece.trimStart().replace(/^\|/, "").split(PIPE).length;
  const again = `${"| ".repeat(columns)}${row.slice(piece.length).trimStart()}`;
  return again.length < row.length ? { part: top + piece, left: top + again + text.slice(firstEnd) } : null;
}

/** The counter is no cell of a row and no line of code. */
function numbered(parts: readonly string[]): string[] {
  if (parts.length < 2) return [...parts];
  return parts.map((part, index) => `${part}${beforeCounter(part)}(${index + 1}/${parts.length})`);
}

function beforeCounter(part: string): string {
  const text = part.trimEnd();
  if (/(?:^|\n) {0,3}(?:`{3,}|~{3,})$/.test(text)) return "\n";
  const last = text.slice(text.lastIndexOf("\n") + 1).includes("|") ? [...tablesIn(text)].at(-1) : undefined;
  return last && endOf(last) === text.length ? "\n\n" : " ";
}

/** A part as it was before it was numbered. */
export function withoutCounter(part: string, number: number, of: number): string {
  const counter = `(${number}/${of})`;
  if (of < 2 || !part.endsWith(counter)) return part;
  return part.slice(0, -counter.length).replace(/(?:\n\n| |\n)$/, "");
}
