// Sends what is promised in the name of one bot, part by part. Whatever happens, the row in the store says what is known about it.
import type { Logger } from "../../home/log.ts";
import { type Clock, joinSignals, withGrace, within } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { isRecord } from "../../kit/json.ts";
import { LaneMovedError } from "../../sessions/store.ts";
import type { BotLease, OutboxRow, SendOutcome, WorkStore } from "../../sessions/work.ts";
import { splitFor } from "./answer.ts";
import type { ChatTarget, OutgoingFile, PlatformAdapter, PlatformEntry, SendResult } from "./contract.ts";
import { splitMessage } from "./split.ts";

/** What a row of the outbox holds. */
export type Payload = {
  /** Nobody knows whether it arrived before: it says so itself. */
  readonly recovered?: boolean;
  /** It was meant for a thread that is no longer there. */
  readonly threadGone?: boolean;
  readonly plain?: boolean;
  readonly important?: boolean;
  /** A notice that may go after a while: `display.ephemeral_system_ttl`. */
  readonly passing?: boolean;
  readonly subject?: string;
  /** How often somebody looked for it in vain: the history could not be read. */
  readonly looks?: number;
  /** The message it answers. Not part of the target: parts to one chat are sent in their order, whatever they answer. */
  readonly replyTo?: string;
} & (
  | { readonly type: "text"; readonly text: string }
  /** The message that was streamed gets its last form. */
  | { readonly type: "edit"; readonly text: string; readonly messageId: string }
  | { readonly type: "file"; readonly file: OutgoingFile }
  | { readonly type: "album"; readonly files: readonly OutgoingFile[] }
  | {
      readonly type: "question";
      readonly text: string;
      readonly id: string;
      readonly buttons: readonly { readonly label: string; readonly choice: string }[];
    }
);

interface DeliveryOptions {
  readonly work: WorkStore;
  readonly entry: Pick<PlatformEntry, "name" | "repeatIsSafe" | "maxLength" | "lengthUnit" | "format">;
  readonly adapter: PlatformAdapter;
  readonly account: string;
  readonly lease: BotLease;
  readonly clock: Clock;
  readonly log: Logger;
  readonly timers?: Partial<typeof TIMERS>;
  /** Seconds before the next part of an answer, as a person would need them. Default none. */
  humanPause?(): number;
  /** Seconds until passing notices are removed; 0: they stay. */
  passingSeconds?(): number;
  /** What cannot be sent, with the reason. */
  onDead?(row: OutboxRow, error: string): void;
  /** Somebody else sends for this bot now. */
  onLost?(): void;
}

/** Seconds; `stopMs`: how long a stop waits for what is being sent. */
const TIMERS = { retry: 2, retryMax: 300, poll: 2, stopMs: 5000 };
const GIVE_UP_SECONDS = 24 * 3600;
/** A day may pass at once: a machine slept, or its clock was set. */
const FEWEST_TRIES = 20;
const LONGEST_PAUSE_MS = 60_000;
const AT_ONCE = 8;
const MOST_LOOKS = 5;
/** Longer than adapters wait by themselves: one that never answers must not hold up the other chats. */
const CALL_MS = 300_000;
const LONGEST_WAIT_SECONDS = 86_400;
const RECOVERED = "(recovered) ";
const THREAD_GONE = "(the thread is gone)\n";

