// Posts as the server sends them, read once at the border, and what its refusals mean.
import { asList, asRecord, asText, type Json, parseJson } from "../../../../kit/json.ts";
import { PlatformError, type ReceivedFile, type SendResult } from "../../contract.ts";
import { CallFailedError, retryAfter, type WebReply } from "../../web-calls.ts";

export interface Post {
  readonly id: string;
  readonly channel: string;
  readonly user: string;
  readonly text: string;
  /** The post that its thread begins with. */
  readonly root?: string;
  /** Milliseconds. */
  readonly createdAt: number;
  readonly editedAt: number;
  readonly deletedAt: number;
  readonly isBot: boolean;
  /** Joined, left, renamed ...: the server wrote it. */
  readonly isSystem: boolean;
  readonly props: Json;
  readonly fileIds: readonly string[];
  readonly files: readonly PostFile[];
}

interface PostFile {
  readonly id: string;
  readonly name: string;
  readonly size: number;
}

/** Null: not a post. Events carry it as JSON inside of JSON. */
export function readPost(value: unknown): Post | null {
  const raw = asRecord(typeof value === "string" ? parseJson(value) : value);
  const [id, channel, user, root] = [raw.id, raw.channel_id, raw.user_id, raw.root_id].map(asText);
  if (!id || !channel || !user) return null;
  const props = asRecord(raw.props);
  const yes = (one: unknown) => one === true || one === "true";
  return {
    ...{ id, channel, user, props, text: asText(raw.message) },
    ...(root ? { root } : {}),
    ...{ createdAt: millis(raw.create_at), editedAt: millis(raw.edit_at), deletedAt: millis(raw.delete_at) },
    isBot: yes(props.from_bot) || yes(props.from_webhook),
    isSystem: asText(raw.type).startsWith("system_"),
    fileIds: asList(raw.file_ids).map(asText),
    files: asList(asRecord(raw.metadata).files).map(readPostFile),
  };
}

const millis = (value: unknown) => (typeof value === "number" ? value : 0);

export function readPostFile(value: unknown): PostFile {
  const file = asRecord(value);
  return { id: asText(file.id), name: asText(file.name) || "file", size: millis(file.size) };
}

/** A list of posts, the oldest first. */
export function readPosts(value: unknown): Post[] {
  const { posts } = asRecord(value);
  const read = Object.values(asRecord(posts)).map(readPost);
  return read.filter((post) => post !== null).sort((a, b) => a.createdAt - b.createdAt);
}

export interface Channel {
  readonly id: string;
  readonly type: "dm" | "group" | "channel";
  readonly name: string;
  readonly topic: string;
  readonly team: string;
  readonly lastPostAt: number;
  /** The two of a direct chat. */
  readonly members: readonly string[];
}

export function readChannel(value: unknown): Channel {
  const raw = asRecord(value);
  const name = asText(raw.name);
  return {
    ...{ id: asText(raw.id), type: channelType(asText(raw.type)), team: asText(raw.team_id) },
    ...{ name: asText(raw.display_name) || name, topic: asText(raw.header), lastPostAt: millis(raw.last_post_at) },
    members: name.includes("__") ? name.split("__") : [],
  };
}

/** Direct, several people, private, open. */
const channelType = (letter: string) => (letter === "D" ? "dm" : letter === "O" ? "channel" : "group");

/** The text without `@name` as a word of its own: not the start of a longer name, not a part of an address. Null: it is not there. */
export function withoutMention(text: string, name: string): string | null {
  let isThere = false;
  const rest = text.replace(/(?<![\w.@-])@([\w.-]+)/g, (whole, word: string) => {
    // The end of a sentence is no part of a name.
    const [bare = ""] = /^[\w-]+(?:\.[\w-]+)*/.exec(word) ?? [];
    if (bare.toLowerCase() !== name.toLowerCase()) return whole;
    isThere = true;
    return word.slice(bare.length);
  });
  return isThere ? rest.trim() : null;
}

type ReceivedType = "text" | "command" | "photo" | "video" | "audio" | "document";

export function typeOf(text: string, [first]: readonly ReceivedFile[]): ReceivedType {
  if (first === undefined) return /^\/[^\s/]+(?:\s|$)/.test(text) ? "command" : "text";
  const [family] = first.mediaType.split("/");
  return family === "image" ? "photo" : family === "video" || family === "audio" ? family : "document";
}

/** An answer that is no success. */
export class RefusedError extends Error {
  override name = "RefusedError";
  readonly status: number;
  /** The server's own name of the failure. */
  readonly id: string;
  readonly retryAfter: number | undefined;
  constructor(reply: WebReply, now: number) {
    const { id, message } = asRecord(reply.json);
    super(asText(message) || `status ${reply.status}`);
    this.status = reply.status;
    this.id = asText(id);
    const reset = Number(reply.headers.get("x-ratelimit-reset"));
    this.retryAfter = retryAfter(reply.headers, now) ?? (reset > 0 && reset < 3600 ? reset : undefined);
  }
}

export function sendFailure(error: unknown): SendResult {
  if (error instanceof CallFailedError) return { failed: error.kind, error: `Mattermost: ${error.message}` };
  if (!(error instanceof RefusedError)) return { failed: "refused", error: String(error) };
  const { status, id, retryAfter: seconds } = error;
  const told = `Mattermost: ${error.message} (${id || status})`;
  if (status === 429) return { failed: "rate_limited", error: told, retryAfter: seconds };
  if (/root_id/.test(id)) return { failed: "thread_gone", error: told };
  if (status === 401 || status === 502 || status === 503) return { failed: "unreachable", error: told };
  // The first try is still being stored, or nobody knows.
  if (status >= 500) return { failed: "unknown", error: told };
  return { failed: "refused", error: told };
}

export function connectFailure(error: unknown): PlatformError {
  if (error instanceof PlatformError) return error;
  if (error instanceof RefusedError && (error.status === 401 || error.status === 403))
    return new PlatformError("refused", `Mattermost refused the token: ${error.message}; set MATTERMOST_TOKEN again`, {
      retryable: false,
      cause: error,
    });
  if (error instanceof RefusedError && error.status === 404)
    return new PlatformError("no_server", "there is no Mattermost at MATTERMOST_URL; set the address of the server", {
      retryable: false,
      cause: error,
    });
  const why = error instanceof Error ? error.message : String(error);
  return new PlatformError("not_connected", `Mattermost could not be reached: ${why}`, {
    retryable: true,
    cause: error,
  });
}
