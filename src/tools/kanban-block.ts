// The work of a card cannot go on without somebody else.
import { z } from "zod";
import { comment } from "../kanban/cards.ts";
import { block } from "../kanban/moves.ts";
import { atDesk, runOf } from "./kanban/desk.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  task_id: z.string().optional().describe("Default: your own card"),
  reason: z.string().describe("The exact question, or what is missing"),
  kind: z
    .enum(["needs_input", "capability", "transient", "dependency"])
    .optional()
    .describe("What it waits for; dependency: a card that is linked to it"),
  board: z.string().optional().describe("Another board than the active one"),
});

register({
  name: "kanban_block",
  toolset: "kanban",
  emoji: "⏸️",
  deferred: true,
  description: "Put a card aside until somebody answers, helps or unblocks it. Then stop working on it.",
  parameters,
  textOrigin: "local",
  handler: (args, ctx) =>
    atDesk(ctx, args, async (desk) => {
      const id = desk.ownCardId(args.task_id, "block");
      const { board, author, slug } = desk;
      const { kind } = args;
      const reason = ctx.redact(args.reason.trim());
      if (reason === "") return { error: "reason is required: the exact question, or what is missing." };
      const { card, run } = await board.change((change) => {
        const blocked = block(change, id, { reason, kind, run: runOf(desk, id) });
        comment(change, id, { author, body: reason });
        return blocked;
      });
      const facts = { task_id: id, run_id: run?.id ?? null, board: slug, profile: author };
      await ctx.emitHook?.("kanban_task_blocked", { ...facts, reason, kind: kind ?? null, status: card.status });
      return { ok: true, task_id: id, run_id: run?.id ?? null, status: card.status };
    }),
});
