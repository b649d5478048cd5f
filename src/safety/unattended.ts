// The decision on a command nobody is there to be asked about: what is not harmless does not run.
import { type ApprovalOutcome, clearCommand } from "./decision.ts";
import { type ClassifyOptions, classifyCommand } from "./verdict.ts";

export function decideUnattended(command: string, options: ClassifyOptions): ApprovalOutcome {
  const { verdict, category, reason, hardline } = classifyCommand(command, options);
  const facts = { description: category, patternKey: category };
  if (verdict === "allow") return { approved: true, cleared: clearCommand(command), message: "", ...facts };
  return { approved: false, message: `${category}: ${reason}`, ...facts, ...(hardline ? { hardline } : {}) };
}
