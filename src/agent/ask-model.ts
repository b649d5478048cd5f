// A model call with patience: attempts, pauses, and the repairs that a refusal teaches.

import { failureLine } from "../llm/errors/explain.ts";
import type { CallPurpose } from "../llm/gate.ts";
import { requestLimits } from "../llm/liveness.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { Usage } from "../llm/usage.ts";
import type { ModelRequest } from "../llm/wire.ts";
import type { Conversation } from "./conversation.ts";
import type { AgentEventBody } from "./events.ts";
import { type Failure, judgeFailure, retryDelayMs } from "./failure.ts";
import { listenToModel, type Reply } from "./model-call.ts";

export interface Asking {
  readonly conversation: Conversation;
  readonly system: string;
  readonly purpose: CallPurpose;
  readonly signal: AbortSignal;
  readonly emit: (event: AgentEventBody) => void;
}

export interface AskOptions {
  readonly scaffold: readonly HistoryMessage[];
  readonly outputCap?: number | undefined;
  readonly toolChoice?: ModelRequest["toolChoice"];
}

/** The end of all attempts of one call. */
export type Asked =
  | Exclude<Reply, { type: "failed" } | { type: "interrupted" }>
  | { readonly type: "failed"; readonly failure: Failure; readonly attempts: number }
  | { readonly type: "interrupted"; readonly seconds: number };

const HEARTBEAT_MS = 30_000;

export async function askModel(asking: Asking, options: AskOptions): Promise<Asked> {
  const { conversation, emit } = asking;
  const { clock } = conversation.options.ports;
  const attempts = Math.max(1, conversation.options.limits.apiMaxRetries);
  const began = clock.now();
  const interrupted = (): Asked => ({ type: "interrupted", seconds: Math.round((clock.now() - began) / 1000) });
  for (let attempt = 1; ; attempt++) {
    const reply = await attemptOnce(asking, options);
    if (reply.type === "interrupted") return interrupted();
    if (reply.type === "answer") conversation.context.noteAnswer();
    if (reply.type !== "failed") return reply;
    const failure = judgeFailure(reply.error, conversation);
    const lesson = conversation.lessons.learn(reply.error, failure.classified, buildRequest(asking, options));
    if (lesson !== null) {
      // A refusal that taught something costs no attempt; there are only so many lessons.
      attempt--;
      conversation.options.ports.gate.expectNewPrefix(conversation.transcript.sessionId, "repair");
      emit({ type: "status", kind: "warn", message: lesson });
      continue;
    }
    if (!failure.worthRetrying || attempt >= attempts) return { type: "failed", failure, attempts: attempt };
    const delay = retryDelayMs(failure, attempt, clock);
    const seconds = Math.round(delay / 100) / 10;
    emit({
      type: "status",
      kind: "lifecycle",
      message: `${failureLine(failure.classified, conversation.model.target.apiKey)} — trying again in ${seconds} s (attempt ${attempt + 1} of ${attempts})`,
    });
    if (!(await pause(asking, delay))) return interrupted();
  }
}

/** Waits, with a sign of life every half minute. False when the turn was interrupted meanwhile. */
export async function pause({ conversation, signal, emit }: Asking, ms: number): Promise<boolean> {
  const { clock } = conversation.options.ports;
  for (let left = ms; left > 0 && !signal.aborted; left -= HEARTBEAT_MS) {
    try {
      await clock.sleep(Math.min(left, HEARTBEAT_MS), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (left > HEARTBEAT_MS) emit({ type: "status", kind: "heartbeat", message: "waiting to try again" });
  }
  return !signal.aborted;
}

async function attemptOnce(asking: Asking, options: AskOptions): Promise<Reply> {
  const { conversation, purpose, signal, emit } = asking;
  const { gate } = conversation.options.ports;
  if (signal.aborted) return { type: "interrupted" };
  const request = conversation.lessons.apply(buildRequest(asking, options));
  emit({ type: "status", kind: "waiting", message: `waiting for ${request.target.model}` });
  return listenToModel(gate.stream(request, purpose, signal), signal, {
    emit,
    usage: (usage) => meter(asking, usage),
  });
}

function buildRequest({ conversation, system }: Asking, options: AskOptions): ModelRequest {
  const { model, transcript, requests } = conversation;
  const { prompt, tools } = conversation.options;
  const ephemeral = prompt.ephemeral?.();
  const messages = requests.build({
    target: model.target,
    system,
    ...(ephemeral === undefined ? {} : { ephemeral }),
    ...(prompt.prefill ? { prefill: prompt.prefill } : {}),
    history: transcript.messages,
    scaffold: options.scaffold,
    images: conversation.takesImages,
  });
  const maxTokens = options.outputCap ?? model.maxTokens;
  const { promptLayout } = conversation;
  return {
    target: model.target,
    messages,
    tools: tools.definitions,
    sessionId: transcript.sessionId,
    ...(promptLayout ? { promptLayout } : {}),
    ...(options.scaffold.length > 0 ? { scaffolded: true } : {}),
    ...(options.toolChoice ? { toolChoice: options.toolChoice } : {}),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(model.reasoning ? { reasoning: model.reasoning } : {}),
    limits: requestLimits(model.target, conversation.meter.lastPromptTokens ?? 0, model.liveness),
    ...(model.cacheTtl ? { cacheTtl: model.cacheTtl } : {}),
    ...(model.overrides ? { overrides: model.overrides } : {}),
  };
}

function meter({ conversation, purpose, emit }: Asking, usage: Usage): void {
  const { target } = conversation.model;
  conversation.meter.add(usage, usage.cost ?? { usd: null, status: "unknown" });
  conversation.context.noteUsage(usage);
  emit({
    type: "usage",
    usage,
    task: purpose.task,
    totals: conversation.meter.totals,
    contextUsed: conversation.meter.lastPromptTokens,
    contextLength: target.contextLength,
  });
}
