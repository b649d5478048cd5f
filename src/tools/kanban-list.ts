// The cards of a board in short.
import { z } from "zod";
import { BoardError, listCards, parentsOf } from "../kanban/cards.ts";
import { STATUSES } from "../kanban/schema.ts";
import { atDesk } from "./kanban/desk.ts";
import { register } from "./toolset/registry.ts";

const USUAL = 50;
const MOST = 200;

const parameters = z.object({
  assignee: z.string().optional(),
  status: z.enum(STATUSES).optional(),
  tenant: z.string().optional(),
  include_archived: z.boolean().optional(),
  limit: z.int().optional().describe("1 to 200, default 50"),
  board: z.string().optional().describe("Another board than the active one"),
});

register({
  name: "kanban_list",
  toolset: "kanban",
  emoji: "🗂️",
  deferred: true,
  readOnly: true,
  description: "List the cards of the task board.",
  parameters,
  textOrigin: "chat",
  handler: (args, ctx) =>
    atDesk(ctx, args, ({ board: { db } }) => {
      const { limit = USUAL, include_archived: archived = false, assignee, status, tenant } = args;
      if (limit < 1 || limit > MOST) throw new BoardError(`limit is a number from 1 to ${MOST}.`);
      const found = listCards(db, { assignee: assignee?.toLowerCase(), status, tenant, archived, limit: limit + 1 });
      const truncated = found.length > limit;
      const tasks = found.slice(0, limit).map((card) => ({
        ...{ id: card.id, title: card.title, status: card.status, assignee: card.assignee, priority: card.priority },
        ...{ tenant: card.tenant, created_at: card.created_at, block_kind: card.block_kind },
        parents: parentsOf(db, card.id),
      }));
      const next_limit = truncated && limit < MOST ? Math.min(limit * 2, MOST) : null;
      // Reading never changes the board: what can be promoted was, with the change that made it so.
      return { tasks, count: tasks.length, limit, truncated, next_limit, promoted: 0 };
    }),
});