export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #timers: typeof TIMERS;
  readonly #over = new AbortController();
  /** When the next part of an answer may come, in milliseconds. */
  readonly #following = new Map<string, number>();
  #wake: () => void = () => undefined;
  #woken = Promise.resolve();
  #running: Promise<void> | null = null;
  /** What came of sends, while the store could not take it. */
  readonly #unsettled = new Map<number, SendOutcome>();

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#timers = { ...TIMERS, ...options.timers };
  }

  start(): void {
    this.#running ??= this.#keepRunning();
  }

  /** Something new was promised: it need not wait for the next look. */
  wake(): void {
    this.#wake();
  }

  /** Resolves when what was being sent has an outcome, or has had a moment for it: the next start settles it then. */
  async stop(): Promise<void> {
    this.#over.abort();
    this.#wake();
    await this.#running;
  }

  /** A store that fails for a while (a full disk) ends nothing. */
  async #keepRunning(): Promise<void> {
    const { clock, log, entry, onLost } = this.#options;
    for (let failures = 0; !this.#over.signal.aborted; failures++) {
      try {
        await this.#run();
      } catch (error) {
        if (error instanceof LaneMovedError) return onLost?.();
        log.error(`sending by ${entry.name} failed; it is tried again`, error);
        await clock.sleep(this.#backoff(failures) * 1000, this.#over.signal).catch(() => undefined);
      }
    }
  }

  async #run(): Promise<void> {
    const { work, entry, account, lease } = this.#options;
    for (const row of await work.interruptedSends(entry.name, account, lease))
      await this.#settle(row, this.#unsettled.get(row.id) ?? (await this.#unknown(row, "cut off")));
    const sends = new Set<Promise<void>>();
    let failure: { readonly error: unknown } | null = null;
    try {
      while (!this.#over.signal.aborted && failure === null) {
        this.#rest();
        const ready = (await work.due(entry.name, account)).filter((row) => this.#mayFollow(row));
        const due = ready.slice(0, AT_ONCE - sends.size);
        const begun = await Promise.all(due.map((row) => work.sending(row.id, lease)));
        for (const row of due.filter((_, at) => begun[at])) {
          const send = this.#send(row)
            .catch((error: unknown) => {
              failure ??= { error };
            })
            .finally(() => {
              sends.delete(send);
              this.#wake();
            });
          sends.add(send);
        }
        // One chat that is slow holds nobody else up.
        if (sends.size >= AT_ONCE) await this.#woken;
        else if (due.length === 0) await this.#pause();
      }
    } finally {
      // None may still be on its way when the next look takes it for cut off.
      await Promise.all(sends);
    }
    if (failure !== null) throw (failure as { readonly error: unknown }).error; // set in a callback
  }

  #rest(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#woken = promise;
    this.#wake = resolve;
  }

  /** Until something is promised here, the next part may be sent, or it is time to see what others promised. */
  async #pause(): Promise<void> {
    const { work, entry, account, clock } = this.#options;
    const next = await work.nextDue(entry.name, account);
    const wait =
      next === null ? this.#timers.poll : Math.min(this.#timers.poll, Math.max(0.02, next - clock.now() / 1000));
    const pause = new AbortController();
    const over = joinSignals(pause.signal, this.#over.signal);
    await Promise.race([this.#woken, clock.sleep(wait * 1000, over.signal).catch(() => undefined)]);
    pause.abort();
    over.release();
  }

  /** Further parts of an answer come as fast as a person writes, where the settings want that. */
  #mayFollow({ cause, part, payload }: OutboxRow): boolean {
    const at = this.#following.get(cause);
    if (part === 0 || at === undefined || (payload as Payload).type !== "text") return true; // written by us
    const left = at - this.#options.clock.now();
    return left <= 0 || left > LONGEST_PAUSE_MS;
  }

  #follow({ cause }: OutboxRow): void {
    const seconds = this.#options.humanPause?.() ?? 0;
    const { clock } = this.#options;
    for (const [old, at] of this.#following) if (at <= clock.now()) this.#following.delete(old);
    if (seconds > 0) this.#following.set(cause, clock.now() + seconds * 1000);
  }

  /** Best effort: what a restart forgets stays. */
  async #removeLater({ target, payload }: OutboxRow, messageId: string | null): Promise<void> {
    const { adapter, clock, log, passingSeconds } = this.#options;
    const seconds = passingSeconds?.() ?? 0;
    if (seconds <= 0 || messageId === null || !(payload as Payload).passing || !adapter.remove) return; // written by us
    try {
      await clock.sleep(seconds * 1000, this.#over.signal);
      await adapter.remove(target as ChatTarget, messageId);
    } catch (error) {
      if (!this.#over.signal.aborted) log.debug("a notice was not removed", error);
    }
  }

  async #send(row: OutboxRow): Promise<void> {
    const { looks = 0 } = row.payload as Payload; // written by us
    if (looks > 0) {
      const outcome = await this.#unknown(row, row.error ?? "no receipt");
      if (outcome !== null) await this.#settle(row, outcome);
      return;
    }
    const result = await this.#hand(row);
    if (result !== null) await this.#settle(row, await this.#outcome(row, result));
  }

  /** Null: the delivery stops, and whether it was sent is not known yet. */
  async #hand(row: OutboxRow): Promise<SendResult | null> {
    const { log, entry } = this.#options;
    try {
      const called = await this.#inTime(() => this.#call(row));
      return called.done ? asResult(called.value) : null;
    } catch (error) {
      // Against its contract: whether the request left is anybody's guess.
      log.error(`sending by ${entry.name} failed in an unforeseen way`, error);
      return { failed: "unknown", error: messageOf(error) };
    }
  }

  async #call(row: OutboxRow): Promise<SendResult> {
    const { adapter } = this.#options;
    const payload = row.payload as Payload; // written by us, as is the target
    const { plain, important, replyTo, subject } = payload;
    const target = { ...(row.target as ChatTarget), ...(replyTo === undefined ? {} : { replyTo }) };
    const options = { key: keyOf(row), plain, important, subject };
    const mark = (payload.threadGone ? THREAD_GONE : "") + (payload.recovered ? RECOVERED : "");
    if (payload.type === "edit" && adapter.edit)
      return adapter.edit(target, payload.messageId, payload.text, { ...options, final: true });
    if (payload.type === "file" && adapter.sendFile) return adapter.sendFile(target, payload.file, options);
    if (payload.type === "album" && adapter.sendAlbum) return adapter.sendAlbum(target, payload.files, options);
    if (payload.type === "question" && adapter.ask && !plain)
      return adapter.ask(target, mark + payload.text, payload, options);
    const text = textOf(payload);
    const fits = splitMessage(mark + text, splitFor(this.#options.entry)).length === 1;
    // A part that fills its message has no room for the mark: that goes ahead by itself.
    if (mark !== "" && !fits) {
      const ahead = await adapter.send(target, mark.trim(), { ...options, key: `${options.key}!` });
      if ("failed" in ahead) return ahead;
    }
    return adapter.send(target, fits ? mark + text : text, options);
  }

  async #outcome(row: OutboxRow, result: SendResult): Promise<SendOutcome | null> {
    if (!("failed" in result)) return { type: "sent", messageId: result.messageId };
    const { failed, error, retryAfter } = result;
    const payload = row.payload as Payload;
    const target = row.target as ChatTarget;
    const again = { type: "again", afterSeconds: 0, counts: true, error } as const;
    switch (failed) {
      case "rate_limited":
        return { ...again, afterSeconds: retryAfter ?? this.#timers.retry, counts: false };
      case "format":
        return payload.plain ? { type: "dead", error } : { ...again, payload: { ...payload, plain: true } };
      case "thread_gone": {
        if (target.threadId === undefined) return { type: "dead", error };
        const { threadId: _, replyTo: __, ...chat } = target;
        const { replyTo: ___, ...rest } = asNew(payload);
        return { ...again, target: chat, payload: { ...rest, threadGone: true } };
      }
      case "unreachable":
        if (this.#now - row.createdAt > GIVE_UP_SECONDS && row.attempts >= FEWEST_TRIES) return { type: "dead", error };
        return { ...again, afterSeconds: this.#backoff(row.attempts) };
      case "refused":
        // The message that was streamed is gone, or too old to be changed: the answer is not.
        if (payload.type === "edit") return { ...again, payload: asNew(payload) };
        return { type: "dead", error };
      case "unknown":
        return this.#unknown(row, error);
    }
  }

  /**
   * Perhaps it arrived. Looked for, or repeated where that is safe; else once more with a mark, and no more. Null: the delivery stops, and
   * the next start looks.
   */
  async #unknown(row: OutboxRow, error: string): Promise<SendOutcome | null> {
    const { entry, adapter } = this.#options;
    const payload = row.payload as Payload;
    const again = { type: "again", afterSeconds: this.#backoff(0), counts: true, error } as const;
    if (entry.repeatIsSafe || payload.type === "edit") return again;
    const { looks = 0, ...told } = payload;
    const find = async () => adapter.findSent?.(row.target as ChatTarget, keyOf(row), textOf(payload), row.createdAt);
    const looked = await this.#inTime(() =>
      find().then(
        (found) => ({ found }),
        () => null,
      ),
    );
    if (!looked.done) return null;
    // That the platform could not be asked now says nothing about the part.
    if (looked.value === null && looks < MOST_LOOKS)
      return { ...again, afterSeconds: this.#backoff(looks), payload: { ...told, looks: looks + 1 } };
    const found = looked.value?.found;
    if (typeof found === "string") return { type: "sent", messageId: found };
    if (found === null) return { ...again, payload: told };
    if (payload.recovered) return { type: "dead", error: `${error}; whether it arrived is not known` };
    return { ...again, payload: { ...told, recovered: true } };
  }

  /** Not done: it was stopped in the middle. */
  async #inTime<T>(
    work: () => Promise<T>,
  ): Promise<{ readonly done: true; readonly value: T } | { readonly done: false }> {
    const over = new AbortController();
    const bounded = within(work, CALL_MS, this.#options.clock, over.signal);
    try {
      return await withGrace(bounded, this.#over.signal, this.#timers.stopMs);
    } finally {
      over.abort();
    }
  }

  async #settle(row: OutboxRow, outcome: SendOutcome | null): Promise<void> {
    const { work, lease, onDead } = this.#options;
    if (outcome === null) return;
    this.#unsettled.set(row.id, outcome);
    await work.settleSend(row.id, outcome, lease);
    this.#unsettled.delete(row.id);
    if (outcome.type === "sent") {
      this.#follow(row);
      void this.#removeLater(row, outcome.messageId);
    }
    if (outcome.type === "dead") onDead?.(row, outcome.error);
  }

  #backoff(attempts: number): number {
    const { retry, retryMax } = this.#timers;
    const jitter = 1 + this.#options.clock.random() / 4;
    return Math.min(retryMax, retry * 2 ** Math.min(attempts, 20) * jitter);
  }

  get #now(): number {
    return this.#options.clock.now() / 1000;
  }
}

