// A small web server for platforms that are spoken to over HTTP: keeps what was asked, and fails where a test wants it to.
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The body, if it is JSON. */
  readonly json: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object goes as JSON. */
  readonly body?: string | object | Buffer;
}

/**
 * - `drop`: the connection ends before anything is done.
 * - `lose answer`: everything is done, and the connection ends instead of an answer.
 * - `hang`: everything is done, and no answer ever comes.
 */
export interface Fault {
  readonly on: RegExp | ((call: Call) => boolean);
  readonly what: "drop" | "lose answer" | "hang" | Answer;
  /** How often; once when absent. */
  times?: number;
}

export interface WebServer {
  readonly url: string;
  readonly calls: readonly Call[];
  readonly faults: Fault[];
  /** Calls whose method and path match. */
  callsOf(pattern: RegExp): readonly Call[];
  close(): Promise<void>;
  /** Ends every connection that is open, as a restart of the server does. */
  dropConnections(): void;
}

interface Handlers {
  /** Null: it answers by itself. */
  handle(call: Call, response: ServerResponse): Answer | null | Promise<Answer | null>;
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

export async function startWebServer({ handle, upgrade }: Handlers, port = 0): Promise<WebServer> {
  const calls: Call[] = [];
  const faults: Fault[] = [];
  const sockets = new Set<Socket>();
  const server = createServer(async (request, response) => {
    const call = await readCall(request);
    calls.push(call);
    const fault = takeFault(faults, call);
    if (fault === "drop") return request.socket.destroy();
    if (fault !== null && typeof fault === "object") return write(response, fault);
    const answer = await handle(call, response);
    if (fault === "lose answer") return request.socket.destroy();
    if (fault === "hang" || answer === null) return undefined;
    return write(response, answer);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => undefined);
  });
  if (upgrade) server.on("upgrade", upgrade);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const dropConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    faults,
    callsOf: (pattern) => calls.filter(({ method, path }) => pattern.test(`${method} ${path}`)),
    dropConnections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        dropConnections();
      }),
  };
}

async function readCall(request: IncomingMessage): Promise<Call> {
  const { pathname: path, searchParams: query } = new URL(request.url ?? "/", "http://localhost");
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  return { method: request.method ?? "GET", path, query, headers: request.headers, body, json: jsonOf(body) };
}

function jsonOf(body: Buffer): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(body.toString()));
  } catch {
    return {};
  }
}

function takeFault(faults: Fault[], call: Call): Fault["what"] | null {
  const name = `${call.method} ${call.path}`;
  const index = faults.findIndex(({ on }) => (on instanceof RegExp ? on.test(name) : on(call)));
  const fault = faults[index];
  if (!fault) return null;
  fault.times = (fault.times ?? 1) - 1;
  if (fault.times <= 0) faults.splice(index, 1);
  return fault.what;
}

function write(response: ServerResponse, { status, headers = {}, body = "" }: Answer): void {
  const isRaw = typeof body === "string" || Buffer.isBuffer(body);
  response.writeHead(status, { "content-type": isRaw ? "text/plain" : "application/json", ...headers });
  response.end(isRaw ? body : JSON.stringify(body));
}
