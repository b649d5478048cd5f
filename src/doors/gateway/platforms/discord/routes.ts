// The routes of Discord's HTTP API that are used here. Each takes the limit of its request last.
import type { Rest } from "./rest.ts";
import type { Body, Channel, Command, FilePart, Member, Message, User } from "./shapes.ts";

export interface Limit {
  readonly signal: AbortSignal;
}

/** Kinds of answers to an interaction. */
const ANSWER = { message: 4, later: 6 } as const;

export class Routes {
  readonly #rest: Rest;

  constructor(rest: Rest) {
    this.#rest = rest;
  }

  me(limit: Limit): Promise<User> {
    return this.#rest.request("GET", "/users/@me", limit);
  }

  /** Where the socket is. */
  socket(limit: Limit): Promise<{ readonly url: string }> {
    return this.#rest.request("GET", "/gateway/bot", limit);
  }

  channel(id: string, limit: Limit): Promise<Channel> {
    return this.#rest.request("GET", `/channels/${id}`, limit);
  }

  /** Newest first. */
  messages(
    channel: string,
    query: { readonly limit: number; readonly before?: string },
    limit: Limit,
  ): Promise<readonly Message[]> {
    return this.#rest.request("GET", `/channels/${channel}/messages`, { query, ...limit });
  }

  createMessage(channel: string, { files, ...body }: WithFiles, limit: Limit): Promise<Message> {
    return this.#rest.request("POST", `/channels/${channel}/messages`, { body, files, ...limit });
  }

  editMessage(channel: string, id: string, body: Body, limit: Limit): Promise<Message> {
    return this.#rest.request("PATCH", `/channels/${channel}/messages/${id}`, { body, ...limit });
  }

  deleteMessage(channel: string, id: string, limit: Limit): Promise<void> {
    return this.#rest.request("DELETE", `/channels/${channel}/messages/${id}`, limit);
  }

  showTyping(channel: string, limit: Limit): Promise<void> {
    return this.#rest.request("POST", `/channels/${channel}/typing`, limit);
  }

  react(channel: string, id: string, emoji: string, limit: Limit): Promise<void> {
    return this.#rest.request("PUT", reactionPath(channel, id, emoji), limit);
  }

  unreact(channel: string, id: string, emoji: string, limit: Limit): Promise<void> {
    return this.#rest.request("DELETE", reactionPath(channel, id, emoji), limit);
  }

  /** Below a message. */
  openThread(
    channel: string,
    id: string,
    body: { readonly name: string; readonly auto_archive_duration: number },
    limit: Limit,
  ): Promise<Channel> {
    return this.#rest.request("POST", `/channels/${channel}/messages/${id}/threads`, { body, ...limit });
  }

  /** In a forum. */
  openPost(forum: string, name: string, { files, ...message }: WithFiles, limit: Limit): Promise<Channel> {
    return this.#rest.request("POST", `/channels/${forum}/threads`, { body: { name, message }, files, ...limit });
  }

  member(guild: string, user: string, limit: Limit): Promise<Member> {
    return this.#rest.request("GET", `/guilds/${guild}/members/${user}`, limit);
  }

  commands(application: string, limit: Limit): Promise<readonly Command[]> {
    return this.#rest.request("GET", `/applications/${application}/commands`, limit);
  }

  setCommands(application: string, body: readonly object[], limit: Limit): Promise<unknown> {
    return this.#rest.request("PUT", `/applications/${application}/commands`, { body, ...limit });
  }

  reply(interaction: string, token: string, data: Body, limit: Limit): Promise<unknown> {
    return this.#callback(interaction, token, { type: ANSWER.message, data }, limit);
  }

  /** What was pressed is acknowledged; its message may change later, or never. */
  acknowledge(interaction: string, token: string, limit: Limit): Promise<unknown> {
    return this.#callback(interaction, token, { type: ANSWER.later }, limit);
  }

  #callback(interaction: string, token: string, body: object, limit: Limit): Promise<unknown> {
    const path = `/interactions/${interaction}/${encodeURIComponent(token)}/callback`;
    return this.#rest.request("POST", path, { body, withoutToken: true, ...limit });
  }

  followUp(application: string, token: string, body: Body, limit: Limit): Promise<unknown> {
    const path = `/webhooks/${application}/${encodeURIComponent(token)}`;
    return this.#rest.request("POST", path, { body, withoutToken: true, ...limit });
  }
}

type WithFiles = Body & { readonly files?: readonly FilePart[] };

const reactionPath = (channel: string, id: string, emoji: string) =>
  `/channels/${channel}/messages/${id}/reactions/${encodeURIComponent(emoji)}/@me`;
