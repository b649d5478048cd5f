// Models misbehave: empty answers, cut answers, tools that do not exist, arguments that do not parse. This decides what happens next.
import { deterministicCallId } from "../llm/call-ids.ts";
import type {
  AssistantMessage,
  FinishReason,
  HistoryMessage,
  ToolCall,
  ToolMessage,
  UserMessage,
} from "../llm/messages.ts";
import { stripThinkBlocks } from "../llm/scrub.ts";
import { disarm } from "../prompt/fence.ts";
import {
  acceptBatch,
  type CheckedCall,
  checkCall,
  hasInlineThinking,
  hasOpenScratchpad,
  hasThought,
  joinReplayItems,
  type Rejected,
  rejectArguments,
  rejectNames,
  takeIn,
  thoughtOf,
  visibleText,
} from "./assistant-message.ts";
import { type Ending, failedEnding, partialEnding } from "./outcome.ts";
import { hasPayload } from "./repair.ts";

/** A whole answer of the model. `streamed` is what the screen already shows of it. */
interface Answer {
  readonly message: AssistantMessage;
  readonly finishReason: FinishReason;
  readonly streamed: string;
}

/** An answer whose connection broke after it had begun. */
interface LostAnswer {
  readonly text: string;
  readonly pendingTools: readonly string[];
}

export type Verdict =
  /** Run these. `calls` are as the model meant them; `message` is what the history keeps. */
  | {
      readonly type: "calls";
      readonly message: AssistantMessage;
      readonly calls: readonly ToolCall[];
      readonly notes: readonly string[];
    }
  /** Nothing is run; the model reads why. */
  | { readonly type: "rejected"; readonly message: AssistantMessage; readonly results: readonly ToolMessage[] }
  /** Ask once more, with the judge's `scaffold` and `outputCap`; `pause` is the n-th time that nothing came back. */
  | { readonly type: "again"; readonly why?: string; readonly pause?: number }
  | Ending;

const MAX_CONTINUATIONS = 3;
const MAX_CUT_CALLS = 3;
const MAX_INTERIMS = 3;
const MAX_STRIKES = 3;
const MAX_BAD_JSON = 3;
const MAX_THOUGHTS = 2;
const MAX_EMPTY = 3;
const MAX_SCRATCHPADS = 2;
const DEFAULT_CAP = 4096;
const HIGHEST_CAP = 32_768;
const HOUSEKEEPING = new Set(["memory", "todo", "skill_manage", "session_search"]);

const fresh = () => ({
  strikes: 0,
  badJson: 0,
  cutCalls: 0,
  continuations: 0,
  interims: 0,
  thoughts: 0,
  empty: 0,
  scratchpads: 0,
  nudged: false,
});

/** Judges the answers of one turn. What it asks the model to do again is counted, and each kind has an end. */
export class AnswerJudge {
  readonly #names: ReadonlySet<string>;
  readonly #requestedCap: number | undefined;
  readonly #maxChildren: number;
  readonly #redact: (text: string) => string;
  #counts = fresh();
  #scaffold: readonly HistoryMessage[] = [];
  #outputCap: number | undefined;
  /** What was already said of an answer that comes in pieces. */
  #draft = "";
  #interims: readonly AssistantMessage[] = [];

  constructor(options: {
    readonly names: ReadonlySet<string>;
    readonly requestedCap: number | undefined;
    readonly maxChildren: number;
    readonly redact: (text: string) => string;
  }) {
    this.#names = options.names;
    this.#requestedCap = options.requestedCap;
    this.#maxChildren = options.maxChildren;
    this.#redact = options.redact;
  }

  /** Notes that ride at the end of the next request. */
  get scaffold(): readonly HistoryMessage[] {
    return this.#scaffold;
  }

  /** A raised output cap for the next request. */
  get outputCap(): number | undefined {
    return this.#outputCap;
  }

