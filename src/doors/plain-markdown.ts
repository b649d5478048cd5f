// Markdown made readable as plain text: markers go, content stays. Code is never touched.
import { cellWidth, padCells, wrapLines } from "./terminal-text.ts";

/**
 * Removes emphasis, heading, code and link markers outside of code; tables are re-aligned to `width` cells. A text may be given in pieces
 * of whole lines: `open` is the fence that the pieces before left open.
 */
export function plainMarkdown(text: string, width: number, open: string | null = null): string {
  const out: string[] = [];
  const lines = text.split("\n");
  let fence = open;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] as string; // i is in range
    const next = fenceAfter(line, fence);
    if (next !== fence) {
      fence = next;
      continue;
    }
    if (fence !== null) {
      out.push(line);
      continue;
    }
    if (isTableRow(line) && isTableSeparator(lines[i + 1] ?? "")) {
      const rows: string[] = [];
      while (i < lines.length && isTableRow(lines[i] as string)) rows.push(lines[i++] as string); // i is checked in the loop
      i--;
      out.push(...alignTable(rows.map(plainInline), width));
      continue;
    }
    if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line) && !looksLikeCron(line)) continue;
    if (line.trim() === "" && out.at(-1)?.trim() === "") continue;
    out.push(plainInline(withoutHeadingMarks(line)));
  }
  return out.join("\n");
}

/** The fence that is open behind this line; null outside of code. */
export function fenceAfter(line: string, open: string | null): string | null {
  const mark = /^\s*(`{3,}|~{3,})/.exec(line)?.[1];
  if (!mark) return open;
  if (open === null) return mark;
  return mark.startsWith(open) && line.trim() === mark ? null : open;
}

// `* * * * *` is a schedule, `***` a rule.
const looksLikeCron = (line: string) => /^\s*(\*\s+){4}\*\s*$/.test(line);

function plainInline(line: string): string {
  // Code spans are replaced first, so that nothing inside them is read as a marker.
  const spans: string[] = [];
  const masked = replaceCodeSpans(line, (code) => {
    spans.push(code.replace(/^ (.*) $/, "$1"));
    return `\u0000${spans.length - 1}\u0000`;
  });
  const stripped = masked
    .replace(/!\[([^[\]]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+"[^"]*")?\)/g, "$1")
    .replace(/\[([^[\]]+)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+"[^"]*")?\)/g, "$1")
    .replace(/(^|[^\w*])\*\*\*(?=\S)([^*]+?)(?<=\S)\*\*\*(?![\w*])/g, "$1$2")
    .replace(/(^|[^*])\*\*(?=\S)(.{1,500}?)(?<=\S)\*\*(?!\*)/g, "$1$2")
    .replace(/(^|[^\w])__(?=\S)(?![A-Za-z_]\w*__(?!\w))(.{1,500}?)(?<=\S)__(?!\w)/g, "$1$2")
    .replace(/(^|[^\w*])\*(?=[^\s*])([^*]*?[^\s*])\*(?![\w*])/g, "$1$2")
    .replace(/(^|[^\w])_(?=[^\s_])([^_]*?[^\s_])_(?!\w)/g, "$1$2")
    .replace(/~~(?=\S)(.{1,500}?)(?<=\S)~~/g, "$1");
  return stripped.replace(/\u0000(\d+)\u0000/g, (_all, index: string) => spans[Number(index)] ?? "");
}

function withoutHeadingMarks(line: string): string {
  const [, indent = "", rest] = /^(\s{0,3})#{1,6}\s([\s\S]*)$/.exec(line) ?? [];
  if (rest === undefined) return line;
  const text = rest.trim().replace(/(?<!#)#+$/, "");
  return indent + text.trimEnd();
}

/** Backquotes, as many behind as before. In one walk: a line may be nothing but backquotes. */
function replaceCodeSpans(line: string, replace: (code: string) => string): string {
  const runs = [...line.matchAll(/`+/g)].map(({ index, 0: ticks }) => ({ start: index, length: ticks.length }));
  const waiting = Map.groupBy(runs.toReversed(), ({ length }) => length); // of each length, the next one last
  let text = "";
  let from = 0;
  for (const { start, length } of runs) {
    if (start < from) continue;
    for (let ticks = length; ticks > 0; ticks--) {
      const same = waiting.get(ticks) ?? [];
      while ((same.at(-1)?.start ?? Infinity) <= start) same.pop();
      const close = same.at(-1);
      if (!close) continue;
      const open = start + length - ticks;
      text += line.slice(from, open) + replace(line.slice(open + ticks, close.start));
      from = close.start + ticks;
      break;
    }
  }
  return text + line.slice(from);
}

// A Markdown table as text whose columns line up in terminal cells; too wide, it becomes a list.

const MIN_COLUMN = 3;

export const isTableRow = (line: string) => /^\s*\|.*\|\s*$/.test(line);
const isTableSeparator = (line: string) => /^\s*\|(\s*:?-+:?\s*\|)+\s*$/.test(line);

/** Rows include the header and the separator, as they stand in the text. */
function alignTable(rows: readonly string[], width: number): string[] {
  const cells = rows.filter((_, index) => index !== 1).map(cellsOf);
  const header = cells[0] ?? [];
  const columns = header.map((_, index) => Math.max(MIN_COLUMN, ...cells.map((row) => cellWidth(row[index] ?? ""))));
  const total = columns.reduce((sum, column) => sum + column + 3, 1);
  if (total > width) return asList(header, cells.slice(1), width);
  const line = (row: readonly string[]) =>
    `| ${columns.map((column, index) => padCells(row[index] ?? "", column)).join(" | ")} |`;
  const separator = `| ${columns.map((column) => "-".repeat(column)).join(" | ")} |`;
  return [line(header), separator, ...cells.slice(1).map(line)];
}

function cellsOf(row: string): string[] {
  return row
    .trim()
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function asList(header: readonly string[], rows: readonly (readonly string[])[], width: number): string[] {
  return rows.flatMap((row, index) => [
    ...(index > 0 ? [""] : []),
    ...header.flatMap((name, column) =>
      wrapLines(`${name}: ${row[column] ?? ""}`, Math.max(10, width - 2)).map((line, i) =>
        i > 0 ? `  ${line}` : line,
      ),
    ),
  ]);
}
