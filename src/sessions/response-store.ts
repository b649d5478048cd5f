// Answers that a client may build on later (`response_store.db`), in the tables of the original. The least used ones go.
import { closeSync, openSync } from "node:fs";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { isRecord, parseJson } from "../kit/json.ts";
import { type Connection, connect, settleJournal } from "./connection.ts";
import { WriteQueue } from "./write-queue.ts";

const MOST = 100;

const TABLES = [
  "CREATE TABLE IF NOT EXISTS responses (response_id TEXT PRIMARY KEY, data TEXT NOT NULL, accessed_at REAL NOT NULL)",
  "CREATE TABLE IF NOT EXISTS conversations (name TEXT PRIMARY KEY, response_id TEXT NOT NULL)",
];

type Data = Readonly<Record<string, unknown>>;

/**
 * - A promise that resolved is committed.
 * - At most 100 answers are kept; reading one counts as using it. With an answer go the names of conversations that end in it.
 */
export class ResponseStore {
  readonly #db: Connection;
  readonly #queue: WriteQueue;
  readonly #clock: Clock;

  private constructor(db: Connection, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
    this.#queue = new WriteQueue({
      db,
      clock,
      onBegin: () => undefined,
      onEnd: () => undefined,
      onCommit: () => undefined,
    });
  }

  static async open(path: string, { clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    // Conversations are nobody else's business.
    closeSync(openSync(path, "a", 0o600));
    const db = connect({ path });
    settleJournal(db, "auto", process.versions.sqlite ?? "", log);
    const store = new ResponseStore(db, clock);
    await store.#write(() => {
      for (const sql of TABLES) db.exec(sql);
    });
    return store;
  }

  /** Null for an id that is unknown or was let go. `settle` makes of it what is stored from now on; nobody writes in between. */
  get(id: string, settle: (data: Data) => Data = (data) => data): Promise<Data | null> {
    return this.#write(() => {
      const row = this.#db.get<{ data: string }>("SELECT data FROM responses WHERE response_id = ?", id);
      if (!row) return null;
      this.#db.run("UPDATE responses SET accessed_at = ? WHERE response_id = ?", this.#now, id);
      const data = parseJson(row.data);
      if (!isRecord(data)) return null;
      const settled = settle(data);
      if (settled !== data)
        this.#db.run("UPDATE responses SET data = ? WHERE response_id = ?", JSON.stringify(settled), id);
      return settled;
    });
  }

  /** `conversation`: its name leads here from now on. */
  async put(id: string, data: Data, conversation?: string): Promise<void> {
    await this.#write(() => {
      this.#db.run(
        "INSERT OR REPLACE INTO responses (response_id, data, accessed_at) VALUES (?, ?, ?)",
        ...[id, JSON.stringify(data), this.#now],
      );
      if (conversation !== undefined)
        this.#db.run("INSERT OR REPLACE INTO conversations (name, response_id) VALUES (?, ?)", conversation, id);
      const old = this.#db.all<{ id: string }>(
        "SELECT response_id AS id FROM responses ORDER BY accessed_at DESC, rowid DESC LIMIT -1 OFFSET ?",
        MOST,
      );
      for (const { id: gone } of old) this.#remove(gone);
    });
  }

  delete(id: string): Promise<boolean> {
    return this.#write(() => this.#remove(id));
  }

  conversation(name: string): Promise<string | null> {
    return this.#write(
      () =>
        this.#db.get<{ id: string }>("SELECT response_id AS id FROM conversations WHERE name = ?", name)?.id ?? null,
    );
  }

  async close(): Promise<void> {
    await this.#write(() => undefined);
    this.#db.close();
  }

  #remove(id: string): boolean {
    this.#db.run("DELETE FROM conversations WHERE response_id = ?", id);
    return this.#db.run("DELETE FROM responses WHERE response_id = ?", id).changes > 0;
  }

  get #now(): number {
    return this.#clock.now() / 1000;
  }

  #write<T>(work: () => T): Promise<T> {
    return this.#queue.run("ordinary", work);
  }
}
