// One bot of Telegram: its connection, by polling or by a webhook, and the order in which updates are stored and acknowledged.
import { createHash, timingSafeEqual } from "node:crypto";
import { joinSignals } from "../../../../kit/clock.ts";
import { messageOf } from "../../../../kit/errors.ts";
import { parseJson } from "../../../../kit/json.ts";
import { type AdapterHost, type PlatformAdapter, PlatformError } from "../../contract.ts";
import { type HttpReply, type Listener, listen } from "../../listener.ts";
import { CallError, type Calls, openCalls } from "./calls.ts";
import { webhookOf } from "./entry.ts";
import { type Incoming, IncomingReader } from "./incoming.ts";
import { Sender } from "./sending.ts";
import type { Update } from "./shapes.ts";

const UPDATES = ["message", "edited_message", "channel_post", "edited_channel_post", "callback_query"] as const;
const POLL_SECONDS = 30;
const SLACK_SECONDS = 15;
const CONFLICT = { first: 20, tries: 5 };
const NETWORK = { first: 5, most: 60, tries: 10 };
/** While a file is being fetched others are not kept waiting. */
const LOOK_AGAIN_MS = 1000;
const STORE_AGAIN_MS = 1000;
const STORE_AGAIN_MOST_MS = 30_000;

export async function openTelegram(host: AdapterHost): Promise<PlatformAdapter> {
  const token = String(host.option("token", "TELEGRAM_BOT_TOKEN") ?? "").trim();
  return new TelegramAdapter(host, openCalls(host, token), token);
}

class TelegramAdapter extends Sender implements PlatformAdapter {
  account = "";
  listening: string | undefined;
  readonly #host: AdapterHost;
  readonly #calls: Calls;
  readonly #token: string;
  readonly #over = new AbortController();
  #listener: Listener | null = null;
  #polling: Promise<void> = Promise.resolve();

  constructor(host: AdapterHost, calls: Calls, token: string) {
    super(host, calls);
    this.#host = host;
    this.#calls = calls;
    this.#token = token;
  }

