// A model call with patience: asked until there is an answer, or nothing is left to try.
import type { Failure } from "../llm/errors/classify.ts";
import type { CallPurpose } from "../llm/gate.ts";
import { requestLimits } from "../llm/liveness.ts";
import { type HistoryMessage, textOf } from "../llm/messages.ts";
import { listenToModel, type Reply } from "../llm/model-call.ts";
import { parseRateLimitHeaders, type Usage } from "../llm/usage.ts";
import type { ModelRequest, Target } from "../llm/wire.ts";
import type { Limits, ModelChoice } from "./assembly.ts";
import type { Conversation } from "./conversation.ts";
import type { AgentEventBody } from "./events.ts";
import { type AnswerJudge, answerAtLimit as note } from "./judge.ts";
import type { OpenRequest } from "./open-request.ts";
import { type Ending, interruptedWaiting, partialEnding } from "./outcome.ts";
import { HEARTBEAT_MS, judgeFailure, RetryPolicy } from "./recovery.ts";
import type { IterationBudget } from "./steer.ts";
import type { TurnKit } from "./turn-kit.ts";

export interface Asking {
  readonly conversation: Conversation;
  readonly purpose: CallPurpose;
  readonly signal: AbortSignal;
  readonly emit: (event: AgentEventBody) => void;
  /** The model turned out not to see pictures; called before it is asked without them. */
  readonly onBlind?: () => Promise<void>;
}

interface AskOptions {
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
  const { clock } = conversation.assembly;
  const began = clock.now();
  const interrupted = (): Asked => ({ type: "interrupted", seconds: Math.round((clock.now() - began) / 1000) });
  const retries = new RetryPolicy(asking);
  for (;;) {
    const reply = await attemptOnce(asking, options);
    if (reply.type === "interrupted") return interrupted();
    if (reply.type === "answer") await noteAnswer(conversation, reply);
    if (reply.type !== "failed") return reply;
    const left = parseRateLimitHeaders(reply.error.headers ?? {}, conversation.model.target.provider);
    if (left) conversation.meter.noteRateLimits(left, clock.now());
    const failure = judgeFailure(reply.error, conversation);
    const request = await buildRequest(asking, options);
    const next = await retries.after(failure, request);
    if (next === "interrupted") return interrupted();
    if (next === "failed") return { type: "failed", failure, attempts: retries.made, request };
  }
}

async function noteAnswer(conversation: Conversation, { rateLimits }: Extract<Reply, { type: "answer" }>) {
  const { context, keys, fallback, meter, model, assembly } = conversation;
  context.noteAnswer();
  await keys.noteAnswer(model.target);
  fallback.noteAnswer();
  if (rateLimits) meter.noteRateLimits(rateLimits, assembly.clock.now());
}

