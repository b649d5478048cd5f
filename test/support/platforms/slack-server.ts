// Slack on loopback: the Web API as its tables have it, Socket Mode, files. It keeps what it was asked, and breaks on demand.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { judgeCall } from "./slack-rules.ts";

type Args = Readonly<Record<string, string>>;

export interface SlackCall {
  readonly method: string;
  readonly args: Args;
  /** What Slack answered, when that was not `ok`. */
  error?: string;
}

export interface SlackMessage {
  ts: string;
  text: string;
  user?: string;
  bot_id?: string;
  thread_ts?: string;
  parent_user_id?: string;
  blocks?: unknown[];
  metadata?: { event_type: string; event_payload: Record<string, unknown> };
  files?: object[];
  attachments?: object[];
  subtype?: string;
  team?: string;
}

export interface SlackChannel {
  readonly id: string;
  readonly name: string;
  readonly user?: string;
  is_archived: boolean;
  is_member: boolean;
  readonly messages: SlackMessage[];
}

/** What happens to the next calls of a method. `lost`: it is done, and the answer never comes. */
export type SlackFault =
  | { readonly status: number; readonly retryAfter?: number }
  | { readonly error: string }
  | { readonly lost: "closed" | "silence" };

type Result = { readonly ok: boolean; readonly error?: string } & Readonly<Record<string, unknown>>;

interface Said {
  readonly user?: string;
  readonly thread?: string;
  readonly files?: object[];
  readonly bot?: string;
  readonly subtype?: string;
  readonly attachments?: object[];
  /** Seconds ago. */
  readonly ago?: number;
}

export const BOT = { user: "U0000BOT00", id: "B0000BOT00", token: "xoxb-test-1", app: "xapp-test-1" };
export const TEAM = "T0000TEAM0";

export class SlackServer {
  readonly calls: SlackCall[] = [];
  /** What no client of Slack does: unknown methods, wrong types, too long. */
  readonly offences: string[] = [];
  readonly acknowledged: string[] = [];
  readonly statuses = new Map<string, string>();
  readonly reactions: string[] = [];
  readonly ephemeral: Args[] = [];
  readonly uploads = new Map<string, { name: string; bytes: Buffer }>();
  readonly channels = new Map<string, SlackChannel>();
  readonly people = new Map<string, string>([["U0000ANN00", "Ann"]]);
  readonly tokens = new Map<string, { team: string; user: string; bot: string }>([
    [BOT.token, { team: TEAM, user: BOT.user, bot: BOT.id }],
  ]);
  /** How Slack treats a reply to a message that is gone: it says so, or drops the thread without a word. */
  lostThreads: "error" | "silent" = "error";
  /** After which an event that was not acknowledged comes again. */
  retryMs = 3000;
  /** Sends each event twice. */
  doubles = false;
  /** How often each file was fetched. */
  readonly downloads = new Map<string, number>();
  /** The most connections that were open at once. */
  mostConnections = 0;
  /** The app may not read files: Slack shows a page to sign in instead. */
  hidesFiles = false;
  /** No hello, no events: the socket opens and is silent. */
  mute = false;
  readonly #server: Server;
  readonly #socketServer = new WebSocketServer({ noServer: true });
  readonly #sockets = new Set<WebSocket>();
  readonly #faults = new Map<string, SlackFault[]>();
  readonly #tickets = new Set<string>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #serial = 0;
  #lastTs = 0;

  private constructor(server: Server) {
    this.#server = server;
    this.channel("C0000GENER", { name: "general" });
    this.channel("D0000ANN00", { name: "", user: "U0000ANN00" });
  }

  static async start(): Promise<SlackServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const slack = new SlackServer(server);
    server.on("request", (request, response) => {
      slack.#serve(request, response).catch((error) => response.destroy(error));
    });
    server.on("upgrade", (request, socket, head) => {
      const ticket = new URL(request.url ?? "/", slack.origin).searchParams.get("ticket") ?? "";
      if (!slack.#tickets.delete(ticket)) return void socket.destroy();
      slack.#socketServer.handleUpgrade(request, socket, head, (one) => slack.#connected(one));
    });
    return slack;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `${this.origin}/api/`;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const socket of this.#sockets) socket.terminate();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  channel(
    id: string,
    {
      name,
      user,
      archived = false,
      member = true,
    }: { name: string; user?: string; archived?: boolean; member?: boolean },
  ): SlackChannel {
    const channel = { id, name, is_archived: archived, is_member: member, messages: [], ...(user ? { user } : {}) };
    this.channels.set(id, channel);
    return channel;
  }

