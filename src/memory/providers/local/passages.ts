// What was said in earlier conversations, in one SQLite file of the home: a row per turn, found by words and by parts of words.
import { DatabaseSync } from "node:sqlite";
import { type Expression, parseQuery, type QueryPart, quoteAll, splitQuery } from "../../../sessions/search/query.ts";
import { chooseRoute, mayRetryOnTrigram } from "../../../sessions/search/route.ts";
import { sanitiseQuery } from "../../../sessions/search/sanitise.ts";
import { escapeLike } from "../../../sessions/titles.ts";
import { coverage, indexText, queryTerms } from "./terms.ts";

export interface NewPassage {
  readonly kind: "turn" | "memory";
  readonly sessionId: string | null;
  readonly text: string;
  /** Unix seconds. */
  readonly at: number;
  readonly profile: string;
  /** Of a memory entry: the store it mirrors. */
  readonly target?: string;
}

export interface Passage {
  readonly id: number;
  readonly kind: string;
  readonly session_id: string | null;
  readonly text: string;
  readonly at: number;
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS passages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    session_id TEXT,
    text TEXT NOT NULL,
    at REAL NOT NULL,
    profile TEXT NOT NULL,
    target TEXT
  );
  CREATE INDEX IF NOT EXISTS passages_session ON passages(session_id);
  CREATE VIRTUAL TABLE IF NOT EXISTS passages_words USING fts5(text, content='', contentless_delete=1);
  CREATE VIRTUAL TABLE IF NOT EXISTS passages_trigram USING fts5(text, content='', contentless_delete=1, tokenize='trigram');
`;
const COLUMNS = "p.id, p.kind, p.session_id, p.text, p.at";
const BUSY_MS = 2000;
const CANDIDATES = 60;
/** A passage that shares less than this with the question is about something else. */
const LEAST_COVERAGE = 0.25;

export class Passages {
  readonly #db: DatabaseSync;

  constructor(path: string) {
    this.#db = new DatabaseSync(path, { timeout: BUSY_MS });
    this.#db.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
    this.#db.exec(SCHEMA);
  }

  add(passage: NewPassage): number {
    return this.#together(() => {
      const { lastInsertRowid } = this.#db
        .prepare("INSERT INTO passages (kind, session_id, text, at, profile, target) VALUES (?, ?, ?, ?, ?, ?)")
        .run(passage.kind, passage.sessionId, passage.text, passage.at, passage.profile, passage.target ?? null);
      const words = indexText(passage.text);
      this.#db.prepare("INSERT INTO passages_words (rowid, text) VALUES (?, ?)").run(lastInsertRowid, words);
      this.#db.prepare("INSERT INTO passages_trigram (rowid, text) VALUES (?, ?)").run(lastInsertRowid, passage.text);
      return Number(lastInsertRowid);
    });
  }

  /** False when there is none of this id. */
  remove(id: number): boolean {
    return this.#together(() => {
      const { changes } = this.#db.prepare("DELETE FROM passages WHERE id = ?").run(id);
      for (const index of ["passages_words", "passages_trigram"])
        this.#db.prepare(`DELETE FROM ${index} WHERE rowid = ?`).run(id);
      return Number(changes) > 0;
    });
  }

  /** Mirrored entries of a store that hold the text. */
  entriesWith(target: string, part: string): readonly number[] {
    const rows = this.#db
      .prepare("SELECT id FROM passages WHERE kind = 'memory' AND target = ? AND instr(text, ?) > 0")
      .all(target, part);
    return rows.map((row) => Number(row.id));
  }

  /** What earlier conversations have to say about a question, best first. The question is plain language, not a query. */
  related(
    question: string,
    options: { readonly not: ReadonlySet<string>; readonly limit: number },
  ): readonly Passage[] {
    const terms = queryTerms(question);
    if (terms.length === 0) return [];
    const expression = terms.map((term) => (term.length === 1 ? `"${term}"*` : `"${term}"`)).join(" OR ");
    const sql = `SELECT ${COLUMNS} FROM passages_words w JOIN passages p ON p.id = w.rowid
      WHERE passages_words MATCH ? AND p.kind = 'turn' ORDER BY w.rank LIMIT ?`;
    return this.#rows(sql, expression, CANDIDATES)
      .filter(({ session_id }) => session_id === null || !options.not.has(session_id))
      .map((passage, rank) => ({ passage, rank, share: coverage(terms, indexText(passage.text)) }))
      .filter(({ share }) => share >= LEAST_COVERAGE)
      .sort((a, b) => b.share - a.share || a.rank - b.rank)
      .slice(0, options.limit)
      .map(({ passage }) => passage);
  }

  /** By a query with AND, OR, NOT, "phrases" and prefix*, as in the search of past sessions. */
  search(query: string, limit: number): readonly Passage[] {
    const sanitised = sanitiseQuery(query);
    const parts = splitQuery(sanitised);
    if (parts.length === 0) return [];
    const facts = { trigram: true };
    const route = chooseRoute(parts, facts);
    if (route === "scan") return this.#scan(parts, limit);
    if (route === "trigram") return this.#match("passages_trigram", quoteAll(parts), limit);
    const found = this.#match("passages_words", sanitised, limit);
    if (found.length > 0 || !mayRetryOnTrigram(parts, facts)) return found;
    return this.#match("passages_trigram", quoteAll(parts), limit);
  }

  count(): { readonly turns: number; readonly entries: number } {
    const rows = this.#db.prepare("SELECT kind, count(*) AS n FROM passages GROUP BY kind").all();
    const of = (kind: string) => Number(rows.find((row) => row.kind === kind)?.n ?? 0);
    return { turns: of("turn"), entries: of("memory") };
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }

  #match(index: "passages_words" | "passages_trigram", expression: string, limit: number): readonly Passage[] {
    const sql = `SELECT ${COLUMNS} FROM ${index} i JOIN passages p ON p.id = i.rowid WHERE ${index} MATCH ? ORDER BY i.rank LIMIT ?`;
    try {
      return this.#rows(sql, expression, limit);
    } catch {
      // Whatever the parser still refuses is asked for once more, as one phrase.
      return this.#rows(sql, `"${expression.replaceAll('"', "")}"`, limit);
    }
  }

  #scan(parts: readonly QueryPart[], limit: number): readonly Passage[] {
    const expression = parseQuery(parts);
    if (!expression) return [];
    const { sql, values } = condition(expression);
    return this.#rows(
      `SELECT ${COLUMNS} FROM passages p WHERE ${sql} ORDER BY p.at DESC, p.id DESC LIMIT ?`,
      ...values,
      limit,
    );
  }

  #rows(sql: string, ...values: (string | number)[]): readonly Passage[] {
    return this.#db.prepare(sql).all(...values) as unknown as Passage[]; // the SELECT list is the type
  }

  #together<T>(work: () => T): T {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#db.exec("COMMIT");
      return result;
    } catch (error) {
      this.#db.exec("ROLLBACK");
      throw error;
    }
  }
}

function condition(expression: Expression): { readonly sql: string; readonly values: readonly string[] } {
  if (expression.type === "term") {
    return { sql: "p.text LIKE ? ESCAPE '\\'", values: [`%${escapeLike(expression.text)}%`] };
  }
  const left = condition(expression.left);
  const right = condition(expression.right);
  const operator = { and: "AND", or: "OR", not: "AND NOT" }[expression.type];
  return { sql: `(${left.sql} ${operator} ${right.sql})`, values: [...left.values, ...right.values] };
}
