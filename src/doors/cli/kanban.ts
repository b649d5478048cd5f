// `hermes kanban`.
import type { Command } from "commander";
import { defineKanban } from "../../commands/kanban.ts";
import { type CliContext, ExitError } from "../cli-context.ts";

export function define(command: Command, { home, clock, io }: CliContext): void {
  let failed = false;
  defineKanban(command, {
    ...{ home, clock, out: io.out, err: io.err },
    failed() {
      failed = true;
    },
  });
  command.hook("postAction", () => {
    if (failed) throw new ExitError(1);
  });
}
