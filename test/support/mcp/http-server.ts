// An MCP server over HTTP, small enough to misbehave on purpose: it forgets sessions, redirects, and lets nobody in without a token.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface SmallServer {
  readonly origin: string;
  readonly url: string;
  /** Headers of every request, in order. */
  readonly seen: IncomingMessage["headers"][];
  readonly calls: string[];
  readonly sessions: Set<string>;
  /** Answers instead; true = it did. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>) | null;
  close(): Promise<void>;
}

export async function smallServer(): Promise<SmallServer> {
  const server: Server = createServer((request, response) => {
    serve(request, response).catch((error) => response.destroy(error));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const small: SmallServer = {
    origin,
    url: `${origin}/mcp`,
    seen: [],
    calls: [],
    sessions: new Set(),
    intercept: null,
    close() {
      server.closeAllConnections();
      return new Promise((done) => void server.close(() => done()));
    },
  };
  return small;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    small.seen.push(request.headers);
    if (await small.intercept?.(request, response)) return;
    if (request.method !== "POST") return void response.writeHead(405).end();
    const body = JSON.parse(await bodyOf(request));
    const session = request.headers["mcp-session-id"];
    if (body.method === "initialize") {
      const id = randomUUID();
      small.sessions.add(id);
      response.setHeader("mcp-session-id", id);
    } else if (typeof session !== "string" || !small.sessions.has(session)) {
      return json(response, 404, { jsonrpc: "2.0", error: { code: -32001, message: "Session not found" }, id: null });
    }
    if (body.id === undefined) return void response.writeHead(202).end();
    json(response, 200, { jsonrpc: "2.0", id: body.id, result: answer(body) });
  }

  function answer({ method, params }: { method: string; params: Record<string, unknown> }): unknown {
    if (method === "initialize") {
      const serverInfo = { name: "small", version: "1" };
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
    }
    if (method === "tools/list") return { tools: [{ name: "ping", inputSchema: { type: "object" } }] };
    if (method === "tools/call") {
      small.calls.push(String(params.name));
      return { content: [{ type: "text", text: "pong" }] };
    }
    return {};
  }
}

export function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

export async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
}
