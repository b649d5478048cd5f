// A sign of life during long work.
import { z } from "zod";
import { heartbeat } from "../kanban/moves.ts";
import { heartbeatOf } from "../kanban/own-card.ts";
import { atDesk } from "./kanban/desk.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  task_id: z.string().optional().describe("Default: your own card"),
  note: z.string().optional().describe("Where you are, in one line"),
  board: z.string().optional().describe("Another board than the active one"),
});

register({
  name: "kanban_heartbeat",
  toolset: "kanban",
  emoji: "💓",
  deferred: true,
  description: "Say that a card is still being worked on, and where you are.",
  parameters,
  textOrigin: "local",
  handler: (args, ctx) =>
    atDesk(ctx, args, async (desk) => {
      const id = desk.ownCardId(args.task_id, "send heartbeats of");
      const note = args.note === undefined ? undefined : ctx.redact(args.note);
      const { worker, board } = desk;
      await board.change((change) => {
        if (worker && desk.isOwn(id)) heartbeatOf(change, worker, note);
        else heartbeat(change, id, note);
      });
      return { ok: true, task_id: id };
    }),
});
