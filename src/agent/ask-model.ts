// A model call with patience: attempts, pauses, and the repairs that a refusal teaches.

import type { FailureReason } from "../llm/errors/classify.ts";
import { failureLine } from "../llm/errors/explain.ts";
import type { CallPurpose } from "../llm/gate.ts";
import { requestLimits } from "../llm/liveness.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { hostBelongs, hostOf } from "../llm/providers/hosts.ts";
import { parseRateLimitHeaders, type Usage } from "../llm/usage.ts";
import type { ModelRequest, Target } from "../llm/wire.ts";
import type { Conversation } from "./conversation.ts";
import type { AgentEventBody } from "./events.ts";
import { type Failure, judgeFailure, retryDelayMs } from "./failure.ts";
import { tellRequest } from "./loop-events.ts";
import { listenToModel, type Reply } from "./model-call.ts";
import { reasoningFor } from "./model-choice.ts";

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

const HEARTBEAT_MS = 30_000;
const STREAM_RETRIES = 2;
/** So often in a row a provider may fall silent before somebody else is asked. */
const MOST_SILENCES = 5;

const BREAKS: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "stream_cut", "stream_ended"]);

/** Refusals that waiting does not mend soon: with somebody to stand in, nobody waits. */
const GIVES_WAY = new Set<FailureReason>(["rate_limit", "upstream_rate_limit", "billing"]);

export async function askModel(asking: Asking, options: AskOptions): Promise<Asked> {
  const { conversation, emit } = asking;
  const { fallback, keys } = conversation;
  const { clock, gate, renewConnections } = conversation.options.ports;
  const attempts = Math.max(1, conversation.options.limits.apiMaxRetries);
  const began = clock.now();
  const interrupted = (): Asked => ({ type: "interrupted", seconds: Math.round((clock.now() - began) / 1000) });
  const tell = (message: string) => emit({ type: "status", kind: "lifecycle", message, recovery: true });
  const reconnects = conversation.options.limits.streamRetries ?? STREAM_RETRIES;
  let reconnected = 0;
  let renewed = renewConnections === undefined;
  for (let attempt = 1; ; attempt++) {
    const reply = await attemptOnce(asking, options);
    if (reply.type === "interrupted") return interrupted();
    if (reply.type === "answer") {
      conversation.context.noteAnswer();
      await keys.noteAnswer(conversation.model.target);
      fallback.noteAnswer();
      if (reply.rateLimits) conversation.meter.noteRateLimits(reply.rateLimits, clock.now());
    }
    if (reply.type !== "failed") return reply;
    const left = parseRateLimitHeaders(reply.error.headers ?? {}, conversation.model.target.provider);
    if (left) conversation.meter.noteRateLimits(left, clock.now());
    const failure = judgeFailure(reply.error, conversation);
    const { classified } = failure;
    const request = await buildRequest(asking, options);
    const lesson = conversation.lessons.learn(reply.error, classified, request);
    if (lesson !== null) {
      // A refusal that taught something costs no attempt; there are only so many lessons.
      attempt--;
      gate.expectNewPrefix(conversation.transcript.sessionId, "repair");
      emit({ type: "status", kind: "warn", message: lesson });
      continue;
    }
    const line = failureLine(classified, conversation.model.target.apiKey);
    if (reconnected < reconnects && brokeOff(failure)) {
      reconnected++;
      attempt--;
      tell(`${line} — connecting again`);
      continue;
    }
    reconnected = 0;
    const key = await keys.afterFailure(conversation.model.target, failure);
    if (key.type === "next" || key.type === "renewed") {
      // Nor does a refused key: there are only so many of them.
      attempt--;
      conversation.adoptTarget(key.target);
      emit({
        type: "status",
        kind: "warn",
        message:
          key.type === "renewed"
            ? `${line} — the login to ${key.target.provider} was renewed.`
            : `${line} — going on with the next key of ${key.target.provider}.`,
      });
      continue;
    }
    const failed: Asked = { type: "failed", failure, attempts: attempt, request };
    const used = attempt >= attempts && key.type !== "same";
    if (!failure.worthRetrying) return failed;
    const silences = reply.error.code === "stale_stream" ? fallback.noteSilence() : 0;
    if (silences >= MOST_SILENCES && (await fallback.available())) return failed;
    if (key.type === "none" && GIVES_WAY.has(classified.reason) && (await fallback.available())) return failed;
    if (used && (renewed || !mayBeStale(failure, conversation.model.target))) return failed;
    const delay = used ? Math.min(3 + attempt, 8) * 1000 : retryDelayMs(failure, attempt, clock);
    const seconds = Math.round(delay / 100) / 10;
    const next = used ? "with a new connection" : `attempt ${attempt + 1} of ${attempts}`;
    tell(`${line} — trying again in ${seconds} s (${next})`);
    if (!(await pause(asking, delay))) return interrupted();
    if (key.type === "same") attempt--;
    if (!used) continue;
    renewed = true;
    renewConnections?.();
    attempt = 0;
  }
}

/** The connection broke before anything came: most often the next one holds, and nobody has to wait for it. */
function brokeOff({ error, classified }: Failure): boolean {
  if (classified.reason !== "timeout" || classified.statusCode !== undefined) return false;
  return BREAKS.has(error.code ?? "");
}

/** The connection itself may be what is broken: a fresh one is worth one more round. Relays break for other reasons. */
function mayBeStale({ error, classified }: Failure, { provider, baseUrl }: Target): boolean {
  if (classified.reason !== "timeout" || classified.statusCode !== undefined) return false;
  if (error.code === "ECONNREFUSED" || error.code === "ENOTFOUND") return false;
  return provider !== "openrouter" && provider !== "nous" && !hostBelongs(hostOf(baseUrl), "openrouter.ai");
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
