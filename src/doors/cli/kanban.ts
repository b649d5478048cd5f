// `hermes kanban`.
import type { Command } from "commander";
import { defineKanban } from "../../commands/kanban.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { onStopSignal } from "../stop-signals.ts";

/** A look that is going on may have to wait for workers that it stops. */
const GRACE_SECONDS = "10";

const READS = new Set(
  "list show runs stats assignees attachments context tail watch log diagnostics notify-list".split(" "),
);
const OWN_ALONE = new Set(
  "complete block unblock heartbeat edit claim reclaim reassign assign promote schedule archive".split(" "),
);
const NOT_OF_WORKERS = new Set("dispatch daemon gc repair".split(" "));

/** In a shell of a worker, or of who works for it, the commands may no more than its tools. Null: go on. */
function refusalFor(action: Command, env: (name: string) => string | undefined): string | null {
  const name = action.name();
  if (READS.has(name)) return null;
  if (env("HERMES_KANBAN_DELEGATED"))
    return "only the worker of a card changes the board, not who works for it. Report to it instead.";
  const task = env("HERMES_KANBAN_TASK");
  if (task === undefined) return null;
  const more: unknown = action.opts().ids;
  const [first, ...others] = action.args;
  const ids = [first, ...(name === "complete" || name === "unblock" || name === "archive" ? others : [])];
  const all = [...ids, ...(Array.isArray(more) ? more : [])];
  if (NOT_OF_WORKERS.has(name) || action.parent?.name() === "boards")
    return `this is the shell of the worker of ${task}: "hermes kanban ${name}" is for people.`;
  if (OWN_ALONE.has(name) && all.some((id) => id !== undefined && id !== task))
    return `this is the shell of the worker of ${task}: it may ${name} no other card. Comment there, or create a card.`;
  return null;
}

export function define(command: Command, ctx: CliContext): void {
  let failed = false;
  defineKanban(command, {
    get home() {
      return ctx.home;
    },
    get clock() {
      return ctx.clock;
    },
    store: () => ctx.store(),
    async beside(slug) {
      const { splitWaiting } = await import("../../commands/kanban-side.ts");
      await splitWaiting(slug, ctx, new AbortController().signal);
    },
    out: (...said) => ctx.io.out(...said),
    err: (text) => ctx.io.err(text),
    failed() {
      failed = true;
    },
    async lasts(work) {
      const stop = new AbortController();
      const signals = onStopSignal({ stop: () => stop.abort(), graceSeconds: GRACE_SECONDS, clock: ctx.clock });
      try {
        await work(stop.signal);
      } finally {
        signals.stopListening();
      }
    },
  });
  command.hook("preAction", (_, action) => {
    const refusal = refusalFor(action, (name) => ctx.home.env(name)?.trim() || undefined);
    if (refusal !== null) throw new ExitError(1, refusal);
  });
  command.hook("postAction", () => {
    if (failed) throw new ExitError(1);
  });
}
