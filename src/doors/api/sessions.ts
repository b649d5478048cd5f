// /api/sessions: the stored conversations of the home, of every door.
import { randomBytes } from "node:crypto";
import { isRecord } from "../../kit/json.ts";
import { holdLane } from "../../sessions/lanes.ts";
import { INSTRUCTIONS_KEY } from "../../sessions/session-id.ts";
import type { EndReason, Session, SessionListItem, SessionStore, StoredMessage } from "../../sessions/store.ts";
import { StoreError } from "../../sessions/store.ts";
import { sessionId } from "./admission.ts";
import { flag, optionalText } from "./content.ts";
import { ApiError, badField, type Call, notFound, type Reply, type Route } from "./contract.ts";
import type { Api } from "./server.ts";

const PAGE = 50;
const LARGEST_PAGE = 200;
const CHANGEABLE = ["title", "end_reason"];
/** In `session_kv`: the model that a program named for a session when it made it. */
export const MODEL_KEY = "api_model";

export function sessionRoutes(api: Api): readonly Route[] {
  const { store } = api.parts;
  return [
    { method: "GET", path: "/api/sessions", handle: (call) => list(store, call) },
    { method: "POST", path: "/api/sessions", handle: (call) => create(api, call) },
    {
      method: "GET",
      path: "/api/sessions/:id",
      handle: async (call) => one(await requireSession(store, call.param("id"))),
    },
    { method: "PATCH", path: "/api/sessions/:id", handle: (call) => change(api, call) },
    { method: "DELETE", path: "/api/sessions/:id", handle: (call) => remove(api, call) },
    { method: "GET", path: "/api/sessions/:id/messages", handle: (call) => messages(store, call) },
    { method: "POST", path: "/api/sessions/:id/fork", handle: (call) => fork(api, call) },
  ];
}

export async function requireSession(store: SessionStore, id: string): Promise<Session> {
  const session = await store.get(id);
  if (session === null) throw notFound(`there is no session ${id.slice(0, 80)}`, "session_not_found");
  return session;
}

async function list(store: SessionStore, { query }: Call): Promise<Reply> {
  const limit = Math.min(LARGEST_PAGE, wholeNumber(query, "limit", PAGE, 1));
  const offset = wholeNumber(query, "offset", 0, 0);
  const source = query.get("source");
  const found = await store.list({
    ...{ limit: limit + 1, offset, orderByLastActive: true },
    includeChildren: flag(query.get("include_children") ?? undefined, false),
    ...(source ? { source } : {}),
  });
  const data = found.slice(0, limit).map((session) => shown(session));
  return { status: 200, body: { object: "list", data, limit, offset, has_more: found.length > limit } };
}

function wholeNumber(query: URLSearchParams, name: string, fallback: number, least: number): number {
  const given = query.get(name);
  if (given === null || given === "") return fallback;
  const number = Number(given);
  if (Number.isSafeInteger(number) && number >= least) return number;
  throw badField(name, `${name} must be a whole number from ${least} on`);
}

async function create(api: Api, call: Call): Promise<Reply> {
  const { store, clock } = api.parts;
  const body = await call.body();
  const given = optionalText(body, "id", { longest: 256 });
  const id = given === undefined ? newId(clock.now()) : sessionId(given, "id");
  if (id.trim() === "") throw badField("id", "id must not be empty", "invalid_session_id");
  const title = titleIn(body);
  const instructions = textIn(body, "system_prompt", "invalid_system_prompt");
  const model = optionalText(body, "model", { longest: 256 });
  if ((await store.get(id)) !== null)
    throw new ApiError(409, `there is a session ${id} already`, { code: "session_exists", param: "id" });
  await store.create({ id, source: "api_server", model: model ?? null });
  try {
    if (title) await setTitle(store, id, title);
  } catch (error) {
    await store.delete(id);
    throw error;
  }
  if (instructions) await store.setValue(id, INSTRUCTIONS_KEY, instructions);
  if (model !== undefined) await store.setValue(id, MODEL_KEY, model);
  return { ...one(await requireSession(store, id)), status: 201 };
}

async function change(api: Api, call: Call): Promise<Reply> {
  const { store } = api.parts;
  const { id } = await requireSession(store, call.param("id"));
  const body = await call.body();
  const strange = Object.keys(body).find((field) => !CHANGEABLE.includes(field));
  if (strange !== undefined || Object.keys(body).length === 0)
    throw badField(strange ?? "title", `only ${CHANGEABLE.join(" and ")} can be changed`, "unsupported_session_field");
  const title = titleIn(body);
  const reason = optionalText(body, "end_reason", { longest: 40 });
  if (reason !== undefined && !/^[a-z_]+$/.test(reason))
    throw badField("end_reason", "end_reason must be a word of small letters", "unsupported_session_field");
  await alone(api, id, async () => {
    if (title !== undefined) await setTitle(store, id, title);
    if (reason !== undefined) await store.end(id, reason as EndReason); // shown as it is; other programs have words of their own
  });
  return one(await requireSession(store, id));
}

