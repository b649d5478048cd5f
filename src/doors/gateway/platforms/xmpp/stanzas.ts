// Messages of XMPP as stanzas: what is read out of them, and how ours are built.
import { createHash } from "node:crypto";
import type { XmlElement } from "@xmpp/client";
import type { Xml } from "./connection.ts";
import { xmlSafe } from "./format.ts";

const NS = {
  delay: "urn:xmpp:delay",
  ids: "urn:xmpp:sid:0",
  occupant: "http://jabber.org/protocol/muc#user",
  correct: "urn:xmpp:message-correct:0",
  retract: "urn:xmpp:message-retract:1",
  reply: "urn:xmpp:reply:0",
  reference: "urn:xmpp:reference:0",
  oob: "jabber:x:oob",
  states: "http://jabber.org/protocol/chatstates",
  hints: "urn:xmpp:hints",
  omemo: "eu.siacs.conversations.axolotl",
  encryption: "urn:xmpp:eme:0",
} as const;

export interface ReadMessage {
  readonly type: "chat" | "groupchat" | "error";
  /** With the resource, which is the nick in a room. */
  readonly from: string;
  /** In a room, whose address the room says it is; only from its own archive, where nobody else wrote it. */
  readonly address: string | null;
  /** The sender's own id. */
  readonly id: string | null;
  /** The id in the archive of whoever wrote it down: our server, or the room. */
  readonly archiveId: string | null;
  readonly text: string;
  /** Unix milliseconds; set on what was kept for us. */
  readonly delayedAt: number | null;
  readonly replaces: string | null;
  readonly retracts: string | null;
  readonly answers: string | null;
  /** An address that a file lies at. */
  readonly fileUrl: string | null;
  /** Addresses that it names. */
  readonly mentions: readonly string[];
  readonly error: { readonly condition: string; readonly isPassing: boolean } | null;
}

/** Null for what says nothing: states, receipts, subjects. `archivist`: whose ids count. */
export function readMessage(stanza: XmlElement, archivist: string): ReadMessage | null {
  const { type: kind = "normal", from, id } = stanza.attrs;
  if (from === undefined || kind === "headline") return null;
  const type = kind === "groupchat" || kind === "error" ? kind : "chat";
  const body = stanza.getChildText("body") ?? "";
  const retracts = stanza.getChild("retract", NS.retract)?.attrs.id ?? null;
  const isEncrypted = stanza.getChild("encrypted", NS.omemo) ?? stanza.getChild("encryption", NS.encryption);
  const fileUrl = stanza.getChild("x", NS.oob)?.getChildText("url")?.trim() || null;
  const text = isEncrypted ? "[unsupported: encrypted message]" : body;
  if (type !== "error" && text.trim() === "" && retracts === null && fileUrl === null) return null;
  // Ids that others wrote in the archivist's name are removed by it.
  const written = stanza.getChildren("stanza-id", NS.ids).find(({ attrs }) => attrs.by === archivist);
  const occupant = stanza.getChild("x", NS.occupant)?.getChild("item")?.attrs.jid;
  const stamp = Date.parse(stanza.getChild("delay", NS.delay)?.attrs.stamp ?? "");
  return {
    ...{ type, from, text, retracts, fileUrl },
    address: occupant !== undefined && archivist === bareOf(from) ? bareOf(occupant) : null,
    id: id ?? stanza.getChild("origin-id", NS.ids)?.attrs.id ?? null,
    archiveId: written?.attrs.id ?? null,
    delayedAt: Number.isFinite(stamp) ? stamp : null,
    replaces: stanza.getChild("replace", NS.correct)?.attrs.id ?? null,
    answers: stanza.getChild("reply", NS.reply)?.attrs.id ?? null,
    mentions: stanza
      .getChildren("reference", NS.reference)
      .flatMap(({ attrs }) => (attrs.type === "mention" && attrs.uri ? [attrs.uri.replace(/^xmpp:/, "")] : [])),
    error: errorOf(stanza),
  };
}

function errorOf(stanza: XmlElement): ReadMessage["error"] {
  const error = stanza.getChild("error");
  if (!error) return null;
  const condition = error.getChildElements().find(({ name }) => name !== "text")?.name ?? "undefined-condition";
  const said = error.getChildText("text");
  return { condition: said ? `${condition}: ${said}` : condition, isPassing: error.attrs.type === "wait" };
}

/** The same for every repeat of a part; what a lost one is looked for by. */
export const idFor = (key: string) => `hermes-${createHash("sha256").update(key).digest("hex").slice(0, 32)}`;

interface OutgoingMessage {
  readonly to: string;
  readonly type: "chat" | "groupchat";
  readonly id: string;
  readonly text: string;
  readonly replaces?: string;
  readonly fileUrl?: string;
}

export function textMessage(xml: Xml, { to, type, id, text, replaces, fileUrl }: OutgoingMessage): XmlElement {
  return xml(
    "message",
    { to, type, id },
    xml("body", {}, xmlSafe(text)),
    xml("origin-id", { xmlns: NS.ids, id }),
    xml("active", { xmlns: NS.states }),
    replaces === undefined ? undefined : xml("replace", { xmlns: NS.correct, id: replaces }),
    fileUrl === undefined ? undefined : xml("x", { xmlns: NS.oob }, xml("url", {}, fileUrl)),
  );
}

export const typingMessage = (xml: Xml, to: string, type: "chat" | "groupchat"): XmlElement =>
  xml("message", { to, type }, xml("composing", { xmlns: NS.states }), xml("no-store", { xmlns: NS.hints }));

/** Whether a message carries this id, as its own or as its origin's. */
export const carriesId = (stanza: XmlElement, id: string) =>
  stanza.attrs.id === id || stanza.getChild("origin-id", NS.ids)?.attrs.id === id;

export function bareOf(jid: string): string {
  const at = jid.indexOf("/");
  return (at === -1 ? jid : jid.slice(0, at)).toLowerCase();
}

export function resourceOf(jid: string): string {
  const at = jid.indexOf("/");
  return at === -1 ? "" : jid.slice(at + 1);
}

/** What a message says to a nick: `nick: text`; null when it names nobody, the whole text when it names us further on. */
export function addressedText(text: string, nick: string): string | null {
  const said = text.startsWith("@") ? text.slice(1) : text;
  const rest = said.slice(nick.length);
  if (said.slice(0, nick.length).toLowerCase() === nick.toLowerCase() && (rest === "" || /^[\s:,;!?.]/.test(rest)))
    return rest.replace(/^[:,;]?\s*/, "");
  const at = text.toLowerCase().indexOf(`@${nick.toLowerCase()}`);
  const next = text.charAt(at + nick.length + 1);
  return at !== -1 && !/[\p{L}\p{N}_-]/u.test(next) ? text : null;
}