  async connect(outer: AbortSignal): Promise<void> {
    const stop = () => this.#over.abort();
    if (outer.aborted) stop();
    outer.addEventListener("abort", stop, { once: true });
    const { signal } = this.#over;
    try {
      const me = await this.#calls.call<{ readonly id: number; readonly username: string }>("getMe", {}, { signal });
      this.account = `@${me.username}`;
      const webhook = webhookOf(this.#host.option);
      const cursor = await this.#host.cursor();
      if (webhook === null || cursor === null)
        await this.#calls.call("deleteWebhook", { drop_pending_updates: false }, { signal });
      const offset = cursor === null ? await this.#skipOld(signal) : Number(cursor);
      const reader = new IncomingReader(this.#host, this.#calls, this.#token, me);
      const queue = new UpdateQueue(this.#host, reader, offset, signal);
      if (webhook === null) this.#polling = this.#poll(queue, signal);
      else await this.#listen(webhook, queue, signal);
    } catch (error) {
      throw asPlatformError(error);
    }
  }

  async disconnect(): Promise<void> {
    this.#over.abort();
    await this.#listener?.close();
    await this.#polling;
    this.#calls.close();
  }

  /** The very first time: what was written to the bot before is nobody's business here. Resolves to where reading begins. */
  async #skipOld(signal: AbortSignal): Promise<number> {
    const ask = (offset: number) =>
      this.#calls.call<readonly Update[]>(
        "getUpdates",
        { offset, limit: 1, timeout: 0, allowed_updates: UPDATES },
        { signal },
      );
    const [last] = await ask(-1);
    const offset = last ? last.update_id + 1 : 0;
    if (last) await ask(offset);
    await this.#host.receive([], String(offset));
    return offset;
  }

  async #poll(queue: UpdateQueue, signal: AbortSignal): Promise<void> {
    const { clock, log, option } = this.#host;
    const seconds = (key: string, otherwise: number) => {
      const value = Number(option(key, `TELEGRAM_${key.toUpperCase()}`) ?? otherwise);
      return value >= 0 ? value : otherwise;
    };
    const failures = { conflict: 0, network: 0 };
    while (!signal.aborted) {
      const timeout = queue.isBusy ? 0 : Math.max(1, Math.round(seconds("poll_timeout", POLL_SECONDS)));
      try {
        const updates = await this.#calls.call<readonly Update[]>(
          "getUpdates",
          { offset: queue.offset, timeout, allowed_updates: UPDATES },
          { seconds: timeout + SLACK_SECONDS, signal },
        );
        failures.conflict = failures.network = 0;
        await queue.take(updates);
      } catch (error) {
        if (signal.aborted) return;
        const { status = 0, retryAfter } = error instanceof CallError ? error : {};
        const kind = status === 409 ? "conflict" : "network";
        const tries = ++failures[kind];
        const isOver = status === 401 || status === 404 || tries > (kind === "conflict" ? CONFLICT : NETWORK).tries;
        if (isOver) return this.#host.lost(asPlatformError(error));
        const conflictWait = seconds("conflict_retry", CONFLICT.first) * (1 + (tries - 1) / 2);
        const networkWait = Math.min(NETWORK.most, seconds("network_retry", NETWORK.first) * 2 ** (tries - 1));
        const wait = retryAfter ?? (kind === "conflict" ? conflictWait : networkWait);
        log.warn(`messages could not be read, again in ${wait} s: ${messageOf(error)}`);
        await clock.sleep(wait * 1000, signal).catch(() => undefined); // it stops
      }
    }
  }

  async #listen(webhook: NonNullable<ReturnType<typeof webhookOf>>, queue: UpdateQueue, signal: AbortSignal) {
    const { url, host, port, secret } = webhook;
    const { pathname } = new URL(url);
    this.#listener = await listen({
      ...{ host, port, setting: "TELEGRAM_WEBHOOK_PORT", log: this.#host.log },
      early: ({ method, path, headers }): HttpReply | null => {
        if (path !== pathname) return { status: 404 };
        if (method !== "POST") return { status: 405, headers: { allow: "POST" } };
        const said = headers["x-telegram-bot-api-secret-token"];
        return typeof said === "string" && isSame(said, secret) ? null : { status: 401 };
      },
      handle: async ({ body }): Promise<HttpReply> => {
        const update = parseJson(body.toString("utf8"));
        if (!isUpdate(update)) return { status: 400, body: { error: "not an update" } };
        // Told to come again when it could not be stored.
        return (await queue.add(update)) ? { status: 200 } : { status: 503 };
      },
    });
    this.listening = this.#listener.url;
    const parameters = { url, secret_token: secret, allowed_updates: UPDATES, drop_pending_updates: false };
    await this.#calls.call("setWebhook", parameters, { signal });
  }
}

const digest = (text: string) => createHash("sha256").update(text).digest();
const isSame = (one: string, other: string) => timingSafeEqual(digest(one), digest(other));

const isUpdate = (value: unknown): value is Update =>
  typeof value === "object" && value !== null && "update_id" in value && Number.isSafeInteger(value.update_id);

function asPlatformError(error: unknown): PlatformError {
  if (error instanceof PlatformError) return error;
  const status = error instanceof CallError ? error.status : 0;
  const as = (code: string, message: string, retryable: boolean) =>
    new PlatformError(code, message, { retryable, cause: error });
  if (status === 401 || status === 404)
    return as(
      "unauthorized",
      "Telegram does not accept the token; copy it again from @BotFather and set TELEGRAM_BOT_TOKEN: hermes gateway setup",
      false,
    );
  if (status === 409)
    return as(
      "conflict",
      "another program reads the messages of this bot; stop it, or get a new token from @BotFather",
      true,
    );
  return as(status === 0 || status >= 500 ? "unreachable" : "refused", messageOf(error), true);
}

/**
 * Updates on their way into the store. Those of one chat stay in their order; a file that takes long holds up its own chat only. What is
 * below `offset` is stored, and only that is acknowledged.
 */
class UpdateQueue {
  readonly #host: AdapterHost;
  readonly #reader: IncomingReader;
  readonly #signal: AbortSignal;
  readonly #open = new Map<number, Promise<boolean>>();
  /** Stored, but behind one that is not. */
  readonly #stored = new Set<number>();
  readonly #chats = new Map<number, Promise<unknown>>();
  #next: number;

