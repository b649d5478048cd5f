// A card that was put aside goes on.
import { z } from "zod";
import { unblock } from "../kanban/moves.ts";
import { atDesk } from "./kanban/desk.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  task_id: z.string(),
  board: z.string().optional().describe("Another board than the active one"),
});

register({
  name: "kanban_unblock",
  toolset: "kanban",
  emoji: "▶️",
  deferred: true,
  description: "Let a blocked or scheduled card go on.",
  parameters,
  textOrigin: "local",
  handler: (args, ctx) =>
    atDesk(ctx, args, async (desk) => {
      const id = desk.ownCardId(args.task_id, "unblock");
      const { card } = await desk.board.change((change) => unblock(change, id, undefined));
      return { ok: true, task_id: id, status: card.status };
    }),
});
