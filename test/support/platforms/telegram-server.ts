// A Bot API on loopback. It judges every call by the vendor's tables, parses what is formatted as the vendor does, hands out updates as the
// vendor does, and breaks on demand.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { MarkdownRefused, parseMarkdownV2, trimmed } from "./telegram-markdown.ts";
import { isPicture, paramsOf, problemOf, REACTIONS, UploadedFile, valueProblem } from "./telegram-rules.ts";
import { type Exchange, type Person, type Posted, Room } from "./telegram-world.ts";

type Params = Readonly<Record<string, unknown>>;

interface Call {
  readonly method: string;
  readonly params: Params;
  status: number;
}

/** What becomes of the next calls of a method. */
type Fault =
  | { readonly kind: "answer"; readonly code: number; readonly description: string; readonly parameters?: Params }
  /** Something in front of the Bot API answers. */
  | { readonly kind: "html"; readonly code: number }
  /** The work is done; the answer never comes, or the connection breaks. */
  | { readonly kind: "silence" | "cut" }
  /** The connection breaks before anything was read. */
  | { readonly kind: "gone" }
  | { readonly kind: "slow"; readonly ms: number };

class Refused extends Error {
  readonly code: number;
  readonly parameters: Params | undefined;
  constructor(code: number, description: string, parameters?: Params) {
    super(description);
    this.code = code;
    this.parameters = parameters;
  }
}

const bad = (why: string) => new Refused(400, `Bad Request: ${why}`);

export class TelegramServer implements Exchange {
  readonly token = "123456:AAtest-token_0123456789abcdefghijk";
  readonly bot: Person = { id: 123456, is_bot: true, first_name: "Hermes", username: "hermes_test_bot" };
  readonly url: string;
  readonly calls: Call[] = [];
  /** Calls that the tables refuse: what a test never wants to see. */
  readonly problems: string[] = [];
  readonly menus = new Map<string, readonly Params[]>();
  /** What was said to people who pressed buttons. */
  readonly answers: string[] = [];
  readonly rooms = new Map<number, Room>();
  /** Updates that somebody asked to throw away. */
  dropped = 0;
  /** Where the public address of a webhook leads. */
  proxy: string | null = null;
  /** The batches come in the wrong order. */
  reversed = false;
  webhook: { readonly url: string; readonly secret: string | undefined } | null = null;
  readonly #port: number;
  readonly #faults: { readonly method: string; readonly fault: Fault }[] = [];
  readonly #files = new Map<string, { readonly bytes: Buffer; readonly path: string }>();
  #server: Server | null = null;
  #updates: Params[] = [];
  #repeated: Params[] = [];
  #allowed: readonly string[] | null = null;
  #lastUpdate = 7000;
  #people = 500;
  #poll: { wake(): void; replaced: boolean } | null = null;
  #delivering = false;

  private constructor(port: number) {
    this.#port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<TelegramServer> {
    const probe = createServer();
    await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
    const { port } = probe.address() as AddressInfo;
    await new Promise((resolve) => probe.close(resolve));
    const telegram = new TelegramServer(port);
    await telegram.up();
    return telegram;
  }

  /** Can be reached, again. */
  async up(): Promise<void> {
    const server = createServer((request, response) => {
      this.#serve(request, response).catch((error) => response.destroy(error));
    });
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#server = server;
  }

  /** Refuses connections; chats and updates stay. */
  async down(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    this.#poll?.wake();
    server?.closeAllConnections();
    if (server) await new Promise((resolve) => server.close(resolve));
  }

  // --- the world

  person(name: string): Person {
    return { id: ++this.#people, is_bot: false, first_name: name };
  }

  dm(person: Person): Room {
    return this.#room({ id: person.id, type: "private", person });
  }

  group(title: string, { isForum = false, type = "supergroup" as "supergroup" | "group" | "channel" } = {}): Room {
    return this.#room({ id: -1_000_000_000_000 - ++this.#people, type, title, isForum });
  }

  #room(options: ConstructorParameters<typeof Room>[0]): Room {
    const known = this.rooms.get(options.id);
    if (known) return known;
    const room = new Room(options, this);
    this.rooms.set(options.id, room);
    return room;
  }

