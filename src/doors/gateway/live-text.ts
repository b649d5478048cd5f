// One stretch of an answer, shown while it is being written: messages that are edited until they say what the text says so far.
import type { Logger } from "../../home/log.ts";
import { type Clock, within } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { masked, mayBecomeSilence, splitFor } from "./answer.ts";
import type { ChatTarget, PlatformAdapter, PlatformEntry, SendResult } from "./contract.ts";
import { leadsToFile, pathsToCheck, visibleSoFar } from "./media-out.ts";
import type { GatewaySettings } from "./settings.ts";
import { splitMessage, withoutCounter } from "./split.ts";

export interface LiveOptions {
  readonly adapter: PlatformAdapter;
  readonly entry: PlatformEntry;
  readonly settings: GatewaySettings;
  readonly target: ChatTarget;
  readonly clock: Clock;
  readonly log: Logger;
  /** Of the turn: keys of what is sent begin with it. */
  readonly key: string;
}

const CALL_MS = 30_000;

/** The chat as this file uses it: calls end in time, never reject, and each message has a key of its own. */
export class LiveChat {
  readonly #options: LiveOptions;
  #sent = 0;
  #replied = false;

  constructor(options: LiveOptions) {
    this.#options = options;
  }

  get canEdit(): boolean {
    const { entry, adapter } = this.#options;
    return entry.canEdit && adapter.edit !== undefined;
  }

  /** `reply`: the first of these answers the message of the user. */
  async send(text: string, { plain, reply = false }: { plain?: boolean; reply?: boolean } = {}): Promise<SendResult> {
    const { adapter, target, key } = this.#options;
    const { replyTo, ...chat } = target;
    const asReply = reply && !this.#replied && replyTo !== undefined;
    this.#replied ||= reply;
    const options = { key: `${key}#${this.#sent++}`, ...(plain ? { plain } : {}) };
    const result = await this.#call(() => adapter.send(asReply ? target : chat, text, options));
    if (!("failed" in result) || result.failed !== "unknown") return result;
    const found = await this.#quietly(async () => adapter.findSent?.(chat, options.key, text));
    return typeof found === "string" ? { messageId: found } : result;
  }

  edit(id: string, text: string, { final, plain }: { final: boolean; plain?: boolean }): Promise<SendResult> {
    const { adapter, target, key } = this.#options;
    const options = { key: `${key}#${id}`, final, ...(plain ? { plain } : {}) };
    return this.#call(
      async () => (await adapter.edit?.(target, id, text, options)) ?? { failed: "refused", error: "cannot be edited" },
    );
  }

  /** Resolves to whether it is gone. */
  async remove(id: string): Promise<boolean> {
    const { adapter, target } = this.#options;
    if (!adapter.remove) return false;
    return (await this.#quietly(async () => adapter.remove?.(target, id).then(() => true))) === true;
  }

  async #call(work: () => Promise<SendResult>): Promise<SendResult> {
    const done = await this.#quietly(work);
    return done ?? { failed: "unknown", error: "no result" };
  }

  async #quietly<T>(work: () => Promise<T>): Promise<T | undefined> {
    const { clock, log, entry } = this.#options;
    try {
      return await within(work, CALL_MS, clock);
    } catch (error) {
      log.debug(`${entry.name} did not show a turn at work: ${messageOf(error)}`);
      return undefined;
    }
  }
}

interface StreamOptions {
  readonly entry: PlatformEntry;
  readonly settings: GatewaySettings;
  readonly clock: Clock;
  readonly chat: LiveChat;
}

const FEWEST = 4;
const MOST_INTERVAL_MS = 10_000;
const MOST_STRIKES = 3;
const ROOM = 100;
const LEAST_LENGTH = 500;

/** How it ended: before a tool; as a remark that nobody wants to see; as the answer, whose last form comes from the outbox; in the middle. */
type End = "interim" | "unwanted" | "final" | "cut";

