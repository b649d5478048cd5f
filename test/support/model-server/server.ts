// The one thing the tests fake: a model. A real HTTP server on loopback that speaks the three wires, follows a script,
// records what it was sent, simulates a prefix cache and breaks on demand.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { PrefixCache, promptOf } from "./prefix-cache.ts";
import { render } from "./render.ts";
import {
  type Answer,
  isFault,
  type RecordedRequest,
  type Reply,
  type ScriptedUsage,
  type Step,
  type WireName,
} from "./script.ts";

const CHARS_PER_TOKEN = 4;

export class ModelServer {
  /** `http://127.0.0.1:<port>`: the base URL of the Anthropic wire. */
  readonly origin: string;
  /** `<origin>/v1`: the base URL of the two OpenAI wires. */
  readonly url: string;
  readonly requests: RecordedRequest[] = [];
  models: readonly string[] = ["fake-model"];
  /** What the list says about the window of each; null = nothing. */
  window: number | null = null;
  readonly #server: Server;
  readonly #steps: Step[] = [];
  readonly #cache = new PrefixCache();
  #otherwise: Step = { text: "ok" };
  #serial = 0;

  private constructor(server: Server) {
    this.#server = server;
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.url = `${this.origin}/v1`;
  }

  static async start(): Promise<ModelServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const model = new ModelServer(server);
    server.on("request", (request, response) => {
      model.#serve(request, response).catch((error) => response.destroy(error));
    });
    return model;
  }

  /** The next requests get these replies, in order. */
  script(...steps: Step[]): this {
    this.#steps.push(...steps);
    return this;
  }

  /** What every request gets once the script is used up. */
  otherwise(step: Step): this {
    this.#otherwise = step;
    return this;
  }

  /** Forgets the script and the requests, not the cache. */
  clear(): this {
    this.#steps.length = 0;
    this.#otherwise = { text: "ok" };
    this.requests.length = 0;
    return this;
  }

  get last(): RecordedRequest {
    const last = this.requests.at(-1);
    if (!last) throw new Error("the model server has received no request");
    return last;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #listed(id: string) {
    return { id, object: "model", ...(this.window === null ? {} : { context_length: this.window }) };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? "/", this.origin).pathname;
    if (request.method === "GET" && path.endsWith("/models")) {
      return json(response, 200, { object: "list", data: this.models.map((id) => this.#listed(id)) });
    }
    const wire = wireOf(path);
    if (request.method !== "POST" || wire === null)
      return json(response, 404, { error: { message: `no route ${path}` } });
    const raw = await readAll(request);
    const body = JSON.parse(raw);
    const prompt = promptOf(wire, body);
    const left = Promise.withResolvers<void>();
    response.on("close", () => {
      if (!response.writableFinished) left.resolve();
    });
    const recorded: RecordedRequest = {
      wire,
      path,
      headers: request.headers,
      raw,
      body,
      cachedChars: this.#cache.admit(prompt),
      promptChars: prompt.length,
      clientLeft: left.promise,
    };
    this.requests.push(recorded);
    const step = this.#steps.shift() ?? this.#otherwise;
    await this.#reply(typeof step === "function" ? await step(recorded) : step, recorded, response);
  }

  async #reply(reply: Reply, request: RecordedRequest, response: ServerResponse): Promise<void> {
    if (!isFault(reply)) return this.#answer(reply, request, response, Number.POSITIVE_INFINITY, "end");
    switch (reply.fault) {
      case "status":
        return json(
          response,
          reply.status,
          reply.body ?? { error: { message: `status ${reply.status}` } },
          reply.headers,
        );
      case "cut":
        return this.#answer(reply.answer, request, response, reply.after, "cut");
      case "stall":
        return this.#answer(reply.answer, request, response, reply.after, "stall");
      case "unfinished":
        return this.#answer(reply.answer, request, response, -1, "end");
      case "garbage":
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(reply.text);
        return;
      case "reset":
        response.socket?.resetAndDestroy();
    }
  }

  async #answer(
    answer: Answer,
    request: RecordedRequest,
    response: ServerResponse,
    limit: number,
    end: "end" | "cut" | "stall",
  ): Promise<void> {
    const usage = answer.usage === undefined ? measure(request, answer) : answer.usage;
    const rendered = render(request.wire, String(request.body.model), answer, usage, ++this.#serial);
    if (answer.delay) await sleep(answer.delay);
    if (request.body.stream !== true) return json(response, 200, rendered.whole);
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    const count = limit < 0 ? rendered.events.length - rendered.closing : Math.min(limit, rendered.events.length);
    for (const event of rendered.events.slice(0, count)) {
      if (response.destroyed) return;
      response.write(event);
      if (answer.pace) await sleep(answer.pace);
    }
    if (end === "end") response.end();
    if (end === "cut") setTimeout(() => response.socket?.destroy(), 5);
  }
}

function wireOf(path: string): WireName | null {
  if (path.endsWith("/chat/completions")) return "chat";
  if (path.endsWith("/responses")) return "responses";
  if (path.endsWith("/messages")) return "anthropic";
  return null;
}

function measure(request: RecordedRequest, answer: Answer): ScriptedUsage {
  const tokens = (chars: number) => Math.ceil(chars / CHARS_PER_TOKEN);
  const cacheRead = Math.floor(request.cachedChars / CHARS_PER_TOKEN);
  const output = tokens((answer.text ?? "").length + JSON.stringify(answer.toolCalls ?? "").length);
  return {
    input: Math.max(0, tokens(request.promptChars) - cacheRead),
    output,
    cacheRead,
    reasoning: tokens((answer.thinking ?? "").length),
  };
}

function json(response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