async function remove(api: Api, call: Call): Promise<Reply> {
  const { store } = api.parts;
  const { id } = await requireSession(store, call.param("id"));
  const deleted = await alone(api, id, () => store.delete(id));
  return { status: 200, body: { object: "hermes.session.deleted", id, deleted } };
}

async function messages(store: SessionStore, call: Call): Promise<Reply> {
  const { id } = await requireSession(store, call.param("id"));
  const rows = await store.load(id);
  return { status: 200, body: { object: "list", session_id: id, data: rows.map((row) => shownMessage(id, row)) } };
}

async function fork(api: Api, call: Call): Promise<Reply> {
  const { store, clock } = api.parts;
  const { id } = await requireSession(store, call.param("id"));
  const child = newId(clock.now());
  await alone(api, id, async () => {
    // It ends as branched, not as left by its last caller.
    await store.reopen(id);
    await store.branch(id, child);
  });
  return { ...one(await requireSession(store, child)), status: 201 };
}

const newId = (now: number) => `api_${Math.floor(now / 1000)}_${randomBytes(4).toString("hex")}`;

/** While nobody holds the conversation; a turn that runs is not pulled away under its feet. */
async function alone<T>({ turns, parts: { store, home } }: Api, id: string, work: () => Promise<T>): Promise<T> {
  const lane = await holdLane(store, id, { log: home.log });
  if (lane.type !== "taken")
    throw new ApiError(429, "the session is in use; try again when its turn has ended", {
      ...{ type: "rate_limit_error", code: "session_busy", headers: { "retry-after": "5" } },
    });
  try {
    await turns.forget(id);
    return await work();
  } finally {
    await lane.release();
  }
}

function titleIn(body: Readonly<Record<string, unknown>>): string | undefined {
  return textIn(body, "title", "invalid_title");
}

function textIn(body: Readonly<Record<string, unknown>>, name: string, code: string): string | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && value.length <= 65_536) return value;
  throw badField(name, `${name} must be a text of at most 65536 characters`, code);
}

async function setTitle(store: SessionStore, id: string, title: string): Promise<void> {
  try {
    await store.setTitle(id, title.trim() || null);
  } catch (error) {
    if (error instanceof StoreError && (error.code === "conflict" || error.code === "invalid"))
      throw badField("title", error.message, "invalid_title");
    throw error;
  }
}

// --- what is shown of them; never the prompt itself

const one = (session: Session): Reply => ({ status: 200, body: { object: "hermes.session", session: shown(session) } });

function shown(session: Session | SessionListItem) {
  const { lastActive, preview } = "preview" in session ? session : { lastActive: null, preview: null };
  return {
    ...{ id: session.id, source: session.source, user_id: session.userId, model: session.model, title: session.title },
    ...{ started_at: session.startedAt, ended_at: session.endedAt, end_reason: session.endReason },
    ...{ message_count: session.messageCount, tool_call_count: session.toolCallCount },
    ...{ input_tokens: session.inputTokens, output_tokens: session.outputTokens },
    ...{ cache_read_tokens: session.cacheReadTokens, cache_write_tokens: session.cacheWriteTokens },
    reasoning_tokens: session.reasoningTokens,
    ...{ estimated_cost_usd: session.estimatedCostUsd, actual_cost_usd: session.actualCostUsd },
    ...{ cost_status: session.costStatus, api_call_count: session.apiCallCount },
    parent_session_id: session.parentSessionId,
    last_active: lastActive ?? session.lastActivityAt ?? session.startedAt,
    preview,
    has_system_prompt: session.messageCount > 0,
    has_model_config: isRecord(session.modelConfig),
  };
}

function shownMessage(id: string, row: StoredMessage) {
  const calls = row.role === "assistant" ? row.tool_calls : undefined;
  return {
    ...{ id: row.id, session_id: id, role: row.role, content: row.content },
    tool_call_id: row.role === "tool" ? row.tool_call_id : null,
    tool_calls: calls ?? null,
    tool_name: row.role === "tool" ? (row.tool_name ?? row.name ?? null) : null,
    timestamp: row.timestamp,
    token_count: null,
    finish_reason: row.role === "assistant" ? (row.finish_reason ?? null) : null,
    reasoning: row.role === "assistant" ? (row.reasoning ?? null) : null,
  };
}