export class StreamedText {
  readonly #options: StreamOptions;
  readonly #cursor: string;
  readonly #limits: ReturnType<typeof splitFor>;
  readonly #files = new Map<string, boolean>();
  readonly #written: { readonly id: string; readonly text: string; readonly final: boolean }[] = [];
  #raw = "";
  #end: End | null = null;
  /** How much of it the chat shows; less than nothing: the last try failed. */
  #looked = 0;
  #shown = "";
  #startedAt: number | null = null;
  #lastAt = 0;
  #notBefore = 0;
  #intervalMs: number;
  #strikes = 0;
  #plain = false;
  #givenUp = false;
  #triedAgain = false;

  constructor(options: StreamOptions) {
    this.#options = options;
    const { entry, settings } = options;
    const { edit_interval, cursor } = settings.home.config().streaming;
    this.#intervalMs = edit_interval * 1000;
    this.#cursor = entry.withoutCursor ? "" : cursor;
    const limits = splitFor(entry);
    const mark = limits.length(this.#cursor);
    const safe = Math.max(LEAST_LENGTH, limits.max - mark - ROOM);
    this.#limits = { ...limits, max: Math.max(1, Math.min(safe, limits.max - mark)) };
  }

  add(delta: string): void {
    this.#raw += delta;
  }

  close(): void {
    this.end("interim");
  }

  end(how: End): void {
    this.#end ??= how;
  }

  get isFinal(): boolean {
    return this.#end === "final";
  }

  /** The platform would not take more edits. */
  get isGivenUp(): boolean {
    return this.#givenUp;
  }

  /** That show it, in order. */
  get messages(): readonly string[] {
    return this.#written.map(({ id }) => id);
  }

  /** Since the first message. */
  get seconds(): number {
    return this.#startedAt === null ? 0 : (this.#options.clock.now() - this.#startedAt) / 1000;
  }

  async step(): Promise<"later" | "rest" | "done"> {
    const { chat, clock } = this.#options;
    if (this.#end === "final" || this.#end === "cut") return "done";
    if (this.#end === "unwanted") {
      await Promise.all(this.messages.map((id) => chat.remove(id)));
      return "done";
    }
    if (this.#end === "interim") return this.#finish();
    if (this.#givenUp || this.#raw.length === this.#looked) return "rest";
    // Before anything is made of the text: a long one costs time, and most looks change nothing.
    if (!this.#isDue(clock.now())) return "later";
    const { length } = this.#raw;
    const text = await this.#visible();
    const isTooEarly = this.#written.length === 0 && (mayBecomeSilence(text) || [...text].length < FEWEST);
    if (isTooEarly || text === this.#shown || (await this.#write(text))) this.#looked = length;
    return "later";
  }

  /** Its last form. After all it is a remark: one more try, and no long wait. */
  async #finish(): Promise<"later" | "done"> {
    const wait = this.#notBefore - this.#options.clock.now();
    if (wait > MOST_INTERVAL_MS || (this.#givenUp && this.#triedAgain)) return "done";
    if (wait > 0) return "later";
    this.#triedAgain ||= this.#givenUp;
    this.#givenUp = false;
    return (await this.#write(await this.#visible())) ? "done" : "later";
  }

  /** The turn was stopped in the middle of it: the cursor goes, and it says so. */
  async stop(): Promise<void> {
    const { entry, chat } = this.#options;
    const last = this.#written.at(-1);
    if (last === undefined) return;
    const text = last.text.endsWith(this.#cursor) ? last.text.slice(0, -this.#cursor.length || undefined) : last.text;
    const { max, length, format = (part: string) => part } = splitFor(entry);
    const marked = `${text}\n\n(stopped)`;
    await chat.edit(last.id, length(format(marked)) <= max ? marked : text, { final: true, plain: this.#plain });
  }

  /** After the first limit only the clock counts: characters come as fast as ever. */
  #isDue(now: number): boolean {
    const { settings } = this.#options;
    if (now < this.#notBefore) return false;
    if (this.#written.length === 0 || now - this.#lastAt >= this.#intervalMs) return true;
    const { buffer_threshold: threshold } = settings.home.config().streaming;
    return this.#strikes === 0 && this.#raw.length - Math.max(0, this.#looked) >= threshold;
  }

  async #visible(): Promise<string> {
    const { home } = this.#options.settings;
    const whole = this.#end !== null;
    // As it is now: it grows while files are looked for. With an end, its last line is decided.
    const raw = whole ? `${this.#raw}\n` : this.#raw;
    for (const path of pathsToCheck(raw))
      if (!this.#files.has(path)) this.#files.set(path, await leadsToFile(path, home.osHome));
    const text = visibleSoFar(raw, (path) => this.#files.get(path) ?? false);
    return masked(whole ? text : withoutHalfSecret(text), home.redact);
  }

  /** True: the chat shows the text. Messages before the last one get their form; the last one has the cursor while the text grows. */
  async #write(text: string): Promise<boolean> {
    const { settings, clock } = this.#options;
    const ended = this.#end !== null;
    const parts = text === "" ? [] : unnumbered(splitMessage(text, this.#limits));
    const most = ended ? parts.length : Math.max(1, settings.home.config().gateway.max_parts);
    for (const [index, part] of parts.slice(0, most).entries()) {
      const final = ended || index < parts.length - 1;
      const wanted = { text: final ? part : part + this.#cursor, final };
      const known = this.#written[index];
      if (known && known.text === wanted.text && (known.final || !final)) continue;
      const result = await this.#show(known?.id, wanted);
      if ("failed" in result) {
        await this.#failed(result, known?.id);
        return false;
      }
      this.#strikes = Math.max(0, this.#strikes - 1);
      const id = known?.id ?? result.messageId;
      if (id === null) {
        // It cannot be edited.
        this.#givenUp = true;
        return true;
      }
      this.#written[index] = { id, ...wanted };
    }
    this.#lastAt = clock.now();
    this.#startedAt ??= this.#lastAt;
    this.#shown = text;
    return true;
  }

  #show(id: string | undefined, { text, final }: { text: string; final: boolean }): Promise<SendResult> {
    const { chat } = this.#options;
    if (id !== undefined) return chat.edit(id, text, { final, plain: this.#plain });
    return chat.send(text, { plain: this.#plain, reply: true });
  }

  async #failed({ failed, retryAfter = 0 }: Extract<SendResult, { failed: string }>, id?: string): Promise<void> {
    const { chat, clock } = this.#options;
    if (failed === "format" && !this.#plain) {
      this.#plain = true;
      this.#looked = -1;
      return;
    }
    // The message is gone, or nobody may change it any more: the answer must not be written into it.
    const isLost = failed === "refused" || failed === "thread_gone";
    if (isLost && id !== undefined) {
      await chat.remove(id);
      this.#written.splice(this.#written.findIndex((one) => one.id === id));
    }
    this.#looked = -1;
    this.#strikes++;
    this.#intervalMs = Math.min(MOST_INTERVAL_MS, this.#intervalMs * 2);
    this.#notBefore = clock.now() + Math.max(this.#intervalMs, retryAfter * 1000);
    // Sent perhaps, and nobody knows as what: there is nothing to edit.
    const isUnsure = failed === "unknown" && id === undefined;
    this.#givenUp ||= isLost || isUnsure || failed === "format" || this.#strikes >= MOST_STRIKES;
  }
}

const unnumbered = (parts: readonly string[]) =>
  parts.map((part, index) => withoutCounter(part, index + 1, parts.length));

const LONGEST_SECRET = 4000;

/** A key is known as one when it is whole: a word that may be the beginning of one is not shown yet. */
export function withoutHalfSecret(text: string): string {
  const least = Math.max(0, text.length - LONGEST_SECRET);
  let start = text.length;
  while (start > least && /[\w\-+/=.~:@%]/.test(text.charAt(start - 1))) start--;
  const word = text.slice(start);
  const isHalf = /[\d_\-+/=~@]/.test(word) || /bearer\s{1,4}$/i.test(text.slice(Math.max(0, start - 12), start));
  return isHalf ? text.slice(0, start).trimEnd() : text;
}
