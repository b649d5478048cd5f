// Events of a room as the messages of every platform. Pure: what has to be asked from the homeserver is handed in.
import { asList, asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { ChatMessage } from "../../contract.ts";

export interface RoomEvent {
  readonly id: string;
  readonly type: string;
  readonly sender: string;
  /** Milliseconds, by the sender's homeserver. */
  readonly at: number;
  readonly content: Json;
  readonly stateKey: string | undefined;
  readonly redacts: string;
  readonly previousMembership: string;
}

/** Null: nothing that can be an event. */
export function readEvent(value: unknown): RoomEvent | null {
  const {
    event_id: id,
    type,
    sender,
    origin_server_ts: at,
    content,
    state_key: stateKey,
    redacts,
    unsigned,
  } = asRecord(value);
  if (typeof id !== "string" || typeof type !== "string" || typeof sender !== "string") return null;
  const body = asRecord(content);
  return {
    ...{ id, type, sender, content: body },
    at: typeof at === "number" ? at : 0,
    stateKey: typeof stateKey === "string" ? stateKey : undefined,
    redacts: asText(redacts) || asText(body.redacts),
    previousMembership: asText(asRecord(asRecord(unsigned).prev_content).membership),
  };
}

/** Events from before we were invited or joined were not written to us. */
export function sinceWeCame(events: readonly RoomEvent[], me: string): readonly RoomEvent[] {
  const ours = (event: RoomEvent) => event.type === "m.room.member" && event.stateKey === me;
  const start = events.findLastIndex((event) => ours(event) && isArrival(event));
  return start === -1 ? events : events.slice(start + 1);
}

/** A member event with `join` is also sent when somebody changes a name or a picture. */
export function isArrival({ content, previousMembership }: RoomEvent): boolean {
  const membership = asText(content.membership);
  if (membership === "invite") return true;
  return membership === "join" && previousMembership !== "join" && previousMembership !== "invite";
}

interface Relation {
  readonly thread?: string;
  readonly replyTo?: string;
  readonly replaces?: string;
}

export function relationOf({ content }: RoomEvent): Relation {
  const relates = asRecord(content["m.relates_to"]);
  const target = asText(relates.event_id);
  const replyTo = asText(asRecord(relates["m.in_reply_to"]).event_id);
  if (relates.rel_type === "m.replace" && target !== "") return { replaces: target };
  // In a thread every message names the one before it, for clients that know no threads.
  const isReply = replyTo !== "" && !(relates.rel_type === "m.thread" && relates.is_falling_back === true);
  return {
    ...(relates.rel_type === "m.thread" && target !== "" ? { thread: target } : {}),
    ...(isReply ? { replyTo } : {}),
  };
}

interface Us {
  readonly userId: string;
  /** How we are shown in this room. */
  readonly name: string;
}

/** Named by the list of mentions, or by older clients in the text. */
export function mentions({ content }: RoomEvent, { userId, name }: Us): boolean {
  const said = content["m.mentions"];
  if (typeof said === "object" && said !== null) return asList(asRecord(said).user_ids).includes(userId);
  const body = asText(content.body);
  const html = asText(content.formatted_body);
  const link = `matrix.to/#/${userId}`;
  return (
    body.includes(userId) ||
    html.includes(link) ||
    html.includes(link.replace("@", "%40")) ||
    startsWithName(body, name)
  );
}

const startsWithName = (body: string, name: string) =>
  body.toLowerCase().startsWith(name.toLowerCase()) && /^[:,\s]|^$/.test(body.slice(name.length));

/** What a message says: without the quote that older clients put before a reply, and without our name before it. */
export function spokenText(
  content: Json,
  { isReply, us }: { readonly isReply: boolean; readonly us: Us | null },
): string {
  const body = asText(content.body);
  const own = isReply ? withoutQuote(body) : body;
  const text = us === null ? own : withoutName(own, us);
  return content.msgtype === "m.emote" ? `* ${text}` : text;
}

function withoutQuote(body: string): string {
  if (!/^> <@/.test(body)) return body;
  const lines = body.split("\n");
  const end = lines.findIndex((line) => !line.startsWith(">"));
  return end === -1 ? body : lines.slice(end).join("\n").trimStart();
}

function withoutName(body: string, { userId, name }: Us): string {
  const local = userId.slice(1).split(":")[0] ?? "";
  const calls = [userId, `@${name}`, name, `@${local}`, local].filter((call) => call !== "" && call !== "@");
  const called = calls.find((call) => startsWithName(body, call));
  return called === undefined ? body : body.slice(called.length).replace(/^[:,]?\s{0,100}/, "");
}

/** `!help` for `/help`: Matrix clients keep what begins with a slash to themselves. Only for commands there are. */
export function withCommand(text: string, commands: ReadonlySet<string>): string {
  const name = /^!([a-z][\w-]{0,40})(?=\s|$)/i.exec(text)?.[1];
  return name !== undefined && commands.has(name.toLowerCase()) ? `/${text.slice(1)}` : text;
}

export interface Attachment {
  readonly uri: string;
  readonly name: string;
  readonly size: number | undefined;
  /** It is encrypted, and we have no keys. */
  readonly isEncrypted: boolean;
}

const MEDIA: Readonly<Record<string, ChatMessage["type"]>> = {
  "m.image": "photo",
  "m.video": "video",
  "m.audio": "audio",
  "m.file": "document",
};

interface Said {
  readonly type: ChatMessage["type"];
  readonly text: string;
  readonly attachment?: Attachment;
}

/** What an event holds for a reader; null: nothing (notices of other bots, events of no use). */
export function saidBy(event: RoomEvent, text: string): Said | null {
  const { type, content } = event;
  const kind = asText(content.msgtype);
  if (type === "m.sticker") return { type: "sticker", text: "", attachment: attachmentOf(content) };
  if (type.endsWith("poll.start")) return { type: "text", text: unsupported("poll", questionOf(content)) };
  if (type !== "m.room.message" || kind === "m.notice" || kind.startsWith("m.key.verification")) return null;
  if (kind === "m.location") return { type: "location", text: `Location: ${asText(content.geo_uri)}\n${text}`.trim() };
  const media = MEDIA[kind];
  if (media) {
    const isVoice = media === "audio" && "org.matrix.msc3245.voice" in content;
    // Without a name of its own, the text of a file is its name and not what somebody wrote.
    const caption = typeof content.filename === "string" && content.filename !== content.body ? text : "";
    return { type: isVoice ? "voice" : media, text: caption, attachment: attachmentOf(content) };
  }
  if (kind !== "m.text" && kind !== "m.emote") return { type: "text", text: unsupported(kind || "message", text) };
  return text.trim() === "" ? null : { type: text.startsWith("/") ? "command" : "text", text };
}

const unsupported = (kind: string, caption: string) => `[unsupported: ${kind}]${caption === "" ? "" : ` ${caption}`}`;

function attachmentOf(content: Json): Attachment {
  const size = asRecord(content.info).size;
  const encrypted = asRecord(content.file);
  return {
    uri: asText(content.url) || asText(encrypted.url),
    name: asText(content.filename) || asText(content.body) || "file",
    size: typeof size === "number" ? size : undefined,
    isEncrypted: asText(encrypted.url) !== "",
  };
}

function questionOf(content: Json): string {
  const poll = asRecord(content["m.poll"] ?? content["org.matrix.msc3381.poll.start"]);
  const question = asRecord(poll.question);
  const written = asRecord(asList(question["m.text"])[0]);
  return asText(written.body) || asText(question["org.matrix.msc1767.text"]) || asText(question.body);
}

const TYPES = [
  ..."m.room.message m.room.encrypted m.room.redaction m.sticker m.poll.start org.matrix.msc3381.poll.start".split(" "),
  ..."m.room.member m.room.name m.room.topic m.room.encryption".split(" "),
];

/** Of everything that is new, only what is looked at here. */
export const NEWS_FILTER = JSON.stringify({
  presence: { types: [] },
  account_data: { types: [] },
  room: {
    timeline: { limit: 50, types: TYPES },
    state: { lazy_load_members: true, types: TYPES.filter((type) => type.startsWith("m.room.")) },
    ephemeral: { types: [] },
    account_data: { types: [] },
  },
});
export const HISTORY_FILTER = JSON.stringify({ types: TYPES });
