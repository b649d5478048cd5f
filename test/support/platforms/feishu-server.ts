// Feishu as an app sees it: tokens, messages and cards, files, and events over the persistent connection or signed calls to a webhook.
import { createCipheriv, createHash } from "node:crypto";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { decodeFrame, encodeFrame } from "../../../src/doors/gateway/platforms/feishu/frames.ts";
import { type Answer, type Call, startWebServer, type WebServer } from "./web-server.ts";

type Json = Readonly<Record<string, unknown>>;

export interface FeishuMessage {
  readonly id: string;
  readonly to: string;
  /** The message it answers. */
  readonly parent: string | undefined;
  readonly inThread: boolean;
  readonly type: string;
  content: Json;
  isDeleted: boolean;
}

const MAX_CARD = 30_000;

export class FeishuServer {
  static readonly APP = "cli_app";
  static readonly SECRET = "feishu-secret";
  static readonly BOT = "ou_bot";
  readonly sent: FeishuMessage[] = [];
  readonly violations: string[] = [];
  /** Answers of the app to events, by the id of the frame. */
  readonly acknowledged = new Map<string, Json>();
  readonly uploads = new Map<string, Buffer>();
  readonly reactions: { readonly message: string; readonly emoji: string; isGone: boolean; readonly id: string }[] = [];
  readonly files = new Map<string, Buffer>();
  /** Messages that were taken back: nothing can answer them. */
  readonly recalled = new Set<string>();
  isSecretValid = true;
  /** Events are cut into so many frames. */
  pieces = 1;
  #known = new Map<string, Json>();
  #uuids = new Map<string, string>();
  #tokens = new Set<string>();
  #sockets = new Set<WebSocket>();
  #next = 0;
  #web: WebServer | null = null;

