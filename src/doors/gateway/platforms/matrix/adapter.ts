// One account on a homeserver: reads what is new from where it stopped, and hands it on before the next is asked for.
import { openAsBlob } from "node:fs";
import { messageOf } from "../../../../kit/errors.ts";
import { asRecord, asText, type Json } from "../../../../kit/json.ts";
import {
  type AdapterHost,
  type ChatTarget,
  type KnownChat,
  type OutgoingFile,
  type PlatformAdapter,
  PlatformError,
  type SendOptions,
  type SendResult,
} from "../../contract.ts";
import { isYes } from "../../groups.ts";
import { mediaTypeOf } from "../../web-calls.ts";
import {
  type Homeserver,
  isLoggedOut,
  MatrixFailure,
  notLoggedIn,
  openHomeserver,
  sendFailure,
  syncTimeout,
} from "./client.ts";
import { NEWS_FILTER } from "./inbound.ts";
import { editContent, fileContent, inPlace, textContent, transactionId } from "./outbound.ts";
import { Reader } from "./reader.ts";
import { Rooms } from "./rooms.ts";

export const openMatrix = async (host: AdapterHost): Promise<PlatformAdapter> => new MatrixAdapter(host);

/** Waits between tries to read on, in seconds; after the last one the connection is lost. */
const RETRIES = [0.2, 1, 3, 8];
const MAX_CHATS = 200;
const TYPING_MS = 6000;
const MARKS = { working: "👀", done: "✅", failed: "❌" } as const;

interface Connection {
  readonly server: Homeserver;
  readonly rooms: Rooms;
}

class MatrixAdapter implements PlatformAdapter {
  readonly #host: AdapterHost;
  readonly #over = new AbortController();
  readonly #marks = new Map<string, string>();
  readonly #directRooms = new Map<string, Promise<string>>();
  #commands: ReadonlySet<string> = new Set();
  #marking = Promise.resolve();
  #opened: Promise<Connection> | null = null;
  #reading: Promise<void> | null = null;
  account = "";

  constructor(host: AdapterHost) {
    this.#host = host;
  }