const FAILURES = ["rate_limited", "format", "thread_gone", "unreachable", "refused", "unknown"] as const;

/** Adapters of plugins may answer anything: what is no result tells nothing. */
function asResult(value: unknown): SendResult {
  const { messageId, failed, error, retryAfter } = isRecord(value) ? value : {};
  const kind = FAILURES.find((one) => one === failed);
  if (kind) {
    const wait = typeof retryAfter === "number" && retryAfter >= 0 ? Math.min(retryAfter, LONGEST_WAIT_SECONDS) : null;
    return { failed: kind, error: String(error ?? kind), ...(wait === null ? {} : { retryAfter: wait }) };
  }
  if (failed === undefined && messageId === null) return { messageId };
  if (failed === undefined && ["string", "number", "bigint"].includes(typeof messageId))
    return { messageId: String(messageId) };
  return { failed: "unknown", error: "the platform did not say what came of it" };
}

/** Of its own for each part of each store: a platform that remembers keys may have seen those of a store that is gone. */
const keyOf = ({ cause, part, createdAt }: OutboxRow) =>
  `${cause}#${part}@${Math.round(createdAt * 1000).toString(36)}`;

/** Which part a key belongs to; null: it is none of the outbox. */
export function partOf(key: string): Pick<OutboxRow, "cause" | "part"> | null {
  const [, cause, part] = /^([\s\S]+)#(\d+)@[0-9a-z]+$/.exec(key) ?? [];
  return cause === undefined ? null : { cause, part: Number(part) };
}

/** What is sent of it where there are only words. */
export function textOf(payload: Payload): string {
  if (payload.type === "album") return payload.files.map(({ name }) => `[file: ${name}]`).join("\n");
  return payload.type === "file" ? `[file: ${payload.file.name}]` : payload.text;
}

/** A message of its own, in place of the change of one. */
function asNew(payload: Payload): Payload {
  if (payload.type !== "edit") return payload;
  const { messageId: _, ...rest } = payload;
  return { ...rest, type: "text" };
}