  static async start(): Promise<FeishuServer> {
    const server = new FeishuServer();
    const sockets = new WebSocketServer({ noServer: true });
    server.#web = await startWebServer({
      handle: (call) => server.#handle(call),
      upgrade: (request, socket: Duplex, head) =>
        request.url?.includes("ticket=fine")
          ? sockets.handleUpgrade(request, socket, head, (client) => server.#serve(client))
          : socket.end("HTTP/1.1 403 Forbidden\r\n\r\n"),
    });
    return server;
  }

  get web(): WebServer {
    if (!this.#web) throw new Error("not started");
    return this.#web;
  }

  get url(): string {
    return this.web.url;
  }

  close(): Promise<void> {
    return this.web.close();
  }

  get connections(): number {
    return this.#sockets.size;
  }

  closeSockets(): void {
    for (const socket of this.#sockets) socket.terminate();
  }

  expireTokens(): void {
    this.#tokens.clear();
  }

  /** The text of a message of the app, as it is now. */
  textOf({ type, content }: FeishuMessage): string {
    if (type !== "interactive") return String(content.text ?? JSON.stringify(content));
    const { body } = content as { body: { elements: readonly { tag: string; content?: string }[] } };
    return body.elements.map((element) => element.content ?? "").join("");
  }

  // The world.

  message(
    user: string,
    text: string,
    more: { group?: boolean; mentioned?: boolean; id?: string; message?: Json } = {},
  ): Json {
    const id = more.id ?? `om_${++this.#next}`;
    const mentions = more.mentioned ? [{ key: "@_user_1", id: { open_id: FeishuServer.BOT }, name: "Hermes" }] : [];
    const message = {
      ...{ message_id: id, create_time: String(Date.now()), chat_id: more.group ? "oc_group" : `oc_${user}` },
      ...{ chat_type: more.group ? "group" : "p2p", message_type: "text", mentions },
      content: JSON.stringify({ text: more.mentioned ? `@_user_1 ${text}` : text }),
      ...more.message,
    };
    this.#known.set(id, message);
    return event("im.message.receive_v1", {
      sender: { sender_id: { open_id: user, union_id: user.replace("ou", "on"), user_id: "u" }, sender_type: "user" },
      message,
    });
  }

  /** Over the persistent connection. */
  say(user: string, text: string, more: Parameters<FeishuServer["message"]>[2] = {}): Json {
    const said = this.message(user, text, more);
    this.push(said);
    return said;
  }

  recall(messageId: string): void {
    this.recalled.add(messageId);
    this.push(
      event("im.message.recalled_v1", { message_id: messageId, chat_id: "oc_x", recall_type: "message_owner" }),
    );
  }

  press(user: string, message: FeishuMessage, label: string): void {
    const { body } = message.content as {
      body: { elements: readonly { text?: { content: string }; behaviors?: readonly { value: Json }[] }[] };
    };
    const button = body.elements.find(({ text }) => text?.content === label);
    const context = { open_message_id: message.id, open_chat_id: message.to };
    this.push(
      event("card.action.trigger", {
        operator: { open_id: user },
        action: { tag: "button", value: button?.behaviors?.[0]?.value },
        context,
      }),
    );
  }

  push(value: Json): string {
    const id = `frame${++this.#next}`;
    const bytes = Buffer.from(JSON.stringify(value));
    const size = Math.ceil(bytes.length / this.pieces);
    for (let index = this.pieces - 1; index >= 0; index--) {
      const headers = Object.entries({
        type: "event",
        message_id: id,
        sum: String(this.pieces),
        seq: String(index),
        trace_id: "t",
      });
      const payload = bytes.subarray(index * size, (index + 1) * size);
      const frame = encodeFrame({ sequence: 1n, log: 2n, service: 7, method: 1, headers, payload });
      for (const socket of this.#sockets) socket.send(frame);
    }
    return id;
  }

  /** As Feishu calls a webhook. */
  call(
    address: string,
    value: Json,
    { key, signedWith = key ?? "" }: { key?: string; signedWith?: string } = {},
  ): Promise<Response> {
    const body = JSON.stringify(key === undefined ? value : { encrypt: encrypted(value, key) });
    const at = Math.floor(Date.now() / 1000);
    const signature = createHash("sha256").update(`${at}nonce${signedWith}${body}`).digest("hex");
    return fetch(address, {
      method: "POST",
      headers: {
        ...{ "content-type": "application/json", "x-lark-request-timestamp": String(at) },
        ...{ "x-lark-request-nonce": "nonce", "x-lark-signature": signature },
      },
      body,
    });
  }

  #serve(socket: WebSocket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => this.#sockets.delete(socket));
    socket.on("message", (raw: Buffer) => {
      const frame = decodeFrame(raw);
      if (!frame) return void this.violations.push("a frame that is none");
      const headers = Object.fromEntries(frame.headers);
      if (frame.method === 0) {
        if (headers.type !== "ping" || frame.service !== 7)
          this.violations.push(`bad control frame ${JSON.stringify(headers)}`);
        const payload = Buffer.from(
          JSON.stringify({ PingInterval: 90, ReconnectCount: -1, ReconnectInterval: 120, ReconnectNonce: 30 }),
        );
        return socket.send(encodeFrame({ ...frame, headers: [["type", "pong"]], payload }));
      }
      const answer = JSON.parse(Buffer.from(frame.payload).toString());
      if (answer.code !== 200 || headers.biz_rt === undefined)
        this.violations.push(`bad answer ${JSON.stringify(answer)}`);
      this.acknowledged.set(headers.message_id ?? "", answer);
    });
  }

  // The open interface.

  #handle(call: Call): Answer {
    const { method, path, json } = call;
    if (path === "/open-apis/auth/v3/tenant_access_token/internal") {
      if (!this.#isApp(json.app_id, json.app_secret)) return failed(200, 10_014, "app secret invalid");
      const token = `t-${++this.#next}`;
      this.#tokens.add(token);
      return { status: 200, body: { code: 0, msg: "ok", tenant_access_token: token, expire: 7200 } };
    }
    if (path === "/callback/ws/endpoint") {
      if (!this.#isApp(json.AppID, json.AppSecret)) return failed(200, 514, "auth failed");
      const address = `${this.url.replace("http", "ws")}/ws?device_id=1&service_id=7&ticket=fine`;
      return { status: 200, body: { code: 0, msg: "", data: { URL: address, ClientConfig: { PingInterval: 120 } } } };
    }
    const token = /^Bearer (.+)$/.exec(call.headers.authorization ?? "")?.[1] ?? "";
    if (!this.#tokens.has(token)) return failed(400, 99_991_663, "Invalid access token for authorization.");
    if (path === "/open-apis/bot/v3/info")
      return { status: 200, body: { code: 0, msg: "ok", bot: { app_name: "Hermes", open_id: FeishuServer.BOT } } };
    if (path.startsWith("/open-apis/contact/v3/users/")) {
      const id = path.split("/").at(-1) ?? "";
      return id === "ou_eve" ? failed(400, 99_991_672, "Access denied") : fine({ user: { name: `Name of ${id}` } });
    }
    if (path === "/open-apis/im/v1/chats")
      return fine({ items: [{ chat_id: "oc_group", name: "Team" }], has_more: false });
    if (path.startsWith("/open-apis/im/v1/chats/")) return fine({ name: "Team" });
    if (path === "/open-apis/im/v1/images" || path === "/open-apis/im/v1/files") return this.#upload(call);
    if (path === "/open-apis/im/v1/messages" && method === "POST") return this.#create(call);
    return this.#onMessage(call, path.split("/").slice(5));
  }

  #isApp(id: unknown, secret: unknown): boolean {
    return id === FeishuServer.APP && secret === FeishuServer.SECRET && this.isSecretValid;
  }

  #upload({ path, headers, body }: Call): Answer {
    const field = path.endsWith("images") ? "image" : "file";
    const isForm = headers["content-type"]?.startsWith("multipart/form-data") && body.includes(`name="${field}_type"`);
    if (!isForm) return failed(400, 234_001, "Invalid request param.");
    const key = `${field === "image" ? "img" : "file"}_${++this.#next}`;
    this.uploads.set(key, body);
    return fine({ [`${field}_key`]: key });
  }

  #create({ query, json }: Call): Answer {
    const kind = query.get("receive_id_type");
    const prefix = { chat_id: "oc_", open_id: "ou_", union_id: "on_" }[kind ?? ""];
    const to = String(json.receive_id);
    if (prefix === undefined || !to.startsWith(prefix))
      return failed(400, 230_001, "Your request contains an invalid request parameter");
    if (to === "oc_elsewhere") return failed(400, 230_002, "Bot/User can NOT be out of the chat.");
    return this.#add(json, { to, parent: undefined, inThread: false });
  }

  #onMessage({ method, json, path, query }: Call, [id = "", what, key]: readonly string[]): Answer {
    const known = this.#known.get(id);
    const ours = this.sent.find((message) => message.id === id);
    if (what === "reply" && method === "POST") {
      if (this.recalled.has(id)) return failed(400, 230_011, "The message was withdrawn.");
      if (!known && !ours) return failed(400, 230_001, "invalid message_id");
      return this.#add(json, {
        to: String(known?.chat_id ?? ours?.to),
        parent: id,
        inThread: json.reply_in_thread === true,
      });
    }
    if (what === "resources" && method === "GET") {
      const bytes = this.files.get(key ?? "");
      return bytes && ["image", "file"].includes(query.get("type") ?? "")
        ? { status: 200, body: bytes }
        : failed(400, 234_003, "File not in msg.");
    }
    if (what === "reactions" && method === "POST") {
      const reaction = {
        message: id,
        emoji: String(Object(json.reaction_type).emoji_type),
        isGone: false,
        id: `r${++this.#next}`,
      };
      this.reactions.push(reaction);
      return fine({ reaction_id: reaction.id });
    }
    if (what === "reactions" && method === "DELETE") {
      for (const reaction of this.reactions) if (reaction.id === key) reaction.isGone = true;
      return fine({});
    }
    if (what === undefined && method === "GET" && known)
      return fine({ items: [{ message_id: id, msg_type: known.message_type, body: { content: known.content } }] });
    if (what === undefined && method === "PATCH" && ours) {
      const problem = contentProblem("interactive", json.content);
      if (problem) return failed(400, 230_099, problem);
      ours.content = JSON.parse(String(json.content));
      return fine({});
    }
    if (what === undefined && method === "DELETE" && ours) {
      ours.isDeleted = true;
      return fine({});
    }
    return failed(404, 99_991_404, `no such thing: ${method} ${path}`);
  }

  #add(json: Json, about: Pick<FeishuMessage, "to" | "parent" | "inThread">): Answer {
    const type = String(json.msg_type);
    const uuid = String(json.uuid ?? "");
    if (uuid.length === 0 || uuid.length > 50) return failed(400, 230_001, "uuid: at most 50 characters");
    const problem = contentProblem(type, json.content);
    if (problem) return failed(400, type === "interactive" ? 230_099 : 230_001, problem);
    const key = `${about.to} ${uuid}`;
    const id = this.#uuids.get(key) ?? `om_${++this.#next}`;
    if (!this.#uuids.has(key))
      this.sent.push({ id, ...about, type, content: JSON.parse(String(json.content)), isDeleted: false });
    this.#uuids.set(key, id);
    return fine({ message_id: id, chat_id: about.to });
  }
}

