// How a question for a yes is worded, the same in every door: by what a yes would do.
import type { ApprovalQuestion } from "../safety/decision.ts";

interface ApprovalWords {
  /** Above what it is about. */
  readonly title: string;
  readonly ask: string;
  readonly once: string;
  readonly no: string;
}

const words = (verb: string, title: string, where = ""): ApprovalWords => ({
  title,
  ask: `${verb} it${where}?`,
  once: `${verb} it${where} once`,
  no: `No, do not ${verb.toLowerCase()} it`,
});

export function approvalWords({ about, description }: ApprovalQuestion): ApprovalWords {
  switch (about) {
    case "leaving":
      return words("Run", "Leave the sandbox for this command?", " outside");
    case "outside write":
      return words("Write", "Write outside the sandbox?");
    case "address":
      return words("Open", description);
    case "own change":
      return words("Save", description);
    case "other":
      return words("Run", description);
    case undefined:
      return words("Run", `Dangerous command: ${description}`);
  }
}
