// Commands of tests, which nobody has to be asked about.
import { type ApprovedCommand, type CommandGuard, clearCommand } from "../../src/safety/decision.ts";

export const cleared = clearCommand;

/** A guard that says yes to everything, and what it was asked. */
export function allowingGuard(
  outcome: Partial<ApprovedCommand> = {},
): CommandGuard & { readonly asked: readonly string[] } {
  const asked: string[] = [];
  return {
    asked,
    async decide(command) {
      asked.push(command);
      return {
        approved: true,
        cleared: clearCommand(command),
        message: "",
        description: null,
        patternKey: null,
        ...outcome,
      };
    },
  };
}