  messagesIn(channel: string): readonly SlackMessage[] {
    return this.channels.get(channel)?.messages ?? [];
  }

  /** What the bot wrote, oldest first. */
  written(channel?: string): readonly SlackMessage[] {
    const all = channel ? this.messagesIn(channel) : [...this.channels.values()].flatMap(({ messages }) => messages);
    return all.filter(({ bot_id: bot }) => [...this.tokens.values()].some((one) => one.bot === bot));
  }

  of(method: string): readonly SlackCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  fail(method: string, ...faults: readonly SlackFault[]): void {
    this.#faults.set(method, [...(this.#faults.get(method) ?? []), ...faults]);
  }

  /** Forgets what was to fail. */
  healed(): void {
    this.#faults.clear();
  }

  /** Somebody writes. Whoever is connected is told; who is not can read it in the history. */
  say(channelId: string, text: string, said: Said = {}): string {
    const message: SlackMessage = {
      ts: this.#ts(said.ago ?? 0),
      text,
      team: TEAM,
      ...(said.bot ? { bot_id: said.bot } : { user: said.user ?? "U0000ANN00" }),
      ...(said.bot && said.user ? { user: said.user } : {}),
      ...(said.bot && !said.user ? { subtype: "bot_message" } : {}),
      ...(said.thread ? { thread_ts: said.thread } : {}),
      ...(said.files ? { files: said.files, subtype: "file_share" } : {}),
      ...(said.subtype ? { subtype: said.subtype } : {}),
      ...(said.attachments ? { attachments: said.attachments } : {}),
    };
    const parent = this.messagesIn(channelId).find(({ ts }) => ts === said.thread);
    if (parent?.user) message.parent_user_id = parent.user;
    this.channels.get(channelId)?.messages.push(message);
    this.event({ type: "message", channel: channelId, channel_type: kindOf(channelId), ...message });
    if (text.includes(`<@${BOT.user}>`) && !channelId.startsWith("D"))
      this.event({ type: "app_mention", channel: channelId, ...message });
    return message.ts;
  }

  rewrite(channelId: string, ts: string, text: string): void {
    const message = this.messagesIn(channelId).find((one) => one.ts === ts);
    if (!message) throw new Error(`no message ${ts}`);
    const previous = { ...message };
    message.text = text;
    const about = { channel: channelId, channel_type: kindOf(channelId), ts: this.#ts(0), hidden: true };
    this.event({ type: "message", subtype: "message_changed", ...about, message, previous_message: previous });
  }

  erase(channelId: string, ts: string): void {
    const messages = this.channels.get(channelId)?.messages ?? [];
    const [previous] = messages.splice(
      messages.findIndex((one) => one.ts === ts),
      1,
    );
    const about = { channel: channelId, channel_type: kindOf(channelId), ts: this.#ts(0), hidden: true };
    this.event({ type: "message", subtype: "message_deleted", ...about, deleted_ts: ts, previous_message: previous });
  }

  event(event: object, team = TEAM): string {
    const id = `Ev${++this.#serial}`;
    const payload = { team_id: team, api_app_id: "A1", type: "event_callback", event, event_id: id, event_time: now() };
    this.envelope({ type: "events_api", payload });
    if (this.doubles) this.envelope({ type: "events_api", payload });
    return id;
  }

  /** `/hermes TEXT` in a channel. */
  command(channel: string, text: string, command = "/hermes", user = "U0000ANN00"): string {
    const trigger = `trigger.${++this.#serial}`;
    const payload = {
      ...{ command, text, channel_id: channel, channel_name: "general", user_id: user, user_name: "ann" },
      ...{ team_id: TEAM, trigger_id: trigger, response_url: `${this.origin}/response` },
    };
    this.envelope({ type: "slash_commands", accepts_response_payload: true, payload });
    return trigger;
  }

  /** Presses the button with this action id below a message of the bot. */
  press(channel: string, ts: string, actionId: string, user = "U0000ANN00"): void {
    const message = this.messagesIn(channel).find((one) => one.ts === ts);
    const rows = (message?.blocks ?? []) as { elements?: { action_id: string; value: string; text: object }[] }[];
    const button = rows.flatMap(({ elements = [] }) => elements).find((one) => one.action_id === actionId);
    if (!button) throw new Error(`no button ${actionId} below ${ts}`);
    const payload = {
      ...{ type: "block_actions", team: { id: TEAM }, user: { id: user, username: "ann", team_id: TEAM } },
      ...{ channel: { id: channel }, message, actions: [{ ...button, type: "button", action_ts: String(now()) }] },
      container: { type: "message", message_ts: ts, channel_id: channel, thread_ts: message?.thread_ts },
    };
    this.envelope({ type: "interactive", accepts_response_payload: true, payload });
  }

  /** Sends to one of the sockets, and again until somebody says that it arrived. */
  envelope(body: object): string {
    const id = `envelope-${++this.#serial}`;
    this.#deliver({ envelope_id: id, accepts_response_payload: false, ...body }, 0);
    return id;
  }

  #deliver(envelope: { envelope_id: string; accepts_response_payload: boolean }, attempt: number): void {
    const [socket] = [...this.#sockets].toReversed();
    if (attempt > 3 || this.mute) return;
    if (!socket) {
      // What was sent once waits for a connection; what comes while there is none is only in the history.
      if (attempt > 0) this.#later(this.retryMs, () => this.#deliver(envelope, attempt));
      return;
    }
    const retry = attempt > 0 ? { retry_attempt: attempt, retry_reason: "timeout" } : {};
    socket.send(JSON.stringify({ ...envelope, ...retry }));
    this.#later(this.retryMs, () => {
      if (!this.acknowledged.includes(envelope.envelope_id)) this.#deliver(envelope, attempt + 1);
    });
  }

