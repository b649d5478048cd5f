// The session list a person sees: one line per conversation. A chain of compressions is shown as its tip, delegated work only when
// its source is asked for.
import { countCodePoints, sliceCodePoints } from "../kit/code-points.ts";
import type { StoreCore } from "./core.ts";
import { chooseContinuation, parseConfig, type SessionNode } from "./lineage.ts";
import { activeOnly } from "./messages.ts";
import { plainText, type SessionRow, sessionSelect, toSession } from "./sessions.ts";
import type { ListOptions, SessionListItem } from "./store.ts";

/** What is needed of every session to know which lines there are. */
interface ListedNode extends SessionNode {
  readonly parentId: string | null;
  readonly title: string | null;
  readonly archived: boolean;
  readonly messageCount: number;
}

/** One line: the first session of a conversation, the one it stands at, and all between, first to last. */
interface Conversation {
  readonly root: ListedNode;
  readonly tip: ListedNode;
  readonly chain: readonly ListedNode[];
}

const PREVIEW_CHARS = 60;

export function listSessions(core: StoreCore, options: ListOptions = {}): readonly SessionListItem[] {
  const { limit = 20, offset = 0 } = options;
  const end = limit < 0 ? Number.POSITIVE_INFINITY : offset + limit;
  const page = firstLines(core, options, end).slice(offset, limit < 0 ? undefined : end);
  return page.flatMap((conversation) => {
    const row = core.db.get<SessionRow>(
      `SELECT ${sessionSelect(core.shape)} FROM sessions s WHERE s.id = ?`,
      conversation.tip.id,
    );
    return row ? [toItem(core, conversation, row)] : [];
  });
}

/** Fewer sessions are simply all read. */
const FEW = 200;

/**
 * The first lines of the list. Sessions are taken from the top of each order that decides about a line's place, until no line can come
 * before those that are there: a list of twenty reads about twenty, however many there are.
 */
function firstLines(core: StoreCore, options: ListOptions, wanted: number): readonly Conversation[] {
  const count = core.db.get<{ n: number }>("SELECT COUNT(*) AS n FROM sessions")?.n ?? 0;
  for (let size = wanted + 20; count > FEW && size < count / 4; size *= 3) {
    const { ids, border } = topSessions(core, size, options.orderByLastActive ?? false);
    const lines = arrange(kinOf(core, ids), options);
    const key = keyOf(options);
    const certain = lines.filter((line) => key(line) > border);
    if (certain.length >= wanted) return certain;
  }
  return arrange(allNodes(core), options);
}

/** The sessions that lead in one of the orders, and the latest time that any other one may have. */
function topSessions(core: StoreCore, size: number, byActivity: boolean): { ids: Set<string>; border: number } {
  const ids = new Set<string>();
  let border = Number.NEGATIVE_INFINITY;
  const take = (rows: Iterable<{ id: string; at: number }>) => {
    let last = Number.NEGATIVE_INFINITY;
    for (const { id, at } of rows) {
      ids.add(id);
      last = at;
    }
    border = Math.max(border, last);
  };
  take(core.db.all("SELECT id, started_at AS at FROM sessions ORDER BY started_at DESC LIMIT ?", size));
  if (!byActivity) return { ids, border };
  if (core.shape.sessionColumns.has("last_activity_at"))
    take(
      core.db.all(
        "SELECT id, last_activity_at AS at FROM sessions WHERE last_activity_at IS NOT NULL ORDER BY last_activity_at DESC LIMIT ?",
        size,
      ),
    );
  // Versions of the original that keep no time of activity: what they wrote last is among the last messages.
  take(core.db.all("SELECT session_id AS id, timestamp AS at FROM messages ORDER BY id DESC LIMIT ?", RECENT_MESSAGES));
  return { ids, border };
}

const RECENT_MESSAGES = 500;

/** Sessions with all that decides about their lines: parents up to the first, and the children that go on from each. */
function kinOf(core: StoreCore, ids: Iterable<string>): readonly ListedNode[] {
  const found = new Map<string, ListedNode>();
  const queue = [...ids];
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (found.has(id)) continue;
    const [node] = readNodes(core, "WHERE s.id = ?", id);
    if (!node) continue;
    found.set(id, node);
    if (node.parentId !== null) queue.push(node.parentId);
    if (node.endReason !== "compression") continue;
    for (const child of core.db.all<{ id: string }>("SELECT id FROM sessions WHERE parent_session_id = ?", id))
      queue.push(child.id);
  }
  return [...found.values()];
}

const keyOf = (options: ListOptions) =>
  options.orderByLastActive
    ? ({ chain }: Conversation) => Math.max(...chain.map((one) => one.lastActive))
    : ({ root }: Conversation) => root.startedAt;

/** Which lines, in which order. Pure. */
function arrange(nodes: readonly ListedNode[], options: ListOptions): readonly Conversation[] {
  const byId = new Map(nodes.map((one) => [one.id, one]));
  const children = Map.groupBy(
    nodes.filter((one) => one.parentId !== null),
    (one) => one.parentId,
  );
  const heads = options.includeChildren
    ? nodes
    : nodes.filter((one) => isHead(one, one.parentId ? byId.get(one.parentId) : undefined, options.source));
  const conversations = heads.map((root): Conversation => {
    const chain = options.projectTips === false ? [root] : chainFrom(root, children);
    return { root, chain, tip: chain.at(-1) ?? root };
  });
  const key = keyOf(options);
  return conversations
    .filter((conversation) => isWanted(conversation, options))
    .map((conversation) => ({ conversation, key: key(conversation) }))
    .sort((a, b) => b.key - a.key || (a.conversation.root.id < b.conversation.root.id ? 1 : -1))
    .map(({ conversation }) => conversation);
}