async function attemptOnce(asking: Asking, options: AskOptions): Promise<Reply> {
  const { conversation, purpose, signal, emit } = asking;
  const { gate } = conversation.assembly;
  if (signal.aborted) return { type: "interrupted" };
  const request = await fitRequest(asking, await buildRequest(asking, options));
  emit({ type: "status", kind: "waiting", message: `waiting for ${request.target.model}` });
  const notifyEnd = await notifyRequest(asking, request);
  const stillWaiting = () =>
    emit({ type: "status", kind: "heartbeat", message: `waiting for ${request.target.model}` });
  const heartbeat = setInterval(stillWaiting, HEARTBEAT_MS);
  const reply = await listenToModel(gate.stream(request, purpose, signal), signal, {
    emit,
    usage: (usage) => meter(asking, usage),
  }).finally(() => clearInterval(heartbeat));
  await notifyEnd?.(reply);
  for (const message of conversation.assembly.takeWarnings?.() ?? []) emit({ type: "status", kind: "warn", message });
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
  const { prompt, tools } = conversation.assembly;
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

// How the model is asked, as the home's settings and variables say.

export function modelChoice({ home, reasoning }: OpenRequest, target: Target): ModelChoice {
  const config = home.config();
  return {
    target,
    cacheTtl: config.prompt_caching.cache_ttl,
    ...(config.agent.service_tier ? { serviceTier: config.agent.service_tier } : {}),
    ...(config.model.max_tokens ? { maxTokens: config.model.max_tokens } : {}),
    liveness: {
      totalSeconds: seconds(home.env("HERMES_API_TIMEOUT")),
      staleSeconds: seconds(home.env("HERMES_STREAM_STALE_TIMEOUT")),
      wholeStaleSeconds: seconds(home.env("HERMES_API_CALL_STALE_TIMEOUT")),
    },
    ...reasoningOf(reasoning ?? config.agent.reasoning_effort),
  };
}

/** How often and how long, besides what the request itself says. */
export function loopLimits({ home, maxTurns }: OpenRequest): Limits {
  const { agent, delegation } = home.config();
  return {
    maxIterations: maxTurns ?? agent.max_turns,
    apiMaxRetries: agent.api_max_retries,
    ...streamRetriesOf(home.env("HERMES_STREAM_RETRIES")),
    maxConcurrentChildren: Math.max(1, delegation.max_concurrent_children),
  };
}

/** An effort in words as a request carries it; empty = the provider's default. */
export function reasoningOf(effort: string): Pick<ModelChoice, "reasoning"> {
  if (effort === "") return {};
  if (effort === "none") return { reasoning: { enabled: false } };
  return { reasoning: { enabled: true, effort: effort as "medium" } }; // checked by the option parser and the settings schema
}

/** What a conversation asks for: OpenRouter's models think only when they are asked to. Side calls ask for nothing. */
export function reasoningFor({ reasoning, target }: ModelChoice): ModelChoice["reasoning"] {
  return (
    reasoning ?? (target.profile.reasoningStyle === "openrouter" ? { enabled: true, effort: "medium" } : undefined)
  );
}

/** A positive number of seconds from a variable; anything else is not said. */
function seconds(text: string | undefined): number | undefined {
  const value = Number(text);
  return value > 0 ? value : undefined;
}

function streamRetriesOf(text: string | undefined): Pick<Limits, "streamRetries"> {
  return /^\d{1,2}$/.test(text?.trim() ?? "") ? { streamRetries: Number(text) } : {};
}

// What hooks are notified of about requests and answers. Without a listener it costs nothing.

const REQUEST_EVENTS = ["pre_api_request", "post_api_request", "api_request_error"];

/** Notifies of a request that is about to be sent; call the result with how it ended. Null when nobody listens. */
async function notifyRequest(
  { conversation, purpose }: Asking,
  request: ModelRequest,
): Promise<((reply: Reply) => Promise<void>) | null> {
  const { events, clock } = conversation.assembly;
  if (!events || !REQUEST_EVENTS.some((event) => events.hasListeners(event))) return null;
  const { model, provider, baseUrl, apiMode } = request.target;
  const facts = {
    session_id: purpose.sessionId,
    task: purpose.task,
    turn: purpose.turn ?? null,
    platform: conversation.assembly.session.platform,
    ...{ model, provider, base_url: baseUrl, api_mode: apiMode },
    message_count: request.messages.length,
    tool_count: request.tools.length,
    max_tokens: request.maxTokens ?? null,
  };
  await events.notify("pre_api_request", facts);
  const began = clock.now();
  return async (reply) => {
    const ended = { ...facts, duration_ms: clock.now() - began };
    if (reply.type === "answer") {
      const { content, tool_calls = [] } = reply.message;
      const about = {
        finish_reason: reply.finishReason,
        text_chars: content?.length ?? 0,
        tool_calls: tool_calls.length,
      };
      await events.notify("post_api_request", { ...ended, ...about });
    } else if (reply.type !== "interrupted") {
      const { message, status } = reply.error;
      await events.notify("api_request_error", { ...ended, error_message: message, status_code: status ?? null });
    }
  };
}

/** The answer as the user gets it: the first listener that gives another text wins; then the others hear of it. */
async function notifyAnswer(conversation: Conversation, text: string): Promise<string> {
  const { assembly } = conversation;
  const { session } = assembly;
  const { events } = assembly;
  if (!events) return text;
  const { messages, sessionId } = conversation.transcript;
  const said = messages.findLast(({ role }) => role === "user")?.content ?? "";
  const facts = {
    session_id: sessionId,
    user_message: textOf(said),
    model: conversation.model.target.model,
    platform: session.platform,
  };
  const answers = events.hasListeners("transform_llm_output")
    ? await events.notify("transform_llm_output", { ...facts, response_text: text })
    : [];
  const final = answers.find((answer) => typeof answer === "string" && answer !== "") ?? text;
  if (events.hasListeners("post_llm_call"))
    await events.notify("post_llm_call", { ...facts, conversation_history: messages, assistant_response: final });
  return typeof final === "string" ? final : text;
}

/** Shows the final text. What failed to be written is said below it, and a hook may change it; the history keeps the answer alone. */
export async function showFinalText(
  { kind, finalText, streamed: begun = false }: Ending,
  conversation: Conversation,
  { run, mutations }: Pick<TurnKit, "run" | "mutations">,
  emit: (event: AgentEventBody) => void,
): Promise<Partial<Ending>> {
  if (finalText === null || (kind !== "answered" && kind !== "partial")) return { streamed: false };
  const footer = run.config.display.file_mutation_verifier ? mutations.footer() : null;
  const written = footer === null ? finalText : `${finalText}\n\n${footer}`;
  const text = await notifyAnswer(conversation, written);
  const transformed = text !== written;
  const streamed = begun && !transformed;
  if (footer !== null && streamed) emit({ type: "text", delta: `\n\n${footer}` });
  emit({ type: "text_end", text, kind: "final", streamed });
  return { finalText: text, streamed, ...(transformed ? { transformed } : {}) };
}

/** The budget is used up: one last call without tools, asked once more if nothing comes. */
export async function answerAtLimit(
  asking: Asking,
  judge: AnswerJudge,
  { apiCalls, budget }: { readonly apiCalls: number; readonly budget: IterationBudget },
): Promise<Ending> {
  const { limits, session } = asking.conversation.assembly;
  const exitReason = `max_iterations_reached(${apiCalls}/${budget.max})`;
  if (limits.lastAnswer === false) return partialEnding(exitReason, "The limit was reached.");
  const scaffold = [...judge.scaffold, note(budget.max)];
  for (let attempt = 1; attempt <= 2; attempt++) {
    const asked = await askModel(asking, { scaffold, toolChoice: "none" });
    if (asked.type === "interrupted") return interruptedWaiting(asked.seconds);
    if (asked.type !== "answer") break;
    const { tool_calls: _, ...message } = asked.message;
    const verdict = judge.judge({ ...asked, message, finishReason: "stop" }, []);
    if (verdict.type === "end" && verdict.message) return { ...verdict, exitReason, kind: "partial" };
  }
  const sentence = `I reached the limit of ${budget.max} model calls for one turn before I could finish.`;
  const advice =
    session.task === "subagent"
      ? "Give the rest to another sub-agent, or raise delegation.max_iterations."
      : 'Say "continue" to resume, or raise agent.max_turns.';
  return partialEnding(exitReason, `${sentence} ${advice}`);
}
