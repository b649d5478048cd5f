// The MCP server over streamable HTTP: who is let in, what a request may weigh, and the two ages of the protocol. Clients of today open a
// session with `initialize`, in which they can cancel a call; newer ones say everything in each request.
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import {
  createMcpHandler,
  isLegacyRequest,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { Clock } from "../../kit/clock.ts";
import { admit } from "../api/admission.ts";
import { ApiError } from "../api/contract.ts";
import type { ApiSettings } from "../api/settings.ts";
import { CallerGoneError, closeServer, drained, headerOf, listenOn, readWithin } from "../http.ts";
import type { Admission, McpParts } from "./contract.ts";
import type { McpHouse } from "./server.ts";

interface HttpOptions {
  readonly settings: Pick<ApiSettings, "host" | "port" | "key" | "origins">;
  readonly acts: boolean;
}

interface HttpServer {
  /** Where clients connect, with the real port. */
  readonly url: string;
  close(): Promise<void>;
}

const PATH = "/mcp";
const MAX_BYTES = 4_000_000;
const REQUEST_MS = 60_000;
const LOOK_MS = 5_000;
/** Requests at once; events_wait holds one each. */
const MOST_CALLS = 256;
const METHODS = ["GET", "POST", "DELETE"];
/** What a web page that is allowed has to send and read besides what the API has. */
const CORS_HEADERS = "Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name";

/** Rejects with a `NotListeningError` when the port is taken. */
export async function serveHttp(
  parts: McpParts,
  house: McpHouse,
  { settings, acts }: HttpOptions,
): Promise<HttpServer> {
  const log = parts.home.log.child("mcp");
  const admission: Admission = { acts, isKnown: settings.key !== null };
  const onerror = (error: Error) => log.debug("a request over HTTP", error);
  const sessions = new Sessions(() => house.serverFor(admission), parts.clock, onerror);
  const modern = createMcpHandler(() => house.serverFor(admission), {
    ...{ legacy: "reject", maxRequestBodySize: MAX_BYTES, onerror },
  });
  let calls = 0;
  const { createServer } = process.getBuiltinModule("node:http");
  const limits = { requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS, connectionsCheckingInterval: LOOK_MS };
  const server = createServer(limits, (incoming, outgoing) => {
    serve(incoming, outgoing).catch(async (error: unknown) => {
      if (error instanceof CallerGoneError || outgoing.destroyed) return;
      if (!(error instanceof ApiError)) log.error("a request failed", error);
      if (outgoing.headersSent) return void outgoing.end();
      await refuse(
        incoming,
        outgoing,
        error instanceof ApiError ? error : new ApiError(500, "internal error; see logs/errors.log of the home"),
      );
    });
  });
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const path = (incoming.url ?? "/").replace(/[?#].*$/s, "");
    const asked = admit(incoming, outgoing, path, settings);
    if (outgoing.hasHeader("access-control-allow-origin"))
      for (const name of ["access-control-allow-headers", "access-control-expose-headers"])
        outgoing.setHeader(name, `${outgoing.getHeader(name)}, ${CORS_HEADERS}`);
    if (asked === "preflight") return void outgoing.writeHead(204).end();
    if (path === "/health") return reply(incoming, outgoing, 200, { status: "ok", platform: "hermes-mcp" });
    if (path !== PATH) throw new ApiError(404, `there is nothing at this address; the MCP server is at ${PATH}`);
    const { method = "" } = incoming;
    if (!METHODS.includes(method))
      throw new ApiError(405, `this address takes ${METHODS.join(", ")}`, { headers: { allow: METHODS.join(", ") } });
    // Only of those that were let in: nobody else can fill the house.
    if (calls >= MOST_CALLS)
      throw new ApiError(503, `${MOST_CALLS} requests are open already; try again`, {
        headers: { "retry-after": "1" },
      });
    calls++;
    outgoing.once("close", () => calls--);
    const body = method === "POST" ? await readWithin(incoming, MAX_BYTES) : undefined;
    if (body === null)
      throw new ApiError(413, `the body is larger than ${MAX_BYTES} bytes`, { code: "body_too_large" });
    const gone = new AbortController();
    outgoing.once("close", () => {
      if (!outgoing.writableFinished) gone.abort();
    });
    const request = requestOf(incoming, body, gone.signal);
    const response = (await isLegacyRequest(request)) ? await sessions.serve(request) : await modern.fetch(request);
    await write(response, outgoing);
  };
  const base = await listenOn(server, { ...settings, setting: "--http" }).catch(async (error: unknown) => {
    await house.close();
    throw error;
  });
  server.on("error", (error) => log.error("the MCP server failed", error));
  return {
    url: `${base}${PATH}`,
    async close() {
      await Promise.all([house.close(), sessions.close(), modern.close()]);
      await closeServer(server);
    },
  };
}

/** What Node has read, as the SDK takes it. The host of its address is ours: who asked for which was looked at before. */
function requestOf({ method = "", headers }: IncomingMessage, body: Buffer | undefined, signal: AbortSignal): Request {
  const given = new Headers();
  for (const name of Object.keys(headers)) given.set(name, headerOf(headers, name));
  const init = { method, headers: given, signal };
  return new Request(`http://localhost${PATH}`, body === undefined ? init : { ...init, body: new Uint8Array(body) });
}

async function write(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) return void outgoing.end();
  // A stream may say nothing for long: its client has to know that it is there.
  outgoing.flushHeaders();
  const body = Readable.fromWeb(response.body as ReadableStream); // the same stream, by the name of the other library
  await pipeline(body, outgoing).catch(() => undefined); // the client hung up: the request's signal has told
}

async function refuse(incoming: IncomingMessage, outgoing: ServerResponse, error: ApiError): Promise<void> {
  const { status, body, headers } = error.reply;
  await reply(incoming, outgoing, status, body, headers).catch(() => undefined); // nobody is there any more
}

async function reply(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(body));
  const facts = { "content-type": "application/json; charset=utf-8", "content-length": String(bytes.length) };
  outgoing.writeHead(status, { ...facts, ...(incoming.complete ? {} : { connection: "close" }), ...headers });
  outgoing.write(bytes);
  if (!incoming.complete) await drained(incoming);
  outgoing.end();
}

