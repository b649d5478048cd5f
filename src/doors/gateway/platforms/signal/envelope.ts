// What signal-cli reports, as the messages of every platform. Pure.
import { asList, asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { ChatSource } from "../../chat.ts";

export interface SignalAttachment {
  readonly id: string;
  readonly name: string | undefined;
  readonly type: string;
  readonly size: number | undefined;
}

export interface Said {
  readonly type: "said";
  readonly source: ChatSource;
  /** Milliseconds: what Signal knows a message by, together with its sender. */
  readonly timestamp: number;
  readonly author: string;
  readonly text: string;
  readonly mentionsUs: boolean;
  readonly attachments: readonly SignalAttachment[];
  readonly quote: { readonly timestamp: number; readonly author: string; readonly text: string } | null;
}

/** A message of its author was edited, or deleted: null. */
interface Changed {
  readonly type: "changed";
  readonly author: string;
  readonly timestamp: number;
  readonly text: string | null;
}

/** How a message is named where it is stored: the same for every delivery of it. */
export const updateIdOf = (author: string, timestamp: number) => `${author}:${timestamp}`;
/** How it is named to be answered, marked or deleted: that takes both parts. */
export const messageIdOf = updateIdOf;

export function readMessageId(id: string): { readonly author: string; readonly timestamp: number } | null {
  const [, author, timestamp] = /^(.{1,100}):(\d{10,16})$/.exec(id) ?? [];
  return author === undefined ? null : { author, timestamp: Number(timestamp) };
}

/** Null: nothing that somebody wrote to us (receipts, typing, calls, reactions, our own messages). */
export function readEnvelope(envelope: Json, account: string): Said | Changed | null {
  const sent = asRecord(asRecord(envelope.syncMessage).sentMessage);
  const own = [asText(envelope.sourceNumber), asText(envelope.sourceUuid)];
  const author = own.find((id) => id !== "") ?? asText(envelope.source);
  if (author === "") return null;
  // A note to oneself, written on the phone that signal-cli is linked to.
  const isNote = own.includes(account) && [sent.destinationNumber, sent.destinationUuid].includes(account);
  if (own.includes(account) && !isNote) return null;
  const outer = isNote ? sent : envelope;
  const edit = asRecord(outer.editMessage);
  const data = "editMessage" in outer ? asRecord(edit.dataMessage) : isNote ? sent : asRecord(envelope.dataMessage);
  const text = withMentions(data, account);
  if ("editMessage" in outer)
    return text.text === ""
      ? null
      : { type: "changed", author, timestamp: numberIn(edit.targetSentTimestamp), text: text.text };
  const deleted = numberIn(asRecord(data.remoteDelete).timestamp);
  if (deleted > 0) return { type: "changed", author, timestamp: deleted, text: null };
  if ("reaction" in data) return null;
  const attachments = asList(data.attachments).map(asRecord).map(attachmentOf);
  const spoken = [unsupported(data), text.text].filter((part) => part !== "").join(" ");
  if (spoken === "" && attachments.length === 0) return null;
  return {
    ...{
      type: "said",
      author,
      text: spoken,
      attachments,
      mentionsUs: text.mentionsUs,
      quote: quoteOf(asRecord(data.quote)),
    },
    timestamp: numberIn(data.timestamp) || numberIn(envelope.timestamp),
    source: sourceOf(envelope, data, author),
  };
}

const numberIn = (value: unknown) => (typeof value === "number" ? value : 0);

function sourceOf(envelope: Json, data: Json, author: string): ChatSource {
  const group = asRecord(data.groupInfo);
  const groupId = asText(group.groupId);
  const uuid = asText(envelope.sourceUuid);
  const name = asText(envelope.sourceName);
  return {
    ...{ platform: "signal", user_id: author, chat_type: groupId === "" ? "dm" : "group" },
    ...(name === "" ? {} : { user_name: name }),
    ...(uuid === "" || uuid === author ? {} : { user_id_alt: uuid }),
    ...(groupId === ""
      ? { chat_id: author, ...(name === "" ? {} : { chat_name: name }) }
      : { chat_id: `group:${groupId}`, chat_id_alt: groupId, chat_name: asText(group.groupName) || groupId }),
  };
}

/** A mention is one character in the text, with the person beside it. Ours is what made the message reach us, and goes. */
function withMentions(data: Json, account: string): { readonly text: string; readonly mentionsUs: boolean } {
  let text = asText(data.message);
  let mentionsUs = false;
  const mentions = asList(data.mentions)
    .map(asRecord)
    .sort((one, other) => numberIn(other.start) - numberIn(one.start));
  for (const { start, length, number, uuid, name } of mentions) {
    const isUs = number === account || uuid === account;
    mentionsUs ||= isUs;
    const shown = isUs ? "" : `@${asText(name) || asText(number) || asText(uuid)}`;
    text = text.slice(0, numberIn(start)) + shown + text.slice(numberIn(start) + numberIn(length));
  }
  return { text: text.trim(), mentionsUs };
}

function quoteOf(quote: Json): Said["quote"] {
  const timestamp = numberIn(quote.id);
  const author = asText(quote.authorNumber) || asText(quote.authorUuid) || asText(quote.author);
  return timestamp === 0 || author === "" ? null : { timestamp, author, text: asText(quote.text) };
}

function attachmentOf({ id, filename, contentType, size }: Json): SignalAttachment {
  const name = asText(filename);
  return {
    ...{ id: asText(id), type: asText(contentType), name: name === "" ? undefined : name },
    size: typeof size === "number" ? size : undefined,
  };
}

function unsupported(data: Json): string {
  const contact = asRecord(asList(data.contacts)[0]);
  const shown = asText(asRecord(contact.name).display) || asText(asRecord(contact.name).given);
  if ("sticker" in data) return `[unsupported: sticker] ${asText(asRecord(data.sticker).emoji)}`.trim();
  if (asList(data.contacts).length > 0) return `[unsupported: contact] ${shown}`.trim();
  if ("payment" in data) return "[unsupported: payment]";
  if ("pollCreate" in data) return `[unsupported: poll] ${asText(asRecord(data.pollCreate).question)}`.trim();
  return "";
}
