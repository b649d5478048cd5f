// What every operation of the store stands on: the connection, the shape of the file, reading and writing that waits for others.
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { type Connection, findDamage, isIndexDamage, namesIndex } from "./connection.ts";
import { hasLoose, settleLoose } from "./loose.ts";
import { type FileShape, mergeIndex, readShape } from "./schema.ts";
import { StoreError } from "./store.ts";
import { planUpgrade, rebuildSearch } from "./upgrade.ts";
import { transaction, type WriteKind, WriteQueue, waitWhileBusy } from "./write-queue.ts";

/** SQLite does so by itself after 1,000 pages; this is for a conversation that writes little at a time. */
const CHECKPOINT_EVERY = 200;
const MERGE_EVERY = 1000;
const READ_TIMEOUT_MS = 20_000;

interface CoreOptions {
  readonly db: Connection;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onBusy?: () => void;
}

export class StoreCore {
  readonly db: Connection;
  readonly clock: Clock;
  readonly log: Logger;
  readonly #onBusy: (() => void) | undefined;
  readonly #queue: WriteQueue;
  #shape: FileShape;
  #cookie: number;
  #indexRebuilt = false;
  #closed = false;
  readonly #onClose: (() => void)[] = [];

  constructor(options: CoreOptions) {
    this.db = options.db;
    this.clock = options.clock;
    this.log = options.log;
    this.#onBusy = options.onBusy;
    this.#cookie = this.db.schemaCookie();
    this.#shape = readShape(this.db);
    this.#queue = new WriteQueue({
      db: this.db,
      clock: this.clock,
      onBusy: options.onBusy,
      onBegin: (settles) => {
        this.#followSchema("write");
        if (settles) settleLoose(this);
      },
      onEnd: (settles) => settles && settleLoose(this),
      onCommit: (transactions) => this.#tidy(transactions),
    });
  }

  get shape(): FileShape {
    return this.#shape;
  }

  /** Unix seconds. */
  now(): number {
    return this.clock.now() / 1000;
  }

  async read<T>(work: () => T): Promise<T> {
    await this.#queue.beforeRead();
    const wait = { db: this.db, clock: this.clock, timeoutMs: READ_TIMEOUT_MS, onBusy: this.#onBusy };
    return await this.#rebuildingIndex(() =>
      waitWhileBusy(wait, () => {
        this.#assertOpen();
        this.#followSchema("read");
        return work();
      }),
    );
  }

  async write<T>(work: () => T, kind: WriteKind = "ordinary"): Promise<T> {
    this.#assertWritable();
    return await this.#rebuildingIndex(() => this.#queue.run(kind, work));
  }

  /** A write that neither reads nor changes what is made out of rows; loose ones stay so. */
  async writeRows<T>(work: () => T, kind: WriteKind = "ordinary"): Promise<T> {
    this.#assertWritable();
    return await this.#rebuildingIndex(() => this.#queue.run(kind, work, false));
  }

  /** For who reads what is made out of rows. While another process holds the file, it is read as it is. */
  async settle(): Promise<void> {
    if (this.db.readOnly || !(await this.read(() => hasLoose(this)))) return;
    try {
      await this.write(() => undefined, "heartbeat");
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== "busy") throw error;
    }
  }

  /** Runs between two writes without a transaction (VACUUM, backup). */
  between<T>(work: () => T | Promise<T>): Promise<T> {
    this.#assertOpen();
    return this.#queue.between(work);
  }

  /** Runs when the store is closed: for what was opened beside it. */
  whenClosed(work: () => void): void {
    this.#onClose.push(work);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.settle().catch((error: unknown) => this.log.debug("the next process settles the newest rows", error));
    this.#closed = true;
    await this.#queue.drain();
    for (const work of this.#onClose) work();
    if (!this.db.readOnly) this.#checkpoint();
    this.db.close();
  }

  /** Once per store: a damaged search index is rebuilt from the messages. Any other damage is left alone. */
  async #rebuildingIndex<T>(attempt: () => Promise<T>): Promise<T> {
    try {
      return await attempt();
    } catch (error) {
      const damaged = error instanceof StoreError && error.code === "damaged";
      if (!damaged || this.#indexRebuilt || this.db.readOnly) throw error;
      if (!isIndexDamage(error.cause) && !onlyIndexDamaged(this.db)) throw error;
      this.#indexRebuilt = true;
      this.log.warn("the search index is damaged and is being rebuilt from the messages", error);
      await this.#queue.run("ordinary", () => rebuildSearch(this.db));
      return await attempt();
    }
  }

  /** Another program (the original at a newer version, say) may change tables while we are connected. */
  #followSchema(purpose: "read" | "write"): void {
    const cookie = this.db.schemaCookie();
    if (cookie === this.#cookie) return;
    this.#shape = readShape(this.db);
    this.#cookie = cookie;
    if (purpose === "read") return;
    const steps = planUpgrade(this.db, this.log, this.#shape);
    if (steps.length === 0) return;
    for (const step of steps) step();
    this.#shape = readShape(this.db);
    this.#cookie = this.db.schemaCookie();
  }

  #tidy(transactions: number): void {
    if (transactions % CHECKPOINT_EVERY === 0) this.#checkpoint();
    if (transactions % MERGE_EVERY === 0) this.#merge();
  }

  #checkpoint(): void {
    try {
      this.db.get("PRAGMA wal_checkpoint(PASSIVE)");
    } catch (error) {
      this.log.debug("checkpoint put off", error);
    }
  }

  #merge(): void {
    try {
      transaction(this.db, () => {
        const { main, trigram } = this.#shape;
        if (main !== "none") mergeIndex(this.db, "messages_fts", { pages: 500, rounds: 4 });
        if (trigram !== "none") mergeIndex(this.db, "messages_fts_trigram", { pages: 500, rounds: 4 });
      });
    } catch (error) {
      this.log.debug("tidying the search index put off", error);
    }
  }

  #assertOpen(): void {
    if (this.#closed) throw new StoreError("unavailable", `${this.db.path} is already closed`);
  }

  #assertWritable(): void {
    this.#assertOpen();
    if (this.db.readOnly)
      throw new StoreError(
        "read_only",
        `${this.db.path} is not writable; check the permissions of the file and its folder`,
      );
  }
}

/** SQLite's check of the whole file blames nothing but the search index. */
function onlyIndexDamaged(db: Connection): boolean {
  try {
    const damage = findDamage(db.path);
    return damage.length > 0 && damage.every(namesIndex);
  } catch {
    return false; // a file that cannot even be checked is not ours to repair
  }
}
