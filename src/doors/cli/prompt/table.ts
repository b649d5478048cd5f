import { cellWidth, padCells } from "../../../kit/cells.ts";

/** Columns that line up; those named in `right` are numbers. */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string {
  const count = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, at) => Math.max(...rows.map((row) => cellWidth(row[at] ?? ""))));
  const cell = (text: string, at: number) => {
    const width = widths[at] ?? 0;
    return right.includes(at) ? " ".repeat(width - cellWidth(text)) + text : padCells(text, width);
  };
  return rows.map((row) => row.map(cell).join("  ").trimEnd()).join("\n");
}
