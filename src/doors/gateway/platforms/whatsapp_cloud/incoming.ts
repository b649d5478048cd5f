// What Meta's calls say, read once: messages of people, and reports about what we sent.
import { asList, asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { ChatMessage } from "../../contract.ts";
import { readButton } from "./outgoing.ts";

/** A message as it came, before its file was fetched. */
export interface Incoming {
  readonly id: string;
  /** The sender's number. */
  readonly from: string;
  readonly name: string | undefined;
  readonly sentAt: number;
  readonly type: ChatMessage["type"];
  readonly text: string;
  readonly media: { readonly id: string; readonly name: string | undefined; readonly kind: string } | null;
  readonly replyTo: string | undefined;
  /** A button of one of our questions. */
  readonly press: { readonly questionId: string; readonly choice: string } | null;
}

/** What became of a message of ours. */
export interface Report {
  readonly messageId: string;
  /** What it was sent with. */
  readonly key: string;
  readonly failure: { readonly code: number; readonly words: string } | null;
  readonly to: string;
}

/** Everything for our number. A call may hold many changes, of other numbers of the business too. */
export function readCall(
  body: unknown,
  phoneNumberId: string,
): { readonly messages: readonly Incoming[]; readonly reports: readonly Report[] } {
  const values = asList(asRecord(body).entry)
    .flatMap((entry) => asList(asRecord(entry).changes))
    .map((change) => asRecord(asRecord(change).value))
    .filter((value) => asText(asRecord(value.metadata).phone_number_id) === phoneNumberId);
  return {
    messages: values.flatMap((value) =>
      asList(value.messages).flatMap((message) => readMessage(asRecord(message), value)),
    ),
    reports: values.flatMap((value) => asList(value.statuses).map((status) => readReport(asRecord(status)))),
  };
}

function readReport(status: Json): Report {
  const [first] = asList(status.errors).map(asRecord);
  const details = asText(asRecord(first?.error_data).details) || asText(first?.title) || asText(first?.message);
  return {
    messageId: asText(status.id),
    key: asText(status.biz_opaque_callback_data),
    to: asText(status.recipient_id),
    failure: asText(status.status) === "failed" ? { code: Number(first?.code ?? 0), words: details } : null,
  };
}

/** None for what is no message: a reaction, a new number of somebody. */
function readMessage(message: Json, value: Json): readonly Incoming[] {
  const { id, from, type } = { id: asText(message.id), from: asText(message.from), type: asText(message.type) };
  const content = contentOf(type, asRecord(message[type]), message);
  if (id === "" || from === "" || content === null) return [];
  const contact = asList(value.contacts)
    .map(asRecord)
    .find(({ wa_id }) => asText(wa_id) === from);
  return [
    {
      ...{ id, from, media: null, press: null, type: "text", ...content },
      name: asText(asRecord(contact?.profile).name) || undefined,
      sentAt: Number(message.timestamp) || 0,
      replyTo: asText(asRecord(message.context).id) || undefined,
    },
  ];
}

type Content = Pick<Incoming, "text"> & Partial<Pick<Incoming, "type" | "media" | "press">>;

function contentOf(type: string, part: Json, message: Json): Content | null {
  const caption = asText(part.caption);
  const media = { id: asText(part.id), name: asText(part.filename) || undefined, kind: type };
  switch (type) {
    case "text":
      return { text: asText(part.body) };
    case "image":
      return { type: "photo", text: caption, media };
    case "video":
    case "document":
    case "sticker":
      return { type, text: caption, media };
    case "audio":
      return { type: part.voice === true ? "voice" : "audio", text: caption, media };
    case "location":
      return { type: "location", text: locationText(part) };
    case "button":
      return { text: asText(part.text) };
    case "interactive":
      return replyContent(part);
    case "contacts":
      return { text: `[unsupported: contact] ${asList(message.contacts).map(contactText).join("; ")}`.trim() };
    case "reaction":
    case "system":
    case "":
      return null;
    default:
      return { text: `[unsupported: ${type === "unsupported" ? "message" : type}] ${caption}`.trim() };
  }
}

function replyContent(part: Json): Content {
  const { id, title } = asRecord(part.button_reply ?? part.list_reply);
  if (asText(title) === "") return { text: `[unsupported: ${asText(part.type) || "reply"}]` };
  return { text: asText(title), press: readButton(asText(id)) };
}

function locationText({ latitude, longitude, name, address }: Json): string {
  const place = [name, address].map(asText).filter((text) => text !== "");
  return `[location: ${Number(latitude)}, ${Number(longitude)}]${place.length > 0 ? ` ${place.join(", ")}` : ""}`;
}

function contactText(contact: unknown): string {
  const { name, phones } = asRecord(contact);
  const numbers = asList(phones).map((phone) => asText(asRecord(phone).phone));
  return [asText(asRecord(name).formatted_name), ...numbers].filter((text) => text !== "").join(" ");
}
