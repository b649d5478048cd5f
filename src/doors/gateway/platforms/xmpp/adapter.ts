// One account. What was written while we were away comes out of the archive of the server (XEP-0313) where it has one, else as what it kept
// for us. A message of ours counts as sent when the server has dealt with it, in a room when the room has shown it.
import type { XmlElement } from "@xmpp/client";
import { messageOf } from "../../../../kit/errors.ts";
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
import { Archive, hasArchive } from "./archive.ts";
import { XmppConnection } from "./connection.ts";
import { type XmppSettings, xmppSettings } from "./entry.ts";
import { toStyled } from "./format.ts";
import { Reception } from "./reception.ts";
import { Rooms } from "./rooms.ts";
import { bareOf, idFor, type ReadMessage, readMessage, resourceOf, textMessage, typingMessage } from "./stanzas.ts";

const ECHO_SECONDS = 20;
const REMEMBERED = 200;

export async function openXmpp(host: AdapterHost): Promise<PlatformAdapter> {
  return new XmppAdapter(host, xmppSettings(host.option));
}

/** Everything that exists while we are online. */
interface Online {
  readonly connection: XmppConnection;
  readonly archive: Archive;
  readonly rooms: Rooms;
  readonly reception: Reception;
  readonly keepsArchive: boolean;
  /** Only to send: nobody sees us, and what is kept for us stays where it is. */
  readonly isAlone: boolean;
}

class XmppAdapter implements PlatformAdapter {
  readonly account: string;
  readonly #host: AdapterHost;
  readonly #settings: XmppSettings;
  readonly #over = new AbortController();
  /** What waits for its receipt, by id. */
  readonly #pending = new Map<string, PromiseWithResolvers<SendResult>>();
  /** Keys of what was sent, by id: another server may refuse it later. */
  readonly #sent = new Map<string, string>();
  #online: Online | null = null;
  #alone: Promise<Online> | null = null;

  constructor(host: AdapterHost, settings: XmppSettings) {
    this.#host = host;
    this.#settings = settings;
    this.account = `${settings.username}@${settings.domain}`;
  }