// Sessions of the protocol's first age: what a client said in `initialize`, and its calls that run.

const MOST_SESSIONS = 128;
const IDLE_MS = 1_800_000;

interface Session {
  readonly server: McpServer;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** Requests that are being answered. */
  readonly open: Set<Request>;
  usedAt: number;
}

class Sessions {
  readonly #known = new Map<string, Session>();
  readonly #make: () => McpServer;
  readonly #clock: Clock;
  readonly #onerror: (error: Error) => void;

  constructor(make: () => McpServer, clock: Clock, onerror: (error: Error) => void) {
    this.#make = make;
    this.#clock = clock;
    this.#onerror = onerror;
  }

  async serve(request: Request): Promise<Response> {
    const named = request.headers.get("mcp-session-id");
    // After a restart nobody knows it: the client begins a new one.
    const known = named === null ? await this.#begin() : this.#known.get(named);
    if (known === undefined)
      return Response.json(
        { jsonrpc: "2.0", error: { code: -32001, message: "Session not found" }, id: null },
        { status: 404 },
      );
    known.open.add(request);
    known.usedAt = this.#clock.now();
    const over = () => void known.open.delete(request);
    request.signal.addEventListener("abort", over, { once: true });
    try {
      const response = await known.transport.handleRequest(request);
      if (known.transport.sessionId === undefined) await known.server.close();
      if (response.body !== null) return new Response(response.body.pipeThrough(told(over)), response);
      over();
      return response;
    } catch (error) {
      over();
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#known.values()].map(({ server }) => server.close()));
  }

  async #begin(): Promise<Session> {
    await this.#makeRoom();
    const server = this.#make();
    const transport = new WebStandardStreamableHTTPServerTransport({
      ...{ sessionIdGenerator: randomUUID, maxRequestBodySize: MAX_BYTES },
      onsessioninitialized: (id) => void this.#known.set(id, session),
    });
    const session: Session = { server, transport, open: new Set(), usedAt: this.#clock.now() };
    await server.connect(transport);
    transport.onerror = this.#onerror;
    const ended = transport.onclose;
    transport.onclose = () => {
      if (transport.sessionId !== undefined) this.#known.delete(transport.sessionId);
      ended?.();
    };
    return session;
  }

  async #makeRoom(): Promise<void> {
    const now = this.#clock.now();
    const idle = [...this.#known.values()]
      .filter(({ open }) => open.size === 0)
      .sort((one, other) => one.usedAt - other.usedAt);
    const surplus = Math.max(0, this.#known.size - MOST_SESSIONS + 1);
    for (const [at, { server, usedAt }] of idle.entries())
      if (at < surplus || now - usedAt > IDLE_MS) await server.close();
    if (this.#known.size >= MOST_SESSIONS)
      throw new ApiError(503, `${MOST_SESSIONS} clients are connected already; try again`, {
        headers: { "retry-after": "5" },
      });
  }
}

/** Tells when a body was read to its end. */
const told = (over: () => void) => new TransformStream<Uint8Array, Uint8Array>({ flush: over });
