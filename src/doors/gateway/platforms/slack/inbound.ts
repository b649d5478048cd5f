// What Slack sends, read once at the border: messages of events and of the history, commands, pressed buttons.
import { asList, asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { ReceivedFile } from "../../contract.ts";
import { unescapeMrkdwn } from "./markdown.ts";

/** A message as it was written. */
export interface Spoken {
  readonly channel: string;
  readonly ts: string;
  readonly threadTs?: string;
  readonly user?: string;
  readonly botId?: string;
  readonly team?: string;
  readonly text: string;
  readonly files: readonly SharedFile[];
  /** Who wrote the first message of the thread. */
  readonly parentUser?: string;
  /** Messages of others that were passed on with it. */
  readonly shared: readonly string[];
}

export interface SharedFile {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  readonly url: string;
  /** Slack knows more than it says: the file is of another workspace. */
  readonly isHidden: boolean;
  readonly isGone: boolean;
  readonly isVoice: boolean;
  readonly mediaType: string;
}

/** Subtypes that somebody wrote. All others say what happened in the channel: joined, topic set, pinned ... */
const WRITTEN = new Set(["", "file_share", "thread_broadcast", "me_message", "bot_message"]);

/** Null: nobody wrote it. */
export function readMessage(value: unknown, channelId?: string): Spoken | null {
  const event = asRecord(value);
  const channel = channelId ?? asText(event.channel);
  const ts = asText(event.ts);
  if (channel === "" || ts === "" || !WRITTEN.has(asText(event.subtype)) || event.hidden === true) return null;
  const optional = {
    threadTs: asText(event.thread_ts),
    user: asText(event.user),
    botId: asText(event.bot_id),
    team: asText(event.team),
    parentUser: asText(event.parent_user_id),
  };
  return {
    ...Object.fromEntries(Object.entries(optional).filter(([, one]) => one !== "")),
    ...{ channel, ts, text: asText(event.text), files: asList(event.files).map(readFile), shared: sharedIn(event) },
  };
}

type Changed =
  | { readonly type: "edited"; readonly message: Spoken }
  | { readonly type: "deleted"; readonly channel: string; readonly ts: string };

/** What became of an earlier message; null when its words are the same. A link that got a preview counts as changed for Slack. */
export function readChange(value: unknown): Changed | null {
  const event = asRecord(value);
  const channel = asText(event.channel);
  const deleted = asText(event.deleted_ts);
  if (event.subtype === "message_deleted" && deleted !== "") return { type: "deleted", channel, ts: deleted };
  if (event.subtype !== "message_changed") return null;
  const inner = asRecord(event.message);
  // What others have answered in a thread stays, below a stone without words.
  if (inner.subtype === "tombstone") return { type: "deleted", channel, ts: asText(inner.ts) };
  const message = readMessage(inner, channel);
  if (message === null || message.text === asText(asRecord(event.previous_message).text)) return null;
  return { type: "edited", message };
}

function sharedIn(event: Json): string[] {
  return asList(event.attachments)
    .map(asRecord)
    .filter((one) => one.is_share === true || one.is_msg_unfurl === true)
    .map((one) => `${asText(one.author_name) || "somebody"}: ${asText(one.text) || asText(one.fallback)}`);
}

export function readFile(value: unknown): SharedFile {
  const file = asRecord(value);
  const mode = asText(file.mode);
  return {
    id: asText(file.id),
    name: asText(file.name) || asText(file.title) || "file",
    size: typeof file.size === "number" ? file.size : 0,
    url: asText(file.url_private_download) || asText(file.url_private),
    isHidden: file.file_access === "check_file_info",
    isGone: mode === "tombstone" || mode === "hidden_by_limit",
    isVoice: file.subtype === "slack_audio",
    mediaType: asText(file.mimetype),
  };
}

/** The ids of people and channels whose names a text needs. */
export function namedIn(text: string): { readonly users: readonly string[]; readonly channels: readonly string[] } {
  const ids = (pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(([, id = ""]) => id))];
  return { users: ids(/<@([A-Z0-9]+)(?:\|[^<>]*)?>/g), channels: ids(/<#([A-Z0-9]+)\|?>/g) };
}

/** Slack's markup as people see it. Our own name is taken out: it says to whom, not what. */
export function toPlainText(text: string, us: string | undefined, names: ReadonlyMap<string, string>): string {
  const shown = text.replace(/<([^<>\n]+)>/g, (whole, inner: string) => {
    const [target = "", label] = inner.split("|");
    if (target === `@${us}`) return "";
    if (target.startsWith("@")) return `@${names.get(target.slice(1)) ?? label ?? target.slice(1)}`;
    if (target.startsWith("#")) return `#${label || (names.get(target.slice(1)) ?? target.slice(1))}`;
    if (target.startsWith("!subteam")) return label ?? "@group";
    if (target.startsWith("!date")) return label ?? "";
    if (target.startsWith("!")) return `@${(label ?? target.slice(1)).replace(/^@/, "")}`;
    if (!/^(?:https?:\/\/|mailto:|tel:)/.test(target)) return whole;
    const bare = target.replace(/^(?:mailto|tel):/, "");
    return label === undefined || label === bare || target === label ? bare : `${label} (${bare})`;
  });
  return unescapeMrkdwn(shown).trim();
}

export const mentions = (text: string, us: string | undefined) =>
  us !== undefined && (text.includes(`<@${us}>`) || text.includes(`<@${us}|`));

type ReceivedType = "text" | "command" | "photo" | "video" | "audio" | "voice" | "document";

export function typeOf(text: string, files: readonly ReceivedFile[], isVoice: boolean): ReceivedType {
  const [first] = files;
  if (first === undefined) return /^\/[^\s/]+(?:\s|$)/.test(text) ? "command" : "text";
  const [family] = first.mediaType.split("/");
  if (family === "image") return "photo";
  if (family === "video" && !isVoice) return "video";
  if (family === "audio" || family === "video") return isVoice ? "voice" : "audio";
  return "document";
}

/** Somebody typed a command of ours. */
interface SlashCommand {
  readonly text: string;
  readonly channel: string;
  readonly channelName: string;
  readonly user: string;
  readonly userName: string;
  readonly team: string;
  /** Of this one use. */
  readonly id: string;
}

/** `/hermes model x` and, where the app has it as a command of its own, `/model x`. */
export function readCommand(value: unknown): SlashCommand | null {
  const body = asRecord(value);
  const [command, said] = [asText(body.command), asText(body.text).trim()];
  const [channel, user, id] = [asText(body.channel_id), asText(body.user_id), asText(body.trigger_id)];
  if (command === "" || channel === "" || user === "") return null;
  const words = command === "/hermes" ? said.replace(/^\//, "") || "help" : `${command.slice(1)} ${said}`.trim();
  return {
    ...{ text: `/${unescapeMrkdwn(words)}`, channel, user, id },
    ...{ channelName: asText(body.channel_name), userName: asText(body.user_name), team: asText(body.team_id) },
  };
}

/** Somebody pressed a button. */
interface Pressed {
  readonly actionId: string;
  readonly value: string;
  readonly label: string;
  readonly channel: string;
  readonly messageTs: string;
  readonly threadTs?: string;
  readonly user: string;
  readonly userName: string;
  readonly team: string;
}

export function readPress(value: unknown): Pressed | null {
  const body = asRecord(value);
  const [action] = asList(body.actions).map(asRecord);
  if (body.type !== "block_actions" || action === undefined) return null;
  const [user, container] = [asRecord(body.user), asRecord(body.container)];
  const threadTs = asText(container.thread_ts) || asText(asRecord(body.message).thread_ts);
  return {
    ...{ actionId: asText(action.action_id), value: asText(action.value), label: asText(asRecord(action.text).text) },
    channel: asText(container.channel_id) || asText(asRecord(body.channel).id),
    messageTs: asText(container.message_ts),
    ...(threadTs === "" ? {} : { threadTs }),
    user: asText(user.id),
    userName: asText(user.username) || asText(user.name),
    team: asText(asRecord(body.team).id),
  };
}
