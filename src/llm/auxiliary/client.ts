// Calls models for side tasks: chooses one, skips those that are down, and says why when none is left.
import type { Config } from "../../home/config/schema.ts";
import type { Logger } from "../../home/log.ts";
import type { Clock } from "../../kit/clock.ts";
import { type ClassifiedError, classifyApiError } from "../errors/classify.ts";
import { failureLine } from "../errors/explain.ts";
import type { CallPurpose, ModelGate } from "../gate.ts";
import { type KeyPort, KeyRing } from "../keys/ring.ts";
import { Lessons } from "../lessons.ts";
import type { AssistantMessage, FinishReason } from "../messages.ts";
import { listenToModel } from "../model-call.ts";
import { FitPictures } from "../pictures/fit.ts";
import { isLocalEndpoint } from "../providers/hosts.ts";
import { mapping, ProviderError, text } from "../providers/settings.ts";
import type { Usage } from "../usage.ts";
import type { ModelError, ModelRequest, Target } from "../wire.ts";
import {
  type AuxAnswer,
  type AuxCall,
  type AuxChoice,
  type AuxiliaryClient,
  AuxiliaryError,
  type AuxTask,
  type ModelSpec,
} from "./contract.ts";

export interface AuxPorts {
  readonly gate: ModelGate;
  readonly clock: Clock;
  readonly log: Logger;
  config(): Config;
  /** The conversation's model, as it is now. */
  main(): Target;
  /** False: it has refused pictures before and is not asked about one. */
  mainSees?(): boolean;
  /** Absent: only the main model can be asked. Rejects with `ProviderError` for one without a key, an address or a model. */
  resolve?(spec: ModelSpec): Promise<Target>;
  /** The job all of these calls belong to, unless a call names its own. */
  readonly jobId?: string | undefined;
  onUsage?(usage: Usage, task: AuxTask): void;
  /** Other keys of a provider. */
  readonly keys?: KeyPort | undefined;
  /** A key was spent on the way; the next one is in use from now on. */
  onNewKey?(before: Target, after: Target): void;
}

const UNHEALTHY_MS = 10 * 60_000;

export function createAuxiliary(ports: AuxPorts): AuxiliaryClient {
  return new Auxiliary(ports);
}

type Attempt =
  | { readonly type: "answer"; readonly message: AssistantMessage; readonly finishReason: FinishReason }
  | { readonly type: "failed"; readonly error: ModelError; readonly classified: ClassifiedError }
  | { readonly type: "interrupted" };

class Auxiliary implements AuxiliaryClient {
  readonly #ports: AuxPorts;
  /** Destination -> until when it is not asked again. */
  readonly #unhealthy = new Map<string, number>();
  readonly #lessons = new Map<string, Lessons>();
  readonly #pictures = new FitPictures();
  readonly #reported = new Set<string>();
  readonly #keys: KeyRing;

  constructor(ports: AuxPorts) {
    this.#ports = ports;
    this.#keys = new KeyRing(ports.keys);
  }

  async resolveAux(task: AuxTask, request: { provider?: string; model?: string } = {}): Promise<AuxChoice | null> {
    for await (const choice of this.#choices(task, request)) return choice;
    return null;
  }

  async callAux(call: AuxCall): Promise<AuxAnswer> {
    let failure: AuxiliaryError | null = null;
    const choices = call.target ? [{ target: call.target, main: false, auto: false }] : this.#choices(call.task, call);
    for await (const { target, auto } of choices) {
      const attempt = await this.#attempt(call, target);
      if (attempt.type === "interrupted") throw new AuxiliaryError("aborted", "interrupted");
      if (attempt.type === "answer") return answerOf(attempt, target);
      failure = this.#explain(call.task, attempt, target);
      if (failure.kind === "over_budget") break;
      if (attempt.classified.reason === "rate_limit" && !auto) break;
    }
    throw failure ?? new AuxiliaryError("no_provider", noProvider(call.task));
  }

  /** Who can be asked, best first; each destination once. */
  async *#choices(
    task: AuxTask,
    request: { readonly provider?: string | undefined; readonly model?: string | undefined },
  ): AsyncGenerator<AuxChoice & { readonly auto: boolean }> {
    const main = this.#ports.main();
    const seen = new Set<string>();
    const list = candidates(task, this.#ports.config(), main, request);
    const isBlind = task === "vision" && this.#ports.mainSees?.() === false;
    for (const candidate of list) {
      const target = candidate.type === "main" ? main : await this.#target(task, candidate);
      if (!target) continue;
      const destination = destinationOf(target);
      const isMain = destination === destinationOf(main);
      // The main model is the last resort: it is asked even when it was down a minute ago.
      const down = (this.#unhealthy.get(destination) ?? 0) > this.#ports.clock.now() && !(isMain && !candidate.auto);
      if (seen.has(destination) || down || (isMain && isBlind)) continue;
      seen.add(destination);
      yield { target, main: isMain, auto: candidate.auto };
    }
  }

  async #target(task: AuxTask, { spec, auto }: Extract<Candidate, { type: "spec" }>): Promise<Target | null> {
    if (!this.#ports.resolve) return null;
    try {
      return await this.#ports.resolve(spec);
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      if (!auto) this.#reportOnce(`auxiliary.${task}: ${error.message}`);
      return null;
    }
  }

  /** One key after the other, as long as there are more of them. */
  async #attempt(call: AuxCall, target: Target): Promise<Attempt> {
    for (let current = target; ; ) {
      const attempt = await this.#attemptWith(call, current);
      if (attempt.type === "answer") await this.#keys.noteAnswer(target);
      if (attempt.type !== "failed") return attempt;
      const failure = { ...attempt, worthRetrying: false, worthMoving: true };
      let step = await this.#keys.afterFailure(current, failure);
      // A side call is not retried with the same key where there is another one.
      if (step.type === "same") step = await this.#keys.afterFailure(current, failure);
      if (step.type !== "next" && step.type !== "renewed") return attempt;
      this.#ports.onNewKey?.(current, step.target);
      current = step.target;
    }
  }

  async #attemptWith(call: AuxCall, target: Target): Promise<Attempt> {
    const lessons = this.#lessonsOf(target);
    const request = this.#request(call, target);
    let attempt = await this.#send(call, await this.#fit(request, lessons, call.signal));
    // A parameter the server does not know is left out, a picture it finds too large is made smaller, once.
    if (attempt.type === "failed" && lessons.learn(attempt.error, attempt.classified, request) !== null) {
      attempt = await this.#send(call, await this.#fit(request, lessons, call.signal));
    }
    return attempt;
  }

