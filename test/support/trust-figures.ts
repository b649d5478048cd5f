// What the tests of the corpora found, told to `npm run trust`, which adds it up (scripts/trust-figures.mjs). In any other run nobody listens.
import { appendFileSync } from "node:fs";
import { after } from "node:test";

export interface Figure {
  /** What was attacked, as it stands in the table. */
  readonly kind: string;
  /** With what in the way: the checks alone, or the sandbox behind them. Absent: the sandbox has no part in it. */
  readonly sandbox?: "with" | "without";
  readonly rows: number;
  /** Ids of the rows that got through; of harmless rows, those that were held up. */
  readonly fallen: readonly string[];
}

export function tellFigure(figure: Figure): void {
  const { HERMES_TRUST_FIGURES: file } = process.env;
  if (file) appendFileSync(file, `${JSON.stringify(figure)}\n`);
}

/** For corpora with a test per row: a row that was not reported as held has fallen. */
export function tellWhenDone(kind: Pick<Figure, "kind" | "sandbox">, ids: readonly string[]): (id: string) => void {
  const held = new Set<string>();
  after(() => tellFigure({ ...kind, rows: ids.length, fallen: ids.filter((id) => !held.has(id)) }));
  return (id) => void held.add(id);
}
