// When a dispatcher looks: boards of a root are watched for changes, by one process at a time.
import { join } from "node:path";
import { LockTimeoutError, withLock } from "../home/lock.ts";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import { exists } from "../kit/files.ts";
import type { Boards } from "./boards.ts";
import type { Dispatcher, Look } from "./dispatch.ts";
import type { BoardFile } from "./schema.ts";

interface KeepOptions {
  readonly home: OpenHome;
  readonly boards: Boards;
  readonly clock: Clock;
  readonly dispatcher: Pick<Dispatcher, "look">;
  /** Read with each look: false while nothing is to be started from here. */
  isOn(): boolean;
  looked?(look: Look): void;
  /** Behind each look, beside everything else; the next one waits for it. Its failures are its own to report. */
  beside?(slug: string, board: BoardFile): Promise<unknown>;
  /** Another process dispatches for these boards. */
  taken?(): void;
  report(problem: string): void;
}

/** How soon a change by another process is noticed. */
const NOTICE_MS = 500;

/** Looks at every board of the root until the signal aborts: when it changed, and at least once in each interval. */
export class BoardWatch {
  readonly #options: KeepOptions;
  readonly #open = new Map<string, { readonly board: BoardFile; version: number; next: number }>();
  readonly #beside = new Map<string, Promise<unknown>>();
  readonly #later = new Map<string, number>();
  #hasTold = false;

  constructor(options: KeepOptions) {
    this.#options = options;
  }

  /** A worker ended. */
  wake(): void {
    for (const one of this.#open.values()) one.next = 0;
  }

  /** One process of a root alone. */
  async run(signal: AbortSignal): Promise<void> {
    const { boards, clock, isOn, taken, report } = this.#options;
    while (!signal.aborted) {
      if (isOn() && (await hasBoards(boards)))
        try {
          await withLock(lockOf(boards), () => this.#watch(signal), { waitMs: 0 });
        } catch (error) {
          if (!(error instanceof LockTimeoutError)) report(messageOf(error));
          else if (!this.#hasTold) {
            this.#hasTold = true;
            taken?.();
          }
        }
      await pause(clock, NOTICE_MS * 4, signal);
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { boards, clock, isOn, report } = this.#options;
    try {
      while (!signal.aborted && isOn()) {
        for (const slug of await boards.list())
          await this.#round(slug, signal).catch((error: unknown) => {
            report(`board ${slug}: ${messageOf(error)}`);
            this.#close(slug, clock.now() + this.#intervalMs);
          });
        await pause(clock, NOTICE_MS, signal);
      }
    } finally {
      await Promise.allSettled(this.#beside.values());
      for (const slug of [...this.#open.keys()]) this.#close(slug);
    }
  }

  get #intervalMs(): number {
    return this.#options.home.config().kanban.dispatch_interval_seconds * 1000;
  }

  #close(slug: string, again = 0): void {
    this.#later.set(slug, again);
    this.#open.get(slug)?.board.close();
    this.#open.delete(slug);
  }

  async #round(slug: string, signal: AbortSignal): Promise<void> {
    const { boards, clock, dispatcher, looked, beside } = this.#options;
    const now = clock.now();
    if (now < (this.#later.get(slug) ?? 0) || !(await exists(boards.place(slug).database))) return;
    if ((await boards.facts(slug)).archived) return;
    if (!this.#open.has(slug)) this.#open.set(slug, { board: await boards.open(slug), version: -1, next: 0 });
    const one = this.#open.get(slug);
    if (!one || signal.aborted) return;
    one.board.db.assertSameFile();
    const version = versionOf(one.board);
    if (version === one.version && now < one.next) return;
    one.version = version;
    one.next = now + this.#intervalMs;
    const look = await dispatcher.look(slug, one.board);
    if (look.isLocked)
      one.version = -1; // whatever it was about is still to be looked at
    else looked?.(look);
    if (!beside || this.#beside.has(slug)) return;
    const work = beside(slug, one.board).finally(() => this.#beside.delete(slug));
    this.#beside.set(slug, work);
    work.catch((error: unknown) => this.#options.report(`board ${slug}: ${messageOf(error)}`));
  }
}

const pause = (clock: Clock, ms: number, signal: AbortSignal) => clock.sleep(ms, signal).catch(() => undefined); // over

/** Changes with every change that another connection made. */
const versionOf = ({ db }: BoardFile) => db.get<{ data_version: number }>("PRAGMA data_version")?.data_version ?? 0;

export async function hasBoards(boards: Boards): Promise<boolean> {
  const all = await boards.list();
  return (await Promise.all(all.map((slug) => exists(boards.place(slug).database)))).some((found) => found);
}

const lockOf = ({ root }: Boards) => join(root, "kanban", ".dispatcher.lock");

/** Some process starts workers for the boards of this root. */
export async function isDispatched(boards: Boards): Promise<boolean> {
  if (!(await exists(lockOf(boards)))) return false;
  try {
    await withLock(lockOf(boards), () => undefined, { waitMs: 0 });
    return false;
  } catch (error) {
    if (error instanceof LockTimeoutError) return true;
    throw error;
  }
}
