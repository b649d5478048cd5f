// One look back, from the prompt to the line the user sees.
import type { Conversation, SentSoFar } from "../conversation.ts";
import type { AgentEventBody } from "../events.ts";
import type { Trigger } from "../nudges.ts";
import { playTurn } from "../turn.ts";
import { forkForReview } from "./fork.ts";
import { reviewPrompt } from "./prompts.ts";
import { type EndedCall, noticeMode, reviewLine } from "./summary.ts";

export interface ReviewRun {
  readonly triggers: readonly Trigger[];
  /** The conversation as it stood when the turn was over. */
  readonly sent: SentSoFar;
  readonly signal: AbortSignal;
}

/** Resolves to the line for the user, or null. What it saved by the time it was stopped is told as well. */
export async function runReview(parent: Conversation, { triggers, sent, signal }: ReviewRun): Promise<string | null> {
  const { ports, session } = parent.options;
  const { conversation, state, budget } = await forkForReview(parent, sent);
  const ended: EndedCall[] = [];
  const emit = (event: AgentEventBody) => {
    if (event.type === "tool_end" && !event.failed) ended.push({ ...event.call, result: event.result });
    if (event.type === "usage") parent.countSideCall(event.usage);
  };
  await parent.nudges.reviewStarts(triggers);
  try {
    const outcome = await playTurn(
      conversation,
      { text: reviewPrompt(triggers), from: "synthetic" },
      { signal, budget, emit, notify: () => undefined, interruptMessage: () => undefined },
    );
    if (outcome.failed) ports.log.warn(`the review came to nothing: ${outcome.error ?? outcome.finalText}`);
  } finally {
    await state.dispose();
  }
  return reviewLine(ended, noticeMode(ports.config(), session.platform));
}
