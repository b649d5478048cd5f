// Every write of this process goes through one queue, in order. What was asked for in one turn of the event loop shares a transaction; each is
// told when that is committed. While another process holds the database we wait asynchronously: SQLite itself would stop the event loop.
import type { Clock } from "../kit/clock.ts";
import { type Connection, isBusy, storeError } from "./connection.ts";
import { StoreError } from "./store.ts";

/** What is at stake decides how long a write waits: a transcript long, a sign of life hardly. */
export type WriteKind = "transcript" | "ordinary" | "heartbeat";

const WAIT_TIMEOUT_MS: Readonly<Record<WriteKind, number>> = { transcript: 60_000, ordinary: 20_000, heartbeat: 500 };
const REPORT_AFTER_MS = 3_000;

interface WriteQueueOptions {
  readonly db: Connection;
  readonly clock: Clock;
  /** Called once per wait, when a write has been held up for three seconds. */
  readonly onBusy?: () => void;
  /** Run inside the transaction, before the work and behind it. `settles`: some of the work is not of the kind that leaves loose rows be. */
  readonly onBegin: (settles: boolean) => void;
  readonly onEnd: (settles: boolean) => void;
  /** Runs after a commit, outside of any transaction. */
  readonly onCommit: (transactions: number) => void;
}

/** One write, and whoever waits for it. */
interface Waiting {
  readonly kind: WriteKind;
  readonly settles: boolean;
  work(): unknown;
  done(value: unknown): void;
  failed(error: unknown): void;
}

export class WriteQueue {
  readonly #options: WriteQueueOptions;
  #last: Promise<unknown> = Promise.resolve();
  /** Not begun yet; emptied by `between`, which no write may overtake. */
  #group: Waiting[] | null = null;
  #transactions = 0;

  constructor(options: WriteQueueOptions) {
    this.#options = options;
  }

  /** `work` is synchronous and may run more than once; only its last run counts. */
  run<T>(kind: WriteKind, work: () => T, settles = true): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      // What is done with is what this very work returned.
      const waiting: Waiting = { kind, settles, work, done: resolve as (value: unknown) => void, failed: reject };
      if (this.#group) this.#group.push(waiting);
      else this.#begin([waiting]);
    });
  }

  /** Runs between two writes, outside of a transaction. */
  between<T>(work: () => T | Promise<T>): Promise<T> {
    this.#group = null;
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** A reader sees what was asked for before, unless another process holds that up. */
  async beforeRead(): Promise<void> {
    // The turn that the waiting writes wait for comes first.
    if (this.#group) await nextTurn();
  }

  async drain(): Promise<void> {
    await this.#last;
  }

  #begin(group: Waiting[]): void {
    this.#group = group;
    this.#last = Promise.all([this.#last, nextTurn()]).then(() => {
      if (this.#group === group) this.#group = null;
      return this.#settle(group);
    });
  }

  async #settle(group: readonly Waiting[]): Promise<void> {
    const longest = group.reduce(
      (kind, one) => (WAIT_TIMEOUT_MS[one.kind] > WAIT_TIMEOUT_MS[kind] ? one.kind : kind),
      group[0]?.kind ?? "ordinary",
    );
    try {
      const settles = group.some((one) => one.settles);
      const values = await this.#transact(longest, settles, () => group.map(({ work }) => work()));
      for (const [index, one] of group.entries()) one.done(values[index]);
    } catch (error) {
      if (group.length === 1 || isHeldByOther(error)) for (const one of group) one.failed(error);
      // One that fails takes no other along.
      else for (const one of group) await this.#settle([one]);
    }
  }

  async #transact<T>(kind: WriteKind, settles: boolean, work: () => T): Promise<T> {
    const { db, clock, onBusy, onBegin, onEnd, onCommit } = this.#options;
    const result = await waitWhileBusy({ db, clock, timeoutMs: WAIT_TIMEOUT_MS[kind], onBusy }, () => {
      db.assertSameFile();
      return transaction(db, () => {
        onBegin(settles);
        const done = work();
        onEnd(settles);
        return done;
      });
    });
    this.#transactions++;
    onCommit(this.#transactions);
    return result;
  }
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

const isHeldByOther = (error: unknown) => error instanceof StoreError && error.code === "busy";

/** One `BEGIN IMMEDIATE … COMMIT`; any error rolls back. */
export function transaction<T>(db: Connection, work: () => T): T {
  db.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    db.exec("COMMIT");
    return result;
  } catch (error) {
    // A full disk or a lost file may have rolled back already.
    if (db.database.isOpen && db.database.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

interface BusyWait {
  readonly db: Connection;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly onBusy?: () => void;
}

/** Tries again while another process holds the file; every other failure is final. Throws `StoreError`. */
export async function waitWhileBusy<T>(wait: BusyWait, attempt: () => T): Promise<T> {
  const { clock, timeoutMs, onBusy } = wait;
  const started = clock.now();
  let reported = false;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      const waited = clock.now() - started;
      if (!isBusy(error) || waited >= timeoutMs) throw storeError(error, wait.db.path);
      if (waited >= REPORT_AFTER_MS && !reported) {
        reported = true;
        onBusy?.();
      }
      await clock.sleep(Math.min(pause(waited, clock.random()), Math.max(1, timeoutMs - waited)));
    }
  }
}

/** 20–150 ms at first, 250–1000 ms once somebody evidently needs the file for long. */
function pause(waitedMs: number, chance: number): number {
  return waitedMs < 2_000 ? 20 + chance * 130 : 250 + chance * 750;
}
