// All traffic of a browser passes here. Names are looked up and judged on this side, and the connection goes to exactly the addresses
// that were judged: redirects, frames, scripts and sockets cannot reach what a navigation may not.
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { AddressCheck } from "./address-check.ts";

const CONNECT_MS = 15_000;

export interface Refusal {
  readonly host: string;
  readonly reason: string;
}

export interface GuardedProxy {
  readonly url: string;
  close(): Promise<void>;
}

export async function startGuardedProxy(
  check: AddressCheck,
  onRefused: (refusal: Refusal) => void,
): Promise<GuardedProxy> {
  const { createServer } = process.getBuiltinModule("node:http");
  const sockets = new Set<Duplex>();
  const keep = (socket: Duplex) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket)).on("error", () => socket.destroy());
  };

  /** A pinned connection, or why there is none. */
  const reach = async (url: URL): Promise<Socket | { readonly status: number; readonly reason: string }> => {
    const verdict = await check(url.href);
    if (!verdict.allowed) {
      onRefused({ host: url.host, reason: verdict.reason });
      return { status: 403, reason: verdict.reason };
    }
    const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
    let problem = "no address";
    for (const address of verdict.addresses) {
      try {
        return await open(address, port);
      } catch (error) {
        problem = error instanceof Error ? error.message : String(error);
      }
    }
    return { status: 502, reason: problem };
  };

  const server = createServer((request, response) => void forward(request, response, reach, keep));
  server.on("connection", keep);
  server.on("connect", async (request: IncomingMessage, client: Duplex, head: Buffer) => {
    const url = parse(`https://${request.url}`);
    const reached = url ? await reach(url) : { status: 400, reason: "no host" };
    if ("reason" in reached) {
      client.end(`HTTP/1.1 ${reached.status} ${reached.status === 403 ? "Refused" : "Unreachable"}\r\n\r\n`);
      return;
    }
    keep(reached);
    client.write("HTTP/1.1 200 OK\r\n\r\n");
    if (head.length > 0) reached.write(head);
    reached.pipe(client).pipe(reached);
    client.once("close", () => reached.destroy());
    reached.once("close", () => client.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the browser's proxy has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

type Reach = (url: URL) => Promise<Socket | { readonly status: number; readonly reason: string }>;

async function forward(
  incoming: IncomingMessage,
  response: ServerResponse,
  reach: Reach,
  keep: (socket: Duplex) => void,
): Promise<void> {
  const url = parse(incoming.url ?? "");
  const reached = url ? await reach(url) : { status: 400, reason: "not a proxy request" };
  if (!url || "reason" in reached) {
    const { status, reason } = "reason" in reached ? reached : { status: 400, reason: "not a proxy request" };
    response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(reason);
    return;
  }
  keep(reached);
  const { request } = process.getBuiltinModule("node:http");
  const { "proxy-connection": _hop, ...headers } = incoming.headers;
  const outgoing = request({
    createConnection: () => reached,
    method: incoming.method,
    path: url.pathname + url.search,
    headers: { ...headers, host: url.host, connection: "close" },
    setHost: false,
  });
  outgoing.once("response", (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    answer.pipe(response);
    answer.once("error", () => response.destroy());
  });
  outgoing.once("error", (error) => {
    if (response.headersSent) response.destroy();
    else response.writeHead(502, { "content-type": "text/plain; charset=utf-8" }).end(error.message);
  });
  response.once("close", () => outgoing.destroy());
  incoming.pipe(outgoing);
}

function open(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const fail = (error: Error) => {
      socket.destroy();
      reject(error);
    };
    socket.setTimeout(CONNECT_MS, () => fail(new Error(`no connection within ${CONNECT_MS / 1000} s`)));
    socket.once("error", fail);
    socket.once("connect", () => {
      socket.setTimeout(0);
      socket.off("error", fail);
      resolve(socket);
    });
  });
}

function parse(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}