/** Roots, and branches: those are conversations of their own. */
function isHead(one: ListedNode, parent: ListedNode | undefined, source: string | undefined): boolean {
  if (!parent || parent === one) return true;
  if (one.modelConfig?._delegate_from) return one.source === source;
  if (one.modelConfig?._branched_from) return true;
  return parent.endReason === "branched" && parent.endedAt !== null && parent.endedAt <= one.startedAt;
}

function chainFrom(root: ListedNode, children: ReadonlyMap<string | null, readonly ListedNode[]>): ListedNode[] {
  const chain = [root];
  for (let current = root; current.endReason === "compression"; ) {
    const next = chooseContinuation((children.get(current.id) ?? []).filter((child) => !chain.includes(child)));
    if (!next) break;
    chain.push(next);
    current = next;
  }
  return chain;
}

function isWanted({ tip, chain }: Conversation, options: ListOptions): boolean {
  if (options.source !== undefined && tip.source !== options.source) return false;
  if (options.sources && !options.sources.includes(tip.source)) return false;
  if (options.excludeSources?.includes(tip.source)) return false;
  if (tip.archived && !options.includeArchived) return false;
  if (tip.messageCount < (options.minMessageCount ?? 0)) return false;
  return options.search === undefined || chain.some((one) => matches(one, options.search ?? ""));
}

/** Case does not count, and `an94` finds `AN-94`. */
function matches(one: ListedNode, search: string): boolean {
  const wanted = search.trim().toLowerCase();
  const bare = withoutPunctuation(wanted);
  return [one.id, one.title ?? ""].some((text) => {
    const lower = text.toLowerCase();
    return lower.includes(wanted) || (bare !== "" && withoutPunctuation(lower).includes(bare));
  });
}

const withoutPunctuation = (text: string) => text.replace(/[^\p{L}\p{N}\p{M}]+/gu, "");

const allNodes = (core: StoreCore) => readNodes(core, "");

function readNodes(core: StoreCore, where: string, ...values: string[]): readonly ListedNode[] {
  const column = (name: string) => (core.shape.sessionColumns.has(name) ? `s.${name}` : "NULL");
  return core.db
    .all<{
      id: string;
      source: string;
      model_config: string | null;
      parent: string | null;
      started_at: number;
      ended_at: number | null;
      end_reason: string | null;
      title: string | null;
      messages: number | null;
      archived: number | null;
      activity: number | null;
      last_message: number | null;
    }>(
      `SELECT s.id, s.source, CASE WHEN s.model_config LIKE '%"\\_%' ESCAPE '\\' THEN s.model_config END AS model_config,
         s.parent_session_id AS parent, s.started_at, s.ended_at, s.end_reason, s.title, s.message_count AS messages,
         ${column("archived")} AS archived, ${column("last_activity_at")} AS activity,
         (SELECT MAX(timestamp) FROM messages WHERE session_id = s.id) AS last_message
       FROM sessions s ${where}`,
      ...values,
    )
    .map((row) => ({
      id: row.id,
      source: row.source,
      modelConfig: parseConfig(row.model_config),
      parentId: row.parent,
      startedAt: row.started_at,
      endedAt: row.ended_at,
      endReason: row.end_reason,
      title: row.title,
      messageCount: row.messages ?? 0,
      archived: row.archived === 1,
      lastActive: Math.max(row.last_message ?? 0, row.activity ?? 0, row.started_at),
    }));
}

function toItem(core: StoreCore, { root, tip, chain }: Conversation, row: SessionRow): SessionListItem {
  return {
    ...toSession(row),
    title: chain.findLast((one) => one.title !== null)?.title ?? null,
    startedAt: root.startedAt,
    preview: previewOf(core, tip.id),
    lastActive: tip.lastActive,
    lineageRootId: root.id,
    chain: chain.map(({ id }) => id),
    branchOf: root.parentId,
  };
}

/** The first thing the user said, on one line. */
function previewOf(core: StoreCore, sessionId: string): string {
  const row = core.db.get<{ content: Uint8Array | null }>(
    `SELECT CAST(m.content AS BLOB) AS content FROM messages m
     WHERE m.session_id = ? AND m.role = 'user' AND m.content IS NOT NULL AND ${activeOnly(core.shape)} ORDER BY m.id LIMIT 1`,
    sessionId,
  );
  if (!row) return "";
  const line = unfoldSkill(plainText(row.content, core.log))
    .replace(/[\r\n]+/g, " ")
    .trim();
  return countCodePoints(line) > PREVIEW_CHARS ? `${sliceCodePoints(line, 0, PREVIEW_CHARS)}...` : line;
}

/** The original stores the whole text of an invoked skill: a bracketed note with the skill's name in double quotes, then the text. */
function unfoldSkill(text: string): string {
  const note = /^\s*\[[^\]"]*"([^"\]]+)"[^\]]*\]\s*/.exec(text);
  return note && /\bskill\b/i.test(note[0]) ? `/${note[1]} ${text.slice(note[0].length)}` : text;
}
