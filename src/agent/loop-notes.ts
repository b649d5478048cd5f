// What the loop itself says to the model. Sent with a request, never stored.
import type { UserMessage } from "../llm/messages.ts";

const note = (text: string): UserMessage => ({ role: "user", content: text });

export const continueAfterLimit = note(
  "[System note: your answer was cut off at the output limit. Go on exactly where it stopped. Do not repeat or summarise what you already wrote.]",
);

export function continueAfterLoss(pendingTools: readonly string[]): UserMessage {
  const tools =
    pendingTools.length > 0
      ? ` The unfinished call of ${pendingTools.join(", ")} was not run; send it again, in smaller pieces if it was long.`
      : "";
  return note(
    `[System note: the connection was lost while you were answering. Go on exactly where your text stopped, without repeating it.${tools}]`,
  );
}

export function callAgainAfterLoss(pendingTools: readonly string[]): UserMessage {
  return note(
    `[System note: the connection was lost while you were writing a call of ${pendingTools.join(", ")}. It was not run. Send it again; if it was long, split it into smaller pieces.]`,
  );
}

export const writeSmallerPieces = note(
  "[System note: your tool call was cut off at the output limit and was not run. Write less in one call: split long content into several smaller calls.]",
);

export const answerFromResults = note(
  "[System note: the tools ran, but your answer was empty. Use the results above: go on with the task, or give the final answer.]",
);

export function answerAtLimit(max: number): UserMessage {
  return note(
    `[System note: the limit of ${max} model calls for this turn is reached. Give your final answer now from what you have found so far, and say what is still open. Do not call any more tools.]`,
  );
}
