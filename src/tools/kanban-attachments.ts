// The files that go with a card.
import { z } from "zod";
import { attachmentsOf } from "../kanban/attachments.ts";
import { atDesk } from "./kanban/desk.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  task_id: z.string().optional().describe("Default: your own card"),
  board: z.string().optional().describe("Another board than the active one"),
});

register({
  name: "kanban_attachments",
  toolset: "kanban",
  emoji: "🗃️",
  deferred: true,
  readOnly: true,
  description: "List the files that go with a card, with the paths to read them at.",
  parameters,
  textOrigin: "chat",
  handler: (args, ctx) =>
    atDesk(ctx, args, (desk) => {
      const id = desk.cardId(args.task_id);
      const attachments = attachmentsOf(desk.board.db, id);
      const others = attachments.flatMap(({ uploaded_by: by }) => (by === null || by === desk.author ? [] : [by]));
      const origin = { is_own: desk.isOwn(id), words_of_others: [...new Set(others.map((by) => `a file from ${by}`))] };
      return { ok: true, task_id: id, attachments, count: attachments.length, ...origin };
    }),
});
