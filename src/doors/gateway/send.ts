// Messages that nobody's turn answers: of the `send_message` tool, of `hermes send`, of webhooks that are only handed on.
import type { Clock } from "../../kit/clock.ts";
import type { WorkStore } from "../../sessions/work.ts";
import type { Delivered, DeliverRequest } from "../../tools/toolset/context.ts";
import { composeAnswer } from "./answer.ts";
import type { ChatSource } from "./chat.ts";
import type { PlatformEntry, SendResult } from "./contract.ts";
import type { Mirror } from "./mirror.ts";
import type { ChatEntry, Routes } from "./routes.ts";
import { accountOf, type GatewaySettings } from "./settings.ts";
import { type ResolvedTarget, readDirectory, resolveTarget } from "./targets.ts";

interface SenderOptions {
  readonly settings: GatewaySettings;
  readonly work: WorkStore;
  readonly routes: Routes;
  readonly clock: Clock;
  /** Where messages of other conversations are written down too. */
  readonly mirror?: Mirror;
  entries(): readonly PlatformEntry[];
  /** Something was promised in the name of a bot. */
  wake(platform: string): void;
}

const WAIT_MS = 30_000;
/** Whoever calls us does not wait for ever. */
const HAND_ON_MS = 20_000;
const LOOK_MS = 50;

/** How causes begin whose sender waits for the end and is told of it. */
export const HANDED_ON = "handed:";

export class Sender {
  readonly #options: SenderOptions;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Promises a text to a target and waits a while for it to be sent. Never rejects for what the target is. */
  async deliver({ target, message, subject, cause, origin }: DeliverRequest): Promise<Delivered> {
    const chats = await this.resolve(target, origin);
    if ("error" in chats) return chats;
    const [first] = chats;
    if (!first) return { success: true, note: "local: nothing is sent" };
    const sent = await Promise.all(
      chats.map((chat, at) => this.#promise(chat, message, at === 0 ? cause : `${cause}:${at}`, subject)),
    );
    const result = await this.#wait(first, sent[0] ?? []);
    if ("error" in result || !origin) return result;
    return (await this.#mirror(first, message, origin)) ? { ...result, mirrored: true } : result;
  }

  /**
   * A text that came in and is only handed on, once for its cause, over restarts too. What does not get through in time is taken back: whoever
   * sent it may try again.
   */
  async handOn(target: string, text: string, cause: string): Promise<SendResult | { readonly duplicate: true }> {
    const { work } = this.#options;
    const chats = await this.resolve(target);
    if ("error" in chats) return { failed: "refused", error: chats.error };
    const [chat] = chats;
    if (!chat) return { failed: "refused", error: "there is no chat to hand it on to" };
    const ids = await this.#promise(chat, text, `${HANDED_ON}${cause}`);
    // A cause that was promised before has its old rows.
    const last = await work.outboxRow(ids.at(-1) ?? 0);
    if (last?.state === "sent") return { duplicate: true };
    const result = await this.#wait(chat, ids, HAND_ON_MS);
    if ("error" in result || result.queued) {
      await work.withdraw(ids);
      return { failed: "unreachable", error: "error" in result ? result.error : `${target} was not reached in time` };
    }
    return { messageId: result.message_id ?? null };
  }

  async list(platform?: string): Promise<Readonly<Record<string, readonly unknown[]>>> {
    const { settings } = this.#options;
    const directory = await readDirectory(settings.home);
    const entries = this.#options.entries().filter(({ name }) => platform === undefined || name === platform);
    return Object.fromEntries(
      entries.map((entry) => {
        const home = settings.homeChannel(entry);
        const rows = directory[entry.name] ?? [];
        const isHome = (id: string) => home?.target.chatId === id;
        const listed = rows.map((row) => ({ ...row, ...(isHome(row.id) ? { home: true } : {}) }));
        const missing = home && !rows.some(({ id }) => isHome(id));
        return [
          entry.name,
          [...listed, ...(missing ? [{ id: home.target.chatId, name: home.name, type: "home", home: true }] : [])],
        ];
      }),
    );
  }

  async resolve(
    target: string,
    origin?: ChatSource,
  ): Promise<readonly ResolvedTarget[] | Extract<Delivered, { error: string }>> {
    const { settings } = this.#options;
    const directory = () => readDirectory(settings.home);
    const answer = await resolveTarget(target, { settings, entries: this.#options.entries(), directory }, origin);
    if (answer.type === "local") return [];
    if (answer.type === "problem") return { error: answer.error, code: answer.code };
    return answer.chats;
  }

  /** Parts for the outbox; also for answers that go somewhere else than they came from. */
  async #promise(
    { entry, target }: ResolvedTarget,
    message: string,
    cause: string,
    subject?: string,
  ): Promise<readonly number[]> {
    const { settings, work } = this.#options;
    const account = accountOf(entry.identity(settings.option(entry.name)) ?? "");
    const text = entry.hasSubject ? message : withSubject(message, subject);
    const { payloads } = await composeAnswer(text, { home: settings.home, settings, entry, origin: "chat" });
    const about = entry.hasSubject && subject ? { subject } : {};
    const parts = payloads.map((payload, part) => ({
      ...{ cause, part, platform: entry.name, account, target, payload: { ...payload, ...about } },
    }));
    const ids = await work.promise(parts);
    this.#options.wake(entry.name);
    return ids;
  }

  async #wait({ entry, target }: ResolvedTarget, ids: readonly number[], ms = WAIT_MS): Promise<Delivered> {
    const { work, clock } = this.#options;
    const where = {
      platform: entry.name,
      chat_id: target.chatId,
      ...(target.threadId ? { thread_id: target.threadId } : {}),
    };
    const last = ids.at(-1);
    if (last === undefined) return { error: "there is nothing to send", code: "refused" };
    const deadline = clock.now() + ms;
    for (;;) {
      const row = await work.outboxRow(last);
      if (row?.state === "sent") return { success: true, ...where, message_id: row.platformMessageId };
      if (row?.state === "dead") return { error: row.error ?? "it was refused", code: "refused" };
      if (clock.now() >= deadline) return { success: true, ...where, queued: true, outbox_id: last };
      await clock.sleep(LOOK_MS);
    }
  }

  /** A text that lands in a chat with a conversation of its own is part of that conversation; where several could be meant, of none. */
  async #mirror({ entry, target }: ResolvedTarget, message: string, origin: ChatSource): Promise<boolean> {
    const { routes, mirror } = this.#options;
    const isThere = ({ origin: place }: ChatEntry) =>
      place?.platform === entry.name &&
      place.chat_id === target.chatId &&
      (place.thread_id ?? undefined) === target.threadId;
    const [chat, ...others] = (await routes.all()).filter(isThere);
    if (!mirror || !chat || others.length > 0 || isThere({ ...chat, origin })) return false;
    return mirror.add(chat, `[Delivered from ${origin.platform}]\n${message}`);
  }
}

/** The subject as a first line, where messages have none. */
export const withSubject = (message: string, subject: string | undefined) =>
  subject ? `${subject}\n\n${message}` : message;