  /** A side call is about its picture: one that cannot be made smaller goes as it is, so that the server's reason is reported. */
  async #fit(request: ModelRequest, lessons: Lessons, signal: AbortSignal): Promise<ModelRequest> {
    const known = lessons.apply(request);
    const fit = await this.#pictures.fit(known, lessons.imageLimit, signal);
    return fit.lost > 0 ? known : fit.request;
  }

  async #send(call: AuxCall, request: ModelRequest): Promise<Attempt> {
    const { task, sessionId, turn, jobId = this.#ports.jobId, signal } = call;
    if (signal.aborted) return { type: "interrupted" };
    const purpose: CallPurpose = { task, sessionId, turn, jobId };
    const reply = await listenToModel(this.#ports.gate.stream(request, purpose, signal), signal, {
      emit: () => undefined,
      usage: (usage) => this.#ports.onUsage?.(usage, task),
    });
    if (reply.type === "interrupted" || reply.type === "answer") return reply;
    const { provider, model, contextLength } = request.target;
    return {
      type: "failed",
      error: reply.error,
      classified: classifyApiError(reply.error, { provider, model, contextLength }),
    };
  }

  #request(call: AuxCall, target: Target): ModelRequest {
    const { task, messages, tools = [], maxTokens, temperature, answerSchema, sessionId, like } = call;
    const settings = this.#ports.config().auxiliary[task];
    const seconds = call.timeout ?? settings.timeout;
    return {
      target,
      messages,
      tools,
      maxTokens,
      temperature,
      answerSchema,
      sessionId: sessionId ?? undefined,
      limits: seconds > 0 ? { totalMs: seconds * 1000 } : undefined,
      ...like,
      overrides: { ...like?.overrides, ...settings.extra_body },
    };
  }

  #explain(task: AuxTask, { classified }: Extract<Attempt, { type: "failed" }>, target: Target): AuxiliaryError {
    const { reason } = classified;
    const line = `${target.model}: ${failureLine(classified, target.apiKey)}`;
    if (reason === "budget_exceeded") return new AuxiliaryError("over_budget", classified.message);
    const unreachable = reason === "timeout" && classified.statusCode === undefined;
    if (reason === "billing" || unreachable) {
      this.#unhealthy.set(destinationOf(target), this.#ports.clock.now() + UNHEALTHY_MS);
    }
    this.#ports.log.warn(`${task}: ${line}`);
    return new AuxiliaryError(classified.shouldCompress ? "overflow" : "failed", line);
  }

  #lessonsOf(target: Target): Lessons {
    const destination = destinationOf(target);
    const known = this.#lessons.get(destination) ?? new Lessons();
    this.#lessons.set(destination, known);
    return known;
  }

  #reportOnce(line: string): void {
    if (this.#reported.has(line)) return;
    this.#reported.add(line);
    this.#ports.log.warn(line);
  }
}

function answerOf({ message, finishReason }: Extract<Attempt, { type: "answer" }>, target: Target): AuxAnswer {
  const said = message.content?.trim() ?? "";
  const text = said !== "" ? said : (message.reasoning_content ?? message.reasoning ?? "").trim();
  return { text, message, finishReason, target };
}

