// Commands of tests, which nobody has to be asked about.

import { type ApprovedCommand, type CommandGuard, clearCommand } from "../../src/safety/decision.ts";
import { CODE_RUNNER } from "../../src/safety/guard.ts";

export const cleared = clearCommand;

/** A guard that says yes to everything, and what it was asked. */
export function allowingGuard(
  outcome: Partial<ApprovedCommand> = {},
): CommandGuard & { readonly asked: readonly string[] } {
  const asked: string[] = [];
  const yes = (command: string): ApprovedCommand => ({
    approved: true,
    cleared: clearCommand(command),
    message: "",
    description: null,
    patternKey: null,
    ...outcome,
  });
  return {
    asked,
    async decide(command) {
      asked.push(command);
      return yes(command);
    },
    async decideCode(code) {
      asked.push(code);
      return yes(CODE_RUNNER);
    },
  };
}
