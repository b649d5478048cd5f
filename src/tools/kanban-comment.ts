// A comment, on a card of one's own or of others.
import { z } from "zod";
import { cardOf, comment } from "../kanban/cards.ts";
import { atDesk } from "./kanban/desk.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  task_id: z.string(),
  body: z.string(),
  board: z.string().optional().describe("Another board than the active one"),
});

register({
  name: "kanban_comment",
  toolset: "kanban",
  emoji: "💬",
  deferred: true,
  description: "Comment on a card, also on cards of others: whoever works on it reads it.",
  parameters,
  textOrigin: "local",
  handler: (args, ctx) =>
    atDesk(ctx, args, async ({ board, author }) => {
      const id = cardOf(board.db, args.task_id.trim()).id;
      const body = ctx.redact(args.body);
      const comment_id = await board.change((change) => comment(change, id, { author, body }));
      return { ok: true, task_id: id, comment_id, author };
    }),
});
