// signal-cli's daemon as a client sees it: JSON-RPC over HTTP and a stream of events, with the rules and errors of signal-cli 0.14.
import type { ServerResponse } from "node:http";
import { type Answer, type Call, startWebServer, type WebServer } from "./web-server.ts";

type Json = Readonly<Record<string, unknown>>;

interface KeptEvent {
  readonly id: string;
  readonly data: string;
}

export interface SentMessage {
  readonly to: string;
  readonly message: string;
  readonly styles: readonly string[];
  readonly attachments: readonly { readonly type: string; readonly name: string; readonly bytes: Buffer }[];
  readonly quote: { readonly timestamp: number; readonly author: string; readonly message: string } | null;
  readonly timestamp: number;
}

const STYLES = ["BOLD", "ITALIC", "SPOILER", "STRIKETHROUGH", "MONOSPACE"];
const RPC_ERRORS = { user: -1, io: -3, untrusted: -4, rateLimit: -5, method: -32_601, params: -32_602 } as const;

export class SignalServer {
  static readonly ACCOUNT = "+4915100000000";
  readonly sent: SentMessage[] = [];
  readonly deleted: number[] = [];
  readonly groups = new Map<string, string>();
  /** How sending to a number fails: a type of JsonSendMessageResult. */
  readonly failing = new Map<string, string>();
  /** Older versions give events no ids and keep none. */
  keepsEvents = true;
  readonly #attachments = new Map<string, Buffer>();
  readonly #streams = new Set<ServerResponse>();
  #events: KeptEvent[] = [];
  #run = 1000;
  #next = 0;
  #web: WebServer | null = null;

