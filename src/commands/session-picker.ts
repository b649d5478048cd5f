// Earlier conversations to pick from: rows as a tree of branches, the last messages as a preview, and what was said in them.
import { plural, relativeTime } from "../kit/formats.ts";
import { withoutControls } from "../kit/strip-ansi.ts";
import { textOf } from "../llm/messages.ts";
import type { SessionListItem, SessionStore } from "../sessions/store.ts";
import type { PickItem, PickOptions } from "./context.ts";

/** Work of the agent itself is not a conversation of the user's. */
export const HIDDEN_SOURCES = ["tool", "subagent", "kanban"];
const PREVIEWED = 4;
const PREVIEW_CHARS = 200;
const FOUND = 20;

interface Branch {
  readonly session: SessionListItem;
  readonly depth: number;
}

/** Newest first; a branch stands below the conversation it was made from, which moves up with it. */
export function asTree(sessions: readonly SessionListItem[]): readonly Branch[] {
  const ownerOf = new Map(sessions.flatMap((session) => session.chain.map((id) => [id, session] as const)));
  const parentOf = (session: SessionListItem) => {
    const parent = session.branchOf === null ? undefined : ownerOf.get(session.branchOf);
    return parent === session ? undefined : parent;
  };
  const children = Map.groupBy(sessions, parentOf);
  const placed = new Set<SessionListItem>();
  const below = (session: SessionListItem, depth: number): readonly Branch[] => {
    // Files of other programs may hold circles.
    if (placed.has(session)) return [];
    placed.add(session);
    return [{ session, depth }, ...(children.get(session) ?? []).flatMap((child) => below(child, depth + 1))];
  };
  const rootOf = (session: SessionListItem) => {
    const seen = new Set([session]);
    let root = session;
    for (let next = parentOf(root); next && !seen.has(next); next = parentOf(root)) {
      seen.add(next);
      root = next;
    }
    return root;
  };
  return sessions.flatMap((session) => (placed.has(session) ? [] : below(rootOf(session), 0)));
}

export function sessionRow({ session, depth }: Branch, now: number, present?: string): PickItem<string> {
  const { id, title, preview, source, lastActive, chain } = session;
  const name = oneLine(title ?? (preview || id));
  const shortened = chain.length > 1 ? ` (${plural(chain.length - 1, "compression")})` : "";
  return {
    label: `${depth === 0 ? "" : `${"  ".repeat(depth - 1)}└ `}${name}${shortened}`,
    hint: [relativeTime(lastActive, now), id, source],
    search: `${title ?? ""}\n${preview}\n${source}\n${chain.join("\n")}`,
    ...(present === undefined ? {} : { current: chain.includes(present) }),
    value: id,
  };
}

/** Preview and search for a picker of these conversations. */
export function sessionPicking(
  sessions: readonly SessionListItem[],
  store: Pick<SessionStore, "load" | "recall">,
  now: number,
): Pick<PickOptions<string>, "preview" | "find"> {
  const owners = new Map(sessions.flatMap((session) => session.chain.map((id) => [id, session] as const)));
  return {
    preview: (id) => lastMessages(id, store),
    async find(typed) {
      const { conversations } = await store.recall(typed, { limit: FOUND, excludeSources: HIDDEN_SOURCES });
      const best = new Map<SessionListItem, string>();
      for (const { sessionId, snippet } of conversations.flatMap(({ hits }) => hits)) {
        const owner = owners.get(sessionId);
        if (owner && !best.has(owner)) best.set(owner, snippet);
      }
      return [...best].map(([session, snippet]) => {
        const row = sessionRow({ session, depth: 0 }, now);
        return { ...row, label: `${row.label} · ${oneLine(snippet).replaceAll(/>>>|<<</g, "")}` };
      });
    },
  };
}

/** What was said last, oldest first. */
async function lastMessages(id: string, store: Pick<SessionStore, "load">): Promise<string> {
  const spoken = (await store.load(id)).filter(
    ({ role, content }) => (role === "user" || role === "assistant") && textOf(content).trim() !== "",
  );
  const lines = spoken.slice(-PREVIEWED).map(({ role, content }) => {
    const text = oneLine(textOf(content));
    const shown = [...text].length > PREVIEW_CHARS ? `${[...text].slice(0, PREVIEW_CHARS).join("")}…` : text;
    return `${role === "user" ? "❯" : "⚕"} ${shown}`;
  });
  return lines.join("\n") || "(no messages)";
}

const oneLine = (text: string) => withoutControls(text).replace(/\s+/g, " ").trim();
