// The agent's way into its own past. No model is asked: the store answers.

import { z } from "zod";
import { countCodePoints, sliceCodePoints } from "../kit/code-points.ts";
import { messageOf } from "../kit/errors.ts";
import { stripAnsi } from "../kit/strip-ansi.ts";
import type { MessageView, SearchHit, Session, SessionStore } from "../sessions/store.ts";
import { toolError } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

const HIDDEN_SOURCES = ["tool", "subagent", "kanban"];
/** Conversations beyond the limit, in place of those that are in the context already. */
const SPARE = 10;
const WINDOW_CHARS = 4000;
const BOOKEND_CHARS = 1200;
const ARGUMENT_CHARS = 400;
const READ_HEAD = 20;
const READ_TAIL = 10;
const SUMMARY_MARKS = ["[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:"];

const parameters = z.object({
  query: z.string().optional().describe('A plain question ranks; "phrase", OR, NOT, prefix* match exactly'),
  limit: z.int().optional().describe("1-10 sessions, default 3"),
  sort: z.enum(["newest", "oldest"]).optional().describe("Default: best first"),
  role_filter: z.string().optional().describe("Default: user,assistant"),
  session_id: z.string().optional(),
  around_message_id: z.int().optional(),
  window: z.int().optional().describe("Messages each side, default 5"),
});

export type SessionSearchArgs = z.infer<typeof parameters>;

register({
  name: "session_search",
  readOnly: true,
  toolset: "session_search",
  emoji: "🔍",
  description:
    "Search past conversations before you ask the user to repeat something; no evidence about files or the web. query = find sessions; " +
    "session_id = read one; with around_message_id = scroll (next: the first or last id you got); nothing = recent ones.",
  parameters,
  textOrigin: "chat",
  onInvalid: (problem) => JSON.stringify(failure(problem)),
  async handler(args, ctx) {
    if (!ctx.sessions) return toolError("session_search must be handled by the agent loop");
    return JSON.stringify(await searchSessions(ctx.sessions, args, ctx.sessionId));
  },
});

type SessionSearchResult = Readonly<Record<string, unknown>> & { readonly success: boolean };

export async function searchSessions(
  store: SessionStore,
  args: SessionSearchArgs,
  currentSessionId: string | null,
): Promise<SessionSearchResult> {
  try {
    const past = new Past(store, currentSessionId);
    const sessionId = args.session_id?.trim();
    if (sessionId && args.around_message_id !== undefined)
      return await scroll(past, sessionId, args.around_message_id, args);
    if (sessionId) return await read(past, sessionId);
    if (args.around_message_id !== undefined) return failure("around_message_id needs session_id");
    const query = args.query?.trim();
    return query ? await discover(past, query, args) : await browse(past, args);
  } catch (error) {
    return failure(`search failed: ${messageOf(error)}`);
  }
}

const failure = (error: string): SessionSearchResult => ({ success: false, error });

/** The store as one call of the tool sees it, with what it asked for already remembered. */
class Past {
  readonly store: SessionStore;
  readonly #current: string | null;
  readonly #roots = new Map<string, string>();
  readonly #sessions = new Map<string, Session | null>();

  constructor(store: SessionStore, current: string | null) {
    this.store = store;
    this.#current = current;
  }

  async root(id: string): Promise<string> {
    const known = this.#roots.get(id);
    if (known !== undefined) return known;
    const root = (await this.store.lineage(id))[0] ?? id;
    this.#roots.set(id, root);
    return root;
  }

  async session(id: string): Promise<Session | null> {
    const known = this.#sessions.get(id);
    if (known !== undefined) return known;
    const session = await this.store.get(id);
    this.#sessions.set(id, session);
    return session;
  }

  async isCurrent(id: string): Promise<boolean> {
    return this.#current !== null && (await this.root(id)) === (await this.root(this.#current));
  }

  /** What stands in the model's context right now is not past; compacted rows and sessions closed by compression are. */
  async isLive(sessionId: string, row: { readonly compacted: boolean }): Promise<boolean> {
    if (row.compacted || !(await this.isCurrent(sessionId))) return false;
    return (await this.session(sessionId))?.endReason !== "compression";
  }
}

