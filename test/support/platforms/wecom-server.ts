// WeCom as a smart robot sees it on a long connection: commands and answers joined by ids, messages pushed, files encrypted.
import { createCipheriv, createHash } from "node:crypto";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { startWebServer, type WebServer } from "./web-server.ts";

type Json = Readonly<Record<string, unknown>>;

export interface WeComMessage {
  readonly chat: string;
  readonly type: string;
  readonly content: string;
}

type Fault = { readonly errcode: number; readonly errmsg: string } | "no answer" | "close" | "close before";

const MAX_MARKDOWN = 20_480;
const KEY = Buffer.from("the key of files, 32 bytes long.");

export class WeComServer {
  static readonly BOT = "aib-bot";
  static readonly SECRET = "wecom-secret";
  readonly sent: WeComMessage[] = [];
  readonly violations: string[] = [];
  readonly uploads = new Map<string, { readonly name: string; readonly chunks: Buffer[]; readonly md5: string }>();
  /** What happens to the next commands of a name. */
  readonly faults: { readonly cmd: string; readonly what: Fault }[] = [];
  isSecretValid = true;
  readonly #files = new Map<string, Buffer>();
  #bot: WebSocket | null = null;
  #next = 0;
  #web: WebServer | null = null;

  static async start(): Promise<WeComServer> {
    const server = new WeComServer();
    const sockets = new WebSocketServer({ noServer: true });
    server.#web = await startWebServer({
      handle: ({ path }) => {
        const file = server.#files.get(path);
        return file ? { status: 200, body: file } : { status: 404 };
      },
      upgrade: (request, socket: Duplex, head) =>
        sockets.handleUpgrade(request, socket, head, (client) => server.#serve(client)),
    });
    return server;
  }

  get web(): WebServer {
    if (!this.#web) throw new Error("not started");
    return this.#web;
  }

  get url(): string {
    return this.web.url.replace("http", "ws");
  }

  close(): Promise<void> {
    return this.web.close();
  }

  get isConnected(): boolean {
    return this.#bot !== null;
  }

  closeSocket(): void {
    this.#bot?.terminate();
  }

  /** Somebody writes; resolves to the frame, to push it again. */
  say(user: string, text: string, more: { group?: string; body?: Json } = {}): Json {
    const place = more.group ? { chattype: "group", chatid: more.group } : { chattype: "single" };
    const frame = {
      cmd: "aibot_msg_callback",
      headers: { req_id: `push${++this.#next}` },
      body: {
        ...{ msgid: `msg${this.#next}`, aibotid: WeComServer.BOT, from: { userid: user }, ...place },
        ...{ create_time: Math.floor(Date.now() / 1000), msgtype: "text", text: { content: text }, ...more.body },
      },
    };
    this.push(frame);
    return frame;
  }

  push(frame: Json): void {
    this.#bot?.send(JSON.stringify(frame));
  }

  /** A file that somebody sends, as it lies on WeCom's servers. */
  file(bytes: Buffer): { readonly url: string; readonly aeskey: string } {
    const fill = 32 - (bytes.length % 32);
    const cipher = createCipheriv("aes-256-cbc", KEY, KEY.subarray(0, 16)).setAutoPadding(false);
    const path = `/files/${++this.#next}`;
    this.#files.set(
      path,
      Buffer.concat([cipher.update(Buffer.concat([bytes, Buffer.alloc(fill, fill)])), cipher.final()]),
    );
    return { url: `${this.web.url}${path}`, aeskey: KEY.toString("base64") };
  }

  #serve(socket: WebSocket): void {
    socket
      .on("error", () => undefined)
      .on("close", () => {
        if (this.#bot === socket) this.#bot = null;
      });
    socket.on("message", (raw) => {
      const frame = JSON.parse(String(raw));
      const { cmd, headers, body = {} } = frame;
      if (typeof cmd !== "string" || typeof headers?.req_id !== "string")
        this.violations.push(`bad frame: ${String(raw).slice(0, 100)}`);
      const index = this.faults.findIndex((fault) => fault.cmd === cmd);
      const fault = index === -1 ? null : (this.faults.splice(index, 1)[0]?.what ?? null);
      if (fault === "close before") return socket.terminate();
      const reply = typeof fault === "object" && fault !== null ? fault : this.#answer(socket, cmd, body);
      if (fault === "close") return socket.terminate();
      if (fault !== "no answer") socket.send(JSON.stringify({ headers, ...reply }));
    });
  }

  #answer(socket: WebSocket, cmd: string, body: Json): Json {
    if (cmd === "aibot_subscribe") return this.#subscribe(socket, body);
    if (socket !== this.#bot) return refused(846_601, "not subscribed");
    switch (cmd) {
      case "ping":
        return fine();
      case "aibot_send_msg":
        return this.#send(body);
      case "aibot_upload_media_init": {
        const id = `upload${++this.#next}`;
        if (
          !Number.isInteger(body.total_chunks) ||
          typeof body.md5 !== "string" ||
          !["file", "image", "voice", "video"].includes(String(body.type))
        )
          return refused(40_058, "invalid parameter");
        this.uploads.set(id, { name: String(body.filename), chunks: [], md5: body.md5 });
        return fine({ upload_id: id });
      }
      case "aibot_upload_media_chunk": {
        const chunk = Buffer.from(String(body.base64_data), "base64");
        if (chunk.length > 512 * 1024) return refused(40_058, "chunk too large");
        const upload = this.uploads.get(String(body.upload_id));
        if (!upload) return refused(40_007, "invalid upload_id");
        upload.chunks[Number(body.chunk_index)] = chunk;
        return fine();
      }
      case "aibot_upload_media_finish": {
        const upload = this.uploads.get(String(body.upload_id));
        const md5 = createHash("md5")
          .update(Buffer.concat(upload?.chunks ?? []))
          .digest("hex");
        return upload && md5 === upload.md5
          ? fine({ type: "file", media_id: String(body.upload_id) })
          : refused(40_006, "md5 mismatch");
      }
      default:
        return refused(40_001, `unknown command ${cmd}`);
    }
  }

  /** One connection for a bot: the newest. */
  #subscribe(socket: WebSocket, body: Json): Json {
    if (body.bot_id !== WeComServer.BOT || body.secret !== WeComServer.SECRET || !this.isSecretValid)
      return refused(853_000, "invalid bot_id or secret");
    const event = { event: { eventtype: "disconnected_event" }, msgtype: "event", msgid: `e${++this.#next}` };
    this.#bot?.send(
      JSON.stringify({ cmd: "aibot_event_callback", headers: { req_id: `push${this.#next}` }, body: event }),
    );
    this.#bot?.close();
    this.#bot = socket;
    return fine();
  }

  #send(body: Json): Json {
    const { chatid: chat, msgtype: type } = body;
    const part = Object(body[String(type)]);
    if (typeof chat !== "string" || chat === "") return refused(40_058, "chatid is required");
    if (chat.startsWith("nobody")) return refused(846_605, "the user has not written to this bot");
    const content = String(part.content ?? part.media_id ?? "");
    if (type === "markdown" && (content === "" || Buffer.byteLength(content) > MAX_MARKDOWN))
      return refused(40_058, "invalid content");
    if (type !== "markdown" && !this.uploads.has(content)) return refused(40_007, "invalid media_id");
    this.sent.push({ chat, type: String(type), content });
    return fine();
  }
}

const fine = (body?: Json): Json => ({ errcode: 0, errmsg: "ok", ...(body ? { body } : {}) });
const refused = (errcode: number, errmsg: string): Json => ({ errcode, errmsg });
