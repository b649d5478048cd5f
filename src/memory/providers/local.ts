// The memory provider that comes with the program: every turn is kept in a file of the home, and what fits a new question comes back.
import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { countCodePoints, sliceCodePoints, truncateCodePoints } from "../../kit/code-points.ts";
import { askIndex } from "../../sessions/search/ask.ts";
import { byNearness } from "../../sessions/search/near.ts";
import {
  chooseRoute,
  type Expression,
  hasOperators,
  mayRetryOnTrigram,
  parseQuery,
  type QueryPart,
  quoteAll,
  sanitiseQuery,
  splitQuery,
} from "../../sessions/search/query.ts";
import { rankGroups } from "../../sessions/search/rank.ts";
import { passageStart } from "../../sessions/search/snippet.ts";
import { type IndexedText, TermIndex } from "../../sessions/search/term-index.ts";
import { favourOf } from "../../sessions/search/times.ts";
import { isSubject, readQuestion, readText } from "../../sessions/search/words.ts";
import { escapeLike } from "../../sessions/titles.ts";
import type { MemoryProvider, ProviderContext, ProviderSession } from "./contract.ts";

const RECALLED = 5;
const PASSAGE_CHARS = 400;
const RECALL_CHARS = 2000;
/** Of one side of a turn; more is read in the session itself. */
const KEPT_CHARS = 8000;

export function localProvider(context: ProviderContext): MemoryProvider {
  const path = context.paths.at("memory-local.db");
  let passages: Passages | null = null;
  let about: ProviderSession | null = null;
  /** The conversation under all the names it had. */
  const own = new Set<string>();

  const database = () => {
    passages ??= new Passages(path);
    return passages;
  };
  const mayWrite = () => about?.agentContext === "primary";

  return {
    name: "local",
    isAvailable: () => true,
    async initialize(sessionId, given) {
      about = given;
      own.add(sessionId);
      if (given.parentSessionId) own.add(given.parentSessionId);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      database();
    },
    systemPromptBlock: () =>
      "External memory: local. Passages of earlier conversations that fit the user's message come with it as memory context. For more use " +
      "recall_search; recall_forget removes a passage that the user wants gone.",
    prefetch: (query) =>
      renderRecall(database().related(query, { not: own, limit: RECALLED, nowMs: context.clock.now() }), query),
    syncTurn(user, assistant, { sessionId }) {
      if (!mayWrite()) return;
      const text = `User: ${truncateCodePoints(user, KEPT_CHARS, "...")}\nYou: ${truncateCodePoints(assistant, KEPT_CHARS, "...")}`;
      database().add({ kind: "turn", sessionId, text, at: context.clock.now() / 1000, profile: identity(about) });
    },
    onMemoryWrite(action, target, content, meta) {
      if (!mayWrite()) return;
      const stale = action === "add" ? [] : database().entriesWith(target, meta.old_text ?? "");
      for (const id of stale) database().remove(id);
      if (content === "") return;
      const at = context.clock.now() / 1000;
      const sessionId = meta.session_id;
      database().add({ kind: "memory", sessionId, text: content, at, profile: identity(about), target });
    },
    onSessionSwitch(newSessionId, { reset }) {
      if (reset) own.clear();
      own.add(newSessionId);
    },
    getToolSchemas: () => TOOLS,
    handleToolCall(name, args) {
      if (name === "recall_search") return search(database(), args, context.clock.now());
      if (name === "recall_forget") return forget(database(), args);
      throw new Error(`the local memory has no tool "${name}"`);
    },
    getConfigSchema: () => [],
    async status() {
      const size = await sizeOf(path);
      if (size === null) return [`${path}: nothing kept yet`];
      const { turns, entries } = database().count();
      return [
        `${path}: ${Math.ceil(size / 1024)} KB, ${count(turns, "turn")}, ${count(entries, "memory entry", "memory entries")}`,
      ];
    },
    backupPaths: () => [path],
    shutdown() {
      passages?.close();
      passages = null;
    },
  };
}

const identity = (about: ProviderSession | null) => about?.agentIdentity ?? "default";