async function scroll(
  past: Past,
  sessionId: string,
  anchor: number,
  args: SessionSearchArgs,
): Promise<SessionSearchResult> {
  const session = await past.session(sessionId);
  if (!session) return failure(`unknown session_id "${sessionId}"`);
  const located = await past.store.locateMessage(anchor);
  if (!located || (await past.root(located.sessionId)) !== (await past.root(sessionId))) {
    return failure(`message ${anchor} is not in session ${sessionId}`);
  }
  if (await past.isLive(located.sessionId, located)) {
    return failure("this message is part of the current conversation; it is in your context already");
  }
  const size = clamp(args.window, 5, 1, 20);
  const around = await past.store.messagesAround(located.sessionId, anchor, size);
  if (around.window.length === 0) return failure(`message ${anchor} is not in session ${sessionId}`);
  const owner = (await past.session(located.sessionId)) ?? session;
  return {
    success: true,
    mode: "scroll",
    session_id: located.sessionId,
    around_message_id: anchor,
    session_meta: { when: formatWhen(owner.startedAt), source: owner.source, model: owner.model, title: owner.title },
    window: size,
    messages: around.window.map((message) => show(message, WINDOW_CHARS, anchor)),
    messages_before: around.messagesBefore,
    messages_after: around.messagesAfter,
    ...(located.sessionId === sessionId
      ? {}
      : {
          warning: `message ${anchor} belongs to ${located.sessionId}, another part of the same conversation; shown from there`,
        }),
  };
}

async function read(past: Past, sessionId: string): Promise<SessionSearchResult> {
  const session = await past.session(sessionId);
  if (!session) return failure(`unknown session_id "${sessionId}"`);
  const messages = await past.store.load(sessionId);
  const truncated = messages.length > READ_HEAD + READ_TAIL;
  const shown = truncated ? [...messages.slice(0, READ_HEAD), ...messages.slice(-READ_TAIL)] : messages;
  const views = await Promise.all(
    shown.map(async ({ id }) => (await past.store.messagesAround(sessionId, id, 0)).window[0]),
  );
  return {
    success: true,
    mode: "read",
    session_id: sessionId,
    session_meta: {
      when: formatWhen(session.startedAt),
      source: session.source,
      model: session.model,
      title: session.title,
    },
    message_count: messages.length,
    truncated,
    messages: views.flatMap((view) => (view ? [show(view, WINDOW_CHARS)] : [])),
    ...(truncated
      ? {
          message: `first ${READ_HEAD} and last ${READ_TAIL} of ${messages.length} messages; scroll with around_message_id for the rest`,
        }
      : {}),
  };
}

async function browse(past: Past, args: SessionSearchArgs): Promise<SessionSearchResult> {
  const limit = clamp(args.limit, 3, 1, 10);
  // The current conversation is one line of the list at most, branches of it a few more.
  const items = await past.store.list({ limit: limit + 20, excludeSources: HIDDEN_SOURCES, orderByLastActive: true });
  const results: Record<string, unknown>[] = [];
  for (const item of items) {
    if (results.length === limit) break;
    if (await past.isCurrent(item.id)) continue;
    results.push({
      session_id: item.id,
      title: item.title,
      source: item.source,
      started_at: formatWhen(item.startedAt),
      last_active: formatWhen(item.lastActive),
      message_count: item.messageCount,
      preview: item.preview,
    });
  }
  return { success: true, mode: "browse", results, count: results.length };
}

async function discover(past: Past, query: string, args: SessionSearchArgs): Promise<SessionSearchResult> {
  const limit = clamp(args.limit, 3, 1, 10);
  const roles = (args.role_filter ?? "user,assistant")
    .split(",")
    .map((role) => role.trim())
    .filter(Boolean);
  const found = await past.store.recall(query, {
    limit: limit + SPARE,
    excludeSources: HIDDEN_SOURCES,
    roleFilter: roles.length > 0 ? roles : ["user", "assistant"],
    sort: args.sort ?? null,
  });
  if (found.unavailable !== undefined) return failure(found.unavailable);
  const results: Record<string, unknown>[] = [];
  const seen = new Set<string>();
  const titled = await titleMatch(past, query);
  if (titled) {
    seen.add(await past.root(titled.session.id));
    results.push(titled.entry);
  }
  for (const { root, hits, relaxed, matched, missing } of found.conversations) {
    const hit = await firstPast(past, hits);
    if (seen.has(root) || !hit) continue;
    seen.add(root);
    if (results.length === limit) continue;
    const entry = await describeHit(past, hit, root);
    results.push(relaxed ? { ...entry, relaxed, matched, missing } : entry);
  }
  return {
    success: true,
    mode: "discover",
    query,
    ...(found.time
      ? { time: { phrase: found.time.phrase, from: day(found.time.from), before: day(found.time.to) } }
      : {}),
    ...(found.readAs ? { read_as: Object.fromEntries(found.readAs.map(({ typed, read }) => [typed, read])) } : {}),
    results,
    count: results.length,
    sessions_searched: seen.size,
    ...(found.time?.empty && results.length > 0
      ? { message: "nothing that matches was said in that time; these are from other times" }
      : {}),
    ...(results.length === 0 ? { message: "no past conversation matches; try other words" } : {}),
    index_rebuild: found.indexRebuild,
  };
}

