// A file that goes with a card, from the web.
import { z } from "zod";
import { attach, keepBytes, MOST_ATTACHED_BYTES } from "../kanban/attachments.ts";
import { BoardError } from "../kanban/cards.ts";
import { atDesk } from "./kanban/desk.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  task_id: z.string().optional().describe("Default: your own card"),
  url: z.string(),
  filename: z.string().optional().describe("Default: as the address has it"),
  board: z.string().optional().describe("Another board than the active one"),
});

const SECONDS = 120;

register({
  name: "kanban_attach_url",
  toolset: "kanban",
  emoji: "🌐",
  deferred: true,
  description: "Fetch a file of the web and keep it with a card, at most 25 MB.",
  parameters,
  textOrigin: "web",
  timeoutMs: () => (SECONDS + 30) * 1000,
  handler: (args, ctx) =>
    atDesk(ctx, args, async (desk) => {
      const id = desk.cardId(args.task_id);
      const { openWebAccess } = await import("./web/access.ts");
      const limits = { maxBytes: MOST_ATTACHED_BYTES, timeoutMs: SECONDS * 1000 };
      const { status, statusText, url, contentType, body } = await openWebAccess(ctx).fetch(args.url, limits);
      if (status < 200 || status > 299) throw new BoardError(`${url.host} answered ${status} ${statusText}.`.trim());
      const { board, place, author } = desk;
      const name = args.filename ?? nameIn(url);
      const type = contentType.split(";")[0]?.trim() || null;
      const put = () => keepBytes(place, id, name, body);
      const attachment = await attach(board, id, { keep: put, type, by: author });
      return { ok: true, task_id: id, attachment };
    }),
});

function nameIn({ pathname, host }: URL): string {
  const last = pathname.split("/").findLast((part) => part !== "");
  if (last === undefined) return host;
  try {
    return decodeURIComponent(last);
  } catch {
    return last; // a lone % in it
  }
}
