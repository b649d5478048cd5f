// One card has to be done before another.
import { z } from "zod";
import { cardOf, link } from "../kanban/cards.ts";
import { atDesk } from "./kanban/desk.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  parent_id: z.string().describe("The card that has to be done first"),
  child_id: z.string().describe("The card that waits for it"),
  board: z.string().optional().describe("Another board than the active one"),
});

register({
  name: "kanban_link",
  toolset: "kanban",
  emoji: "🔗",
  deferred: true,
  description: "Make a card wait for another one.",
  parameters,
  textOrigin: "local",
  handler: (args, ctx) =>
    atDesk(ctx, args, async ({ board }) => {
      const [parent, child] = [args.parent_id.trim(), args.child_id.trim()];
      await board.change((change) => link(change, parent, child));
      return { ok: true, parent_id: parent, child_id: child, status: cardOf(board.db, child).status };
    }),
});
