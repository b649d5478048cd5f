// The archive of an account or a room (XEP-0313): what was written while we were away, and whether a message of ours is in it.
import type { XmlElement } from "@xmpp/client";
import type { XmppConnection } from "./connection.ts";
import { bareOf, carriesId } from "./stanzas.ts";

const MAM = "urn:xmpp:mam:2";
const RSM = "http://jabber.org/protocol/rsm";
const PAGE = 50;
const SEARCHED = 100;

export const hasArchive = (features: ReadonlySet<string>) => features.has(MAM);

export interface Archived {
  readonly id: string;
  /** Unix milliseconds. */
  readonly at: number;
  readonly message: XmlElement;
}

/** Where an archive was read up to. */
export interface ArchivePosition {
  /** Empty: there was nothing in it. */
  readonly id: string;
  /** Unix seconds: by it the place is found again when the archive has forgotten the id. */
  readonly at: number;
}

interface Query {
  /** A room; undefined: the account itself. */
  readonly of?: string;
  readonly with?: string;
  /** Unix seconds. */
  readonly since?: number;
  readonly after?: string;
  /** The newest so many instead of the oldest. */
  readonly last?: number;
}

interface Page {
  readonly messages: readonly Archived[];
  readonly isComplete: boolean;
}

export class Archive {
  readonly #connection: XmppConnection;
  readonly #running = new Map<string, { readonly of: string; readonly found: Archived[] }>();
  #queries = 0;

  constructor(connection: XmppConnection) {
    this.#connection = connection;
  }

  /** True when the stanza is a result of ours; others who pretend to have one are not believed. */
  collect(stanza: XmlElement): boolean {
    const result = stanza.getChild("result", MAM);
    if (!result) return false;
    const query = this.#running.get(result.attrs.queryid ?? "");
    const from = bareOf(stanza.attrs.from ?? this.#connection.address);
    const forwarded = result.getChild("forwarded", "urn:xmpp:forward:0");
    const message = forwarded?.getChild("message");
    if (!query || from !== query.of || !message) return true;
    const at = Date.parse(forwarded?.getChild("delay", "urn:xmpp:delay")?.attrs.stamp ?? "");
    query.found.push({ id: result.attrs.id ?? "", at: Number.isFinite(at) ? at : 0, message });
    return true;
  }

  /** The newest that it holds, oldest first; of an account, or of a room since a time. */
  async newest(room?: { readonly of: string; readonly since: number }): Promise<readonly Archived[]> {
    return (await this.#ask({ ...room, last: PAGE })).messages;
  }

  /** Page by page what came to the account behind a position. */
  async *since(position: ArchivePosition): AsyncGenerator<readonly Archived[]> {
    let next: Query = position.id === "" ? { since: position.at } : { after: position.id };
    let tried = false;
    for (;;) {
      let page: Page;
      try {
        page = await this.#ask(next);
      } catch (error) {
        if (tried || !(error instanceof Error) || !/item-not-found/.test(error.message)) throw error;
        tried = true;
        next = { since: position.at };
        continue;
      }
      const last = page.messages.at(-1);
      if (page.messages.length > 0) yield page.messages;
      if (page.isComplete || !last) return;
      next = { after: last.id };
    }
  }

  /** Whether a message of ours is there; undefined when its absence would prove nothing. */
  async holds(id: string, place: { readonly with: string; readonly isRoom: boolean; readonly since?: number }) {
    const since = place.since === undefined ? {} : { since: place.since - 60 };
    const where = place.isRoom ? { of: place.with } : { with: place.with };
    const { messages, isComplete } = await this.#ask({ ...where, ...since, last: SEARCHED });
    if (messages.some(({ message }) => carriesId(message, id))) return true;
    const isWhole = isComplete || (place.since === undefined && messages.length > 0);
    return isWhole && (place.isRoom || (await this.#keepsAll(place.with))) ? false : undefined;
  }

  async #keepsAll(other: string): Promise<boolean> {
    try {
      const answer = await this.#connection.request("get", undefined, this.#connection.xml("prefs", { xmlns: MAM }));
      const prefs = answer.getChild("prefs", MAM);
      const never = prefs?.getChild("never")?.getChildren("jid") ?? [];
      return prefs?.attrs.default === "always" && !never.some((jid) => bareOf(jid.getText()) === bareOf(other));
    } catch {
      return false; // a server that does not say what it keeps
    }
  }

  async #ask(query: Query): Promise<Page> {
    const { xml, address } = this.#connection;
    const id = `hermes-${++this.#queries}`;
    const found: Archived[] = [];
    this.#running.set(id, { of: query.of ?? address, found });
    const field = (name: string, value: string) => xml("field", { var: name }, xml("value", {}, value));
    const form = xml(
      "x",
      { xmlns: "jabber:x:data", type: "submit" },
      xml("field", { var: "FORM_TYPE", type: "hidden" }, xml("value", {}, MAM)),
      query.with === undefined ? undefined : field("with", query.with),
      query.since === undefined ? undefined : field("start", new Date(query.since * 1000).toISOString()),
    );
    const page = xml(
      "set",
      { xmlns: RSM },
      xml("max", {}, String(query.last ?? PAGE)),
      query.after === undefined ? undefined : xml("after", {}, query.after),
      query.last === undefined ? undefined : xml("before", {}),
    );
    try {
      const answer = await this.#connection.request(
        "set",
        query.of,
        xml("query", { xmlns: MAM, queryid: id }, form, page),
      );
      return { messages: found, isComplete: answer.getChild("fin", MAM)?.attrs.complete === "true" };
    } finally {
      this.#running.delete(id);
    }
  }
}