  announce(kind: string, content: Params): void {
    const update = { update_id: ++this.#lastUpdate, [kind]: content };
    const problem = valueProblem("Update", update);
    if (problem !== null) throw new Error(`the look-alike made an update that Telegram would not: ${problem}`);
    if (this.#allowed && !this.#allowed.includes(kind)) return;
    this.#updates.push(update);
    this.#poll?.wake();
    if (this.webhook) void this.#deliver();
  }

  /** What Telegram would not send. */
  announceBroken(fields: Params): void {
    this.#updates.push({ update_id: ++this.#lastUpdate, ...fields });
    this.#poll?.wake();
  }

  keepFile(bytes: Buffer, path: string): string {
    const id = `file-${this.#files.size}-${bytes.length}`;
    this.#files.set(id, { bytes, path });
    return id;
  }

  /** Hands out the newest update once more, although it was acknowledged. */
  repeatLast(): void {
    const last = this.#history.at(-1);
    if (last) this.#repeated.push(last);
    this.#poll?.wake();
    if (this.webhook) void this.#deliver();
  }
  readonly #history: Params[] = [];

  /** Updates that nobody has acknowledged. */
  get pending(): number {
    return this.#updates.length;
  }

  /** `file`: the download of one; it can only be slow. */
  breakNext(method: string, fault: Fault, times = 1): void {
    for (let n = 0; n < times; n++) this.#faults.push({ method, fault });
  }

  /** Forgets what it was to break. */
  healed(): void {
    this.#faults.length = 0;
  }

  of(method: string): readonly Call[] {
    return this.calls.filter((call) => call.method === method);
  }

  // --- HTTP

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(new URL(request.url ?? "/", this.url).pathname);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const file = path.startsWith(`/file/bot${this.token}/`) ? path.slice(`/file/bot${this.token}/`.length) : null;
    if (file !== null) {
      const fault = this.#faultOf("file");
      if (fault?.kind === "slow") await sleep(fault.ms);
      return this.#serveFile(file, response);
    }
    const [, token, method = ""] = /^\/bot([^/]*)\/(\w+)$/.exec(path) ?? [];
    if (token !== this.token)
      return reply(response, token === undefined ? 404 : 401, {
        description: token === undefined ? "Not Found" : "Unauthorized",
      });
    const params = paramsOf(method, request.headers["content-type"] ?? "", Buffer.concat(chunks));
    const call: Call = { method, params, status: 0 };
    this.calls.push(call);
    const fault = this.#faultOf(method);
    if (fault?.kind === "gone") return void response.destroy();
    if (fault?.kind === "slow") await sleep(fault.ms);
    if (fault?.kind === "html") {
      call.status = fault.code;
      response.writeHead(fault.code, { "content-type": "text/html" }).end("<html>Bad Gateway</html>");
      return;
    }
    if (fault?.kind === "answer") {
      call.status = fault.code;
      return reply(response, fault.code, { description: fault.description, parameters: fault.parameters });
    }
    try {
      const result = await this.#answer(method, params, response);
      call.status = 200;
      if (fault?.kind === "silence") return;
      if (fault?.kind === "cut") return void response.destroy();
      reply(response, 200, { result });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      call.status = error.code;
      reply(response, error.code, { description: error.message, parameters: error.parameters });
    }
  }

  #faultOf(method: string): Fault | null {
    const at = this.#faults.findIndex((one) => one.method === method);
    return at === -1 ? null : (this.#faults.splice(at, 1)[0]?.fault ?? null);
  }

  #serveFile(path: string, response: ServerResponse): void {
    const file = [...this.#files.values()].find((one) => one.path === path);
    response.writeHead(file ? 200 : 404, { "content-type": "application/octet-stream" }).end(file?.bytes);
  }

  async #answer(method: string, params: Params, response: ServerResponse): Promise<unknown> {
    const problem = problemOf(method, params);
    if (problem !== null) {
      this.problems.push(problem);
      throw bad(problem);
    }
    switch (method) {
      case "getMe":
        return {
          ...this.bot,
          can_join_groups: true,
          can_read_all_group_messages: true,
          supports_inline_queries: false,
        };
      case "getUpdates":
        return this.#getUpdates(params, response);
      case "setWebhook":
      case "deleteWebhook":
        return this.#setWebhook(method, params);
      case "sendMessage":
        return this.#send(params, { text: String(params.text) });
      case "sendPhoto":
      case "sendAnimation":
      case "sendVideo":
      case "sendAudio":
      case "sendVoice":
      case "sendDocument":
        return this.#sendFile(method.slice(4).toLowerCase(), params);
      case "sendMediaGroup":
        return this.#sendGroup(params);
      case "editMessageText":
        return this.#edit(params);
      case "deleteMessage":
        if (!this.#roomOf(params).messages.delete(Number(params.message_id))) throw bad("message to delete not found");
        return true;
      case "sendChatAction":
        this.#threadOf(this.#roomOf(params), params);
        this.#roomOf(params).typing++;
        return true;
      case "setMessageReaction":
        return this.#react(params);
      case "setMyCommands":
        return this.#setCommands(params);
      case "answerCallbackQuery":
        this.answers.push(String(params.text ?? ""));
        return true;
      case "getFile":
        return this.#getFile(String(params.file_id));
      default:
        throw bad(`the look-alike does not know ${method}`);
    }
  }

  // --- updates

  async #getUpdates(
    { offset = 0, limit = 100, timeout = 0, allowed_updates: allowed }: Params,
    response: ServerResponse,
  ) {
    if (this.webhook)
      throw new Refused(
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
      );
    if (this.#poll) {
      this.#poll.replaced = true;
      this.#poll.wake();
    }
    if (Array.isArray(allowed)) this.#allowed = allowed.map(String);
    const from = Number(offset);
    if (from < 0) this.#updates = this.#updates.slice(from);
    else this.#updates = this.#updates.filter((update) => Number(update.update_id) >= from);
    if (this.#updates.length === 0 && this.#repeated.length === 0 && Number(timeout) > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const poll = { wake: resolve, replaced: false };
      this.#poll = poll;
      response.once("close", resolve);
      await Promise.race([promise, sleep(Number(timeout) * 1000, undefined, { ref: false })]);
      if (this.#poll === poll) this.#poll = null;
      if (poll.replaced)
        throw new Refused(
          409,
          "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
        );
    }
    const batch = [...this.#repeated.splice(0), ...this.#updates.slice(0, Number(limit))];
    this.#history.push(...batch);
    return this.reversed ? batch.reverse() : batch;
  }

  #setWebhook(method: string, params: Params): true {
    if (params.drop_pending_updates === true) {
      this.dropped += this.#updates.length;
      this.#updates = [];
    }
    if (method === "deleteWebhook") {
      this.webhook = null;
      return true;
    }
    const { url, secret_token: secret, allowed_updates: allowed } = params;
    if (!String(url).startsWith("https://")) throw bad("bad webhook: An HTTPS URL must be provided for webhook");
    if (Array.isArray(allowed)) this.#allowed = allowed.map(String);
    this.webhook = { url: String(url), secret: secret === undefined ? undefined : String(secret) };
    void this.#deliver();
    return true;
  }

  /** One after the other, each until it is taken. */
  async #deliver(): Promise<void> {
    if (this.#delivering) return;
    this.#delivering = true;
    for (;;) {
      const [update] = [...this.#repeated, ...this.#updates];
      if (!update || !this.webhook || !this.proxy || !this.#server) break;
      const status = await this.callWebhook(update, this.webhook.secret).catch(() => 0);
      if (status === 200) {
        this.#history.push(update);
        if (!this.#updates.includes(update)) this.#repeated = this.#repeated.filter((one) => one !== update);
        this.#updates = this.#updates.filter((one) => one !== update);
      } else await sleep(50, undefined, { ref: false });
    }
    this.#delivering = false;
  }

  async callWebhook(update: unknown, secret: string | undefined): Promise<number> {
    const { pathname } = new URL(this.webhook?.url ?? "https://unknown/");
    const headers = {
      "content-type": "application/json",
      ...(secret ? { "x-telegram-bot-api-secret-token": secret } : {}),
    };
    const response = await fetch(`${this.proxy}${pathname}`, { method: "POST", headers, body: JSON.stringify(update) });
    await response.arrayBuffer();
    return response.status;
  }

  // --- messages

  #roomOf({ chat_id: id }: Params): Room {
    const room = this.rooms.get(Number(id));
    if (!room) throw bad("chat not found");
    if (room.movedTo !== null)
      throw new Refused(400, "Bad Request: group chat was upgraded to a supergroup chat", {
        migrate_to_chat_id: room.movedTo,
      });
    if (room.closed) throw new Refused(room.closed.code, room.closed.description);
    return room;
  }

  #threadOf(room: Room, { message_thread_id: id }: Params): number | null {
    if (id === undefined) return null;
    if (!room.topics.has(Number(id))) throw bad("message thread not found");
    return Number(id);
  }

  #send(params: Params, content: { readonly text: string; readonly most?: number; readonly file?: Posted["file"] }) {
    const room = this.#roomOf(params);
    const thread = this.#threadOf(room, params);
    const reply = params.reply_parameters as { message_id: number; allow_sending_without_reply?: boolean } | undefined; // the table was asked
    const replyTo = reply && room.messages.has(reply.message_id) ? reply.message_id : null;
    if (reply && replyTo === null && !reply.allow_sending_without_reply) throw bad("message to be replied not found");
    const shown = this.#formatted(content.text, params, content.most ?? 4096);
    if (shown.text === "" && !content.file) throw bad("message text is empty");
    const silent = params.disable_notification === true;
    const posted = room.post({
      from: this.bot,
      ...shown,
      thread,
      replyTo,
      silent,
      buttons: buttonsIn(params),
      file: content.file ?? null,
    });
    return room.asAnswer(posted);
  }

  #formatted(text: string, { parse_mode: mode }: Params, most: number) {
    if (mode !== undefined && mode !== "MarkdownV2") throw bad(`the look-alike does not know the mode ${mode}`);
    try {
      const shown = mode === undefined ? trimmed(text, []) : parseMarkdownV2(text);
      if (shown.text.length > most) throw bad(most === 4096 ? "message is too long" : "message caption is too long");
      return { text: shown.text, entities: shown.entities };
    } catch (error) {
      if (error instanceof MarkdownRefused) throw bad(`can't parse entities: ${error.message}`);
      throw error;
    }
  }

