// How far the messages are read, and what was written while nobody read.
import { type AdapterHost, PlatformError } from "../../contract.ts";
import { isYes, listIn } from "../../groups.ts";
import type { DiscordApi } from "./api.ts";
import type { DiscordMessage } from "./inbound.ts";
import type { Room, Rooms } from "./rooms.ts";
import { idAt } from "./text.ts";

/** Events of different channels overtake each other by so much at most. */
const LAG = 10_000n << 22n;
/** Messages that are not for us move the mark too, but not each by a write of its own. */
const STEP = 60_000n << 22n;
const MAX_AGE_MS = 24 * 3600 * 1000;
const A_CHANNEL = 50;
const MAX_CHANNELS = 100;
const AT_ONCE = 4;

/**
 * The id up to which everything was stored or is not for us. It never passes a message that is being worked on, so that after a crash
 * that one is read again.
 */
export class ReadMark {
  #mark: bigint;
  #highest: bigint;
  readonly #open = new Set<bigint>();

  constructor(mark: bigint) {
    this.#mark = mark;
    this.#highest = mark;
  }

  get value(): bigint {
    return this.#mark;
  }

  begin(id: string): void {
    this.#open.add(BigInt(id));
  }

  end(id: string): void {
    this.#open.delete(BigInt(id));
    if (BigInt(id) > this.#highest) this.#highest = BigInt(id);
  }

  /** Where it will be once these are stored. */
  after(ids: readonly string[]): string {
    const own = new Set(ids.map(BigInt));
    const highest = [...own].reduce((most, one) => (one > most ? one : most), this.#highest);
    const others = [...this.#open].filter((one) => !own.has(one)).map((one) => one - 1n);
    const safe = others.reduce((least, one) => (one < least ? one : least), highest - LAG);
    return String(safe > this.#mark ? safe : this.#mark);
  }

  /** Where it could be now; null while that is not worth a write. */
  due({ atOnce = false } = {}): string | null {
    const next = BigInt(this.after([]));
    return next - this.#mark > (atOnce ? 0n : STEP) ? String(next) : null;
  }

  moved(cursor: string): void {
    if (BigInt(cursor) > this.#mark) this.#mark = BigInt(cursor);
  }
}

/** Digits, as we wrote them; anything else is nothing. */
export function cursorFrom(cursor: string | null): bigint | null {
  return cursor !== null && /^\d{1,20}$/.test(cursor) ? BigInt(cursor) : null;
}

interface MissedParts {
  readonly host: AdapterHost;
  readonly discord: DiscordApi;
  readonly rooms: Rooms;
  readonly signal: AbortSignal;
}

/** What was written after the mark in chats we may be meant in, oldest first. Rejects when Discord cannot be asked. */
export async function readMissed(after: bigint, parts: MissedParts): Promise<readonly DiscordMessage[]> {
  const { host } = parts;
  if (!isYes(host.option("missed_messages"), true)) return [];
  const oldest = idAt(host.clock.now() - MAX_AGE_MS);
  const from = after > oldest ? after : oldest;
  const channels = await channelsToRead(from, parts);
  const found: DiscordMessage[] = [];
  for (let at = 0; at < channels.length; at += AT_ONCE) {
    const pages = await Promise.all(channels.slice(at, at + AT_ONCE).map((id) => readChannel(id, from, parts)));
    found.push(...pages.flat());
  }
  return found.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
}

/** Chats with a conversation, channels we answer everything in, and whatever else has something new. */
async function channelsToRead(from: bigint, { host, rooms }: MissedParts): Promise<readonly string[]> {
  const known = (await host.knownChats()).map(({ chat_id, thread_id }) => thread_id ?? chat_id ?? "");
  const free = listIn(host.option("free_response_channels", "DISCORD_FREE_RESPONSE_CHANNELS"));
  const news = rooms.all().filter((room) => hasNews(room, from) === true);
  const ids = new Set([...known, ...free, ...news.map(({ id }) => id)].filter((id) => /^\d{1,20}$/.test(id)));
  const quiet = new Set(
    rooms
      .all()
      .filter((room) => hasNews(room, from) === false)
      .map(({ id }) => id),
  );
  const wanted = [...ids].filter((id) => !quiet.has(id));
  if (wanted.length > MAX_CHANNELS)
    host.log.warn(`${wanted.length} channels have new messages; only ${MAX_CHANNELS} are read for missed ones`);
  return wanted.slice(0, MAX_CHANNELS);
}

/** Undefined where Discord does not say. */
function hasNews({ lastMessageId }: Room, from: bigint): boolean | undefined {
  return lastMessageId === undefined ? undefined : BigInt(lastMessageId) > from;
}

async function readChannel(id: string, from: bigint, parts: MissedParts): Promise<readonly DiscordMessage[]> {
  const { host, discord, rooms, signal } = parts;
  try {
    const room = await rooms.find(id);
    if (room === null) return [];
    const messages = await discord.read((limit) => discord.api.messages(id, { limit: A_CHANNEL }, limit), signal);
    const missed = messages.filter((message) => BigInt(message.id) > from);
    if (missed.length === A_CHANNEL)
      host.log.warn(`the channel ${id} has more missed messages than are read; the newest ${A_CHANNEL} are`);
    // The history does not say which server it is of.
    return missed.map((message) => (room.guildId === undefined ? message : { ...message, guild_id: room.guildId }));
  } catch (error) {
    if (!(error instanceof PlatformError) || error.retryable || error.code === "invalid_token") throw error;
    host.log.info(`missed messages of the channel ${id} cannot be read: ${error.message}`);
    return [];
  }
}
