// Messages on their way into the store, one after the other: first what was missed, then what comes. How far they were read is stored with
// them.
import { createHash } from "node:crypto";
import { messageOf } from "../../../../kit/errors.ts";
import { parseJson } from "../../../../kit/json.ts";
import type { ChatSource } from "../../chat.ts";
import type { AdapterHost, ChatMessage, ReceivedFile } from "../../contract.ts";
import { channelSettings, isForUs, isYes } from "../../groups.ts";
import type { Archive, Archived, ArchivePosition } from "./archive.ts";
import type { Rooms } from "./rooms.ts";
import { addressedText, bareOf, type ReadMessage, readMessage, resourceOf } from "./stanzas.ts";

const MISSED_SECONDS = 24 * 3600;
const REMEMBERED = 500;

interface ReceptionOptions {
  readonly archive: Archive;
  readonly rooms: Rooms;
  /** Our own. */
  readonly address: string;
  readonly keepsArchive: boolean;
}

/** How far the archive of the account was read, and when rooms were last heard, in Unix seconds. */
interface Positions {
  readonly account: ArchivePosition | null;
  readonly rooms: Readonly<Record<string, number>>;
}

export class Reception {
  readonly #host: AdapterHost;
  readonly #options: ReceptionOptions;
  /** Ids by which corrections find what they correct. */
  readonly #updates = new Map<string, string>();
  readonly #archivedRooms = new Set<string>();
  #positions: Positions = { account: null, rooms: {} };
  #queue: Promise<unknown> = Promise.resolve();
  /** What was there at the first connect ever, by id and by time in Unix milliseconds: not written for us. */
  #old: ReadonlySet<string> = new Set();
  #from = 0;

  constructor(host: AdapterHost, options: ReceptionOptions) {
    this.#host = host;
    this.#options = options;
    // Whoever takes the name next changes nothing that was written under it.
    options.rooms.onGone = (occupant) => void this.#inOrder(async () => this.#forget(occupant));
  }

  /** What was missed in chats. Messages that come meanwhile wait. */
  begin(): Promise<void> {
    return this.#inOrder(() => this.#catchUp());
  }

  keepsArchive(room: string): boolean {
    return this.#archivedRooms.has(bareOf(room));
  }

  /** Resolves when it is stored, or left out for good. */
  take(received: ReadMessage): Promise<void> {
    // Now, before anybody else takes the name; what the message says about it, its writer may have put there.
    const message = { ...received, address: this.#options.rooms.addressOf(received.from) };
    return this.#inOrder(async () => {
      // A room shows newcomers what was said before; those who know us ask its archive.
      if (message.type === "groupchat" && message.delayedAt !== null) return;
      if (message.delayedAt !== null && this.#isOld(message.delayedAt, message.archiveId)) return;
      await this.#store([message]);
    });
  }

  /** What was missed in the rooms we have just joined. */
  catchUpRooms(hasArchive: (room: string) => Promise<boolean>): Promise<void> {
    return this.#inOrder(async () => {
      const { rooms, archive } = this.#options;
      const wanted = isYes(this.#host.option("missed_messages"), true);
      for (const room of rooms.names.filter((name) => rooms.isIn(name))) {
        const since = this.#positions.rooms[room];
        if (await hasArchive(room)) this.#archivedRooms.add(room);
        if (since === undefined)
          this.#positions = { ...this.#positions, rooms: { ...this.#positions.rooms, [room]: this.#now } };
        if (since === undefined || !wanted || !this.#archivedRooms.has(room)) continue;
        const start = Math.max(since, this.#now - MISSED_SECONDS);
        const missed = await archive.newest({ of: room, since: start });
        await this.#store(missed.flatMap((one) => read(one, room)));
      }
      await this.#host.receive([], this.#cursor());
    });
  }

  async #catchUp(): Promise<void> {
    const { archive, keepsArchive, address } = this.#options;
    const stored = parsePositions(await this.#host.cursor());
    // Servers write times down to the second.
    if (stored === null) this.#from = this.#now * 1000;
    this.#positions = stored ?? this.#positions;
    const { account } = this.#positions;
    if (keepsArchive && account !== null)
      for await (const page of archive.since(account)) {
        this.#passed(page.at(-1));
        await this.#store(page.flatMap((one) => read(one, address)));
      }
    else if (keepsArchive) {
      const old = await archive.newest();
      // An archive that has only now come into being was not read by anybody; what was kept besides is new then.
      if (stored === null) this.#old = new Set(old.map(({ id }) => id));
      this.#passed(old.at(-1) ?? { id: "", at: this.#now * 1000 });
    }
    // Also when nothing was there: from now on what is kept for us is new.
    await this.#host.receive([], this.#cursor());
  }

  #isOld(at: number, archiveId: string | null): boolean {
    return at < this.#from || (archiveId !== null && this.#old.has(archiveId));
  }

