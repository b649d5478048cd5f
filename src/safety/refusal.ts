import type { AnswerTo, Question } from "./questions.ts";

/** The answer that says no, in the shape the question expects. */
export function refuse<Q extends Question>(
  question: Q,
  why: { readonly reason?: string; readonly timedOut?: boolean } = {},
): AnswerTo<Q> {
  const no =
    question.kind === "approval"
      ? { choice: "deny", ...why }
      : question.kind === "confirm"
        ? { choice: "cancel" }
        : { text: null };
  return no as AnswerTo<Q>; // chosen by the question's kind
}
