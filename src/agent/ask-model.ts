// A model call with patience: asked until there is an answer, or nothing is left to try.

import type { Failure } from "../llm/errors/classify.ts";
import type { CallPurpose } from "../llm/gate.ts";
import { requestLimits } from "../llm/liveness.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { listenToModel, type Reply } from "../llm/model-call.ts";
import { parseRateLimitHeaders, type Usage } from "../llm/usage.ts";
import type { ModelRequest } from "../llm/wire.ts";
import type { Conversation } from "./conversation.ts";
import type { AgentEventBody } from "./events.ts";
import { judgeFailure } from "./failure.ts";
import { tellRequest } from "./loop-events.ts";
import { reasoningFor } from "./model-choice.ts";
import { HEARTBEAT_MS, Tries } from "./recovery.ts";

export interface Asking {
  readonly conversation: Conversation;
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
  | {
      readonly type: "failed";
      readonly failure: Failure;
      readonly attempts: number;
      readonly request: ModelRequest;
    }
  | { readonly type: "interrupted"; readonly seconds: number };

export async function askModel(asking: Asking, options: AskOptions): Promise<Asked> {
  const { conversation } = asking;
  const { clock } = conversation.options.ports;
  const began = clock.now();
  const interrupted = (): Asked => ({ type: "interrupted", seconds: Math.round((clock.now() - began) / 1000) });
  const tries = new Tries(asking);
  for (;;) {
    const reply = await attemptOnce(asking, options);
    if (reply.type === "interrupted") return interrupted();
    if (reply.type === "answer") await noteAnswer(conversation, reply);
    if (reply.type !== "failed") return reply;
    const left = parseRateLimitHeaders(reply.error.headers ?? {}, conversation.model.target.provider);
    if (left) conversation.meter.noteRateLimits(left, clock.now());
    const failure = judgeFailure(reply.error, conversation);
    const request = await buildRequest(asking, options);
    const next = await tries.after(failure, request);
    if (next === "interrupted") return interrupted();
    if (next === "failed") return { type: "failed", failure, attempts: tries.made, request };
  }
}

async function noteAnswer(conversation: Conversation, { rateLimits }: Extract<Reply, { type: "answer" }>) {
  const { context, keys, fallback, meter, model, options } = conversation;
  context.noteAnswer();
  await keys.noteAnswer(model.target);
  fallback.noteAnswer();
  if (rateLimits) meter.noteRateLimits(rateLimits, options.ports.clock.now());
}

async function attemptOnce(asking: Asking, options: AskOptions): Promise<Reply> {
  const { conversation, purpose, signal, emit } = asking;
  const { gate } = conversation.options.ports;
  if (signal.aborted) return { type: "interrupted" };
  const request = await fitRequest(asking, await buildRequest(asking, options));
  emit({ type: "status", kind: "waiting", message: `waiting for ${request.target.model}` });
  const told = await tellRequest(asking, request);
  const stillWaiting = () =>
    emit({ type: "status", kind: "heartbeat", message: `waiting for ${request.target.model}` });
  const heartbeat = setInterval(stillWaiting, HEARTBEAT_MS);
  const reply = await listenToModel(gate.stream(request, purpose, signal), signal, {
    emit,
    usage: (usage) => meter(asking, usage),
  }).finally(() => clearInterval(heartbeat));
  await told?.(reply);
  for (const message of conversation.options.ports.takeWarnings?.() ?? [])
    emit({ type: "status", kind: "warn", message });
  return reply;
}

/** Without what this destination refused, and with pictures it takes. */
async function fitRequest({ conversation, signal, emit }: Asking, built: ModelRequest): Promise<ModelRequest> {
  const { lessons, pictures } = conversation;
  const { request, newlyLost } = await pictures.fit(lessons.apply(built), lessons.imageLimit, signal);
  const message = "A picture could not be made smaller and is left out. Send a smaller copy, as a PNG or JPEG.";
  if (newlyLost > 0) emit({ type: "status", kind: "warn", message });
  return request;
}

async function buildRequest({ conversation }: Asking, options: AskOptions): Promise<ModelRequest> {
  const system = await conversation.systemPrompt();
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
  const reasoning = reasoningFor(model);
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
    ...(reasoning ? { reasoning } : {}),
    limits: requestLimits(model.target, conversation.meter.lastPromptTokens ?? 0, model.liveness, {
      stream: conversation.lessons.streams,
    }),
    ...(model.serviceTier ? { serviceTier: model.serviceTier } : {}),
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