  #later(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms);
    this.#timers.add(timer);
  }

  /** Slack wants its clients on other connections; it closes the old ones after a while. */
  refresh(reason: "warning" | "refresh_requested" | "link_disabled"): void {
    for (const socket of this.#sockets) {
      socket.send(JSON.stringify({ type: "disconnect", reason, debug_info: { host: "wss-111" } }));
      this.#later(2000, () => socket.close());
    }
  }

  /** The network is gone for everybody who is connected. */
  cut(): void {
    for (const socket of this.#sockets) socket.terminate();
    this.#sockets.clear();
  }

  #connected(socket: WebSocket): void {
    this.#sockets.add(socket);
    this.mostConnections = Math.max(this.mostConnections, this.#sockets.size);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("message", (data) => {
      const { envelope_id: id } = JSON.parse(String(data)) as { envelope_id?: string };
      if (id) this.acknowledged.push(id);
    });
    if (this.mute) return;
    const about = {
      debug_info: { host: "wss-111", approximate_connection_time: 18_060 },
      connection_info: { app_id: "A1" },
    };
    socket.send(JSON.stringify({ type: "hello", num_connections: this.#sockets.size, ...about }));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? "/", this.origin);
    const body = await readAll(request);
    if (pathname.startsWith("/upload/")) return this.#storeUpload(pathname, body, response);
    if (pathname.startsWith("/files/")) return this.#giveFile(pathname, request, response);
    const method = pathname.replace(/^\/api\//, "");
    const args = argsOf(request, body);
    const call: SlackCall = { method, args };
    this.calls.push(call);
    const fault = this.#faults.get(method)?.shift();
    if (fault && "status" in fault) {
      const wait = fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) };
      response.writeHead(fault.status, wait).end("trouble");
      return;
    }
    if (fault && "error" in fault) return json(response, { ok: false, error: fault.error });
    const result = this.#answer(method, args, request);
    if (!result.ok) call.error = result.error ?? "";
    if (fault?.lost === "closed") return void response.destroy();
    if (fault?.lost === "silence") return;
    json(response, result);
  }

  #answer(method: string, args: Args, request: IncomingMessage): Result {
    const offence = request.method === "POST" ? judgeCall(method, args) : "calls with arguments are made by POST";
    if (offence !== null) {
      this.offences.push(offence);
      return { ok: false, error: /no method/.test(offence) ? "unknown_method" : "invalid_arguments", detail: offence };
    }
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
    if (method === "apps.connections.open") {
      if (token !== BOT.app) return { ok: false, error: "invalid_auth" };
      const ticket = `ticket${++this.#serial}`;
      this.#tickets.add(ticket);
      return { ok: true, url: `${this.origin.replace("http", "ws")}/link?ticket=${ticket}&app_id=A1` };
    }
    const us = this.tokens.get(token);
    if (!us) return { ok: false, error: token === "" ? "not_authed" : "invalid_auth" };
    return this.#method(method, args, us);
  }

  #method(method: string, args: Args, us: { team: string; user: string; bot: string }): Result {
    const channel = this.channels.get(args.channel ?? args.channel_id ?? "");
    if ((args.channel ?? args.channel_id) !== undefined && !channel) return { ok: false, error: "channel_not_found" };
    const ok = (more: object = {}): Result => ({ ok: true, ...more });
    const message = channel?.messages.find(({ ts }) => ts === (args.ts ?? args.timestamp));
    switch (method) {
      case "auth.test":
        return ok({ team_id: us.team, team: "Test Team", user: "hermes", user_id: us.user, bot_id: us.bot });
      case "users.info": {
        const name = this.people.get(args.user ?? "");
        if (!name) return { ok: false, error: "user_not_found" };
        return ok({ user: { id: args.user, name: name.toLowerCase(), profile: { display_name: name } } });
      }
      case "conversations.info":
        return ok({ channel: { id: channel?.id, name: channel?.name, topic: { value: "" } } });
      case "conversations.open": {
        const open = [...this.channels.values()].find(({ user }) => user === args.users);
        return open ? ok({ channel: { id: open.id } }) : { ok: false, error: "user_not_found" };
      }
      case "users.conversations":
        return this.#page([...this.channels.values()].map(shownChannel), "channels", args);
      case "conversations.history":
        return this.#history(channel?.messages.filter(isTop).toReversed() ?? [], channel, args);
      case "conversations.replies": {
        const thread = channel?.messages.filter(({ ts, thread_ts: of }) => ts === args.ts || of === args.ts) ?? [];
        return thread.length === 0 ? { ok: false, error: "thread_not_found" } : this.#history(thread, channel, args);
      }
      case "chat.postMessage":
        return this.#post(channel, args, us);
      case "chat.update":
        if (!message) return { ok: false, error: "message_not_found" };
        if (message.bot_id !== us.bot) return { ok: false, error: "cant_update_message" };
        if (Buffer.byteLength(args.text ?? "") > 4000) return { ok: false, error: "msg_too_long" };
        Object.assign(message, { text: args.text }, args.blocks ? { blocks: JSON.parse(args.blocks) } : {});
        return ok({ channel: channel?.id, ts: message.ts, text: args.text });
      case "chat.delete":
        if (!message) return { ok: false, error: "message_not_found" };
        channel?.messages.splice(channel.messages.indexOf(message), 1);
        return ok({ ts: args.ts });
      case "chat.postEphemeral":
        this.ephemeral.push(args);
        return ok({ message_ts: this.#ts(0) });
      case "reactions.add":
      case "reactions.remove":
        if (!message) return { ok: false, error: "message_not_found" };
        this.reactions.push(`${method === "reactions.add" ? "+" : "-"}${args.name}`);
        return ok();
      case "assistant.threads.setStatus":
        this.statuses.set(`${args.channel_id}:${args.thread_ts}`, args.status ?? "");
        return ok();
      case "files.getUploadURLExternal": {
        const id = `F${++this.#serial}`;
        this.uploads.set(id, { name: args.filename ?? "", bytes: Buffer.alloc(0) });
        return ok({ upload_url: `${this.origin}/upload/${id}/${args.length}`, file_id: id });
      }
      case "files.completeUploadExternal":
        return this.#share(channel, args, us);
    }
    return { ok: false, error: "unknown_method" };
  }

  #post(channel: SlackChannel | undefined, args: Args, us: { user: string; bot: string }): Result {
    if (!channel) return { ok: false, error: "channel_not_found" };
    if (channel.is_archived) return { ok: false, error: "is_archived" };
    if (!channel.is_member) return { ok: false, error: "not_in_channel" };
    if (!args.text && !args.blocks) return { ok: false, error: "no_text" };
    const parent = args.thread_ts && channel.messages.some(({ ts }) => ts === args.thread_ts);
    if (args.thread_ts && !parent && this.lostThreads === "error") return { ok: false, error: "thread_not_found" };
    const message: SlackMessage = {
      ts: this.#ts(0),
      text: (args.text ?? "").slice(0, 40_000),
      ...{ user: us.user, bot_id: us.bot },
      ...(parent && args.thread_ts ? { thread_ts: args.thread_ts } : {}),
      ...(args.blocks ? { blocks: JSON.parse(args.blocks) } : {}),
      ...(args.metadata ? { metadata: JSON.parse(args.metadata) } : {}),
    };
    channel.messages.push(message);
    if (message.thread_ts) this.statuses.set(`${channel.id}:${message.thread_ts}`, "");
    this.event({ type: "message", channel: channel.id, channel_type: kindOf(channel.id), ...message });
    return { ok: true, channel: channel.id, ts: message.ts, message };
  }

  #share(channel: SlackChannel | undefined, args: Args, us: { user: string; bot: string }): Result {
    const files = JSON.parse(args.files ?? "[]") as { id: string; title?: string }[];
    if (files.some(({ id }) => !this.uploads.get(id)?.bytes.length)) return { ok: false, error: "file_not_found" };
    if (!channel) return { ok: true, files };
    if (channel.is_archived) return { ok: false, error: "is_archived" };
    const message: SlackMessage = {
      ...{ ts: this.#ts(0), text: args.initial_comment ?? "", user: us.user, bot_id: us.bot, files },
      ...(args.thread_ts ? { thread_ts: args.thread_ts } : {}),
    };
    channel.messages.push(message);
    return { ok: true, files: files.map((file) => ({ ...file, shares: {} })) };
  }

  #history(messages: readonly SlackMessage[], channel: SlackChannel | undefined, args: Args): Result {
    const inRange = messages.filter(({ ts }) => ts > (args.oldest ?? "0") || ts === args.ts);
    const shown = inRange.map(({ metadata, ...message }) => {
      const replies = channel?.messages.filter(({ thread_ts: of, ts }) => of === message.ts && ts !== of) ?? [];
      const latest = replies.at(-1)?.ts;
      return {
        ...{ type: "message", ...message },
        ...(latest ? { reply_count: replies.length, latest_reply: latest } : {}),
        ...(args.include_all_metadata === "true" && metadata ? { metadata } : {}),
      };
    });
    return this.#page(shown, "messages", args);
  }

  #page(all: readonly object[], name: string, args: Args): Result {
    const from = Number(args.cursor ?? 0);
    const to = from + Number(args.limit ?? 100);
    const more = to < all.length ? { next_cursor: String(to) } : { next_cursor: "" };
    return { ok: true, [name]: all.slice(from, to), response_metadata: more, has_more: to < all.length };
  }

  /** A file of somebody, to be fetched with the token. */
  file(name: string, bytes: Buffer, more: object = {}): object {
    const id = `F${++this.#serial}`;
    this.uploads.set(id, { name, bytes });
    return {
      id,
      name,
      size: bytes.length,
      mimetype: "",
      url_private_download: `${this.origin}/files/${id}/${name}`,
      ...more,
    };
  }

  #storeUpload(path: string, body: Buffer, response: ServerResponse): void {
    const [, , id = "", length] = path.split("/");
    const upload = this.uploads.get(id);
    if (!upload || body.length !== Number(length)) {
      this.offences.push(`an upload of ${body.length} bytes where ${length} were announced`);
      return void response.writeHead(400).end();
    }
    upload.bytes = body;
    response.end(`OK - ${body.length}`);
  }

  #giveFile(path: string, request: IncomingMessage, response: ServerResponse): void {
    const upload = this.uploads.get(path.split("/")[2] ?? "");
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
    if (!upload) return void response.writeHead(404).end();
    this.downloads.set(upload.name, (this.downloads.get(upload.name) ?? 0) + 1);
    // Slack does not refuse: it asks to sign in.
    if (this.hidesFiles || !this.tokens.has(token))
      return void response.end("<!DOCTYPE html><html><title>Sign in</title></html>");
    response.end(upload.bytes);
  }

  #ts(ago: number): string {
    const micro = Math.max(Math.round((Date.now() / 1000 - ago) * 1e6), ago > 0 ? 0 : this.#lastTs + 1);
    if (ago === 0) this.#lastTs = micro;
    return `${Math.floor(micro / 1e6)}.${String(micro % 1e6).padStart(6, "0")}`;
  }
}

const now = () => Math.floor(Date.now() / 1000);
const kindOf = (channel: string) => (channel.startsWith("D") ? "im" : channel.startsWith("G") ? "group" : "channel");
const isTop = ({ ts, thread_ts: thread }: SlackMessage) => thread === undefined || thread === ts;
const shownChannel = ({ id, name, user }: SlackChannel) => ({ id, ...(user ? { is_im: true, user } : { name }) });

function argsOf(request: IncomingMessage, body: Buffer): Args {
  const type = request.headers["content-type"] ?? "";
  if (type.startsWith("application/json")) return JSON.parse(String(body)) as Args;
  return Object.fromEntries(new URLSearchParams(String(body)));
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function json(response: ServerResponse, body: object): void {
  response.writeHead(200, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
}