  #passed(last: Pick<Archived, "id" | "at"> | undefined): void {
    if (last) this.#positions = { ...this.#positions, account: { id: last.id, at: Math.floor(last.at / 1000) } };
  }

  async #store(read: readonly ReadMessage[]): Promise<void> {
    const messages: ChatMessage[] = [];
    for (const one of read) {
      if (this.#isOurs(one)) continue;
      if (one.replaces !== null || one.retracts !== null) await this.#change(one);
      else messages.push(...(await this.#message(one)));
      this.#advance(one);
    }
    // A room where others talk writes nothing to disk; it is read again from the last message for us.
    if (messages.length > 0) await this.#host.receive(messages, this.#cursor());
  }

  #isOurs({ type, from }: ReadMessage): boolean {
    const { rooms, address } = this.#options;
    if (type === "groupchat") return resourceOf(from) === "" || resourceOf(from) === rooms.nickIn(from);
    return bareOf(from) === address;
  }

  #advance({ type, from, archiveId, delayedAt }: ReadMessage): void {
    // Whoever wrote it may have dated it; nothing was written later than now.
    const at = Math.floor(Math.min(delayedAt ?? Number.POSITIVE_INFINITY, this.#host.clock.now()) / 1000);
    const { account, rooms } = this.#positions;
    if (type === "groupchat") this.#positions = { account, rooms: { ...rooms, [bareOf(from)]: at } };
    else if (archiveId !== null && at >= (account?.at ?? 0))
      this.#positions = { account: { id: archiveId, at }, rooms };
  }

  /** Before its turn has begun a message may still be changed; who wrote it is part of its id. */
  async #change(message: ReadMessage): Promise<void> {
    const update = this.#updates.get(this.#writerOf(message, message.replaces ?? message.retracts ?? ""));
    if (update === undefined) return;
    const nick = this.#options.rooms.nickIn(message.from);
    const text = message.type === "groupchat" ? (addressedText(message.text, nick) ?? message.text) : message.text;
    await this.#host.changed(update, message.retracts === null ? text : null);
  }

  #writerOf({ from }: ReadMessage, id: string): string {
    return `${this.#options.rooms.has(from) ? `${bareOf(from)}/${resourceOf(from)}` : bareOf(from)} ${id}`;
  }

  #forget(occupant: string): void {
    for (const writer of this.#updates.keys()) if (writer.startsWith(`${occupant} `)) this.#updates.delete(writer);
  }

  /** None: it is not for us. */
  async #message(read: ReadMessage): Promise<readonly ChatMessage[]> {
    const { rooms, address } = this.#options;
    const { option, log, clock } = this.#host;
    const isGroup = read.type === "groupchat";
    const room = rooms.has(read.from) ? bareOf(read.from) : null;
    const nick = room === null ? "" : rooms.nickIn(room);
    const addressed = isGroup ? addressedText(read.text, nick) : read.text;
    const isNamed = read.mentions.some((jid) => bareOf(jid) === address || jid === `${room}/${nick}`);
    const mentionsUs = addressed !== null || isNamed;
    const group = { chatId: room ?? "", text: read.text, mentionsUs };
    if (isGroup && !isForUs(group, option, { requireMention: true, prefix: "XMPP", chats: "ROOMS" }, log)) return [];

    const chat = isGroup ? (room ?? "") : room === null ? bareOf(read.from) : read.from;
    const person = room === null ? bareOf(read.from) : (read.address ?? read.from);
    const source: ChatSource = {
      ...{ platform: "xmpp", chat_id: chat, chat_type: isGroup ? "group" : "dm" },
      chat_name: room === null ? person : isGroup ? room : resourceOf(read.from),
      ...{ user_id: person, user_name: room === null ? person : resourceOf(read.from) },
    };
    const { file, note } = await this.#fetch(read, { source, mentionsUs });
    const said = read.fileUrl !== null && read.text.trim() === read.fileUrl ? "" : (addressed ?? read.text);
    const text = [said, note].filter((part) => part !== "").join("\n");
    const sentMs = read.delayedAt ?? clock.now();
    const updateId = updateIdOf(read, isGroup ? (room ?? "") : address, sentMs);
    if (read.id !== null) this.#know(this.#writerOf(read, read.id), updateId);
    return [
      {
        ...{
          text,
          source,
          updateId,
          mentionsUs,
          sentAt: Math.floor(sentMs / 1000),
          type: file ? typeOf(file) : "text",
        },
        ...(read.id === null ? {} : { messageId: read.id }),
        ...(file ? { files: [file] } : {}),
        ...(read.answers === null ? {} : { replyTo: { messageId: read.answers } }),
        ...channelSettings([chat], option),
      },
    ];
  }

  async #fetch(
    { fileUrl }: ReadMessage,
    sender: { readonly source: ChatSource; readonly mentionsUs: boolean },
  ): Promise<{ readonly file?: ReceivedFile; readonly note: string }> {
    if (fileUrl === null) return { note: "" };
    const url = URL.parse(fileUrl);
    const name = decodeURIComponent(
      /[^/]{0,200}$/.exec(url?.pathname ?? "")?.[0].replace(/%(?![0-9a-f]{2})/gi, "") ?? "",
    );
    if (url?.protocol !== "https:" && url?.protocol !== "http:") return { note: `[unsupported: file ${name}]` };
    if (!((await this.#host.allows?.(sender)) ?? true)) return { note: "" };
    try {
      const ownHost = URL.parse(
        String(this.#host.option("service", "XMPP_SERVICE") ?? "").replace(/^xmpps?:/, "http:"),
      );
      const about = { ...(name === "" ? {} : { name }), ...(ownHost ? { ownHost: ownHost.hostname } : {}) };
      return { file: await this.#host.download(fileUrl, about), note: "" };
    } catch (error) {
      return { note: `[${name || "file"}: ${messageOf(error)}]` };
    }
  }

  #know(writer: string, updateId: string): void {
    this.#updates.set(writer, updateId);
    const [oldest] = this.#updates.keys();
    if (this.#updates.size > REMEMBERED && oldest !== undefined) this.#updates.delete(oldest);
  }

  #cursor(): string {
    return JSON.stringify(this.#positions);
  }

  get #now(): number {
    return Math.floor(this.#host.clock.now() / 1000);
  }

  #inOrder(work: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined); // whoever asked for it is told
    return done;
  }
}

function read({ id, at, message }: Archived, archivist: string): readonly ReadMessage[] {
  const found = readMessage(message, archivist);
  return found && found.type !== "error" ? [{ ...found, archiveId: id, delayedAt: at }] : [];
}

/** The id in the archive, the same live and later; else the writer's own, which with the text is as good. */
function updateIdOf({ archiveId, id, from, text }: ReadMessage, archivist: string, sentMs: number): string {
  if (archiveId !== null) return `${archivist} ${archiveId}`;
  return createHash("sha256")
    .update(`${from}\n${id ?? sentMs}\n${text}`)
    .digest("hex");
}

function typeOf({ mediaType }: ReceivedFile): ChatMessage["type"] {
  const [kind] = mediaType.split("/");
  return kind === "image" ? "photo" : kind === "video" || kind === "audio" ? kind : "document";
}

function parsePositions(cursor: string | null): Positions | null {
  const stored = cursor === null ? null : parseJson(cursor);
  if (typeof stored !== "object" || stored === null || !("rooms" in stored)) return null;
  const { account, rooms } = stored as { account?: unknown; rooms: unknown }; // looked at below
  const place = account as Partial<ArchivePosition> | null | undefined; // looked at on the next line
  const isPlace = typeof place?.id === "string" && typeof place.at === "number";
  const times = Object.entries(typeof rooms === "object" && rooms !== null ? rooms : {});
  return {
    account: isPlace ? { id: place.id ?? "", at: place.at ?? 0 } : null,
    rooms: Object.fromEntries(times.flatMap(([room, at]) => (typeof at === "number" ? [[room, at]] : []))),
  };
}
