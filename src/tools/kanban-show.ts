// One card with all that was said and done about it.
import { z } from "zod";
import { attachmentsOf } from "../kanban/attachments.ts";
import { contextText } from "../kanban/context-text.ts";
import { cardText } from "../kanban/show.ts";
import { atDesk } from "./kanban/desk.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  task_id: z.string().optional().describe("Default: your own card"),
  board: z.string().optional().describe("Another board than the active one"),
});

register({
  name: "kanban_show",
  toolset: "kanban",
  emoji: "📋",
  deferred: true,
  readOnly: true,
  description:
    "Read a card: the task, what it depends on, comments, attachments, earlier attempts. worker_context is all of that as text.",
  parameters,
  textOrigin: "chat",
  handler: (args, ctx) =>
    atDesk(ctx, args, (desk) => {
      const id = desk.cardId(args.task_id);
      const { db, now } = desk.board;
      const { whole } = cardText(db, id, now);
      const { text, others } = contextText(db, id, now);
      const attachments = attachmentsOf(db, id);
      // The run reads from these two whose words the conversation has seen.
      const origin = { is_own: desk.isOwn(id), words_of_others: others };
      return { ...whole, attachments, worker_context: text, ...origin };
    }),
});