const fine = (data: Json): Answer => ({ status: 200, body: { code: 0, msg: "success", data } });
const failed = (status: number, code: number, msg: string): Answer => ({ status, body: { code, msg } });

function event(type: string, about: Json): Json {
  const header = {
    event_id: `e${Math.random()}`,
    event_type: type,
    create_time: String(Date.now()),
    token: "verify",
    app_id: FeishuServer.APP,
  };
  return { schema: "2.0", header, event: about };
}

/** Content is JSON inside of JSON; a card of the second version has a body with elements. */
function contentProblem(type: string, content: unknown): string | null {
  if (typeof content !== "string") return "content must be a string";
  const value = JSON.parse(content);
  if (type === "text") return typeof value.text === "string" && value.text !== "" ? null : "text";
  if (type === "image") return typeof value.image_key === "string" ? null : "image_key";
  if (type === "file" || type === "audio" || type === "media")
    return typeof value.file_key === "string" ? null : "file_key";
  if (type !== "interactive") return `unknown msg_type ${type}`;
  if (Buffer.byteLength(content) > MAX_CARD) return "card too large";
  if (value.schema !== "2.0" || !Array.isArray(value.body?.elements)) return "Failed to create card content";
  return value.body.elements.every(({ tag }: { tag: string }) => ["markdown", "button"].includes(tag))
    ? null
    : "unknown element";
}

function encrypted(value: Json, key: string): string {
  const iv = Buffer.alloc(16, 5);
  const cipher = createCipheriv("aes-256-cbc", createHash("sha256").update(key).digest(), iv);
  return Buffer.concat([iv, cipher.update(JSON.stringify(value)), cipher.final()]).toString("base64");
}
