// Our MCP server in this process, over HTTP, on a home whose chat platform is the example of the guide; and as a program of its own.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { readApiSettings } from "../../../src/doors/api/settings.ts";
import { serveHttp } from "../../../src/doors/mcp-server/http.ts";
import { openHouse } from "../../../src/doors/mcp-server/server.ts";
import type { OpenHome } from "../../../src/home/open.ts";
import type { SessionStore } from "../../../src/sessions/store.ts";
import { ModelServer } from "../gateway-rig.ts";
import { openRequest } from "../open-request.ts";
import { paperHome } from "../paper-home.ts";
import { PaperServer } from "../platforms/paper-server.ts";
import { environmentFor, launcher, type RunOptions } from "../run-hermes.ts";
import type { TempHome } from "../temp-home.ts";

export const KEY = "a-key-of-the-mcp-test";

export interface Answered {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what they expect
  readonly json: any;
  readonly text: string;
  readonly failed: boolean;
}

export interface McpRig extends AsyncDisposable {
  readonly url: string;
  readonly home: TempHome;
  readonly opened: OpenHome;
  readonly store: SessionStore;
  readonly model: ModelServer;
  readonly paper: PaperServer;
  /** One more client, of either age of the protocol. */
  client(options?: { readonly age?: "legacy" | "auto"; readonly key?: string | null }): Promise<Client>;
  call(name: string, args?: Record<string, unknown>): Promise<Answered>;
}

interface RigOptions {
  readonly key?: string | null;
  readonly acts?: boolean;
  readonly extra?: Readonly<Record<string, unknown>>;
  readonly config?: string;
}

export async function mcpRig({ key = KEY, acts = true, extra = {}, config = "" }: RigOptions = {}): Promise<McpRig> {
  const [model, paper] = await Promise.all([ModelServer.start(), PaperServer.start()]);
  const home = await paperHome(model, paper, { config });
  const { home: opened, store, request } = await openRequest(home, { masked: true });
  const options: Readonly<Record<string, unknown>> = { port: 0, key: key ?? undefined, ...extra };
  const settings = readApiSettings((name) => options[name], opened);
  const parts = { home: opened, store, clock: request.clock, cwd: home.project };
  const house = await openHouse(parts, { limits: settings });
  const server = await serveHttp(parts, house, { settings, acts });
  const open = new Set<Client>();
  const client: McpRig["client"] = async ({ age = "legacy", key: given = key } = {}) => {
    const one = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: age } });
    const headers = given === null ? {} : { authorization: `Bearer ${given}` };
    await one.connect(new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers } }));
    open.add(one);
    return one;
  };
  let usual: Promise<Client> | null = null;
  return {
    ...{ url: server.url, home, opened, store, model, paper, client },
    async call(name, args = {}) {
      usual ??= client();
      return asked(await usual, name, args);
    },
    async [Symbol.asyncDispose]() {
      for (const one of open) await one.close();
      await server.close();
      await store.close();
      await opened.close();
      await Promise.all([model.close(), paper.close()]);
      await home[Symbol.asyncDispose]();
    },
  };
}

/** What a tool answers, as JSON where it is some. */
export async function asked(client: Client, name: string, args: Record<string, unknown> = {}): Promise<Answered> {
  const { content, isError } = await client.callTool({ name, arguments: args }, { timeout: 120_000 });
  const [part] = content;
  const text = part?.type === "text" ? part.text : "";
  let json: unknown = null;
  try {
    json = JSON.parse(text);
  } catch {
    // words of the SDK
  }
  return { json, text, failed: isError === true };
}

/** `hermes mcp serve` as a client starts it. */
export async function stdioClient(home: TempHome, args: readonly string[] = [], options: Partial<RunOptions> = {}) {
  const transport = new StdioClientTransport({
    ...{ command: process.execPath, args: [launcher, "mcp", "serve", ...args] },
    ...{ env: environmentFor({ home, ...options }), cwd: home.project, stderr: "pipe" },
  });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  return { client, pid: transport.pid ?? 0 };
}

/** A chat as the gateway leaves it: its route, and messages with their changes. Answers with the ids of what was said. */
export async function saidInChat(
  { store, opened }: Pick<McpRig, "store" | "opened">,
  chat: { readonly key: string; readonly session: string; readonly name?: string },
  messages: readonly (readonly ["user" | "assistant", string])[],
): Promise<readonly number[]> {
  const work = await store.work();
  const origin = { platform: "paper", chat_id: chat.key, chat_type: "dm", user_name: chat.name ?? "ann" };
  const entry = {
    ...{ session_key: chat.key, session_id: chat.session, platform: "paper", chat_type: "dm", origin },
    ...{ created_at: "2026-05-01T10:00:00.000000", updated_at: "2026-05-01T10:00:00.000000", display_name: "ann" },
  };
  const { realpath, mkdir } = await import("node:fs/promises");
  await mkdir(opened.paths.sessionsDir, { recursive: true });
  await work.setRoute(await realpath(opened.paths.sessionsDir), { sessionKey: chat.key, entry });
  await store.ensure({ id: chat.session, source: "paper" });
  const ids: number[] = [];
  for (const [role, content] of messages) {
    const [id = 0] = await store.append(chat.session, [{ role, content }]);
    await work.note("message", chat.key, `message:${id}`);
    ids.push(id);
  }
  return ids;
}

/** One request as a client sends it, with the key. */
export function mcpPost(
  { url }: Pick<McpRig, "url">,
  body: unknown,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: {
      ...{ authorization: `Bearer ${KEY}`, accept: "application/json, text/event-stream" },
      ...{ "content-type": "application/json", ...headers },
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });
}