  judge(answer: Answer, history: readonly HistoryMessage[]): Verdict {
    const { message, finishReason } = answer;
    if (finishReason === "content_filter") return refusedByPolicy(answer);
    if ((message.tool_calls ?? []).length > 0) return this.#judgeCalls(answer, history);
    if (finishReason === "incomplete") return this.#judgeInterim(answer);
    if (hasOpenScratchpad(message)) return this.#judgeScratchpad(answer);
    const text = visibleText(message);
    if (finishReason === "length" && text.trim() !== "") return this.#goOn(text, answer);
    if (finishReason === "length" && hasThought(message)) return this.#thinkingAteTheAnswer(answer);
    if (text.trim() === "" && this.#draft === "" && this.#interims.length === 0)
      return this.#judgeEmpty(answer, history);
    return this.#final(text, answer);
  }

  judgeLost(lost: LostAnswer): Verdict {
    const text = stripThinkBlocks(lost.text);
    if (text.trim() !== "") return this.#continueWith(text, continueAfterLoss(lost.pendingTools), null);
    this.#counts.cutCalls++;
    if (this.#counts.cutCalls > MAX_CUT_CALLS) return this.#cutCallEnding();
    this.#scaffold = [callAgainAfterLoss(lost.pendingTools)];
    return { type: "again", why: `connection lost while ${lost.pendingTools.join(", ")} was being called` };
  }

  // --- tool calls

  #judgeCalls(answer: Answer, history: readonly HistoryMessage[]): Verdict {
    const given = (answer.message.tool_calls ?? []).map(withId);
    const truncated = answer.finishReason === "length";
    const checked = given.map((call) => checkCall(call, { names: this.#names, truncated }));
    if (checked.some((one) => one.fault === "cut")) return this.#cutCall();
    if (checked.some((one) => one.fault === "name")) return this.#badName(answer, checked);
    if (checked.some((one) => one.fault === "json")) return this.#badArguments(answer, checked);
    const { calls, notes } = acceptBatch(
      checked.map((one) => one.call),
      { history, maxChildren: this.#maxChildren },
    );
    const message = this.#message(visibleText(answer.message), answer, calls);
    this.startAfresh();
    return { type: "calls", message, calls, notes };
  }

  #cutCall(): Verdict {
    const times = ++this.#counts.cutCalls;
    if (times > MAX_CUT_CALLS) return this.#cutCallEnding();
    this.#outputCap = this.#raisedCap(times);
    this.#scaffold = times > 1 ? [writeSmallerPieces] : [];
    return { type: "again", why: "the tool call was cut off at the output limit; it was not run" };
  }

  #cutCallEnding(): Ending {
    return partialEnding(
      "truncated_tool_call",
      "The model's tool call was cut off every time, so it was not run. Ask for the work in smaller steps, or raise model.max_tokens.",
    );
  }

  #badName(answer: Answer, checked: readonly CheckedCall[]): Verdict {
    if (++this.#counts.strikes < MAX_STRIKES) return this.#reject(answer, rejectNames(checked, this.#names));
    const wrong = checked
      .filter((one) => one.fault === "name")
      .map((one) => one.call.function.name.trim() || "(no name)");
    return partialEnding(
      "invalid_tool_call",
      `The model kept calling tools that do not exist (${this.#redact(wrong.join(", "))}). Try again, or use another model.`,
    );
  }

  #badArguments(answer: Answer, checked: readonly CheckedCall[]): Verdict {
    if (++this.#counts.badJson < MAX_BAD_JSON) return { type: "again" };
    this.#counts.badJson = 0;
    return this.#reject(answer, rejectArguments(checked));
  }

  #reject(answer: Answer, { calls, results }: Rejected): Verdict {
    const message = this.#message(visibleText(answer.message), answer, calls);
    this.#forgetPieces();
    const masked = results.map((result) => ({
      ...result,
      ...(result.name === undefined ? {} : { name: this.#redact(result.name) }),
      ...(result.tool_name === undefined ? {} : { tool_name: this.#redact(result.tool_name) }),
      // What is quoted back of a call may come from anywhere; it cannot speak in the user's name.
      ...(typeof result.content === "string" ? { content: disarm(this.#redact(result.content)) } : {}),
    }));
    return { type: "rejected", message, results: masked };
  }

  // --- answers in pieces

  #goOn(text: string, answer: Answer): Verdict {
    return this.#continueWith(text, continueAfterLimit, answer);
  }

  #continueWith(text: string, ask: HistoryMessage, answer: Answer | null): Verdict {
    this.#draft += text;
    const times = ++this.#counts.continuations;
    if (times > MAX_CONTINUATIONS) {
      const said = this.#draft.trim();
      const source = answer ?? {
        message: { role: "assistant", content: text },
        finishReason: "length",
        streamed: text,
      };
      const kept = { message: this.#message("", source, []), error: "the answer was cut off" };
      return { ...partialEnding("truncated_response", said, kept), streamed: true };
    }
    if (answer) this.#outputCap = this.#raisedCap(times);
    this.#scaffold = [...this.#scaffold, { role: "assistant", content: text }, ask];
    return { type: "again", why: answer ? "the answer was cut off at the output limit" : "connection lost" };
  }

  #thinkingAteTheAnswer(answer: Answer): Verdict {
    if (this.#draft !== "") return this.#final("", answer);
    const sentence =
      "The model used its whole output budget for thinking and gave no answer. Lower the reasoning effort or raise model.max_tokens.";
    return partialEnding("truncated_response", sentence);
  }

  #judgeInterim(answer: Answer): Verdict {
    const same = JSON.stringify(this.#interims.at(-1)?.content) === JSON.stringify(answer.message.content);
    const interim: AssistantMessage = { ...answer.message, content: visibleText(answer.message) };
    if (hasPayload(interim) && (!same || this.#interims.length === 0)) {
      this.#interims = [...this.#interims, interim];
      this.#scaffold = [...this.#scaffold, interim];
    }
    if (++this.#counts.interims <= MAX_INTERIMS) return { type: "again", why: "the answer was incomplete" };
    const said = this.#joined("");
    const sentence = said || 'The model did not finish its answer. Say "continue" to resume.';
    const message =
      said === "" ? undefined : this.#message("", { ...answer, message: { role: "assistant", content: "" } }, []);
    const kept = { message, error: "the model did not finish its answer" };
    return partialEnding("truncated_response", sentence, kept);
  }

  #judgeScratchpad(answer: Answer): Verdict {
    if (++this.#counts.scratchpads <= MAX_SCRATCHPADS)
      return { type: "again", why: "the answer ended inside its scratchpad" };
    const text = visibleText(answer.message).trim();
    const sentence = text || 'The model\'s answer ended inside its own notes. Say "continue" to resume.';
    const message = text === "" ? undefined : this.#message(text, answer, []);
    const kept = { message, error: "the model's answer ended inside its own notes" };
    return partialEnding("truncated_response", sentence, kept);
  }

  // --- no answer at all

  #judgeEmpty(answer: Answer, history: readonly HistoryMessage[]): Verdict {
    const { message, streamed } = answer;
    if (streamed.trim() !== "") {
      const kept = this.#message(streamed, answer, []);
      const exitReason = "partial_stream_recovery";
      return { type: "end", exitReason, kind: "partial", finalText: kept.content, message: kept, streamed: true };
    }
    const before = textWithHousekeeping(history);
    if (before !== null) {
      const exitReason = "fallback_prior_turn_content";
      return { type: "end", exitReason, kind: "answered", finalText: before, streamed: true };
    }
    const afterTools = history.slice(-5).some((one) => one.role === "tool");
    if (afterTools && !this.#counts.nudged && !hasInlineThinking(message)) {
      this.#counts.nudged = true;
      this.#scaffold = [{ role: "assistant", content: "(empty)" }, answerFromResults];
      return { type: "again", why: "the answer after the tools was empty" };
    }
    if (hasThought(message) && this.#counts.thoughts < MAX_THOUGHTS) {
      this.#counts.thoughts++;
      this.#scaffold = [...this.#scaffold.filter((one) => one.role === "user" || one.content), thoughtOf(message)];
      return { type: "again", why: "the model thought but said nothing" };
    }
    if (!hasThought(message) && this.#counts.empty < MAX_EMPTY) {
      const pause = ++this.#counts.empty;
      return { type: "again", why: "the model returned nothing", pause };
    }
    const sentence =
      'The model returned an empty answer several times. Say "continue" to try once more, or switch to another model with /model.';
    return failedEnding("empty_response_exhausted", sentence);
  }

  // --- the answer

  #final(text: string, answer: Answer): Verdict {
    const message = this.#message(text, answer, []);
    const exitReason = `text_response(finish_reason=${answer.finishReason})`;
    const streamed = answer.streamed.trim() !== "";
    return { type: "end", exitReason, kind: "answered", finalText: message.content, message, streamed };
  }

  /** One message out of all pieces of an answer. */
  #message(text: string, answer: Answer, calls: readonly ToolCall[]): AssistantMessage {
    const { finishReason } = answer;
    const source = this.#interims.reduceRight(joinReplayItems, answer.message);
    return takeIn(source, { text: this.#joined(text), calls, finishReason, redact: this.#redact });
  }

  #joined(text: string): string {
    const interims = this.#interims.flatMap((interim) => visibleText(interim).trim() || []);
    const last = (this.#draft + text).trim();
    return [...interims, ...(last === "" ? [] : [last])].join("\n\n");
  }

  /** What was counted and kept of earlier answers no longer matters. */
  startAfresh(): void {
    this.#counts = fresh();
    this.#forgetPieces();
  }

  #forgetPieces(): void {
    this.#scaffold = [];
    this.#outputCap = undefined;
    this.#draft = "";
    this.#interims = [];
  }

  #raisedCap(times: number): number {
    const highest = Math.max(HIGHEST_CAP, this.#requestedCap ?? 0);
    return Math.min((this.#requestedCap ?? DEFAULT_CAP) * 2 ** times, highest);
  }
}

function withId(call: ToolCall, index: number): ToolCall {
  if (call.id.trim() !== "") return call;
  return { ...call, id: deterministicCallId(call.function.name, call.function.arguments, index) };
}

/** The text that came together with nothing but housekeeping calls was the answer; the model had no more to say. */
function textWithHousekeeping(history: readonly HistoryMessage[]): string | null {
  const last = history.findLast((message) => message.role !== "tool");
  if (last?.role !== "assistant" || !last.tool_calls || history.at(-1)?.role !== "tool") return null;
  if (!last.tool_calls.every((call) => HOUSEKEEPING.has(call.function.name))) return null;
  return last.content?.trim() || null;
}

function refusedByPolicy(answer: Answer): Ending {
  const text = visibleText(answer.message).trim();
  const said = text === "" ? "The model refused to answer." : text;
  const hint =
    "(Refused by the provider's content policy. Rephrase the request, or switch to another model with /model.)";
  return failedEnding("content_policy_blocked", `${said}\n\n${hint}`, "refused by the provider's content policy");
}

// What the loop itself says to the model. Sent with a request, never stored.

const note = (text: string): UserMessage => ({ role: "user", content: text });

const continueAfterLimit = note(
  "[System note: your answer was cut off at the output limit. Go on exactly where it stopped. Do not repeat or summarise what you already wrote.]",
);

function continueAfterLoss(pendingTools: readonly string[]): UserMessage {
  const tools =
    pendingTools.length > 0
      ? ` The unfinished call of ${pendingTools.join(", ")} was not run; send it again, in smaller pieces if it was long.`
      : "";
  return note(
    `[System note: the connection was lost while you were answering. Go on exactly where your text stopped, without repeating it.${tools}]`,
  );
}

function callAgainAfterLoss(pendingTools: readonly string[]): UserMessage {
  return note(
    `[System note: the connection was lost while you were writing a call of ${pendingTools.join(", ")}. It was not run. Send it again; if it was long, split it into smaller pieces.]`,
  );
}

const writeSmallerPieces = note(
  "[System note: your tool call was cut off at the output limit and was not run. Write less in one call: split long content into several smaller calls.]",
);

const answerFromResults = note(
  "[System note: the tools ran, but your answer was empty. Use the results above: go on with the task, or give the final answer.]",
);

export function answerAtLimit(max: number): UserMessage {
  return note(
    `[System note: the limit of ${max} model calls for this turn is reached. Give your final answer now from what you have found so far, and say what is still open. Do not call any more tools.]`,
  );
}