  constructor(host: AdapterHost, reader: IncomingReader, offset: number, signal: AbortSignal) {
    this.#host = host;
    this.#reader = reader;
    this.#next = offset;
    this.#signal = signal;
  }

  get offset(): number {
    return Math.min(this.#next, ...this.#open.keys());
  }

  get isBusy(): boolean {
    return this.#open.size > 0;
  }

  /** Resolves when all are stored, or it is time to look for more. */
  async take(updates: readonly Update[]): Promise<void> {
    for (const update of updates.filter(isUpdate)) void this.add(update);
    if (!this.isBusy) return;
    const pause = new AbortController();
    const over = joinSignals(pause.signal, this.#signal);
    const wait = this.#host.clock.sleep(LOOK_AGAIN_MS, over.signal).catch(() => undefined);
    await Promise.race([Promise.all(this.#open.values()), wait]);
    pause.abort();
    over.release();
  }

  /** Resolves to true when it is stored, to false when there was no time left. */
  add(update: Update): Promise<boolean> {
    const { update_id: id } = update;
    const known = this.#open.get(id);
    if (known) return known;
    if (this.#stored.has(id)) return Promise.resolve(true);
    const chat = chatOf(update);
    const before = this.#chats.get(chat) ?? Promise.resolve();
    const work = before.then(() => this.#store(update));
    this.#open.set(id, work);
    this.#next = Math.max(this.#next, id + 1);
    this.#chats.set(chat, work);
    void work.finally(() => {
      this.#settle(id);
      if (this.#chats.get(chat) === work) this.#chats.delete(chat);
    });
    return work;
  }

  #settle(id: number): void {
    this.#open.delete(id);
    this.#stored.add(id);
    const { offset } = this;
    for (const one of this.#stored) if (one < offset) this.#stored.delete(one);
  }

  async #store(update: Update): Promise<boolean> {
    const { log, clock } = this.#host;
    const incoming = await this.#reader.read(update).catch((error: unknown) => {
      // A message that cannot be read now cannot be read later either; it must not stop all others.
      log.error(`update ${update.update_id} could not be read`, error);
      return null;
    });
    if (incoming?.type === "changed" || incoming?.type === "pressed") await this.#tell(incoming);
    const messages = incoming?.type === "message" ? [incoming.message] : [];
    for (let wait = STORE_AGAIN_MS; !this.#signal.aborted; wait = Math.min(STORE_AGAIN_MOST_MS, wait * 2)) {
      try {
        await this.#host.receive(messages, this.#cursorBehind(update.update_id));
        return true;
      } catch (error) {
        log.error(`update ${update.update_id} could not be stored; again in ${wait / 1000} s`, error);
        await clock.sleep(wait, this.#signal).catch(() => undefined); // it stops
      }
    }
    return false;
  }

  /** Both may come twice without harm, so they come before they are acknowledged. */
  async #tell(incoming: Exclude<Incoming, { type: "message" }>): Promise<void> {
    const { log } = this.#host;
    if (this.#signal.aborted) return;
    if (incoming.type === "changed") {
      await this.#host
        .changed(incoming.which, incoming.text)
        .catch((error) => log.error("the change of a message was not noted", error));
      return;
    }
    await this.#host.pressed(incoming.press).catch((error) => log.error("the press of a button was lost", error));
    // A button shows that it works until somebody says something.
    await incoming.press.answer("");
  }

  /** Where reading begins again once this one is stored. */
  #cursorBehind(id: number): string {
    const others = [...this.#open.keys()].filter((one) => one !== id);
    return String(Math.min(this.#next, ...others));
  }
}

function chatOf({ message, edited_message, channel_post, edited_channel_post, callback_query }: Update): number {
  const written = message ?? edited_message ?? channel_post ?? edited_channel_post ?? callback_query?.message;
  // Also of one that nobody can read: it has a place in line, and is told of there.
  return written?.chat?.id ?? callback_query?.from?.id ?? 0;
}
