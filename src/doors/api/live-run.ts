// One run while it lasts: its events in order, each with a number, for any number of readers and for the store.
import type { Clock } from "../../kit/clock.ts";
import type { ApiRunChange, ApiRunEvent, WorkStore } from "../../sessions/work.ts";
import { Questions } from "./questions.ts";

/** Pieces of text that come closer together than this are one event. */
const JOIN_MS = 50;
const MOST_EVENTS = 10_000;
const MOST_TRIES = 10;
const AGAIN_MS = 500;

interface LiveOptions {
  readonly id: string;
  readonly work: Pick<WorkStore, "noteApiRun" | "dropApiRunEvents">;
  readonly clock: Clock;
  /** Events could not be stored. */
  report(error: unknown): void;
}

/**
 * - `push` never waits. What was pushed goes to disk at once, and all of it is there when `end` has resolved.
 * - `read` yields every event behind an id, each once and in order, those that come later too, until the end. Nobody reads what is not on
 *   disk: after a crash no number means another event.
 */
export class LiveRun {
  readonly id: string;
  readonly questions = new Questions();
  readonly controller = new AbortController();
  /** Resolves when the run has ended. */
  readonly ended: Promise<void>;
  #resolveEnded!: () => void;
  readonly #options: LiveOptions;
  readonly #events: ApiRunEvent[] = [];
  #lastId = 0;
  /** Up to here they are on disk. */
  #savedId = 0;
  #delta = "";
  #deltaTimer: NodeJS.Timeout | undefined;
  #unsaved: ApiRunEvent[] = [];
  #dropped: number[] = [];
  #change: ApiRunChange = {};
  #saving: Promise<void> | null = null;
  #isOver = false;
  readonly #readers = new Set<() => void>();

  constructor(options: LiveOptions) {
    this.id = options.id;
    this.#options = options;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  get lastEvent(): string | null {
    const name = this.#events[firstBehind(this.#events, this.#savedId) - 1]?.event.event;
    return typeof name === "string" ? name : null;
  }

  delta(text: string): void {
    if (text === "") return;
    this.#delta += text;
    this.#deltaTimer ??= setTimeout(() => this.#flushDelta(), JOIN_MS);
  }

  push(event: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#flushDelta();
    this.#add(event, fields);
  }

  /** Where it stands, from now on. */
  change(change: ApiRunChange): void {
    this.#change = { ...this.#change, ...change };
    void this.#save();
  }

  async end(event: string, fields: Readonly<Record<string, unknown>>, change: ApiRunChange): Promise<void> {
    this.push(event, fields);
    this.#change = { ...this.#change, ...change };
    await this.#save();
    // Another process may hold the store up; without its end the run would count as cut off.
    for (let tries = 0; tries < MOST_TRIES && this.#unsaved.length > 0; tries++) {
      await this.#options.clock.sleep(AGAIN_MS);
      await this.#save();
    }
    this.#isOver = true;
    this.#wake();
    this.#resolveEnded();
  }

  async *read(after: number, signal: AbortSignal): AsyncGenerator<ApiRunEvent, void> {
    let last = after;
    for (;;) {
      for (let at = firstBehind(this.#events, last); at < this.#events.length; at = firstBehind(this.#events, last)) {
        const event = this.#events[at];
        if (event === undefined || signal.aborted) return;
        if (event.id > this.#savedId) break;
        last = event.id;
        yield event;
      }
      if (this.#isOver || signal.aborted) return;
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#readers.delete(wake);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        this.#readers.add(wake);
        signal.addEventListener("abort", wake, { once: true });
      });
    }
  }

  #flushDelta(): void {
    clearTimeout(this.#deltaTimer);
    this.#deltaTimer = undefined;
    const text = this.#delta;
    this.#delta = "";
    if (text !== "") this.#add("message.delta", { delta: text });
  }

  #add(event: string, fields: Readonly<Record<string, unknown>>): void {
    const timestamp = this.#options.clock.now() / 1000;
    const added = { id: ++this.#lastId, event: { event, run_id: this.id, timestamp, ...fields } };
    this.#events.push(added);
    this.#unsaved.push(added);
    if (this.#events.length > MOST_EVENTS) this.#merge();
    void this.#save();
  }

  /** Pieces of text in the older half become one where they follow each other; it has the number of the last of them. */
  #merge(): void {
    const half = this.#events.splice(0, MOST_EVENTS / 2);
    const merged: ApiRunEvent[] = [];
    const changed = new Set<ApiRunEvent>();
    for (const one of half) {
      const before = merged.at(-1);
      const isText = one.event.event === "message.delta";
      if (before === undefined || !isText || before.event.event !== "message.delta") {
        merged.push(one);
        continue;
      }
      const joined = { id: one.id, event: { ...one.event, delta: `${before.event.delta}${one.event.delta}` } };
      merged[merged.length - 1] = joined;
      changed.delete(before);
      changed.add(joined);
      this.#dropped.push(before.id);
    }
    this.#events.unshift(...merged);
    this.#unsaved.push(...changed);
  }

  #wake(): void {
    for (const wake of [...this.#readers]) wake();
  }

  /** What is new, and what comes meanwhile, until nothing is left. */
  #save(): Promise<void> {
    this.#saving ??= (async () => {
      while (this.#unsaved.length > 0 || this.#dropped.length > 0 || Object.keys(this.#change).length > 0)
        if (!(await this.#saveOnce())) break;
    })().finally(() => {
      this.#saving = null;
    });
    return this.#saving;
  }

  /** False when it failed: it is reported, and tried again with what comes next. Readers go on, as the work does. */
  async #saveOnce(): Promise<boolean> {
    const { work, report } = this.#options;
    const [events, change, dropped, last] = [this.#unsaved, this.#change, this.#dropped, this.#lastId];
    this.#unsaved = [];
    this.#change = {};
    this.#dropped = [];
    try {
      await work.noteApiRun(this.id, events, change);
      if (dropped.length > 0) await work.dropApiRunEvents(this.id, dropped);
      return true;
    } catch (error) {
      this.#unsaved.unshift(...events);
      this.#change = { ...change, ...this.#change };
      this.#dropped.unshift(...dropped);
      report(error);
      return false;
    } finally {
      this.#savedId = last;
      this.#wake();
    }
  }
}

/** The place of the first event behind an id. */
function firstBehind(events: readonly ApiRunEvent[], id: number): number {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((events[middle]?.id ?? 0) > id) high = middle;
    else low = middle + 1;
  }
  return low;
}
