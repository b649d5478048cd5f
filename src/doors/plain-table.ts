// A Markdown table as text whose columns line up in terminal cells; too wide, it becomes a list.
import { cellWidth, padCells, wrapCells } from "../kit/cells.ts";

const MIN_COLUMN = 3;

export const isTableRow = (line: string) => /^\s*\|.*\|\s*$/.test(line);
export const isTableSeparator = (line: string) => /^\s*\|(\s*:?-+:?\s*\|)+\s*$/.test(line);

/** Rows include the header and the separator, as they stand in the text. */
export function alignTable(rows: readonly string[], width: number): string[] {
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
      wrapCells(`${name}: ${row[column] ?? ""}`, Math.max(10, width - 2)).map((line, i) =>
        i > 0 ? `  ${line}` : line,
      ),
    ),
  ]);
}
