// A Mattermost server as a bot sees it: posts, threads, files, and the socket. Judges requests by the rules of its API, version 4.
import { type WebSocket, WebSocketServer } from "ws";
import { type Answer, type Call, startWebServer, type WebServer } from "./web-server.ts";

export interface MattermostPost {
  readonly id: string;
  readonly channel_id: string;
  readonly user_id: string;
  readonly root_id: string;
  message: string;
  readonly type: string;
  readonly create_at: number;
  update_at: number;
  edit_at: number;
  delete_at: number;
  readonly props: Readonly<Record<string, unknown>>;
  readonly file_ids: readonly string[];
}

interface Channel {
  readonly id: string;
  /** Direct, open, private. */
  readonly type: "D" | "O" | "P";
  readonly name: string;
  delete_at: number;
}

type Json = Readonly<Record<string, unknown>>;

/** Ids have 26 letters and digits. */
const idOf = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "")
    .padEnd(26, "0");

export const BOT = { id: idOf("hermesbot"), name: "hermes", token: "mmtoken1234567890abcdefghi" };
export const ANN = idOf("ann");
export const BOB = idOf("bob");
export const DM = idOf("direct");
export const TOWN = idOf("townsquare");

/** How long the real server knows a pending post again. */
const PENDING_MS = 30_000;
const MOST_RUNES = 16_383;

export class MattermostServer {
  readonly posts: MattermostPost[] = [];
  readonly offences: string[] = [];
  readonly typing: Json[] = [];
  readonly files = new Map<string, { readonly name: string; readonly bytes: Buffer }>();
  readonly channels = new Map<string, Channel>();
  readonly people = new Map([
    [BOT.id, BOT.name],
    [ANN, "ann"],
    [BOB, "bob"],
  ]);
  /** Nothing is known again, as behind a load balancer that asks another machine. */
  forgetsPending = false;
  isTokenValid = true;
  /** Opens sockets and says nothing. */
  isMute = false;
  web!: WebServer;
  readonly #sockets = new Set<WebSocket>();
  readonly #pending = new Map<string, { readonly post: string; readonly at: number }>();
  #serial = 0;
  #lastAt = 0;