const TOOLS = [
  {
    name: "recall_search",
    description:
      'Search passages of earlier conversations and mirrored memory entries. A plain question ranks; "phrase", OR, NOT, prefix* match exactly.',
    parameters: {
      type: "object",
      properties: {
        query: { type: "string" },
        limit: { type: "integer", minimum: 1, maximum: 20, description: "Default 5" },
      },
      required: ["query"],
    },
  },
  {
    name: "recall_forget",
    description: "Remove one passage for good, by the id that recall_search shows. Only when the user wants it gone.",
    parameters: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
  },
];

function search(passages: Passages, args: Readonly<Record<string, unknown>>, nowMs: number) {
  const query = typeof args.query === "string" ? args.query : "";
  if (query.trim() === "") return { success: false, error: "recall_search needs a query." };
  const limit = Math.min(20, Math.max(1, Math.trunc(Number(args.limit ?? 5)) || 5));
  const results = passages.search(query, { limit, nowMs }).map((passage) => ({
    id: passage.id,
    kind: passage.kind,
    date: dayOf(passage.at),
    session_id: passage.session_id,
    text: excerpt(passage.text, query),
  }));
  return { success: true, query, count: results.length, results };
}

function forget(passages: Passages, args: Readonly<Record<string, unknown>>) {
  const id = Number(args.id);
  if (!Number.isInteger(id)) return { success: false, error: "recall_forget needs the id of a passage." };
  if (passages.remove(id)) return { success: true, id, message: "Forgotten." };
  return { success: false, error: `There is no passage ${id}.` };
}

function renderRecall(passages: readonly Passage[], query: string): string {
  let room = RECALL_CHARS;
  const lines: string[] = [];
  for (const passage of passages) {
    const line = truncateCodePoints(`[${dayOf(passage.at)}] ${excerpt(passage.text, query)}`, PASSAGE_CHARS, "...");
    room -= countCodePoints(line) + 2;
    if (room < 0) break;
    lines.push(line);
  }
  return lines.join("\n\n");
}

/** Of a long passage the part that has most of the question. */
function excerpt(text: string, query: string): string {
  const flat = text.replace(/\s+/g, " ").trim();
  const room = PASSAGE_CHARS - 20;
  if (countCodePoints(flat) <= room) return flat;
  const first = countCodePoints(flat.slice(0, passageStart(flat, readQuestion(query))));
  const start = Math.max(0, Math.min(first - 80, countCodePoints(flat) - room));
  const cut = sliceCodePoints(flat, start, start + room - 6);
  return `${start > 0 ? "..." : ""}${cut}${start + room - 6 < countCodePoints(flat) ? "..." : ""}`;
}

const dayOf = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 10);

