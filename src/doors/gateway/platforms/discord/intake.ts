// The order in which messages are taken: what was missed first, then what comes in, each channel one by one. A message counts as read only
// when it is stored.
import { messageOf } from "../../../../kit/errors.ts";
import { type AdapterHost, type ChatMessage, PlatformError } from "../../contract.ts";
import type { DiscordApi } from "./api.ts";
import type { DiscordMessage, Inbound } from "./inbound.ts";
import { cursorFrom, ReadMark, readMissed } from "./missed.ts";
import type { Rooms } from "./rooms.ts";
import { idAt } from "./text.ts";

const STORE_TRIES = 3;
const REMEMBERED = 2000;
const GUILDS_MS = 5000;
const CLOSE_MS = 5000;

interface IntakeParts {
  readonly host: AdapterHost;
  readonly discord: DiscordApi;
  readonly rooms: Rooms;
  readonly inbound: Inbound;
  /** The socket cannot be trusted any more: what it told could not be kept. */
  lost(error: PlatformError): void;
}

export class Intake {
  readonly #parts: IntakeParts;
  readonly #over = new AbortController();
  readonly #channels = new Map<string, Promise<void>>();
  readonly #seen = new Set<string>();
  #mark = new ReadMark(0n);
  /** Live messages wait until those before them were read. */
  #gate: Promise<void>;
  #open: () => void;
  #guilds: { readonly expected: Set<string>; readonly arrived: () => void } | null = null;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate = promise;
    this.#open = resolve;
  }

  /** Before the socket is opened, so that nothing can be told in between. */
  async start(): Promise<void> {
    const { host, rooms } = this.#parts;
    const cursor = cursorFrom(await host.cursor());
    this.#mark = new ReadMark(cursor ?? idAt(host.clock.now()));
    // At the first connect ever nothing old is read; from now on it counts.
    if (cursor === null) await host.receive([], String(this.#mark.value));
    for (const { thread_id } of await host.knownChats()) if (thread_id !== undefined) rooms.follow(thread_id);
  }

  /** A new session of the socket: it tells of every server, and of nothing that was written before. */
  sessionBegan(guilds: readonly string[]): void {
    const { host, lost } = this.#parts;
    const { promise, resolve } = Promise.withResolvers<void>();
    const expected = new Set(guilds);
    this.#guilds = { expected, arrived: resolve };
    if (expected.size === 0) resolve();
    const waited = host.clock.sleep(GUILDS_MS, this.#over.signal).catch(() => undefined);
    this.#gate = Promise.race([promise, waited])
      .then(() => this.#catchUp())
      .catch((error) => {
        const what = `missed messages cannot be read: ${messageOf(error)}`;
        if (!this.#over.signal.aborted) lost(new PlatformError("not_read", what, { retryable: true, cause: error }));
      });
    this.#gate.then(this.#open);
  }

  guildArrived(id: string): void {
    this.#guilds?.expected.delete(id);
    if (this.#guilds?.expected.size === 0) this.#guilds.arrived();
  }

  async #catchUp(): Promise<void> {
    const { host, discord, rooms } = this.#parts;
    const signal = this.#over.signal;
    if (signal.aborted) return;
    const messages = await readMissed(this.#mark.value, { host, discord, rooms, signal });
    const fresh = messages.filter(({ id }) => !this.#seen.has(id));
    for (const { id } of fresh) this.#mark.begin(id);
    await this.#keep(fresh);
  }

  created(message: DiscordMessage): void {
    this.#mark.begin(message.id);
    this.#enqueue(message.channel_id, () => this.#take(message));
  }

  /** Behind the message itself, which may still be on its way in. */
  edited(message: DiscordMessage): void {
    const { host, inbound } = this.#parts;
    this.#enqueue(message.channel_id, () => host.changed(message.id, inbound.readable(message)));
  }

  deleted(channel: string, ids: readonly string[]): void {
    for (const id of ids) this.#enqueue(channel, () => this.#parts.host.changed(id, null));
  }

  #enqueue(channel: string, work: () => Promise<void>): void {
    const { host } = this.#parts;
    const before = this.#channels.get(channel) ?? Promise.resolve();
    const gate = this.#gate;
    const turn = before
      .then(() => gate)
      .then(() => (this.#over.signal.aborted ? undefined : work()))
      .catch((error) => {
        if (!this.#over.signal.aborted) host.log.error("an event of Discord failed", error);
      })
      .finally(() => {
        if (this.#channels.get(channel) === turn) this.#channels.delete(channel);
      });
    this.#channels.set(channel, turn);
  }

  async #take(message: DiscordMessage): Promise<void> {
    if (this.#seen.has(message.id)) return this.#mark.end(message.id);
    await this.#keep([message]);
  }

  /** In one step: what waited together is not taken for a person who interrupts the answer to the first. */
  async #keep(messages: readonly DiscordMessage[]): Promise<void> {
    const { host, lost } = this.#parts;
    for (let attempt = 1; !this.#over.signal.aborted; attempt++) {
      try {
        return await this.#store(messages);
      } catch (error) {
        host.log.error(`messages could not be stored (try ${attempt} of ${STORE_TRIES})`, error);
        if (attempt < STORE_TRIES) await host.clock.sleep(attempt * 1000, this.#over.signal);
        // They stay behind the mark: the next connection reads them from the history.
        else return lost(new PlatformError("not_stored", messageOf(error), { retryable: true, cause: error }));
      }
    }
  }

  async #store(messages: readonly DiscordMessage[]): Promise<void> {
    const { host, inbound } = this.#parts;
    const ids = messages.map(({ id }) => id);
    const read: ChatMessage[] = [];
    for (const message of messages) {
      const one = await inbound.read(message);
      if (one !== null) read.push(one);
    }
    if (read.length > 0) {
      const cursor = this.#mark.after(ids);
      await host.receive(read, cursor);
      this.#mark.moved(cursor);
    }
    for (const id of ids) {
      this.#mark.end(id);
      this.#remember(id);
    }
    if (read.length === 0) await this.#keepMark();
  }

  async #keepMark(when?: { readonly atOnce: boolean }): Promise<void> {
    const cursor = this.#mark.due(when);
    if (cursor === null) return;
    await this.#parts.host.receive([], cursor);
    this.#mark.moved(cursor);
  }

  #remember(id: string): void {
    this.#seen.add(id);
    const [oldest] = this.#seen;
    if (this.#seen.size > REMEMBERED && oldest !== undefined) this.#seen.delete(oldest);
  }

  /** Resolves when what was being stored is, or soon after. */
  async close(): Promise<void> {
    const { host } = this.#parts;
    this.#over.abort();
    const limit = new AbortController();
    const late = host.clock.sleep(CLOSE_MS, limit.signal).catch(() => undefined);
    await Promise.race([Promise.all(this.#channels.values()), late]);
    limit.abort();
    await this.#keepMark({ atOnce: true }).catch((error) => host.log.warn("the read mark was not stored", error));
  }
}