  /** All of them, or none. */
  #sendGroup({ media, ...params }: Params) {
    const items = media as readonly { type: string; media: unknown; caption?: string }[]; // the rules looked at it
    if (items.length < 2 || items.length > 10) throw bad("wrong number of items in the group");
    for (const { media: file } of items)
      if (!(file instanceof UploadedFile) || !isPicture(file)) throw bad("IMAGE_PROCESS_FAILED");
    return items.map(({ type, media: file, caption }) => this.#sendFile(type, { ...params, caption, [type]: file }));
  }

  #sendFile(kind: string, params: Params) {
    const upload = params[kind];
    if (!(upload instanceof UploadedFile)) throw bad(`wrong file identifier/HTTP URL specified`);
    if (upload.bytes.length === 0) throw bad("file must be non-empty");
    if (upload.bytes.length > 50 * 1024 * 1024) throw new Refused(413, "Request Entity Too Large");
    if (kind === "photo" && (!isPicture(upload) || upload.bytes.length > 10 * 1024 * 1024))
      throw bad("IMAGE_PROCESS_FAILED");
    return this.#send(params, { text: String(params.caption ?? ""), most: 1024, file: { kind, upload } });
  }

  #edit(params: Params) {
    const room = this.#roomOf(params);
    const posted = room.messages.get(Number(params.message_id));
    if (!posted) throw bad("message to edit not found");
    if (posted.from.id !== this.bot.id) throw bad("message can't be edited");
    const { text, entities } = this.#formatted(String(params.text), params, 4096);
    const buttons = buttonsIn(params);
    const isSame = [text, entities, buttons].every(
      (one, at) => JSON.stringify(one) === JSON.stringify([posted.text, posted.entities, posted.buttons][at]),
    );
    if (isSame)
      throw bad(
        "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
      );
    posted.past.push(posted.text);
    Object.assign(posted, { text, entities, buttons });
    return room.asAnswer(posted);
  }

  #react(params: Params): true {
    const posted = this.#roomOf(params).messages.get(Number(params.message_id));
    if (!posted) throw bad("message to react not found");
    const [reaction] = (params.reaction ?? []) as readonly { emoji?: string }[]; // the table was asked
    if (reaction && !REACTIONS.has(reaction.emoji ?? "")) throw bad("REACTION_INVALID");
    posted.reaction = reaction?.emoji ?? null;
    return true;
  }

  #setCommands({ commands, scope }: Params): true {
    const list = commands as readonly { command: string; description: string }[]; // the table was asked
    if (list.length > 100) throw bad("BOT_COMMANDS_TOO_MUCH");
    if (list.some(({ command }) => !/^[a-z0-9_]{1,32}$/.test(command))) throw bad("BOT_COMMAND_INVALID");
    if (new Set(list.map(({ command }) => command)).size < list.length) throw bad("BOT_COMMAND_INVALID");
    this.menus.set(String((scope as { type?: string } | undefined)?.type ?? "default"), list); // the table was asked
    return true;
  }

  #getFile(id: string) {
    const file = this.#files.get(id);
    if (!file) throw bad("wrong file_id or the file is temporarily unavailable");
    if (file.bytes.length > 20 * 1024 * 1024) throw bad("file is too big");
    return { file_id: id, file_unique_id: id.slice(0, 8), file_size: file.bytes.length, file_path: file.path };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.webhook = null;
    await this.down();
  }
}

function buttonsIn({ reply_markup: markup }: Params): Posted["buttons"] {
  const rows = (markup as { inline_keyboard?: Posted["buttons"] } | undefined)?.inline_keyboard ?? []; // the table was asked
  if (rows.flat().some(({ text }) => text.trim() === "")) throw bad("inline keyboard button text is empty");
  return rows;
}

function reply(
  response: ServerResponse,
  status: number,
  content: { result?: unknown; description?: string; parameters?: unknown },
): void {
  const body = status === 200 ? { ok: true, result: content.result } : { ok: false, error_code: status, ...content };
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
