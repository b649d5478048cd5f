// `hermes kanban`.
import type { Command } from "commander";
import { defineKanban } from "../../commands/kanban.ts";
import { type CliContext, ExitError } from "../cli-context.ts";

export function define(command: Command, ctx: CliContext): void {
  let failed = false;
  defineKanban(command, {
    get home() {
      return ctx.home;
    },
    get clock() {
      return ctx.clock;
    },
    out: (...said) => ctx.io.out(...said),
    err: (text) => ctx.io.err(text),
    failed() {
      failed = true;
    },
  });
  command.hook("postAction", () => {
    if (failed) throw new ExitError(1);
  });
}
