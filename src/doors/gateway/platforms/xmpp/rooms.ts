// The rooms we are in (XEP-0045): who is there under which name, and whether we still are.
import type { XmlElement } from "@xmpp/client";
import type { AdapterHost } from "../../contract.ts";
import type { XmppConnection } from "./connection.ts";
import type { XmppSettings } from "./entry.ts";
import { bareOf, resourceOf } from "./stanzas.ts";

const MUC = "http://jabber.org/protocol/muc";
const MUC_USER = "http://jabber.org/protocol/muc#user";
const JOIN_SECONDS = 15;
const REJOIN_SECONDS = 10;
const CHECK_SECONDS = 300;
const MAX_NICK_TRIES = 4;
/** Thrown out for good, and not by accident. */
const BANNED = "301";
const SELF = "110";

type RoomSettings = XmppSettings["rooms"][number];

interface Room {
  readonly settings: RoomSettings;
  nick: string;
  isIn: boolean;
  /** Real addresses by nick, in rooms that show them. */
  readonly people: Map<string, string>;
  joining: PromiseWithResolvers<string | null> | null;
}

export class Rooms {
  readonly #connection: XmppConnection;
  readonly #host: AdapterHost;
  readonly #signal: AbortSignal;
  readonly #rooms: ReadonlyMap<string, Room>;
  /** Somebody is no longer there under a name, which is free for others now. */
  onGone: ((occupant: string) => void) | null = null;

  constructor(connection: XmppConnection, host: AdapterHost, settings: XmppSettings, signal: AbortSignal) {
    this.#connection = connection;
    this.#host = host;
    this.#signal = signal;
    this.#rooms = new Map(
      settings.rooms.map((one): [string, Room] => [
        one.jid,
        { settings: one, nick: one.nick, isIn: false, people: new Map(), joining: null },
      ]),
    );
  }

  get names(): readonly string[] {
    return [...this.#rooms.keys()];
  }

  has(jid: string): boolean {
    return this.#rooms.has(bareOf(jid));
  }

  isIn(jid: string): boolean {
    return this.#rooms.get(bareOf(jid))?.isIn === true;
  }

  nickIn(jid: string): string {
    return this.#rooms.get(bareOf(jid))?.nick ?? "";
  }

  /** The address behind a name in a room; null where rooms hide it. */
  addressOf(occupant: string): string | null {
    return this.#rooms.get(bareOf(occupant))?.people.get(resourceOf(occupant)) ?? null;
  }

  /** A room that cannot be joined is no reason to stay away from the others. */
  async joinAll(): Promise<void> {
    await Promise.all([...this.#rooms.values()].map((room) => this.#join(room)));
    if (this.#rooms.size > 0)
      this.#check().catch((error) => this.#host.log.warn("rooms are no longer looked after", error));
  }

  async join(jid: string): Promise<void> {
    const room = this.#rooms.get(bareOf(jid));
    if (room) await this.#join(room);
  }

  async #join(room: Room): Promise<void> {
    const { jid } = room.settings;
    for (let tries = 0; tries < MAX_NICK_TRIES && !this.#signal.aborted; tries++) {
      const problem = await this.#enter(room);
      if (problem === null) return;
      if (problem !== "conflict") {
        this.#host.log.warn(`${jid} cannot be joined: ${problem}`);
        return;
      }
      room.nick = `${room.nick}_`;
    }
    this.#host.log.warn(`${jid} cannot be joined: the nick ${room.settings.nick} is taken`);
  }

  /** Null when we are in; else why not. */
  async #enter(room: Room): Promise<string | null> {
    const { xml } = this.#connection;
    const { jid, password } = room.settings;
    const joining = Promise.withResolvers<string | null>();
    room.joining = joining;
    const history = xml("history", { maxstanzas: "0" });
    const key = password === undefined ? undefined : xml("password", {}, password);
    const done = new AbortController();
    const late = this.#host.clock.sleep(JOIN_SECONDS * 1000, done.signal).then(
      () => "it did not answer",
      () => "it did not answer",
    );
    try {
      await this.#connection.send(
        xml("presence", { to: `${jid}/${room.nick}` }, xml("x", { xmlns: MUC }, history, key)),
      );
      return await Promise.race([joining.promise, late]);
    } finally {
      room.joining = null;
      done.abort();
    }
  }

  /** True when the presence is of a room. */
  onPresence(stanza: XmlElement): boolean {
    const { from = "", type } = stanza.attrs;
    const room = this.#rooms.get(bareOf(from));
    if (!room) return false;
    if (type === "error") {
      const error = stanza.getChild("error")?.getChildElements() ?? [];
      room.joining?.resolve(error.find(({ name }) => name !== "text")?.name ?? "refused");
      return true;
    }
    const about = stanza.getChild("x", MUC_USER);
    const codes = new Set((about?.getChildren("status") ?? []).map(({ attrs }) => attrs.code));
    const isSelf = codes.has(SELF) || resourceOf(from) === room.nick;
    const address = about?.getChild("item")?.attrs.jid;
    if (type === "unavailable") {
      room.people.delete(resourceOf(from));
      this.onGone?.(`${bareOf(from)}/${resourceOf(from)}`);
      if (isSelf) this.#onLeft(room, codes);
      return true;
    }
    if (address !== undefined) room.people.set(resourceOf(from), bareOf(address));
    if (!isSelf || !codes.has(SELF)) return true;
    room.nick = resourceOf(from);
    room.isIn = true;
    room.joining?.resolve(null);
    // A room that did not exist is locked until its maker takes it as it is.
    if (codes.has("201")) this.#unlock(room).catch((error) => this.#host.log.debug("a new room", error));
    return true;
  }

  async #unlock({ settings }: Room): Promise<void> {
    const { xml } = this.#connection;
    const form = xml("x", { xmlns: "jabber:x:data", type: "submit" });
    await this.#connection.request("set", settings.jid, xml("query", { xmlns: `${MUC}#owner` }, form));
  }

  #onLeft(room: Room, codes: ReadonlySet<string | undefined>): void {
    room.isIn = false;
    room.people.clear();
    if (this.#signal.aborted) return;
    this.#host.log.warn(`we are no longer in ${room.settings.jid}`);
    if (!codes.has(BANNED)) this.rejoinLater(room.settings.jid);
  }

  /** The room does not know us, whatever we think. */
  rejoinLater(jid: string): void {
    const room = this.#rooms.get(bareOf(jid));
    if (!room) return;
    room.isIn = false;
    this.#host.clock.sleep(REJOIN_SECONDS * 1000, this.#signal).then(
      () => this.#join(room).catch((error) => this.#host.log.debug("a room was not joined again", error)),
      () => undefined,
    );
  }

  /** A service that was restarted does not say that it has forgotten us (XEP-0410). */
  async #check(): Promise<void> {
    while (!this.#signal.aborted) {
      await this.#host.clock.sleep(CHECK_SECONDS * 1000, this.#signal).catch(() => undefined);
      for (const room of this.#rooms.values()) {
        if (this.#signal.aborted || !this.#connection.isOpen) return;
        await this.#connection
          .request("get", `${room.settings.jid}/${room.nick}`, this.#connection.xml("ping", { xmlns: "urn:xmpp:ping" }))
          .catch((error) => {
            if (/not-acceptable|not-found|gone/.test(String(error))) return this.#join(room);
          });
      }
    }
  }
}
