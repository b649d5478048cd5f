// The API server: listens, lets in, finds the route, answers. What the routes do is in the files beside this one.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { TrieRouter } from "hono/router/trie-router";
import { messageOf, UserError } from "../../kit/errors.ts";
import { isNestedDeeper, isRecord, parseJson } from "../../kit/json.ts";
import { SessionCompressedError, StoreError } from "../../sessions/store.ts";
import { CallerGoneError, closeServer, drained, listenOn, readWithin } from "../http.ts";
import { aboutRoutes } from "./about.ts";
import { admit } from "./admission.ts";
import { chatRoutes } from "./chat-completions.ts";
import {
  ApiError,
  type ApiParts,
  type Call,
  CLIENT_GONE,
  INTERNAL_ERROR,
  notFound,
  type Reply,
  type Route,
} from "./contract.ts";
import { Idempotency } from "./idempotency.ts";
import { jobRoutes } from "./jobs.ts";
import { Responses } from "./responses.ts";
import { Runs } from "./runs.ts";
import { sessionChatRoutes } from "./session-chat.ts";
import { sessionRoutes } from "./sessions.ts";
import { type ApiSettings, type ModelRoute, PORT_SETTING } from "./settings.ts";
import { Turns } from "./turns.ts";

/** What every route works with. */
export interface Api {
  readonly parts: ApiParts;
  readonly settings: ApiSettings;
  readonly turns: Turns;
  readonly runs: Runs;
  readonly responses: Responses;
  readonly idempotency: Idempotency;
  /** Unix seconds. */
  readonly startedAt: number;
  /** The model behind a name that a client sends; undefined: the agent's own. */
  modelFor(name: unknown): ModelRoute | undefined;
}

export interface ApiServer {
  /** `http://HOST:PORT`, with the real port. */
  readonly url: string;
  /** Interrupts what runs; nothing is answered any more when it has resolved. */
  close(): Promise<void>;
}

const MAX_BYTES = 10_000_000;
/** No schema of a tool comes near it. */
const MOST_LEVELS = 1_000;
const REQUEST_MS = 60_000;
/** Who takes longer over a few lines holds a connection, and means no request. */
const HEADERS_MS = 20_000;
const LOOK_MS = 5_000;

/** Rejects with a `NotListeningError` when the port is taken. */
export async function startApi(parts: ApiParts, settings: ApiSettings): Promise<ApiServer> {
  const api = await openApi(parts, settings);
  const find = router(api);
  const { createServer } = process.getBuiltinModule("node:http");
  const limits = { requestTimeout: REQUEST_MS, headersTimeout: HEADERS_MS, connectionsCheckingInterval: LOOK_MS };
  const log = parts.home.log.child("api");
  const server: Server = createServer(limits, (incoming, outgoing) => {
    const path = pathOf(incoming.url ?? "/");
    try {
      if (admit(incoming, outgoing, path, settings) === "preflight") return void outgoing.writeHead(204).end();
    } catch (error) {
      return void refuse(api, incoming, outgoing, error);
    }
    const found = find(incoming.method ?? "GET", path);
    void answer(api, incoming, outgoing, found).catch((error) => log.error("a request failed", error));
  });
  let url: string;
  try {
    url = await listenOn(server, { host: settings.host, port: settings.port, setting: PORT_SETTING });
  } catch (error) {
    await api.turns.close();
    throw error;
  }
  server.on("error", (error) => log.error("the API server failed", error));
  return {
    url,
    async close() {
      await Promise.all([api.turns.close(), api.runs.close()]);
      await api.responses.close();
      await closeServer(server);
    },
  };
}

async function openApi(parts: ApiParts, settings: ApiSettings): Promise<Api> {
  const { clock } = parts;
  const api = {
    ...{ parts, settings, turns: new Turns(parts, settings), idempotency: new Idempotency(clock) },
    startedAt: Math.floor(clock.now() / 1000),
    modelFor(name: unknown): ModelRoute | undefined {
      if (typeof name !== "string" || name === "" || name === settings.modelName) return undefined;
      if (Object.hasOwn(settings.routes, name)) return settings.routes[name];
      return settings.directModels ? { model: name } : undefined;
    },
  } as Omit<Api, "runs" | "responses"> as Api; // the two that need it follow
  return Object.assign(api, { runs: await Runs.open(api), responses: new Responses(api) });
}

type Handle = Route["handle"];
type Find = (
  method: string,
  path: string,
) => { readonly handle: Handle; readonly params: Readonly<Record<string, string>> };

