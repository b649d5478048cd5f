// Which texts hold which terms, in a SQLite file of our own. It is derived: whoever deletes the file loses nothing but the time to make it
// again. Texts come in the order of their ids and are kept in segments that never change; small ones are merged into larger ones.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import {
  concatPostings,
  DecodedTexts,
  decodePostings,
  EMPTY,
  encodeTexts,
  type Postings,
  PostingsWriter,
  type StoredText,
} from "./postings.ts";
import type { TermCounts } from "./words.ts";

/** One text on its way into the index. */
export interface IndexedText {
  readonly id: number;
  /** What it is a part of: a session. Neighbours are texts of one group. */
  readonly group: string;
  /** Where its group comes from; whole groups are left out by it. */
  readonly source: string;
  /** Unix seconds. */
  readonly at: number;
  /** Told apart when asked, 0 to 3: the role of a message. */
  readonly kind: number;
  /** It asks rather than tells. */
  readonly asks: boolean;
  readonly length: number;
  /** Whatever tells its owner that it was changed. */
  readonly size: number;
  readonly terms: TermCounts;
}

/** Changes whenever the layout or the reading of texts does: an index of another version is made anew. */
const VERSION = "2";
const MERGED_AT_ONCE = 8;
/** Added to the kind of a text that asks. */
const ASKS = 4;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS groups (ord INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS groups_source ON groups (source);
  CREATE TABLE IF NOT EXISTS segments (id INTEGER PRIMARY KEY AUTOINCREMENT, first INTEGER NOT NULL, count INTEGER NOT NULL, texts BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS postings (segment INTEGER NOT NULL, term TEXT NOT NULL, list BLOB NOT NULL, PRIMARY KEY (segment, term)) WITHOUT ROWID;
`;

/** All indexed texts, by their place in the order of ids. Neighbours are places; -1 is none. */
export interface TextTable {
  readonly count: number;
  readonly id: Float64Array;
  readonly group: Int32Array;
  readonly at: Float64Array;
  readonly length: Uint16Array;
  readonly size: Float64Array;
  readonly kind: Uint8Array;
  /** 1 for a text that asks. */
  readonly asks: Uint8Array;
  readonly previous: Int32Array;
  readonly next: Int32Array;
  readonly groups: number;
}

interface Segment {
  readonly id: number;
  readonly count: number;
  readonly base: number;
}

export class TermIndex {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #decoded = new Map<number, DecodedTexts>();
  #segments: readonly Segment[] = [];
  #table: TextTable | null = null;
  #generation = "";

  /** Throws SQLite's error when the file is not to be used. */
  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#db.exec(SCHEMA);
    if (this.note("version") === VERSION) return;
    this.clear();
    this.setNote("version", VERSION);
  }

  note(key: string): string | null {
    const row = this.#prepare("SELECT value FROM meta WHERE key = ?").get(key);
    return row ? String(row.value) : null;
  }

  setNote(key: string, value: string): void {
    this.#prepare(
      "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    ).run(key, value);
  }

  clear(): void {
    this.#db.exec("DELETE FROM meta; DELETE FROM groups; DELETE FROM segments; DELETE FROM postings");
    this.setNote("version", VERSION);
  }

  /** Texts in the order of their ids, all of them above those that are indexed. Inside a transaction of the caller's. */
  add(texts: readonly IndexedText[]): void {
    const [head] = texts;
    if (!head) return;
    const docs = texts.map((text) => ({
      ...text,
      group: this.#groupOf(text),
      kind: text.kind + (text.asks ? ASKS : 0),
    }));
    const lists = new Map<string, PostingsWriter>();
    for (const [place, text] of texts.entries())
      for (const [term, count] of text.terms) {
        const list = lists.get(term) ?? new PostingsWriter();
        if (list.length === 0) lists.set(term, list);
        list.push(place, count);
      }
    const id = this.#insertSegment(docs);
    const insert = this.#prepare("INSERT INTO postings (segment, term, list) VALUES (?, ?, ?)");
    for (const term of [...lists.keys()].sort()) insert.run(id, term, lists.get(term)?.bytes() ?? EMPTY);
    this.#mergeSmall();
  }

  /** Takes texts out for good. Inside a transaction of the caller's. */
  remove(ids: ReadonlySet<number>): void {
    if (ids.size === 0) return;
    for (const row of this.#prepare("SELECT id FROM segments ORDER BY first").all()) {
      const id = Number(row.id);
      const texts = this.#texts(id);
      if (texts.id.some((one) => ids.has(one))) this.#rewrite([id], ids);
    }
  }

  texts(): TextTable {
    this.#table ??= this.#join();
    return this.#table;
  }

  groupId(ord: number): string {
    return String(this.#prepare("SELECT id FROM groups WHERE ord = ?").get(ord)?.id ?? "");
  }

  /** The groups of some sources, or of all but some. */
  groupsOf(sources: readonly string[], which: "only" | "without"): ReadonlySet<number> {
    const sql = `SELECT ord FROM groups WHERE source ${which === "only" ? "" : "NOT "}IN (SELECT value FROM json_each(?))`;
    return new Set(
      this.#prepare(sql)
        .all(JSON.stringify(sources))
        .map((row) => Number(row.ord)),
    );
  }

  groupOrd(id: string): number | null {
    const row = this.#prepare("SELECT ord FROM groups WHERE id = ?").get(id);
    return row ? Number(row.ord) : null;
  }

  postings(term: string): Postings {
    const find = this.#prepare("SELECT list FROM postings WHERE segment = ? AND term = ?");
    const parts = this.#segments.flatMap(({ id, base }) => {
      const list = find.get(id, term)?.list;
      return list instanceof Uint8Array ? [decodePostings(list, base)] : [];
    });
    return concatPostings(parts);
  }

  /** Terms that begin so, each with the bytes of its lists: the more texts hold it, the more. */
  termsFrom(prefix: string): ReadonlyMap<string, number> {
    return this.#sizes("p.term >= ? AND p.term < ?", prefix, `${prefix}\u{10ffff}`);
  }

  /** Those of the terms that occur, likewise. */
  termsAmong(terms: readonly string[]): ReadonlyMap<string, number> {
    return this.#sizes("p.term IN (SELECT value FROM json_each(?))", JSON.stringify(terms));
  }

  #sizes(condition: string, ...values: string[]): ReadonlyMap<string, number> {
    const segments = JSON.stringify(this.#segments.map(({ id }) => id));
    const rows = this.#prepare(
      `SELECT p.term, sum(length(p.list)) AS size FROM json_each(?) AS s CROSS JOIN postings p ON p.segment = s.value AND ${condition} GROUP BY p.term`,
    ).all(segments, ...values);
    return new Map(rows.map((row) => [String(row.term), Number(row.size)]));
  }

  #groupOf({ group, source }: IndexedText): number {
    const known = this.groupOrd(group);
    if (known !== null) return known;
    return Number(this.#prepare("INSERT INTO groups (id, source) VALUES (?, ?)").run(group, source).lastInsertRowid);
  }

  #insertSegment(docs: readonly StoredText[]): number {
    const sql = "INSERT INTO segments (first, count, texts) VALUES (?, ?, ?)";
    return Number(this.#prepare(sql).run(docs[0]?.id ?? 0, docs.length, encodeTexts(docs)).lastInsertRowid);
  }

  /** Neighbours of about the same size become one, so that there are never many. */
  #mergeSmall(): void {
    for (;;) {
      const all = this.#prepare("SELECT id, count FROM segments ORDER BY first").all();
      const tier = (count: unknown) => Math.floor(Math.log(Math.max(1, Number(count) / 8)) / Math.log(MERGED_AT_ONCE));
      const last = all.slice(-MERGED_AT_ONCE);
      const highest = Math.max(...last.map((row) => tier(row.count)));
      if (last.length < MERGED_AT_ONCE || highest > tier(last.at(-1)?.count) + 1) return;
      if (highest >= 5) return;
      this.#rewrite(last.map((row) => Number(row.id)));
    }
  }

  /** Several segments as one, without some of their texts. */
  #rewrite(ids: readonly number[], without: ReadonlySet<number> = new Set()): void {
    const docs: StoredText[] = [];
    const moved = ids.map((id) => {
      const texts = this.#texts(id);
      return Int32Array.from(texts.id, (one, at) => {
        if (without.has(one)) return -1;
        return docs.push(texts.at(at)) - 1;
      });
    });
    const target = docs.length === 0 ? null : this.#insertSegment(docs);
    const rows = this.#prepare(
      `SELECT term, segment, list FROM postings WHERE segment IN (SELECT value FROM json_each(?)) ORDER BY term`,
    ).all(JSON.stringify(ids));
    const insert = this.#prepare("INSERT INTO postings (segment, term, list) VALUES (?, ?, ?)");
    for (let at = 0; at < rows.length && target !== null; ) {
      const term = String(rows[at]?.term);
      const parts: { order: number; list: Uint8Array }[] = [];
      for (; at < rows.length && rows[at]?.term === term; at++) {
        const list = rows[at]?.list;
        if (list instanceof Uint8Array) parts.push({ order: ids.indexOf(Number(rows[at]?.segment)), list });
      }
      const writer = new PostingsWriter();
      for (const { order, list } of parts.sort((a, b) => a.order - b.order)) {
        const { places, counts } = decodePostings(list, 0);
        for (let n = 0; n < places.length; n++) {
          const place = moved[order]?.[places[n] ?? 0] ?? -1;
          if (place >= 0) writer.push(place, counts[n] ?? 1);
        }
      }
      if (writer.length > 0) insert.run(target, term, writer.bytes());
    }
    for (const id of ids) {
      this.#prepare("DELETE FROM postings WHERE segment = ?").run(id);
      this.#prepare("DELETE FROM segments WHERE id = ?").run(id);
      this.#decoded.delete(id);
    }
  }

  #texts(segment: number): DecodedTexts {
    let found = this.#decoded.get(segment);
    if (!found) {
      const blob = this.#prepare("SELECT texts FROM segments WHERE id = ?").get(segment)?.texts;
      found = new DecodedTexts(blob instanceof Uint8Array ? blob : EMPTY);
      this.#decoded.set(segment, found);
    }
    return found;
  }

  /** What is in the index now; other processes add to it too. All that is asked is answered as of then. */
  refresh(): void {
    const rows = this.#prepare("SELECT id, count FROM segments ORDER BY first").all();
    const generation = rows.map((row) => row.id).join();
    if (generation === this.#generation) return;
    this.#generation = generation;
    let base = 0;
    this.#segments = rows.map((row) => {
      const segment = { id: Number(row.id), count: Number(row.count), base };
      base += segment.count;
      return segment;
    });
    const present = new Set(this.#segments.map(({ id }) => id));
    for (const id of this.#decoded.keys()) if (!present.has(id)) this.#decoded.delete(id);
    this.#table = null;
  }

  #join(): TextTable {
    const count = this.#segments.reduce((sum, segment) => sum + segment.count, 0);
    const groups = Number(this.#prepare("SELECT max(ord) AS n FROM groups").get()?.n ?? 0) + 1;
    const table = {
      count,
      groups,
      id: new Float64Array(count),
      group: new Int32Array(count),
      at: new Float64Array(count),
      length: new Uint16Array(count),
      size: new Float64Array(count),
      kind: new Uint8Array(count),
      asks: new Uint8Array(count),
      previous: new Int32Array(count).fill(-1),
      next: new Int32Array(count).fill(-1),
    };
    for (const { id, base } of this.#segments) {
      const texts = this.#texts(id);
      table.id.set(texts.id, base);
      table.group.set(texts.group, base);
      table.at.set(texts.time, base);
      table.length.set(texts.length, base);
      table.size.set(texts.size, base);
      table.kind.set(
        texts.kind.map((kind) => kind % ASKS),
        base,
      );
      table.asks.set(
        texts.kind.map((kind) => (kind >= ASKS ? 1 : 0)),
        base,
      );
    }
    const lastOf = new Int32Array(groups).fill(-1);
    for (let place = 0; place < count; place++) {
      const group = table.group[place] ?? 0;
      const before = lastOf[group] ?? -1;
      table.previous[place] = before;
      if (before >= 0) table.next[before] = place;
      lastOf[group] = place;
    }
    return table;
  }

  #prepare(sql: string): StatementSync {
    const found = this.#statements.get(sql) ?? this.#db.prepare(sql);
    this.#statements.set(sql, found);
    return found;
  }
}