function noProvider(task: AuxTask): string {
  return `no model can be asked for ${task}; set auxiliary.${task}.provider and auxiliary.${task}.model in config.yaml`;
}

function destinationOf({ provider, baseUrl, model }: Target): string {
  return `${provider}\n${baseUrl}\n${model}`;
}

// Who is asked for a side task, in which order.

type Candidate =
  | { readonly type: "main"; readonly auto: boolean }
  | { readonly type: "spec"; readonly spec: ModelSpec; readonly auto: boolean };

/** What an API-key provider answers cheap questions with. Providers that only work with a login are never guessed. */
const CHEAP: Readonly<Record<string, string>> = {
  openrouter: "google/gemini-3-flash-preview",
  anthropic: "claude-haiku-4-5-20251001",
  zai: "glm-4.5-flash",
  gemini: "gemini-3-flash-preview",
  "kimi-coding": "kimi-k2-turbo-preview",
  minimax: "MiniMax-M2.7",
  deepseek: "deepseek-chat",
};
const SEEING: Readonly<Record<string, string>> = { xiaomi: "mimo-v2.5", zai: "glm-5v-turbo" };

export function cheapModel(provider: string): string | undefined {
  return CHEAP[provider];
}

interface CallerChoice {
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
}

/** The caller's choice, then the settings, then what is at hand; at the end the chain of the settings and the main model. */
function candidates(task: AuxTask, config: Config, main: Target, request: CallerChoice = {}): readonly Candidate[] {
  const settings = config.auxiliary[task];
  const provider =
    text(request.provider) ?? (settings.base_url ? pick(settings.provider, "custom") : settings.provider);
  const model = text(request.model) ?? text(settings.model);
  const chosen = text(provider) !== undefined && provider !== "auto";
  const first: readonly Candidate[] = chosen
    ? [{ type: "spec", auto: false, spec: { ...ownSpec(settings), provider, model } }]
    : automatic(task, main, model, ownEndpoint(config));
  const chain = settings.fallback_chain.flatMap(chained);
  const last: readonly Candidate[] =
    chosen && (task !== "vision" || main.profile.images) ? [{ type: "main", auto: false }] : [];
  // The demo is no AI: what it says about a conversation is worth nothing.
  return [...first, ...chain, ...last].filter((one) => one.type !== "main" || main.provider !== "demo");
}

/** The endpoint of the settings, for when the conversation talks to another model by now. */
function ownEndpoint({ model: { provider, default: model, base_url, api_key } }: Config): readonly Candidate[] {
  const baseUrl = text(base_url);
  if (baseUrl === undefined || text(model) === undefined) return [];
  const spec = { provider: pick(text(provider) ?? "", "custom"), model: text(model), baseUrl, apiKey: text(api_key) };
  return [{ type: "spec", auto: true, spec }];
}

function automatic(
  task: AuxTask,
  main: Target,
  model: string | undefined,
  endpoint: readonly Candidate[],
): readonly Candidate[] {
  if (model !== undefined) {
    const spec = { provider: main.provider, model, baseUrl: main.baseUrl, apiKey: main.apiKey };
    return [
      { type: "spec", auto: true, spec },
      { type: "main", auto: true },
    ];
  }
  const guess = (provider: string, name: string): Candidate => ({
    type: "spec",
    auto: true,
    spec: { provider, model: name },
  });
  const own: readonly Candidate[] = [{ type: "main", auto: true }];
  if (task === "vision") {
    const seeing = SEEING[main.provider];
    return [
      ...(main.profile.images ? own : []),
      ...(seeing ? [guess(main.provider, seeing)] : []),
      guess("openrouter", CHEAP.openrouter ?? ""),
    ];
  }
  // Whoever talks to a model on this machine does not want the talk sent elsewhere because that model is down.
  if (isLocalEndpoint(main.baseUrl) || main.provider === "demo") return own;
  const [openrouter, ...others] = Object.entries(CHEAP).map(([provider, name]) => guess(provider, name));
  return [...own, ...(openrouter ? [openrouter] : []), ...endpoint, ...others];
}

type TaskSettings = Config["auxiliary"][AuxTask];

function ownSpec(settings: TaskSettings): Partial<ModelSpec> {
  return {
    baseUrl: text(settings.base_url),
    apiKey: text(settings.api_key),
    contextLength: settings.context_length ?? undefined,
  };
}

function chained(entry: unknown): readonly Candidate[] {
  const { provider, model, base_url, api_key } = mapping(entry);
  const name = text(provider) ?? (text(base_url) ? "custom" : undefined);
  if (name === undefined) return [];
  const spec = { provider: name, model: text(model), baseUrl: text(base_url), apiKey: text(api_key) };
  return [{ type: "spec", auto: false, spec }];
}

function pick(provider: string, otherwise: string): string {
  return provider === "" || provider === "auto" ? otherwise : provider;
}