  static async start(): Promise<MattermostServer> {
    const server = new MattermostServer();
    server.channel(DM, "D", [BOT.id, ANN].sort().join("__"));
    server.channel(TOWN, "O", "town-square");
    const sockets = new WebSocketServer({ noServer: true });
    server.web = await startWebServer({
      handle: (call) => server.#handle(call),
      upgrade: (request, socket, head) => {
        if (request.url !== "/api/v4/websocket") return void socket.destroy();
        sockets.handleUpgrade(request, socket, head, (one) => server.#connected(one));
      },
    });
    return server;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  async close(): Promise<void> {
    this.cut();
    await this.web.close();
  }

  channel(id: string, type: Channel["type"], name: string): void {
    this.channels.set(id, { id, type, name, delete_at: 0 });
  }

  /** What the bot wrote and nobody deleted. */
  written(channel?: string): readonly MattermostPost[] {
    return this.posts.filter(
      (post) =>
        post.user_id === BOT.id && post.delete_at === 0 && (channel === undefined || post.channel_id === channel),
    );
  }

  say(
    channel: string,
    message: string,
    more: { user?: string; root?: string; files?: readonly string[]; props?: Json; type?: string } = {},
  ): string {
    const { user = ANN, root = "", files = [], props = {}, type = "" } = more;
    return this.#add({ channel_id: channel, user_id: user, root_id: root, message, props, file_ids: files, type }).id;
  }

  rewrite(id: string, message: string): void {
    const post = this.posts.find((one) => one.id === id) ?? fail(`no post ${id}`);
    post.message = message;
    post.edit_at = post.update_at = this.#now();
    this.event("post_edited", { post: JSON.stringify(this.#shown(post)) });
  }

  erase(id: string): void {
    const post = this.posts.find((one) => one.id === id) ?? fail(`no post ${id}`);
    post.delete_at = post.update_at = this.#now();
    this.event("post_deleted", { post: JSON.stringify(this.#shown(post)) });
  }

  file(name: string, bytes: Buffer): string {
    const id = this.#id("file");
    this.files.set(id, { name, bytes });
    return id;
  }

  event(event: string, data: Json): void {
    for (const socket of this.#sockets)
      socket.send(JSON.stringify({ event, data, broadcast: {}, seq: ++this.#serial }));
  }

  /** The network is gone for everybody who is connected. */
  cut(): void {
    for (const socket of this.#sockets) socket.terminate();
    this.#sockets.clear();
  }

  #connected(socket: WebSocket): void {
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("message", (raw) => {
      const { action, seq, data = {} } = JSON.parse(String(raw)) as { action?: string; seq?: number; data?: Json };
      if (typeof seq !== "number" || typeof action !== "string") return this.#offend("a frame without action or seq");
      if (action === "authentication_challenge") return this.#greet(socket, seq, data);
      if (!this.#sockets.has(socket)) return this.#offend(`${action} before the challenge`);
      if (action === "user_typing") this.typing.push(data);
      socket.send(
        JSON.stringify({ status: "OK", seq_reply: seq, ...(action === "ping" ? { data: { text: "pong" } } : {}) }),
      );
    });
  }

  #greet(socket: WebSocket, seq: number, { token }: Json): void {
    if (this.isMute) return;
    if (token !== BOT.token || !this.isTokenValid) {
      socket.send(JSON.stringify({ status: "FAIL", seq_reply: seq, error: { id: "api.web_socket_router.bad_token" } }));
      return socket.close();
    }
    this.#sockets.add(socket);
    socket.send(JSON.stringify({ status: "OK", seq_reply: seq }));
    const data = { server_version: "11.0.0", connection_id: this.#id("connection") };
    socket.send(JSON.stringify({ event: "hello", data, broadcast: { user_id: BOT.id }, seq: 0 }));
  }

  #handle(call: Call): Answer {
    const path = call.path.replace(/^\/api\/v4/, "");
    if (path === call.path) return refusal(404, "api.context.404.app_error", "Sorry, we could not find the page.");
    if (call.headers.authorization !== `Bearer ${BOT.token}` || !this.isTokenValid)
      return refusal(401, "api.context.session_expired.app_error", "Invalid or expired session, please login again.");
    const [, kind = "", id = "", what = "", more = ""] = path.split("/");
    const route = `${call.method} ${kind}${id ? "/ID" : ""}${what ? `/${what}` : ""}${more ? `/${more}` : ""}`;
    switch (route) {
      case "GET users/ID":
        return this.#user(id);
      case "GET users/ID/channels":
        return { status: 200, body: [...this.channels.values()].map((one) => this.#shownChannel(one)) };
      case "GET channels/ID": {
        const channel = this.channels.get(id);
        return channel ? { status: 200, body: this.#shownChannel(channel) } : noChannel();
      }
      case "GET channels/ID/posts":
        return this.#list(id, call);
      case "POST posts":
        return this.#create(call.json);
      case "PUT posts/ID/patch":
        return this.#patch(id, call.json);
      case "DELETE posts/ID":
        this.erase(id);
        return { status: 200, body: { status: "OK" } };
      case "POST files":
        return this.#upload(call);
      case "GET files/ID": {
        const file = this.files.get(id);
        return file ? { status: 200, body: file.bytes } : refusal(404, "app.file_info.get.app_error", "No such file.");
      }
    }
    this.#offend(`there is no ${route}`);
    return refusal(404, "api.context.404.app_error", "Sorry, we could not find the page.");
  }

  #user(id: string): Answer {
    const known = id === "me" ? BOT.id : id;
    const username = this.people.get(known);
    if (!username) return refusal(404, "app.user.missing_account.const", "Unable to find the user.");
    return { status: 200, body: { id: known, username } };
  }

  #list(channel: string, { query }: Call): Answer {
    if (!this.channels.has(channel)) return noChannel();
    const since = Number(query.get("since"));
    if (query.has("since") && (query.has("page") || query.has("per_page") || !(since > 0)))
      this.#offend("since must be a time, and not be used with pages");
    const found = this.posts.filter((post) => post.channel_id === channel && post.update_at > since).slice(-1000);
    const order = found.map(({ id }) => id).toReversed();
    return {
      status: 200,
      body: { order, posts: Object.fromEntries(found.map((post) => [post.id, this.#shown(post)])) },
    };
  }

  #create(body: Json): Answer {
    const {
      channel_id: to,
      message,
      root_id: root = "",
      pending_post_id: pending,
      file_ids: files = [],
      props = {},
    } = body;
    const channel = this.channels.get(String(to));
    if (typeof message !== "string" || !Array.isArray(files) || typeof props !== "object")
      return this.#offend("a post needs a text, a list of files, an object of props");
    if (!channel)
      return refusal(403, "api.context.permissions.app_error", "You do not have the appropriate permissions.");
    if (channel.delete_at > 0)
      return refusal(400, "api.post.create_post.can_not_post_to_deleted.error", "Can not post to deleted channel.");
    if ([...message].length > MOST_RUNES || (message === "" && files.length === 0))
      return this.#offend(`a post has 1 to ${MOST_RUNES} signs`);
    const parent = this.posts.find((post) => post.id === root && post.delete_at === 0);
    if (root !== "" && !parent)
      return refusal(400, "api.post.create_post.root_id.app_error", "Invalid RootId parameter.");
    if (parent && parent.root_id !== "") return this.#offend("a thread begins with a post that is in none");
    const known = this.#pending.get(String(pending));
    if (known && !this.forgetsPending && Date.now() - known.at < PENDING_MS)
      return { status: 201, body: this.#shown(this.posts.find(({ id }) => id === known.post) ?? fail("it is gone")) };
    const post = this.#add({
      ...{ channel_id: channel.id, user_id: BOT.id, root_id: String(root), message, type: "" },
      ...{ props: { ...props, from_bot: "true" }, file_ids: files.map(String) },
    });
    if (typeof pending === "string" && pending !== "") this.#pending.set(pending, { post: post.id, at: Date.now() });
    return { status: 201, body: this.#shown(post) };
  }

  #patch(id: string, { message }: Json): Answer {
    const post = this.posts.find((one) => one.id === id && one.delete_at === 0);
    if (!post) return refusal(404, "app.post.get.app_error", "Unable to get the post.");
    if (typeof message !== "string" || [...message].length > MOST_RUNES) return this.#offend("a patch needs a text");
    if (post.user_id !== BOT.id) return refusal(403, "api.context.permissions.app_error", "Not yours.");
    this.rewrite(id, message);
    return { status: 200, body: this.#shown(post) };
  }

  #upload({ query, body }: Call): Answer {
    const [channel, name] = [query.get("channel_id") ?? "", query.get("filename") ?? ""];
    if (!this.channels.has(channel) || name === "" || body.length === 0)
      return this.#offend("an upload needs all three");
    const id = this.file(name, body);
    return { status: 201, body: { file_infos: [{ id, name, size: body.length }], client_ids: [] } };
  }

  #add(post: Omit<MattermostPost, "id" | "create_at" | "update_at" | "edit_at" | "delete_at">): MattermostPost {
    const at = this.#now();
    const whole = { ...post, id: this.#id("post"), create_at: at, update_at: at, edit_at: 0, delete_at: 0 };
    this.posts.push(whole);
    const channel = this.channels.get(post.channel_id);
    const about = { channel_type: channel?.type, channel_display_name: channel?.name, team_id: "" };
    const sender = `@${this.people.get(post.user_id) ?? "somebody"}`;
    this.event("posted", { ...about, sender_name: sender, post: JSON.stringify(this.#shown(whole)) });
    return whole;
  }

  #shown(post: MattermostPost): Json {
    const files = post.file_ids.map((id) => ({
      id,
      name: this.files.get(id)?.name,
      size: this.files.get(id)?.bytes.length,
    }));
    return { ...post, metadata: files.length > 0 ? { files } : {} };
  }

  #shownChannel(channel: Channel): Json {
    const last = this.posts.findLast((post) => post.channel_id === channel.id)?.create_at ?? 0;
    const display = channel.type === "D" ? "" : channel.name;
    return { ...channel, display_name: display, header: "", team_id: "", last_post_at: last };
  }

  #offend(what: string): Answer {
    this.offences.push(what);
    return refusal(400, "api.context.invalid_body_param.app_error", what);
  }

  #id(kind: string): string {
    return idOf(`${kind}${++this.#serial}x`);
  }

  #now(): number {
    this.#lastAt = Math.max(Date.now(), this.#lastAt + 1);
    return this.#lastAt;
  }
}

const refusal = (status_code: number, id: string, message: string): Answer => ({
  status: status_code,
  body: { id, message, detailed_error: "", request_id: "r1", status_code },
});
const noChannel = () => refusal(404, "app.channel.get.existing.app_error", "Unable to find the existing channel.");

function fail(why: string): never {
  throw new Error(why);
}
