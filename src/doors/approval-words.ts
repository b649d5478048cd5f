// How a question for a yes is worded, the same in every door: by what a yes would do.
import { said, t } from "../home/language/words.ts";
import type { ApprovalQuestion } from "../safety/decision.ts";

interface ApprovalWords {
  /** Above what it is about. */
  readonly title: string;
  readonly ask: string;
  readonly once: string;
  readonly no: string;
}

type Answers = Omit<ApprovalWords, "title">;

const run = (): Answers => ({ ask: t("Run it?"), once: t("Run it once"), no: t("No, don't run it") });

export function approvalWords({ about, description }: ApprovalQuestion): ApprovalWords {
  switch (about) {
    case "leaving":
      return {
        title: t("Run this command outside the sandbox?"),
        ask: t("Run it outside?"),
        once: t("Run it outside once"),
        no: t("No, don't run it"),
      };
    case "outside write":
      return {
        title: t("Write outside the sandbox?"),
        ask: t("Write it?"),
        once: t("Write it once"),
        no: t("No, don't write it"),
      };
    case "address":
      return { title: description, ask: t("Open it?"), once: t("Open it once"), no: t("No, don't open it") };
    case "own change":
      return { title: description, ask: t("Save it?"), once: t("Save it once"), no: t("No, don't save it") };
    case "other":
      return { title: description, ...run() };
    case undefined:
      return { title: t("Dangerous command: {what}", { what: dangerWords(description) }), ...run() };
  }
}

/** The kinds of danger of a command, one or several, for people; settings keep them in English. */
export const dangerWords = (kinds: string) => kinds.split(" + ").map(said).join(" + ");
