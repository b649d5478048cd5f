// What the tools of the board share: the board of a call, who calls, which card is theirs, and how a refusal reads.
import { Boards } from "../../kanban/boards.ts";
import { BoardError, cardOf } from "../../kanban/cards.ts";
import { requireOwn, type Worker, workerOf } from "../../kanban/own-card.ts";
import type { BoardFile } from "../../kanban/schema.ts";
import { UserError } from "../../kit/errors.ts";
import type { ToolContext } from "../toolset/context.ts";
import { toolError, toolResult } from "../toolset/dispatch.ts";

/** One call at an open board. */
export interface Desk {
  readonly board: BoardFile;
  readonly slug: string;
  readonly place: { readonly workspaces: string; readonly attachments: string };
  /** Null: the conversation works on no card of its own. */
  readonly worker: Worker | null;
  /** Who writes: the profile, never an argument. */
  readonly author: string;
  isOwn(id: string): boolean;
  /** The card that is meant; a worker may leave its own out. Rejects for one that is not there. */
  cardId(given: string | undefined): string;
  /** The same, for what a worker may do to its own card only. */
  ownCardId(given: string | undefined, verb: string): string;
}

/** Whoever did not begin the work may look at no board and change none, whatever its variables say. */
const STRANGERS: ReadonlySet<string> = new Set(["subagent", "background_review", "flush", "curator"]);

export async function atDesk(
  ctx: ToolContext,
  { board: named }: { readonly board?: string | undefined },
  work: (desk: Desk) => Promise<Readonly<Record<string, unknown>>> | Readonly<Record<string, unknown>>,
): Promise<string> {
  if (STRANGERS.has(ctx.origin))
    return toolError("Only the conversation that works on a card uses the board; report to it instead.");
  const env = (name: string) => ctx.env?.(name);
  const boards = new Boards({ paths: ctx.home, env, log: ctx.log }, ctx.clock);
  try {
    const slug = named?.trim() || (await boards.active());
    const { workspaces, attachments } = await boards.require(slug);
    const board = await boards.open(slug);
    try {
      return toolResult(await work(deskAt(ctx, { board, slug, place: { workspaces, attachments } })));
    } finally {
      board.close();
    }
  } catch (error) {
    if (error instanceof UserError) return toolError(error.message);
    throw error;
  }
}

function deskAt(ctx: ToolContext, open: Pick<Desk, "board" | "slug" | "place">): Desk {
  const env = (name: string) => ctx.env?.(name);
  const worker = workerOf(env);
  const isOwn = (id: string) => worker !== null && id === worker.task && open.slug === worker.board;
  const cardId = (given: string | undefined) => {
    const id = given?.trim() || worker?.task;
    if (!id) throw new BoardError("task_id is required: this conversation works on no card of its own.");
    return cardOf(open.board.db, id).id;
  };
  return {
    ...open,
    ...{ worker, isOwn, cardId, author: env("HERMES_PROFILE")?.trim() || ctx.profile },
    ownCardId(given, verb) {
      const id = cardId(given);
      requireOwn(worker, id, isOwn(id), verb);
      return id;
    },
  };
}

/** The attempt a change belongs to: a worker whose attempt is over changes nothing any more. */
export const runOf = ({ worker, isOwn }: Desk, id: string): number | undefined =>
  (isOwn(id) ? worker?.run : null) ?? undefined;
