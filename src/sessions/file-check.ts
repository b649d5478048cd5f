// SQLite's own check of a whole file. Always through a connection of its own: FTS5 keeps the layout of its index between queries, and a
// check on a connection that has not noticed other processes' writes reports damage where there is none.
import { Connection } from "./connection.ts";

/** What is wrong, in SQLite's words; empty for a sound file. Throws when the file cannot even be read. */
export function findDamage(path: string, depth: "quick" | "full" = "quick"): readonly string[] {
  const db = new Connection({ path, readOnly: true });
  try {
    const pragma = depth === "quick" ? "quick_check" : "integrity_check";
    const lines = db.all<Record<string, string>>(`PRAGMA ${pragma}`).map((row) => row[pragma] ?? "");
    return lines.filter((line) => line !== "ok");
  } finally {
    db.close();
  }
}

/** The search index can be made again from the messages; everything else cannot. */
export const namesIndex = (line: string) => /fts5/i.test(line);
