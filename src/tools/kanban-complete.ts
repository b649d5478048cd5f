// The work of a card is done, and this is what came of it.
import { z } from "zod";
import { cleanUp, completeCard } from "../kanban/completion.ts";
import { atDesk, runOf } from "./kanban/desk.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  task_id: z.string().optional().describe("Default: your own card"),
  summary: z.string().optional().describe("What was done and how it was checked; the next worker reads only this"),
  metadata: z.record(z.string(), z.unknown()).optional().describe("Facts: changed files, tests run, open risks"),
  result: z.string().optional().describe("The outcome in full, if the summary is not all of it"),
  created_cards: z.array(z.string()).optional().describe("Ids of cards you made for this one"),
  artifacts: z.array(z.string()).optional().describe("Files of the workspace that are kept with the card"),
  board: z.string().optional().describe("Another board than the active one"),
});

register({
  name: "kanban_complete",
  toolset: "kanban",
  emoji: "✔️",
  deferred: true,
  description: "Complete a card whose work is finished and checked, with a summary or a result.",
  parameters,
  textOrigin: "local",
  handler: (args, ctx) =>
    atDesk(ctx, args, async (desk) => {
      const id = desk.ownCardId(args.task_id, "complete");
      const { board, place, author, slug } = desk;
      const { summary, result, metadata, created_cards: createdCards, artifacts } = args;
      const report = {
        ...{ summary, result, metadata, createdCards, artifacts, run: runOf(desk, id), sessionId: ctx.sessionId },
        foreignText: ctx.foreignText?.() ?? undefined,
      };
      const done = await completeCard(board, id, report, { place, by: author, redact: ctx.redact });
      // A worker still stands in its folder.
      if (!desk.isOwn(id)) await cleanUp(board, place, id);
      const { run } = done;
      const facts = { task_id: id, run_id: run, board: slug, profile: author };
      await ctx.emitHook?.("kanban_task_completed", { ...facts, summary: ctx.redact(summary ?? result ?? "") });
      return { ok: true, task_id: id, run_id: run };
    }),
});