  async connect(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#over.abort(), { once: true });
    const { server, rooms } = await this.#connection();
    this.account = server.userId;
    const reader = new Reader({
      ...{ host: this.#host, server, rooms, signal: this.#over.signal },
      commands: () => this.#commands,
    });
    const cursor = await this.#first(reader, server);
    this.#reading = this.#readOn(reader, server, cursor);
  }

  async disconnect(): Promise<void> {
    this.#over.abort();
    await this.#reading;
  }

  /** Opened by the first who needs it: also to send without ever reading. */
  #connection(): Promise<Connection> {
    this.#opened ??= openHomeserver(this.#host).then((server) => ({ server, rooms: new Rooms(server) }));
    this.#opened.catch(() => {
      this.#opened = null; // told to the caller; the next one tries again
    });
    return this.#opened;
  }

  // Reading.

  /** Proves that reading works, and takes what was missed. Without a place to go on from, everything there is counts as read. */
  async #first(reader: Reader, server: Homeserver): Promise<string> {
    const stored = await this.#host.cursor();
    try {
      if (stored !== null) return await this.#step(reader, server, stored, 0);
      return await this.#begin(reader, server);
    } catch (error) {
      if (stored !== null && error instanceof MatrixFailure && isUnknownPlace(error)) {
        this.#host.log.warn(
          `the homeserver no longer knows where reading stopped; older messages are not read: ${error.message}`,
        );
        return await this.#begin(reader, server);
      }
      throw error instanceof MatrixFailure ? notLoggedIn(error, `https://${server.host}`) : error;
    }
  }

  async #begin(reader: Reader, server: Homeserver): Promise<string> {
    const all = await server.call("GET", ["sync"], {
      query: { timeout: "0", filter: NEWS_FILTER },
      signal: this.#over.signal,
    });
    const cursor = asText(all.next_batch);
    await reader.answerInvites(all);
    await this.#host.receive([], cursor);
    return cursor;
  }

  async #step(reader: Reader, server: Homeserver, since: string, seconds: number): Promise<string> {
    const query = { since, timeout: String(Math.round(seconds * 1000)), filter: NEWS_FILTER };
    const news = await server.call("GET", ["sync"], { query, signal: this.#over.signal });
    const cursor = asText(news.next_batch);
    const { messages, changes } = await reader.read(news, since);
    for (const { id, text } of changes) await this.#host.changed(id, text);
    await reader.answerInvites(news);
    // An answer without news is not worth a write: the next one carries the place.
    if (Object.keys(asRecord(news.rooms)).length > 0) await this.#host.receive(messages, cursor);
    if (isYes(this.#host.option("read_receipts", "MATRIX_READ_RECEIPTS"), true)) await reader.markRead(messages);
    return cursor;
  }

  async #readOn(reader: Reader, server: Homeserver, from: string): Promise<void> {
    const { log, clock } = this.#host;
    let cursor = from;
    let failures = 0;
    while (!this.#over.signal.aborted) {
      try {
        cursor = await this.#step(reader, server, cursor, syncTimeout(this.#host));
        failures = 0;
      } catch (error) {
        if (this.#over.signal.aborted) return;
        const wait = RETRIES[failures++];
        const isForGood = error instanceof MatrixFailure && isLoggedOut(error);
        if (wait === undefined || isForGood) return this.#lost(error, server);
        log.warn(`reading from ${server.host} failed, next try in ${wait} s: ${messageOf(error)}`);
        const asked = error instanceof MatrixFailure ? (error.retryAfter ?? 0) : 0;
        await clock.sleep(Math.max(wait, asked) * 1000, this.#over.signal).catch(() => undefined);
      }
    }
  }

  #lost(error: unknown, server: Homeserver): void {
    const told =
      error instanceof MatrixFailure
        ? notLoggedIn(error, `https://${server.host}`)
        : new PlatformError("failed", `reading from ${server.host} failed: ${messageOf(error)}`, {
            retryable: true,
            cause: error,
          });
    this.#host.lost(told);
  }

  // Sending.

  send(target: ChatTarget, text: string, { key, plain }: SendOptions): Promise<SendResult> {
    return this.#put(target, inPlace(textContent(text, { plain }), target), variantOf(key, target, plain));
  }

  async edit(target: ChatTarget, messageId: string, text: string, { key, plain }: SendOptions): Promise<SendResult> {
    const content = editContent(text, messageId, { plain });
    const result = await this.#put(target, content, transactionId(key, "edit", messageId, text));
    return "failed" in result ? result : { messageId };
  }

  async sendFile(target: ChatTarget, file: OutgoingFile, { key }: SendOptions): Promise<SendResult> {
    try {
      const { server } = await this.#connection();
      const type = mediaTypeOf(file.name);
      const bytes = await openAsBlob(file.path, { type });
      const uri = await server.upload(bytes, { name: file.name, type });
      return await this.#put(
        target,
        inPlace(fileContent(file, { uri, size: bytes.size, type }), target),
        variantOf(key, target),
      );
    } catch (error) {
      if (error instanceof MatrixFailure) return uploadFailure(error);
      if (error instanceof PlatformError) return { failed: "unreachable", error: error.message };
      return { failed: "refused", error: `${file.name} cannot be read: ${messageOf(error)}` };
    }
  }

  async #put(target: ChatTarget, content: Json, transaction: string, type = "m.room.message"): Promise<SendResult> {
    try {
      const { server, rooms } = await this.#connection();
      const room = await this.#roomOf(target.chatId);
      if ((await rooms.about(room)).isEncrypted) return { failed: "refused", error: ENCRYPTED };
      const sent = await server.call("PUT", ["rooms", room, "send", type, transaction], { body: content });
      return { messageId: asText(sent.event_id) || null };
    } catch (error) {
      if (error instanceof PlatformError)
        return { failed: error.retryable ? "unreachable" : "refused", error: error.message };
      return sendFailure(error, target.threadId !== undefined);
    }
  }

  async #roomOf(chatId: string): Promise<string> {
    if (!chatId.startsWith("@")) return chatId;
    const { rooms } = await this.#connection();
    const known = this.#directRooms.get(chatId);
    if (known) return known;
    const asked = rooms.directRoom(chatId);
    this.#directRooms.set(chatId, asked);
    asked.catch(() => this.#directRooms.delete(chatId)); // told to the caller
    return asked;
  }

  async remove({ chatId }: ChatTarget, messageId: string): Promise<void> {
    await this.#redact(await this.#roomOf(chatId), messageId);
  }

  async #redact(room: string, eventId: string): Promise<void> {
    const { server } = await this.#connection();
    await server.call("PUT", ["rooms", room, "redact", eventId, transactionId(eventId, "redact")], { body: {} });
  }

  async typing({ chatId }: ChatTarget): Promise<void> {
    const { server } = await this.#connection();
    const path = ["rooms", await this.#roomOf(chatId), "typing", server.userId];
    await server.call("PUT", path, { body: { typing: true, timeout: TYPING_MS } });
  }

  /** One after the other: work may end before its first mark is there. */
  mark(target: ChatTarget, messageId: string, state: "working" | "done" | "failed"): Promise<void> {
    const marked = this.#marking.then(() => this.#mark(target, messageId, state));
    this.#marking = marked.catch(() => undefined); // told to the caller
    return marked;
  }

  async #mark({ chatId }: ChatTarget, messageId: string, state: "working" | "done" | "failed"): Promise<void> {
    if (!isYes(this.#host.option("reactions", "MATRIX_REACTIONS"), false)) return;
    const before = this.#marks.get(messageId);
    this.#marks.delete(messageId);
    if (before !== undefined) await this.#redact(await this.#roomOf(chatId), before);
    const content = { "m.relates_to": { rel_type: "m.annotation", event_id: messageId, key: MARKS[state] } };
    const sent = await this.#put({ chatId }, content, transactionId(messageId, state), "m.reaction");
    if (state === "working" && "messageId" in sent && sent.messageId !== null)
      this.#marks.set(messageId, sent.messageId);
  }

  async chats(): Promise<readonly KnownChat[]> {
    const { rooms } = await this.#connection();
    const all = await rooms.all(MAX_CHATS);
    return all.map(({ id, name, isDirect }) => ({ id, name, type: isDirect ? "dm" : "group" }));
  }

  async setCommands(commands: readonly { readonly name: string }[]): Promise<void> {
    this.#commands = new Set(commands.map(({ name }) => name.toLowerCase()));
  }
}

const ENCRYPTED = "the room is encrypted, and Hermes cannot write encrypted messages; use a room without encryption";

function variantOf(key: string, { threadId = "" }: ChatTarget, plain = false): string {
  return transactionId(key, threadId, plain ? "plain" : "");
}

/** The file may be there twice then; nobody sees it before the message that shows it. */
function uploadFailure(error: MatrixFailure): SendResult {
  const result = sendFailure(error, false);
  if ("failed" in result && result.failed === "unknown") return { ...result, failed: "unreachable" };
  return result;
}

/** The place where reading stopped is none for this homeserver: it was set up again, or its database was. */
function isUnknownPlace({ status, code }: MatrixFailure): boolean {
  return status === 400 && (code === "M_INVALID_PARAM" || code === "M_UNKNOWN" || code === "M_UNKNOWN_POS");
}