/** The table of routes; a path that is known under other methods says which. */
function router(api: Api): Find {
  const routes: readonly Route[] = [
    ...aboutRoutes(api),
    ...chatRoutes(api),
    ...api.responses.routes,
    ...api.runs.routes,
    ...sessionRoutes(api),
    ...sessionChatRoutes(api),
    ...jobRoutes(api),
  ];
  const table = new TrieRouter<Handle>();
  for (const { method, path, handle } of routes) table.add(method, path, handle);
  for (const [path, known] of Map.groupBy(routes, (route) => route.path)) {
    const methods = known.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]));
    const allow = methods.join(", ");
    table.add("ALL", path, async () => {
      throw new ApiError(405, `this address takes ${allow}`, { code: "method_not_allowed", headers: { allow } });
    });
  }
  const unknown = async () => {
    throw notFound("there is nothing at this address; GET /v1/capabilities lists what there is", "not_found");
  };
  return (method, path) => {
    const [found] = table.match(method === "HEAD" ? "GET" : method, path) as [[Handle, Record<string, string>][]]; // what this router of hono's returns
    const [handle, params] = found[0] ?? [unknown, {}];
    return { handle, params };
  };
}

/** As it is matched: an escaped slash stays one. */
function pathOf(url: string): string {
  const path = url.startsWith("/") ? url.replace(/[?#].*$/s, "") : (URL.parse(url)?.pathname ?? url);
  return path.includes("%") ? decoded(path.replaceAll("%25", "%2525"), decodeURI) : path;
}

function decoded(text: string, decode: (text: string) => string): string {
  try {
    return decode(text);
  } catch {
    return text; // no UTF-8: it names nothing of ours
  }
}

async function answer(
  api: Api,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { handle, params }: ReturnType<Find>,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) gone.abort(CLIENT_GONE);
  });
  const call: Call = {
    ...{ incoming, outgoing, headers: incoming.headers, gone: gone.signal },
    query: new URLSearchParams(/\?(.*)$/s.exec(incoming.url ?? "")?.[1] ?? ""),
    param: (name) => decoded(params[name] ?? "", decodeURIComponent),
    body: () => readBody(incoming),
  };
  try {
    const reply = await handle(call);
    if (reply) await write(incoming, outgoing, reply);
  } catch (error) {
    await refuse(api, incoming, outgoing, error);
  }
}

async function readBody(incoming: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const bytes = await readWithin(incoming, MAX_BYTES);
  if (bytes === null) throw new ApiError(413, `the body is larger than ${MAX_BYTES} bytes`, { code: "body_too_large" });
  if (isNestedDeeper(bytes, MOST_LEVELS))
    throw new ApiError(400, `the body is nested deeper than ${MOST_LEVELS} levels`, { code: "invalid_json" });
  const value = parseJson(bytes.toString("utf8"));
  if (isRecord(value)) return value;
  throw new ApiError(400, value === undefined ? "the body is not JSON" : "the body must be a JSON object", {
    code: "invalid_json",
  });
}

/** Says why not. A stream that has begun can only be ended. */
async function refuse(api: Api, incoming: IncomingMessage, outgoing: ServerResponse, error: unknown): Promise<void> {
  if (error instanceof CallerGoneError || outgoing.destroyed) return;
  const told = asApiError(error);
  if (told.status >= 500 && !(error instanceof ApiError)) api.parts.home.log.child("api").error("a call failed", error);
  if (outgoing.headersSent) return void outgoing.end();
  await write(incoming, outgoing, told.reply).catch(() => undefined); // nobody is there any more
}

function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof SessionCompressedError) return new ApiError(409, error.message, { code: "session_compressed" });
  if (error instanceof StoreError && error.code !== "conflict" && error.code !== "invalid")
    return new ApiError(503, error.message, { code: "session_db_unavailable" });
  // A setting, a model that is not connected: words for a person, and nothing that the same call would mend.
  if (error instanceof UserError)
    return new ApiError(400, messageOf(error), { code: "not_possible", headers: { "x-should-retry": "false" } });
  return new ApiError(500, INTERNAL_ERROR, { code: "internal_error" });
}

/** What is left of a body is read away before the end: a connection that closes on unread bytes takes the reply with it. */
async function write(incoming: IncomingMessage, outgoing: ServerResponse, reply: Reply): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(reply.body));
  outgoing.writeHead(reply.status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": String(bytes.length),
    ...(incoming.complete ? {} : { connection: "close" }),
    ...reply.headers,
  });
  outgoing.write(bytes);
  if (!incoming.complete) await drained(incoming);
  outgoing.end();
}
