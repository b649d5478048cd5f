// `hermes kanban`.
import type { Command } from "commander";
import { defineKanban } from "../../commands/kanban.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { onStopSignal } from "../stop-signals.ts";

/** A look that is going on may have to wait for workers that it stops. */
const GRACE_SECONDS = "10";

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
  command.hook("postAction", () => {
    if (failed) throw new ExitError(1);
  });
}
