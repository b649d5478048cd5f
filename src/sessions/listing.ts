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
  const page = arrange(allNodes(core), options).slice(offset, limit < 0 ? undefined : offset + limit);
  return page.flatMap((conversation) => {
    const row = core.db.get<SessionRow>(
      `SELECT ${sessionSelect(core.shape)} FROM sessions s WHERE s.id = ?`,
      conversation.tip.id,
    );
    return row ? [toItem(core, conversation, row)] : [];
  });
}

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
  const wanted = conversations.filter((conversation) => isWanted(conversation, options));
  const latest = (conversation: Conversation) => Math.max(...conversation.chain.map((one) => one.lastActive));
  const order = options.orderByLastActive ? latest : (conversation: Conversation) => conversation.root.startedAt;
  return wanted
    .map((conversation) => ({ conversation, key: order(conversation) }))
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

function allNodes(core: StoreCore): readonly ListedNode[] {
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
       FROM sessions s`,
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
