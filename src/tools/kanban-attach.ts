// A file that goes with a card, from its content.
import { z } from "zod";
import { attach, keepBytes, MOST_ATTACHED_BYTES } from "../kanban/attachments.ts";
import { BoardError } from "../kanban/cards.ts";
import { atDesk } from "./kanban/desk.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  task_id: z.string().optional().describe("Default: your own card"),
  filename: z.string(),
  content: z.string().describe("The file in base64, at most 25 MB"),
  content_type: z.string().optional(),
  board: z.string().optional().describe("Another board than the active one"),
});

register({
  name: "kanban_attach",
  toolset: "kanban",
  emoji: "📎",
  deferred: true,
  description:
    "Keep a small file with a card, from its content. Files of the workspace go along with artifacts when you complete.",
  parameters,
  textOrigin: "local",
  handler: (args, ctx) =>
    atDesk(ctx, args, async (desk) => {
      const id = desk.cardId(args.task_id);
      const { board, place, author } = desk;
      const bytes = decoded(args.content);
      const put = () => keepBytes(place, id, args.filename, bytes);
      const attachment = await attach(board, id, { keep: put, type: args.content_type ?? null, by: author });
      return { ok: true, task_id: id, attachment };
    }),
});

function decoded(content: string): Buffer {
  const text = content.replace(/\s+/g, "").replace(/^data:[^,]{0,200},/, "");
  // Four characters hold three bytes; what is too long is not unpacked at all.
  if (text.length > (MOST_ATTACHED_BYTES * 4) / 3 + 4)
    throw new BoardError(`the content is too long: an attachment has at most ${MOST_ATTACHED_BYTES / 1024 / 1024} MB.`);
  if (!/^[\w+/-]*={0,2}$/.test(text) || text.length % 4 === 1)
    throw new BoardError("content is not base64: encode the bytes of the file.");
  return Buffer.from(text, "base64");
}
