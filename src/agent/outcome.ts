import type { FailureReason } from "../llm/errors/classify.ts";
import type { AssistantMessage, HistoryMessage } from "../llm/messages.ts";
import type { Conversation } from "./conversation.ts";
import type { TurnOutcome } from "./events.ts";
import type { SteerBox } from "./steer.ts";

export interface ModelFailure {
  readonly reason: FailureReason;
  /** What the user said is no part of the conversation any more. */
  readonly takenBack?: true;
}

/** How a turn comes to its end, before it is written down. */
export interface Ending {
  readonly type: "end";
  readonly exitReason: string;
  /** What the user reads; null only after an interrupt. */
  readonly finalText: string | null;
  readonly kind: "answered" | "partial" | "failed" | "interrupted";
  /** The answer as it enters the history; absent when nothing of it is kept. */
  readonly message?: AssistantMessage;
  /** The final text was shown while it came. */
  readonly streamed?: boolean;
  /** A hook gave another text than the model. */
  readonly transformed?: true;
  /** For logs and machines. */
  readonly error?: string;
  /** Why the model could not be asked; a door whose readers do not run this Hermes says it in its own words. */
  readonly failure?: ModelFailure;
  readonly compressionExhausted?: true;
  readonly stoppedByQuota?: true;
  readonly guardrail?: NonNullable<TurnOutcome["guardrail"]>;
}

/** An end without an answer of the model: the sentence says what happened and what to do. */
export function failedEnding(exitReason: string, sentence: string, error: string = sentence): Ending {
  return { type: "end", exitReason, finalText: sentence, kind: "failed", error };
}

/** The same end, after what the user said was taken out of the conversation. */
export function withoutMessage(ending: Ending): Ending {
  const { finalText, failure } = ending;
  return {
    ...ending,
    finalText: `${finalText}\nYour message was removed from the conversation; send it again after /compress or /new.`,
    ...(failure ? { failure: { ...failure, takenBack: true } } : {}),
  };
}

/** An end before the work was done. `text` is what there is of an answer, or the sentence that stands for it. */
export function partialEnding(
  exitReason: string,
  text: string,
  { error = text, message }: Pick<Ending, "error" | "message"> = {},
): Ending {
  return { type: "end", exitReason, finalText: text, kind: "partial", error, message };
}

/** A tool failed so often in a row that going on would only cost more. */
export function haltedEnding({ tool, code, count }: NonNullable<TurnOutcome["guardrail"]>): Ending {
  const sentence = `I stopped: ${tool} failed ${count} times in a row. Tell me how to continue, or change tool_loop_guardrails in config.yaml.`;
  // Kept like an answer: whoever comes back reads why it stopped, and so does the model.
  const message: AssistantMessage = { role: "assistant", content: sentence };
  return {
    ...partialEnding("guardrail_halt", sentence, { message, error: `${tool} failed ${count} times in a row` }),
    guardrail: { tool, code, count },
  };
}

export function interruptedEnding(exitReason: string, sentence: string): Ending {
  return { type: "end", exitReason, finalText: sentence, kind: "interrupted" };
}

export function interruptedWaiting(seconds: number): Ending {
  return interruptedEnding(
    "interrupted_during_api_call",
    `Operation interrupted: waiting for model response (${seconds}s elapsed).`,
  );
}

interface TurnFacts {
  readonly apiCalls: number;
  /** The turn ended before its limit. */
  readonly withinBudget: boolean;
  readonly interruptMessage?: string | undefined;
}

/** What the door reads of a turn that is over. */
export function makeOutcome(conversation: Conversation, ending: Ending, facts: TurnFacts): TurnOutcome {
  const { transcript, meter, model } = conversation;
  const { target } = model;
  const { kind, finalText, exitReason, error, compressionExhausted, stoppedByQuota, guardrail } = ending;
  const interrupted = kind === "interrupted";
  return {
    finalText,
    messages: transcript.messages,
    apiCalls: facts.apiCalls,
    completed: kind === "answered" && finalText !== null && facts.withinBudget,
    failed: kind === "failed",
    partial: kind === "partial",
    interrupted,
    exitReason,
    lastReasoning: lastReasoning(transcript.messages),
    model: target.model,
    provider: target.provider,
    baseUrl: target.baseUrl,
    sessionId: transcript.sessionId,
    totals: meter.totals,
    lastPromptTokens: meter.lastPromptTokens,
    ...(ending.streamed ? { responsePreviewed: true } : {}),
    ...(ending.transformed ? { responseTransformed: true } : {}),
    ...(error === undefined ? {} : { error }),
    ...(compressionExhausted ? { compressionExhausted } : {}),
    ...(stoppedByQuota ? { stoppedByQuota } : {}),
    ...(guardrail ? { guardrail } : {}),
    ...(interrupted && facts.interruptMessage !== undefined ? { interruptMessage: facts.interruptMessage } : {}),
  };
}

/** Steering that found no result to ride on comes back, so that the door sends it as the next message; an interrupt drops it. */
export function withPendingSteer(outcome: TurnOutcome, steer: SteerBox): TurnOutcome {
  const waiting = steer.take();
  return waiting === null || outcome.interrupted ? outcome : { ...outcome, pendingSteer: waiting };
}

/** The reasoning of this turn's last answer; that of an earlier turn is not shown again. */
function lastReasoning(messages: readonly HistoryMessage[]): string | null {
  const last = messages.findLast((message) => message.role !== "tool");
  return last?.role === "assistant" ? (last.reasoning ?? null) : null;
}