  async connect(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => this.disconnect(), { once: true });
    const { connection, rooms, reception } = await this.#goOnline({ isAlone: false });
    try {
      const caughtUp = reception.begin();
      // From now on messages come, and wait for those that came before.
      await connection.send(connection.xml("presence"));
      await connection.ping();
      await caughtUp;
      await rooms.joinAll();
      await reception.catchUpRooms(async (room) => hasArchive(await connection.features(room)));
    } catch (error) {
      await connection.close();
      throw new PlatformError("connection", `${this.#settings.service}: ${messageOf(error)}`, {
        retryable: true,
        cause: error,
      });
    }
  }

  async #goOnline({ isAlone }: Pick<Online, "isAlone">): Promise<Online> {
    const connection = await XmppConnection.open(this.#host, this.#settings, {
      onStanza: (stanza) => this.#onStanza(stanza),
      onEnd: (error) => this.#lose(error),
    });
    if (this.#over.signal.aborted) {
      await connection.close();
      throw new PlatformError("stopped", "the connection was closed", { retryable: true });
    }
    const archive = new Archive(connection);
    const rooms = new Rooms(connection, this.#host, this.#settings, this.#over.signal);
    const keepsArchive = !isAlone && hasArchive(await connection.features(this.account));
    const reception = new Reception(this.#host, { archive, rooms, address: this.account, keepsArchive });
    this.#online = { connection, archive, rooms, reception, keepsArchive, isAlone };
    return this.#online;
  }

  async disconnect(): Promise<void> {
    this.#over.abort();
    await this.#alone?.catch(() => undefined); // whoever sent was told
    await this.#online?.connection.close();
    this.#forgetPending();
  }

  send(target: ChatTarget, text: string, options: SendOptions): Promise<SendResult> {
    return this.#say(target, options, { id: idFor(options.key), text: options.plain ? text : toStyled(text) });
  }

  /** A correction (XEP-0308) always names the message as it was first sent. */
  async edit(
    target: ChatTarget,
    messageId: string,
    text: string,
    options: SendOptions & { readonly final: boolean },
  ): Promise<SendResult> {
    const id = idFor(`${options.key} ${text}`);
    const said = { id, text: options.plain ? text : toStyled(text), replaces: messageId };
    const result = await this.#say(target, options, said, { withReceipt: options.final });
    return "failed" in result ? result : { messageId };
  }

  async sendFile(target: ChatTarget, file: OutgoingFile, options: SendOptions): Promise<SendResult> {
    const online = await this.#ready(target);
    if ("failed" in online) return online;
    const { uploadFile } = await import("./upload.ts");
    const uploaded = await uploadFile(online.connection, file, this.#settings.domain, this.#host.log);
    const note = file.caption ? `${file.caption}\n` : "";
    if ("problem" in uploaded) {
      if (uploaded.isPassing) return { failed: "unreachable", error: uploaded.problem };
      return this.#say(target, options, { id: idFor(options.key), text: `${note}[file: ${file.name}]` });
    }
    if (note !== "")
      await online.connection.send(
        this.#stanza(online, target, { id: idFor(`${options.key} note`), text: file.caption ?? "" }),
      );
    // Clients show the file where the text is nothing but its address.
    return this.#say(target, options, { id: idFor(options.key), text: uploaded.url, fileUrl: uploaded.url });
  }

  async typing(target: ChatTarget): Promise<void> {
    const online = await this.#ready(target);
    if ("failed" in online) return;
    const { connection, rooms } = online;
    await connection.send(typingMessage(connection.xml, target.chatId, typeFor(rooms, target.chatId)));
  }

  /** Asked when a connection has just broken: then it is looked for through another one. */
  async findSent(target: ChatTarget, key: string, _text: string, since?: number): Promise<string | null | undefined> {
    const online = this.#online;
    if (!online) return undefined;
    const isRoom = typeFor(online.rooms, target.chatId) === "groupchat";
    if (isRoom ? !online.reception.keepsArchive(target.chatId) : !online.keepsArchive) return undefined;
    const place = { with: bareOf(target.chatId), isRoom, ...(since === undefined ? {} : { since }) };
    const isThere = online.connection.isOpen
      ? await online.archive.holds(idFor(key), place)
      : await this.#lookAside(idFor(key), place);
    return isThere === undefined ? undefined : isThere ? idFor(key) : null;
  }

  async #lookAside(id: string, place: Parameters<Archive["holds"]>[1]): Promise<boolean | undefined> {
    const resource = `${this.#settings.resource}-looks`;
    let archive: Archive | null = null;
    const connection = await XmppConnection.open(
      this.#host,
      { ...this.#settings, resource },
      {
        onStanza(stanza) {
          archive?.collect(stanza);
          return null;
        },
        onEnd: () => undefined, // the question fails by itself
      },
    );
    try {
      archive = new Archive(connection);
      return await archive.holds(id, place);
    } finally {
      await connection.close();
    }
  }

  async chats(): Promise<readonly KnownChat[]> {
    return (this.#online?.rooms.names ?? []).map((id) => ({ id, name: id, type: "group" }));
  }

  /** Whoever never connected sends all the same. */
  async #ready({ chatId }: ChatTarget): Promise<Online | { readonly failed: "unreachable"; readonly error: string }> {
    if (!this.#online || this.#online.isAlone) {
      try {
        this.#alone ??= this.#goOnline({ isAlone: true });
        const { rooms } = await this.#alone;
        if (rooms.has(chatId) && !rooms.isIn(chatId)) await rooms.join(chatId);
      } catch (error) {
        return { failed: "unreachable", error: messageOf(error) };
      }
    }
    const online = this.#online;
    if (!online?.connection.isOpen)
      return { failed: "unreachable", error: `there is no connection to ${this.#settings.service}` };
    if (online.rooms.has(chatId) && !online.rooms.isIn(chatId))
      return { failed: "unreachable", error: `we are not in ${bareOf(chatId)}` };
    return online;
  }

  #stanza(
    { connection, rooms }: Online,
    { chatId }: ChatTarget,
    said: { readonly id: string; readonly text: string; readonly replaces?: string; readonly fileUrl?: string },
  ): XmlElement {
    return textMessage(connection.xml, { to: chatId, type: typeFor(rooms, chatId), ...said });
  }

  async #say(
    target: ChatTarget,
    { key }: SendOptions,
    said: { readonly id: string; readonly text: string; readonly replaces?: string; readonly fileUrl?: string },
    { withReceipt = true } = {},
  ): Promise<SendResult> {
    const online = await this.#ready(target);
    if ("failed" in online) return online;
    const { connection, rooms } = online;
    const receipt = Promise.withResolvers<SendResult>();
    if (withReceipt) this.#pending.set(said.id, receipt);
    const done = new AbortController();
    try {
      await connection.send(this.#stanza(online, target, said));
      if (!withReceipt) return { messageId: said.id };
      this.#remember(said.id, key);
      if (typeFor(rooms, target.chatId) === "chat")
        connection.ping().then(
          () => receipt.resolve({ messageId: said.id }),
          () => receipt.resolve(NO_RECEIPT),
        );
      this.#host.clock.sleep(ECHO_SECONDS * 1000, done.signal).then(
        () => receipt.resolve(NO_RECEIPT),
        () => undefined,
      );
      return await receipt.promise;
    } catch (error) {
      return { failed: "unknown", error: messageOf(error) };
    } finally {
      done.abort();
      this.#pending.delete(said.id);
    }
  }

  #remember(id: string, key: string): void {
    this.#sent.set(id, key);
    const [oldest] = this.#sent.keys();
    if (this.#sent.size > REMEMBERED && oldest !== undefined) this.#sent.delete(oldest);
  }

  #onStanza(stanza: XmlElement): Promise<void> | null {
    const online = this.#online;
    if (!online || this.#over.signal.aborted) return null;
    const { rooms, archive, reception } = online;
    if (stanza.is("presence")) {
      if (rooms.onPresence(stanza) || stanza.attrs.type !== "subscribe") return null;
      return this.#onSubscribe(online, stanza.attrs.from ?? "");
    }
    if (!stanza.is("message") || archive.collect(stanza)) return null;
    const isRoom = stanza.attrs.type === "groupchat";
    const message = readMessage(stanza, isRoom ? bareOf(stanza.attrs.from ?? "") : this.account);
    if (!message) return null;
    if (message.type === "error") {
      this.#onRefusal(online, message);
      return null;
    }
    const isOurs = isRoom && resourceOf(message.from) === rooms.nickIn(message.from);
    if (!isOurs) return online.isAlone ? null : reception.take(message);
    if (message.id !== null) this.#pending.get(message.id)?.resolve({ messageId: message.id });
    return null;
  }

  #onRefusal({ rooms }: Online, { id, from, error }: ReadMessage): void {
    const problem = `${bareOf(from)}: ${error?.condition ?? "refused"}`;
    const waiting = this.#pending.get(id ?? "");
    const isForgotten = rooms.has(from) && /^not-acceptable/.test(error?.condition ?? "");
    if (isForgotten) rooms.rejoinLater(from);
    if (waiting)
      waiting.resolve({ failed: error?.isPassing || isForgotten ? "unreachable" : "refused", error: problem });
    const key = this.#sent.get(id ?? "");
    if (!waiting && key !== undefined) this.#host.undelivered?.(key, problem);
  }

  /** People who may talk to us may see that we are there, and we them. */
  async #onSubscribe({ connection }: Online, from: string): Promise<void> {
    const address = bareOf(from);
    const source = { platform: "xmpp", chat_id: address, chat_type: "dm", user_id: address } as const;
    if (!(await this.#host.allows?.({ source, mentionsUs: true }))) return;
    await connection.send(connection.xml("presence", { to: address, type: "subscribed" }));
    await connection.send(connection.xml("presence", { to: address, type: "subscribe" }));
  }

  #forgetPending(): void {
    for (const receipt of this.#pending.values()) receipt.resolve(NO_RECEIPT);
  }

  #lose(error: PlatformError): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#forgetPending();
    this.#host.lost(error);
  }
}

const NO_RECEIPT: SendResult = { failed: "unknown", error: "it was sent and no receipt came" };

/** A name in a room is written to directly, the room itself as a group. */
const typeFor = (rooms: Rooms, chatId: string) =>
  rooms.has(chatId) && resourceOf(chatId) === "" ? "groupchat" : "chat";