  static async start(): Promise<SignalServer> {
    const server = new SignalServer();
    server.#web = await startWebServer({ handle: (call, response) => server.#handle(call, response) });
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

  // The world.

  /** Somebody writes; resolves to the time that names the message. */
  say(
    from: string,
    text: string | null,
    more: { group?: string; name?: string; uuid?: string; data?: Json; timestamp?: number } = {},
  ): number {
    const timestamp = more.timestamp ?? Date.now() * 1 + ++this.#next;
    const group = more.group === undefined ? {} : { groupInfo: { groupId: more.group, revision: 1, type: "DELIVER" } };
    const data = { timestamp, message: text, expiresInSeconds: 0, viewOnce: false, ...group, ...more.data };
    this.emit({ ...this.#from(from, more), timestamp, dataMessage: data });
    return timestamp;
  }

  edit(from: string, target: number, text: string): void {
    const timestamp = Date.now() + ++this.#next;
    const dataMessage = { timestamp, message: text, expiresInSeconds: 0, viewOnce: false };
    this.emit({ ...this.#from(from, {}), timestamp, editMessage: { targetSentTimestamp: target, dataMessage } });
  }

  delete(from: string, target: number): void {
    const timestamp = Date.now() + ++this.#next;
    this.emit({
      ...this.#from(from, {}),
      timestamp,
      dataMessage: { timestamp, message: null, remoteDelete: { timestamp: target } },
    });
  }

  #from(from: string, { name, uuid }: { name?: string; uuid?: string }) {
    return {
      source: from,
      sourceNumber: from,
      sourceUuid: uuid ?? null,
      sourceName: name ?? "Somebody",
      sourceDevice: 1,
    };
  }

  attachment(bytes: Buffer): string {
    const id = `file${++this.#next}`;
    this.#attachments.set(id, bytes);
    return id;
  }

  emit(envelope: Json): void {
    const data = JSON.stringify({ envelope, account: SignalServer.ACCOUNT });
    const event = { id: `${this.#run}-${++this.#next}`, data };
    if (this.keepsEvents) this.#events = [...this.#events, event].slice(-1000);
    for (const stream of this.#streams) this.#write(stream, event);
  }

  /** Everything that was kept, once more and from the back: what a broken network may do. */
  repeatEvents(): void {
    for (const event of this.#events.toReversed()) for (const stream of this.#streams) this.#write(stream, event);
  }

  endStreams(): void {
    for (const stream of this.#streams) stream.destroy();
  }

  get readers(): number {
    return this.#streams.size;
  }

  #write(stream: ServerResponse, { id, data }: KeptEvent): void {
    stream.write(`${this.keepsEvents ? `id:${id}\n` : ""}event:receive\ndata:${data}\n\n`);
  }

  // The daemon.

  #handle(call: Call, response: ServerResponse): Answer | null {
    const { method, path, headers } = call;
    if (path === "/api/v1/check" && method === "GET") return { status: 200 };
    if (path === "/api/v1/events" && method === "GET") return this.#stream(call, response);
    if (path !== "/api/v1/rpc") return { status: 404 };
    if (method !== "POST") return { status: 405 };
    if (!headers["content-type"]?.startsWith("application/json")) return { status: 415 };
    const { jsonrpc, id, method: name, params } = call.json;
    if (jsonrpc !== "2.0" || typeof name !== "string") return rpcError(id, -32_600, "invalid request");
    const given = Object(params) as Json;
    if (given.account !== SignalServer.ACCOUNT)
      return rpcError(id, RPC_ERRORS.params, "Specified account does not exist");
    return this.#call(id, name, given);
  }

  #stream({ query, headers }: Call, response: ServerResponse): Answer | null {
    if (query.get("account") !== SignalServer.ACCOUNT) return { status: 400 };
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(":\n");
    const last = headers["last-event-id"];
    const known = this.#events.findIndex(({ id }) => id === last);
    if (last !== undefined) for (const event of this.#events.slice(known + 1)) this.#write(response, event);
    this.#streams.add(response);
    response.on("close", () => this.#streams.delete(response));
    return null;
  }

  #call(id: unknown, method: string, params: Json): Answer {
    const fine = (result: unknown): Answer => ({ status: 200, body: { jsonrpc: "2.0", result, id } });
    const address = receiverOf(params);
    switch (method) {
      case "send":
        return this.#send(id, params, address);
      case "listGroups":
        return fine([...this.groups].map(([groupId, name]) => ({ id: groupId, name, isMember: true })));
      case "getAttachment": {
        const bytes = this.#attachments.get(String(params.id));
        return bytes && address !== null
          ? fine({ data: bytes.toString("base64") })
          : rpcError(id, RPC_ERRORS.user, "Could not find attachment");
      }
      case "sendTyping":
        return address === null
          ? rpcError(id, RPC_ERRORS.user, "No recipients given")
          : fine({ timestamp: Date.now(), results: [] });
      case "sendReceipt":
        return Array.isArray(params.targetTimestamp) && ["read", "viewed"].includes(String(params.type))
          ? fine({ timestamp: Date.now(), results: [] })
          : rpcError(id, RPC_ERRORS.user, "Unknown receipt type");
      case "sendReaction":
        return typeof params.emoji === "string" && typeof params.targetTimestamp === "number" && address !== null
          ? fine({ timestamp: Date.now(), results: [] })
          : rpcError(id, RPC_ERRORS.user, "bad reaction");
      case "remoteDelete":
        this.deleted.push(Number(params.targetTimestamp));
        return fine({ timestamp: Date.now(), results: [] });
      default:
        return rpcError(id, RPC_ERRORS.method, "Method not implemented");
    }
  }

  #send(id: unknown, params: Json, address: string | null): Answer {
    const message = String(params.message ?? "");
    const attachments = list(params.attachments).map(readDataUri);
    const styles = list(params.textStyle);
    if (address === null) return rpcError(id, RPC_ERRORS.user, "No recipients given");
    if (address.startsWith("group:") && !this.groups.has(address.slice(6)))
      return rpcError(id, RPC_ERRORS.user, `Group not found: ${address.slice(6)}`);
    if (message === "" && attachments.length === 0)
      return rpcError(id, RPC_ERRORS.user, "Sending empty message is not allowed");
    if (attachments.includes(null)) return rpcError(id, RPC_ERRORS.user, "Failed to add attachment");
    for (const style of styles) {
      const [, start, length, name = ""] = /^(\d+):(\d+):(.+)$/.exec(style) ?? [];
      if (!STYLES.includes(name) || Number(length) < 1 || Number(start) + Number(length) > message.length)
        return rpcError(id, RPC_ERRORS.user, `Invalid textStyle syntax (${style})`);
    }
    if (params.quoteTimestamp !== undefined && !/^(?:\+\d+|[0-9a-f-]{36})$/.test(String(params.quoteAuthor)))
      return rpcError(id, RPC_ERRORS.user, "Invalid phone number for the author of the quote");
    const recipientAddress = { uuid: null, number: address };
    const failure = this.failing.get(address);
    if (failure !== undefined) {
      const results = [
        { recipientAddress, type: failure, ...(failure === "RATE_LIMIT_FAILURE" ? { retryAfterSeconds: 1 } : {}) },
      ];
      const code =
        failure === "RATE_LIMIT_FAILURE"
          ? RPC_ERRORS.rateLimit
          : failure === "NETWORK_FAILURE"
            ? RPC_ERRORS.io
            : RPC_ERRORS.user;
      return rpcError(id, code, "Failed to send message", { response: { timestamp: Date.now(), results } });
    }
    const timestamp = Date.now() + ++this.#next;
    const quote =
      params.quoteTimestamp === undefined
        ? null
        : {
            timestamp: Number(params.quoteTimestamp),
            author: String(params.quoteAuthor),
            message: String(params.quoteMessage ?? ""),
          };
    this.sent.push({
      to: address,
      message,
      styles,
      attachments: attachments.filter((one) => one !== null),
      quote,
      timestamp,
    });
    return {
      status: 200,
      body: { jsonrpc: "2.0", result: { timestamp, results: [{ recipientAddress, type: "SUCCESS" }] }, id },
    };
  }
}

const list = (value: unknown): readonly string[] =>
  value === undefined ? [] : Array.isArray(value) ? value.map(String) : [String(value)];

function receiverOf({ recipient, groupId }: Json): string | null {
  if (typeof groupId === "string") return `group:${groupId}`;
  const [first] = list(recipient);
  return first !== undefined && /^(?:\+\d{7,15}|[0-9a-f-]{36})$/.test(first) ? first : null;
}

function readDataUri(text: string) {
  const [, type = "", name = "", data = ""] = /^data:([^;,]+);filename=([^;,]+);base64,([\w+/=]+)$/.exec(text) ?? [];
  return type === "" ? null : { type, name, bytes: Buffer.from(data, "base64") };
}

function rpcError(id: unknown, code: number, message: string, data: unknown = null): Answer {
  return { status: 200, body: { jsonrpc: "2.0", error: { code, message, data }, id: id ?? null } };
}
