// The model, scripted: the one thing these tests fake. It implements the gate's contract and remembers every request.
import { setTimeout as wait } from "node:timers/promises";
import type { CallPurpose, ModelGate, PrefixCause } from "../../../src/llm/gate.ts";
import type { AssistantMessage, FinishReason, ToolCall } from "../../../src/llm/messages.ts";
import type { RateLimits, Usage } from "../../../src/llm/usage.ts";
import type { ModelError, ModelEvent, ModelRequest } from "../../../src/llm/wire.ts";

export interface ScriptedAnswer {
  readonly text?: string;
  readonly thinking?: string;
  readonly calls?: readonly { readonly id?: string; readonly name: string; readonly args: unknown }[];
  readonly finish?: FinishReason;
  readonly usage?: Partial<Usage>;
  readonly rateLimits?: RateLimits;
  /** Further fields of the assistant message. */
  readonly message?: Partial<AssistantMessage>;
}

export type ScriptedStep =
  | ScriptedAnswer
  | { readonly error: ModelError; readonly text?: string }
  /** Says this much and then nothing more, until it is aborted. */
  | { readonly hang: string }
  | ((request: ModelRequest) => ScriptedStep);

/** Long enough for any machine, and still an end for a test that waits in vain. */
const HANGS_MS = 60_000;

export class ScriptedGate implements ModelGate {
  readonly requests: ModelRequest[] = [];
  readonly purposes: CallPurpose[] = [];
  readonly signals: AbortSignal[] = [];
  /** Causes that were announced, in order. */
  readonly expected: PrefixCause[] = [];
  /** Which requests got a whole answer. */
  readonly answered = new Set<number>();
  /** Called with each request as it arrives. */
  onRequest: (request: ModelRequest) => void = () => undefined;
  readonly #steps: ScriptedStep[];
  #serial = 0;

  constructor(...steps: ScriptedStep[]) {
    this.#steps = steps;
  }

  script(...steps: ScriptedStep[]): void {
    this.#steps.push(...steps);
  }

  /** Forgets what was not asked for. */
  drop(): void {
    this.#steps.length = 0;
  }

  expectNewPrefix(_sessionId: string, cause: PrefixCause): void {
    this.expected.push(cause);
  }

  pay: ModelGate["pay"] = async (_call, purpose, send) => {
    this.purposes.push(purpose);
    return { ...(await send()), cost: { usd: null, status: "unknown" } };
  };

  async *stream(request: ModelRequest, purpose: CallPurpose, signal: AbortSignal): AsyncIterable<ModelEvent> {
    const index = this.requests.push(request) - 1;
    this.purposes.push(purpose);
    this.signals.push(signal);
    this.onRequest(request);
    let step: ScriptedStep = this.#steps.shift() ?? { text: "(the script is over)" };
    while (typeof step === "function") step = step(request);
    if ("hang" in step) {
      yield { type: "text", delta: step.hang };
      await wait(HANGS_MS, undefined, { signal, ref: false }).catch(() => undefined);
      if (!signal.aborted) throw new Error("nobody aborted the request that hangs");
      yield { type: "failed", error: { message: "aborted", code: "aborted" } };
      return;
    }
    if ("error" in step) {
      if (step.text) yield { type: "text", delta: step.text };
      yield { type: "failed", error: step.error };
      return;
    }
    this.answered.add(index);
    yield* this.#answer(step);
  }

  *#answer(step: ScriptedAnswer): Iterable<ModelEvent> {
    const serial = ++this.#serial;
    for (const delta of (step.thinking ?? "").match(/[\s\S]{1,7}/g) ?? []) yield { type: "thinking", delta };
    for (const delta of (step.text ?? "").match(/[\s\S]{1,7}/g) ?? []) yield { type: "text", delta };
    const calls = (step.calls ?? []).map(
      (call, index): ToolCall => ({
        id: call.id ?? `call_${serial}_${index}`,
        type: "function",
        function: {
          name: call.name,
          arguments: typeof call.args === "string" ? call.args : JSON.stringify(call.args),
        },
      }),
    );
    for (const call of calls) {
      yield { type: "tool_pending", name: call.function.name };
      yield { type: "tool_call", call };
    }
    yield {
      type: "usage",
      usage: {
        inputTokens: 10,
        outputTokens: 5,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        reasoningTokens: 0,
        promptTokens: 10,
        totalTokens: 15,
        ...step.usage,
      },
    };
    yield {
      type: "done",
      finishReason: step.finish ?? (calls.length > 0 ? "tool_calls" : "stop"),
      message: {
        role: "assistant",
        content: step.text ?? null,
        ...(calls.length > 0 ? { tool_calls: calls } : {}),
        ...(step.thinking ? { reasoning: step.thinking } : {}),
        ...step.message,
      },
      ...(step.rateLimits ? { rateLimits: step.rateLimits } : {}),
    };
  }
}
