// Sends what is promised in the name of one bot, part by part. Whatever happens, the row in the store says what is known about it.
import type { Logger } from "../../home/log.ts";
import { type Clock, joinSignals } from "../../kit/clock.ts";
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
  /** The message it answers. Not part of the target: parts to one chat are sent in their order, whatever they answer. */
  readonly replyTo?: string;
} & (
  | { readonly type: "text"; readonly text: string }
  /** The message that was streamed gets its last form. */
  | { readonly type: "edit"; readonly text: string; readonly messageId: string }
  | { readonly type: "file"; readonly file: OutgoingFile }
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
  readonly timers?: { readonly retry: number; readonly retryMax: number; readonly poll: number };
  /** What cannot be sent, with the reason. */
  onDead?(row: OutboxRow, error: string): void;
  /** Somebody else sends for this bot now. */
  onLost?(): void;
}

const TIMERS = { retry: 2, retryMax: 300, poll: 2 };
const GIVE_UP_SECONDS = 24 * 3600;
const AT_ONCE = 8;
const RECOVERED = "(recovered) ";
const THREAD_GONE = "(the thread is gone)\n";

export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #timers: typeof TIMERS;
  readonly #over = new AbortController();
  #wake: () => void = () => undefined;
  #woken = Promise.resolve();
  #running: Promise<void> | null = null;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#timers = { ...TIMERS, ...options.timers };
  }

  start(): void {
    this.#running ??= this.#run().catch((error) => this.#stopped(error));
  }

  /** Something new was promised: it need not wait for the next look. */
  wake(): void {
    this.#wake();
  }

  /** Resolves when what was being sent has an outcome. */
  async stop(): Promise<void> {
    this.#over.abort();
    this.#wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { work, entry, account, lease } = this.#options;
    for (const row of await work.interruptedSends(entry.name, account, lease))
      await this.#settle(row, await this.#unknown(row, "cut off"));
    while (!this.#over.signal.aborted) {
      this.#rest();
      const due = await work.due(entry.name, account);
      for (let at = 0; at < due.length && !this.#over.signal.aborted; at += AT_ONCE)
        await Promise.all(due.slice(at, at + AT_ONCE).map((row) => this.#send(row)));
      if (due.length === 0) await this.#pause();
    }
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

  async #send(row: OutboxRow): Promise<void> {
    const { work, lease } = this.#options;
    if (!(await work.sending(row.id, lease))) return;
    const result = await this.#hand(row);
    await this.#settle(row, await this.#outcome(row, result));
  }

  async #hand(row: OutboxRow): Promise<SendResult> {
    const { adapter, log } = this.#options;
    const payload = row.payload as Payload; // written by us, as is the target
    const { plain, important, replyTo } = payload;
    const target = { ...(row.target as ChatTarget), ...(replyTo === undefined ? {} : { replyTo }) };
    const options = { key: keyOf(row), plain, important };
    const mark = (payload.threadGone ? THREAD_GONE : "") + (payload.recovered ? RECOVERED : "");
    try {
      if (payload.type === "edit" && adapter.edit)
        return await adapter.edit(target, payload.messageId, payload.text, { ...options, final: true });
      if (payload.type === "file" && adapter.sendFile) return await adapter.sendFile(target, payload.file, options);
      if (payload.type === "question" && adapter.ask && !plain)
        return await adapter.ask(target, mark + payload.text, payload, options);
      const text = textOf(payload);
      const fits = splitMessage(mark + text, splitFor(this.#options.entry)).length === 1;
      // A part that fills its message has no room for the mark: that goes ahead by itself.
      if (mark !== "" && !fits) {
        const ahead = await adapter.send(target, mark.trim(), { ...options, key: `${options.key}!` });
        if ("failed" in ahead) return ahead;
      }
      return await adapter.send(target, fits ? mark + text : text, options);
    } catch (error) {
      // Against its contract: whether the request left is anybody's guess.
      log.error(`sending by ${this.#options.entry.name} failed in an unforeseen way`, error);
      return { failed: "unknown", error: String(error) };
    }
  }

  async #outcome(row: OutboxRow, result: SendResult): Promise<SendOutcome> {
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
        if (this.#now - row.createdAt > GIVE_UP_SECONDS) return { type: "dead", error };
        return { ...again, afterSeconds: this.#backoff(row.attempts) };
      case "refused":
        // The message that was streamed is gone, or too old to be changed: the answer is not.
        if (payload.type === "edit") return { ...again, payload: asNew(payload) };
        return { type: "dead", error };
      case "unknown":
        return this.#unknown(row, error);
    }
  }

  /** Perhaps it arrived. Looked for, or repeated where that is safe; else once more with a mark, and no more. */
  async #unknown(row: OutboxRow, error: string): Promise<SendOutcome> {
    const { entry, adapter } = this.#options;
    const payload = row.payload as Payload;
    const again = { type: "again", afterSeconds: this.#backoff(0), counts: true, error } as const;
    if (entry.repeatIsSafe || payload.type === "edit") return again;
    const found = await adapter
      .findSent?.(row.target as ChatTarget, keyOf(row), textOf(payload), row.createdAt)
      .catch(() => undefined);
    if (typeof found === "string") return { type: "sent", messageId: found };
    if (found === null) return again;
    if (payload.recovered) return { type: "dead", error: `${error}; whether it arrived is not known` };
    return { ...again, payload: { ...payload, recovered: true } };
  }

  async #settle(row: OutboxRow, outcome: SendOutcome): Promise<void> {
    const { work, lease, onDead } = this.#options;
    await work.settleSend(row.id, outcome, lease);
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

  #stopped(error: unknown): void {
    const { onLost, log, entry } = this.#options;
    if (error instanceof LaneMovedError) onLost?.();
    else log.error(`sending by ${entry.name} stopped`, error);
  }
}

/** Of its own for each part of each store: a platform that remembers keys may have seen those of a store that is gone. */
const keyOf = ({ cause, part, createdAt }: OutboxRow) =>
  `${cause}#${part}@${Math.round(createdAt * 1000).toString(36)}`;

/** Which part a key belongs to; null: it is none of the outbox. */
export function partOf(key: string): Pick<OutboxRow, "cause" | "part"> | null {
  const [, cause, part] = /^([\s\S]+)#(\d+)@[0-9a-z]+$/.exec(key) ?? [];
  return cause === undefined ? null : { cause, part: Number(part) };
}

function textOf(payload: Payload): string {
  return payload.type === "file" ? `[file: ${payload.file.name}]` : payload.text;
}

/** A message of its own, in place of the change of one. */
function asNew(payload: Payload): Payload {
  if (payload.type !== "edit") return payload;
  const { messageId: _, ...rest } = payload;
  return { ...rest, type: "text" };
}
