// A small chat server for the platform of docs/example-platform: hands out updates by long polling, takes messages, and fails on demand.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface PaperMessage {
  readonly id: string;
  readonly chat: string;
  readonly thread?: string;
  readonly key: string;
  text: string;
  readonly replyTo?: string;
  readonly question?: string;
  buttons: readonly { readonly label: string; readonly choice: string }[];
  edits: number;
  removed?: boolean;
}

/** What happens to the next messages that are sent, in order. `lost`: accepted, and the answer never comes. */
export type PaperFault =
  | "lost"
  | { readonly status: number; readonly body?: Readonly<Record<string, unknown>> }
  | "reset"
  | "accepted";

interface Update {
  readonly id: number;
  readonly [field: string]: unknown;
}

export class PaperServer {
  readonly url: string;
  readonly token = "paper-token-0123456789";
  readonly messages: PaperMessage[] = [];
  readonly answers: { readonly chat: string; readonly user: string; readonly text: string }[] = [];
  readonly faults: PaperFault[] = [];
  /** A repeat of a key is the message it was. */
  knowsKeys = false;
  /** Threads that are gone. */
  readonly goneThreads = new Set<string>();
  /** How often each update was handed out. */
  readonly handedOut = new Map<number, number>();
  /** Hands everything since this number out again, as some platforms do. */
  replayFrom: number | null = null;
  polls = 0;
  typing = 0;
  readonly #updates: Update[] = [];
  readonly #server = createServer();
  #waiting: (() => void)[] = [];
  #serial = 0;

  private constructor(port: number) {
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<PaperServer> {
    const probe = createServer();
    await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
    const { port } = probe.address() as AddressInfo; // it listens on a port
    await new Promise((resolve) => probe.close(resolve));
    const paper = new PaperServer(port);
    paper.#server.on("request", (request, response) => {
      paper.#serve(request, response).catch((error) => response.destroy(error));
    });
    await new Promise<void>((resolve) => paper.#server.listen(port, "127.0.0.1", resolve));
    return paper;
  }

  /** The variables that set the platform up. */
  get env(): Readonly<Record<string, string>> {
    return { PAPER_URL: this.url, PAPER_TOKEN: this.token, PAPER_ALLOW_ALL_USERS: "true" };
  }

  /** Somebody writes. Answers with the number of the update. */
  say(chat: string, text: string, more: Readonly<Record<string, unknown>> = {}): number {
    return this.#add({ chat, user: chat, text, ...more });
  }

  edit(update: number, text: string | null): number {
    return this.#add({ edits: update, text });
  }

  press(message: PaperMessage, choice: string, user = message.chat): number {
    return this.#add({ chat: message.chat, user, pressed: message.question, choice });
  }

  /** What stands in a chat, oldest first. */
  textsOf(chat: string): readonly string[] {
    return this.messages.filter((message) => message.chat === chat && !message.removed).map(({ text }) => text);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #add(fields: Readonly<Record<string, unknown>>): number {
    const id = this.#updates.length + 1;
    this.#updates.push({ id, at: Date.now() / 1000, ...fields });
    for (const wake of this.#waiting.splice(0)) wake();
    return id;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.url);
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {};
    const reply = (status: number, value: unknown) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(value));
    };
    if (request.headers.authorization !== `Bearer ${this.token}`) return reply(401, { error: "unknown token" });
    if (url.pathname === "/me") return reply(200, { name: "paper", newest: this.#updates.length });
    if (url.pathname === "/updates") return reply(200, await this.#updatesAfter(Number(url.searchParams.get("after"))));
    if (url.pathname === "/typing") {
      this.typing++;
      return reply(200, {});
    }
    if (url.pathname === "/answers") {
      this.answers.push(body);
      return reply(200, {});
    }
    return this.#take(request, url, body, reply, response);
  }

  async #take(
    request: IncomingMessage,
    url: URL,
    body: Readonly<Record<string, unknown>>,
    reply: (status: number, value: unknown) => void,
    response: ServerResponse,
  ): Promise<void> {
    const fault = request.method === "POST" ? (this.faults.shift() ?? "accepted") : "accepted";
    if (fault === "reset") return void response.destroy();
    if (typeof fault === "object") return reply(fault.status, fault.body ?? { error: "refused" });
    const thread = body.thread === undefined ? undefined : String(body.thread);
    if (thread !== undefined && this.goneThreads.has(thread)) return reply(404, { error: "no such thread" });
    const known = this.messages.find(({ id, key }) =>
      request.method === "POST" ? this.knowsKeys && key === body.key : url.pathname === `/messages/${id}`,
    );
    if (request.method !== "POST" && !known) return reply(404, { error: "no such message" });
    const message = known ?? this.#append(body, thread);
    if (request.method === "DELETE") message.removed = true;
    if (request.method === "PUT") {
      message.text = String(body.text);
      message.edits++;
      if (Array.isArray(body.buttons)) message.buttons = body.buttons;
    }
    if (fault === "lost") return; // the connection stays open and nothing comes
    reply(200, { id: message.id });
  }

  #append(body: Readonly<Record<string, unknown>>, thread: string | undefined): PaperMessage {
    const message: PaperMessage = {
      id: `m${++this.#serial}`,
      chat: String(body.chat),
      ...(thread === undefined ? {} : { thread }),
      key: String(body.key),
      text: String(body.text),
      ...(body.reply_to === undefined ? {} : { replyTo: String(body.reply_to) }),
      ...(body.question === undefined ? {} : { question: String(body.question) }),
      buttons: (body.buttons as PaperMessage["buttons"] | undefined) ?? [], // as the adapter sends them
      edits: 0,
    };
    this.messages.push(message);
    return message;
  }

  async #updatesAfter(after: number): Promise<readonly Update[]> {
    this.polls++;
    const from = this.replayFrom ?? after;
    this.replayFrom = null;
    const found = () => this.#updates.filter(({ id }) => id > from);
    if (found().length === 0)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 1000);
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    for (const { id } of found()) this.handedOut.set(id, (this.handedOut.get(id) ?? 0) + 1);
    return found();
  }
}