/** The best row that is not in the model's context already. */
async function firstPast(past: Past, hits: readonly SearchHit[]): Promise<SearchHit | null> {
  for (const hit of hits) if (!(await past.isLive(hit.sessionId, hit))) return hit;
  return null;
}

/** `2026-01-31`, local. */
function day(seconds: number | null): string | null {
  if (seconds === null) return null;
  const at = new Date(seconds * 1000);
  return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
}

async function titleMatch(
  past: Past,
  query: string,
): Promise<{ session: Session; entry: Record<string, unknown> } | null> {
  const id = await past.store.resolveTitle(query.replace(/^["']+|["']+$/g, "").trim());
  const session = id === null ? null : await past.session(id);
  if (!session || (await past.isCurrent(session.id)) || HIDDEN_SOURCES.includes(session.source)) return null;
  const first = (await past.store.load(session.id))[0];
  const entry = await describe(past, session, {
    matchedRole: "session_title",
    messageId: first?.id ?? null,
    snippet: session.title ?? "",
  });
  return { session, entry };
}

async function describeHit(past: Past, hit: SearchHit, root: string): Promise<Record<string, unknown>> {
  const session = await past.session(hit.sessionId);
  if (!session) return { session_id: hit.sessionId, snippet: hit.snippet };
  const entry = await describe(past, session, { matchedRole: hit.role, messageId: hit.id, snippet: hit.snippet });
  return root === session.id ? entry : { ...entry, parent_session_id: root };
}

async function describe(
  past: Past,
  session: Session,
  match: { matchedRole: string; messageId: number | null; snippet: string },
): Promise<Record<string, unknown>> {
  const root = await past.session(await past.root(session.id));
  const view =
    match.messageId === null
      ? { window: [], bookendStart: [], bookendEnd: [], messagesBefore: 0, messagesAfter: 0 }
      : await past.store.anchoredView(session.id, match.messageId);
  const spoken = (messages: readonly MessageView[]) =>
    messages.filter((message) => !isSummary(message)).map((message) => show(message, BOOKEND_CHARS));
  return {
    session_id: session.id,
    when: formatWhen(session.startedAt),
    source: session.source,
    model: session.model,
    title: root?.title ?? session.title,
    matched_role: match.matchedRole,
    match_message_id: match.messageId,
    snippet: stripAnsi(match.snippet),
    bookend_start: spoken(view.bookendStart),
    messages: view.window.map((message) => show(message, WINDOW_CHARS, match.messageId ?? undefined)),
    bookend_end: spoken(view.bookendEnd),
    messages_before: view.messagesBefore,
    messages_after: view.messagesAfter,
  };
}

const isSummary = (message: MessageView) => SUMMARY_MARKS.some((mark) => message.content.trimStart().startsWith(mark));

function show(message: MessageView, maxChars: number, anchor?: number): Record<string, unknown> {
  const content = stripAnsi(message.content);
  const chars = countCodePoints(content);
  const cut = chars > maxChars;
  return {
    id: message.id,
    role: message.role,
    content: cut ? `${sliceCodePoints(content, 0, maxChars)}…` : content,
    timestamp: message.timestamp,
    tool_name: message.toolName,
    tool_calls: message.toolCalls?.map(shortCall),
    tool_call_id: message.toolCallId,
    ...(cut ? { content_truncated: true, original_content_chars: chars } : {}),
    anchor: message.id === anchor || undefined,
  };
}

/** Which tool with which arguments; a file that was written does not need to be read again here. */
function shortCall(call: unknown): unknown {
  const parsed = callSchema.safeParse(call);
  if (!parsed.success) return call;
  const { name, arguments: given } = parsed.data.function;
  return {
    name,
    arguments: countCodePoints(given) > ARGUMENT_CHARS ? `${sliceCodePoints(given, 0, ARGUMENT_CHARS)}…` : given,
  };
}

const callSchema = z.object({ function: z.object({ name: z.string(), arguments: z.string() }) });

const clamp = (value: number | undefined, fallback: number, low: number, high: number) =>
  Math.min(high, Math.max(low, value ?? fallback));

const MONTHS = "January February March April May June July August September October November December".split(" ");

/** `January 01, 2026 at 12:00 AM`, local time. */
export function formatWhen(seconds: number): string {
  const at = new Date(seconds * 1000);
  const two = (part: number) => String(part).padStart(2, "0");
  const hour = at.getHours() % 12 || 12;
  const half = at.getHours() < 12 ? "AM" : "PM";
  return `${MONTHS[at.getMonth()]} ${two(at.getDate())}, ${at.getFullYear()} at ${two(hour)}:${two(at.getMinutes())} ${half}`;
}
