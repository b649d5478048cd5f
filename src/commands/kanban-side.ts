// Cards in triage that nobody asked about: what a dispatcher does beside its looks.
import { Boards } from "../kanban/boards.ts";
import { decomposeWaiting, type TriagePorts } from "../kanban/triage.ts";
import { lazy } from "../kit/lazy.ts";
import { fenced } from "../prompt/fence.ts";
import type { KanbanWorld } from "./kanban.ts";

type Asking = Pick<KanbanWorld, "home" | "clock" | "store"> & Partial<Pick<KanbanWorld, "conversation">>;

/** What triage needs; a card that belongs to no open conversation has a client of its own. */
export function triagePorts({ home, clock, store, conversation }: Asking, signal: AbortSignal): TriagePorts {
  const alone = lazy(async () => {
    const { openSideModel } = await import("../agent/open-model.ts");
    return openSideModel(home, await store(), clock);
  });
  return {
    home,
    signal,
    fenced,
    sessionId: conversation?.sessionId ?? null,
    auxiliary: async () => conversation?.auxiliary ?? alone(),
  };
}

/** By a connection of its own: the dispatcher notices what others change. */
export async function splitWaiting(slug: string, asking: Asking, signal: AbortSignal): Promise<void> {
  const board = await new Boards(asking.home, asking.clock).open(slug);
  try {
    const done = await decomposeWaiting(board, triagePorts(asking, signal));
    const log = asking.home.log.child("kanban");
    for (const { id, children } of done) log.info(`board ${slug}: ${id} was split into ${children.length} cards`);
  } finally {
    board.close();
  }
}