const count = (n: number, one: string, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

async function sizeOf(path: string): Promise<number | null> {
  return stat(path).then(
    (facts) => facts.size,
    () => null,
  );
}

// What was said in earlier conversations, in one SQLite file of the home: a row per turn, found by words and by parts of words.

interface NewPassage {
  readonly kind: "turn" | "memory";
  readonly sessionId: string | null;
  readonly text: string;
  /** Unix seconds. */
  readonly at: number;
  readonly profile: string;
  /** Of a memory entry: the store it mirrors. */
  readonly target?: string;
}

interface Passage {
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

const TURN = 0;
const ENTRY = 1;

/** Each passage stands for itself. */
function asIndexed({ id, kind, text, at }: Passage): IndexedText {
  return { id, group: String(id), source: kind, at, kind: kind === "turn" ? TURN : ENTRY, size: 0, ...readText(text) };
}

class Passages {
  readonly #db: DatabaseSync;
  #index: TermIndex | null = null;

  constructor(path: string) {
    this.#db = new DatabaseSync(path, { timeout: BUSY_MS });
    // A file that is there keeps its journal: somebody may have moved it to where a write-ahead log does not work.
    const isNew = this.#pragma("page_count") === 0;
    const journal = this.#pragma(isNew ? "journal_mode=WAL" : "journal_mode");
    this.#db.exec(`PRAGMA synchronous=${journal === "wal" ? "NORMAL" : "FULL"}`);
    this.#db.exec(SCHEMA);
  }

  #pragma(pragma: string): unknown {
    return Object.values(this.#db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0];
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
      this.#index ??= new TermIndex(this.#db);
      this.#index.remove(new Set([id]));
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
    options: { readonly not: ReadonlySet<string>; readonly limit: number; readonly nowMs: number },
  ): readonly Passage[] {
    return this.#ranked(question, { kinds: [TURN], least: LEAST_COVERAGE, nowMs: options.nowMs })
      .filter(({ session_id }) => session_id === null || !options.not.has(session_id))
      .slice(0, options.limit);
  }

  /** Passages by how much of a question they hold, as past sessions are ranked. */
  #ranked(
    question: string,
    { kinds, least, nowMs }: { readonly kinds: readonly number[]; readonly least: number; readonly nowMs: number },
  ): readonly Passage[] {
    const index = this.#followed();
    const scope = { kinds: new Set(kinds) };
    const asked = askIndex(index, question, nowMs, scope);
    const { words, evidence, time } = asked;
    const texts = index.texts();
    const request = {
      texts,
      words: evidence,
      limit: CANDIDATES,
      ...scope,
      ...(time ? { favour: favourOf(time) } : {}),
    };
    const all = words.filter(isSubject).length;
    const find = this.#db.prepare(`SELECT ${COLUMNS} FROM passages p WHERE p.id = ?`);
    const read = (ids: readonly number[]) =>
      new Map(ids.flatMap((id) => find.all(id).map((row): [number, string] => [id, String(row.text)])));
    return byNearness(rankGroups(request), { texts, asked, read }).flatMap(({ place, matched }) => {
      const has = matched.filter((at) => words[at] && isSubject(words[at])).length;
      if (has === 0 || has / all < least) return [];
      return find.all(texts.id[place] ?? 0) as unknown as Passage[]; // the SELECT list is the type
    });
  }

  /** The index of terms, level with the passages; files of earlier versions have none. */
  #followed(): TermIndex {
    this.#index ??= new TermIndex(this.#db);
    const index = this.#index;
    const after = Number(index.note("last") ?? 0);
    const rows = this.#rows(`SELECT ${COLUMNS} FROM passages p WHERE p.id > ? ORDER BY p.id`, after);
    if (rows.length > 0)
      this.#together(() => {
        index.add(rows.map(asIndexed));
        index.setNote("last", String(rows.at(-1)?.id ?? after));
      });
    index.refresh();
    return index;
  }

  /** A query with OR, NOT, "phrases" and prefix* finds what it says; plain words rank behind what has all of them. */
  search(query: string, options: { readonly limit: number; readonly nowMs: number }): readonly Passage[] {
    const exact = this.#exact(query, options.limit);
    if (hasOperators(query) || exact.length === options.limit) return exact;
    const known = new Set(exact.map(({ id }) => id));
    const more = this.#ranked(query, { kinds: [TURN, ENTRY], least: 0, nowMs: options.nowMs });
    return [...exact, ...more.filter(({ id }) => !known.has(id))].slice(0, options.limit);
  }

  #exact(query: string, limit: number): readonly Passage[] {
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

// What the index of words is made of: scripts without blanks are cut into pairs of characters, because nothing marks where a word begins.
const CJK = String.raw`\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u3040-\u30ff\uac00-\ud7af`;
const PIECES = new RegExp(`[${CJK}]+|(?:(?![${CJK}])[\\p{L}\\p{N}_])+`, "gu");
const IS_CJK = new RegExp(`^[${CJK}]`, "u");

function indexText(text: string): string {
  return (text.normalize("NFKC").match(PIECES) ?? [])
    .flatMap((piece) => (IS_CJK.test(piece) ? pairs(piece) : [piece]))
    .join(" ");
}

function pairs(run: string): string[] {
  const points = [...run];
  if (points.length === 1) return points;
  return points.slice(1).map((point, index) => `${points[index]}${point}`);
}
