// What was written while we were not connected: where the reading stands, and the history behind it.
import { asList, asRecord, asText } from "../../../../kit/json.ts";
import type { AdapterHost } from "../../contract.ts";
import { isYes } from "../../groups.ts";
import { readMessage, type Spoken } from "./inbound.ts";
import { errorCode, type SlackWeb, sendFailure } from "./web.ts";

const DAY_SECONDS = 24 * 3600;
const PER_CHANNEL = 50;
const THREADS_PER_CHANNEL = 20;
const AGAIN_MS = 60_000;
const ROUNDS = 30;

/** A moment as Slack writes it: seconds and six digits, which sort as texts. */
export const slackTime = (ms: number) => (ms / 1000).toFixed(6);

/** The last moment before one. */
const before = (ts: string) => (Number(ts) - 0.000_001).toFixed(6);

/**
 * Where the stream is read up to: never behind something that is still being stored. Events of different channels overtake each other, and
 * those of a gap are read after newer ones have arrived.
 */
export class ReadUpTo {
  #newest: string;
  /** By what is being stored: the moment before it. */
  readonly #pending = new Map<string, string>();

  constructor(start: string) {
    this.#newest = start;
  }

  get moment(): string {
    return this.#least(this.#newest, null);
  }

  /** Everything after `ts` is not stored yet. */
  hold(id: string, ts: string): void {
    this.#pending.set(id, ts);
  }

  /** A message is being stored. One that failed and comes again takes its own place. */
  begin(id: string, ts: string): void {
    this.hold(id, before(ts));
  }

  /** The moment that is reached when this is stored too. */
  with(id: string, ts: string): string {
    return this.#least(ts > this.#newest ? ts : this.#newest, id);
  }

  done(id: string, ts?: string): void {
    this.#pending.delete(id);
    if (ts !== undefined && ts > this.#newest) this.#newest = ts;
  }

  #least(newest: string, without: string | null): string {
    let least = newest;
    for (const [id, ts] of this.#pending) if (id !== without && ts < least) least = ts;
    return least;
  }
}

interface MissedOptions {
  readonly host: AdapterHost;
  readonly web: SlackWeb;
  readonly signal: AbortSignal;
  /** In the order of the channel: what arrives meanwhile waits. */
  inOrder(channel: string, work: () => Promise<void>): Promise<void>;
  take(messages: readonly Spoken[]): Promise<void>;
}

/** Reads what known chats got after `since`. Resolves when that is stored; false: some of it could not be read. */
export async function readMissed(since: string, options: MissedOptions): Promise<boolean> {
  const { host, signal } = options;
  if (!isYes(host.option("missed_messages"), true)) return true;
  let chats = await knownChannels(host);
  for (let round = 0; round < ROUNDS && chats.size > 0 && !signal.aborted; round++) {
    if (round > 0) await host.clock.sleep(AGAIN_MS, signal).catch(() => undefined); // looked at below
    const failed = new Map<string, readonly string[]>();
    for (const [channel, threads] of chats) {
      if (signal.aborted) return false;
      await options.inOrder(channel, async () => {
        const isRead = await readChannel(channel, threads, since, options);
        if (!isRead) failed.set(channel, threads);
      });
    }
    chats = failed;
  }
  return chats.size === 0;
}

/** Channels that have a conversation, each with its threads that do, the newest first. */
async function knownChannels(host: AdapterHost): Promise<ReadonlyMap<string, readonly string[]>> {
  const channels = new Map<string, string[]>();
  for (const { chat_id: channel, thread_id: thread } of await host.knownChats()) {
    if (!channel) continue;
    const threads = channels.get(channel) ?? [];
    channels.set(channel, threads);
    if (thread) threads.push(thread);
  }
  for (const threads of channels.values()) threads.sort().reverse().splice(THREADS_PER_CHANNEL);
  return channels;
}

/** False: it has to be tried again. */
async function readChannel(
  channel: string,
  threads: readonly string[],
  since: string,
  options: MissedOptions,
): Promise<boolean> {
  const { host, take } = options;
  const day = slackTime(host.clock.now() - DAY_SECONDS * 1000);
  const found = new Map<string, Spoken>();
  let isRead = true;
  try {
    await collect(channel, threads, since > day ? since : day, found, options);
  } catch (error) {
    const outcome = sendFailure(error);
    // Not our channel any more: there is nothing to read.
    isRead = "failed" in outcome && outcome.failed === "refused";
    if (!isRead) host.log.warn("messages of a Slack channel that were missed could not be read yet", error);
  }
  const messages = [...found.values()].sort((a, b) => (a.ts < b.ts ? -1 : 1)).slice(-PER_CHANNEL);
  if (messages.length > 0) await take(messages);
  return isRead;
}

async function collect(
  channel: string,
  threads: readonly string[],
  oldest: string,
  found: Map<string, Spoken>,
  { web, signal }: MissedOptions,
): Promise<void> {
  const { client } = (await web.locate(channel)).workspace;
  const add = (value: unknown) => {
    const message = readMessage(value, channel);
    if (message !== null && message.ts > oldest) found.set(message.ts, message);
  };
  const { messages } = await client.call("conversations.history", { channel, oldest, limit: PER_CHANNEL });
  const top = asList(messages).map(asRecord);
  top.forEach(add);
  const answered = top.filter((one) => asText(one.latest_reply) > oldest).map((one) => asText(one.ts));
  for (const ts of new Set([...answered, ...threads])) {
    signal.throwIfAborted();
    try {
      const replies = await client.call("conversations.replies", { channel, ts, oldest, limit: PER_CHANNEL });
      asList(replies.messages).forEach(add);
    } catch (error) {
      // A thread that was deleted has nothing more to say.
      if (errorCode(error) !== "thread_not_found") throw error;
    }
  }
}
