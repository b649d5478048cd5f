// Conversations of workers among those of people: version 0.15.1 of the original stored both as typed on the command line.
import { isWithin } from "../kit/files.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { Boards } from "./boards.ts";

type Store = Pick<SessionStore, "list" | "update" | "getMeta" | "setMeta">;

const DONE = "kanban:worker_sessions";
const PAGE = 500;

/** Whoever worked in a workspace of a board was a worker. Answers how many conversations are known as such from now on. */
export async function tagWorkerSessions(store: Store, boards: Boards): Promise<number> {
  const roots = (await boards.list()).map((slug) => boards.place(slug).workspaces);
  const found: string[] = [];
  for (let offset = 0; ; offset += PAGE) {
    const all = { includeChildren: true, includeArchived: true, projectTips: false };
    const page = await store.list({ ...all, sources: ["cli"], limit: PAGE, offset });
    for (const { id, cwd } of page) if (cwd !== null && roots.some((root) => isWithin(cwd, root))) found.push(id);
    if (page.length < PAGE) break;
  }
  for (const id of found) await store.update(id, { source: "kanban" });
  return found.length;
}

/** Once for a store: what the original adds later is tagged by `hermes kanban gc`. */
export async function tagOnce(store: Store, boards: Boards): Promise<void> {
  if ((await store.getMeta(DONE)) !== null) return;
  const count = await tagWorkerSessions(store, boards);
  await store.setMeta(DONE, String(count), null);
}
