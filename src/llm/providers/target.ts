// Joins a resolved runtime with model, profile and window into the one record a request needs.
import { hermesCommand } from "../../home/paths.ts";
import { contextLengthOf, type LearnedLimits } from "../catalogue/context-length.ts";
import { modelFacts } from "../catalogue/facts.ts";
import type { Target } from "../wire.ts";
import { outputLimit } from "../wires/anthropic/models.ts";
import { hostBelongs, hostOf } from "./hosts.ts";
import { profileFor } from "./profiles.ts";
import type { RuntimeProvider } from "./resolve.ts";
import { entryNameFor, mapping, modelSettings, type ProviderConfig, ProviderError, patienceOf } from "./settings.ts";

export interface TargetOptions {
  readonly config: ProviderConfig;
  /** Default: the runtime's own. */
  readonly model?: string | undefined;
  /** Fallbacks and side calls do not inherit the main model's `model.context_length`. */
  readonly ignoreConfiguredWindow?: boolean;
  readonly learned?: LearnedLimits | undefined;
  /** Asks the endpoint for its window and, for Ollama, for the size it really loads the model with. */
  readonly probe?: ((runtime: RuntimeProvider, model: string) => Promise<ProbedModel | null>) | undefined;
  /** The same of a server elsewhere, which costs time: asked only where there would be a guess. */
  readonly lastResort?: TargetOptions["probe"];
}

export interface ProbedModel {
  readonly contextLength: number | null;
  /** To be sent as `options.num_ctx`. */
  readonly numCtx?: number | undefined;
}

/** Throws `ProviderError` (`no_model_configured`) when no model is set. */
export async function targetFor(runtime: RuntimeProvider, options: TargetOptions): Promise<Target> {
  const model = options.model?.trim() || runtime.model;
  if (!model) {
    throw new ProviderError(
      "no_model_configured",
      `Provider ${runtime.provider} is configured, but no model. Choose one with \`${hermesCommand("model")}\`, set \`model.default\` in config.yaml, or pass \`-m MODEL\`.`,
    );
  }
  const { provider, baseUrl, apiMode, custom } = runtime;
  const settings = modelSettings(options.config);
  const configured = options.ignoreConfiguredWindow ? undefined : settings.contextLength;
  const asked: { answer: ProbedModel | null } = { answer: null };
  const window = await contextLengthOf({
    provider,
    model,
    baseUrl,
    configured,
    customModel: custom?.models[model]?.contextLength,
    learned: options.learned,
    probe: async () => {
      asked.answer = (await options.probe?.(runtime, model)) ?? null;
      const own = asked.answer?.contextLength ?? null;
      const cap = asked.answer?.numCtx ? settings.ollamaNumCtx : undefined;
      return own && cap ? Math.min(own, cap) : own;
    },
    lastResort: async () => (await options.lastResort?.(runtime, model))?.contextLength ?? null,
  });
  const facts = provider === "demo" ? null : await modelFacts(provider, model, baseUrl);
  const known = profileFor({ provider, model, baseUrl, apiMode }, custom?.compat);
  // OpenRouter and Nous give Claude a small output cap of their own unless the request names one.
  const relayed = /claude/i.test(model) && (onOpenRouter(baseUrl) || provider === "nous") ? outputLimit(model) : null;
  const profile = relayed && !known.defaultMaxTokens ? { ...known, defaultMaxTokens: relayed } : known;
  const images = settings.supportsVision ?? facts?.images ?? profile.images;
  const routed = onOpenRouter(baseUrl);
  const numCtx = asked.answer?.numCtx ? window.tokens : (settings.ollamaNumCtx ?? statedFor(runtime, configured));
  const place = placeName(runtime);
  return {
    provider,
    ...(place === provider ? {} : { place }),
    model,
    baseUrl,
    apiKey: runtime.apiKey,
    keyHosts: runtime.keyHosts,
    apiMode,
    contextLength: window.tokens,
    windowAssumed: window.source === "default",
    profile: { ...profile, images: custom?.compat.images ?? (provider === "demo" ? false : images) },
    headers: { ...(routed && openRouterHeaders(options.config, model)), ...custom?.headers },
    extraBody: {
      ...(routed && openRouterBody(options.config, model)),
      ...ollamaBody(runtime, numCtx),
      ...custom?.extraBody,
    },
    patience: patienceOf(options.config, custom?.name ?? provider, model),
  };
}

/** "custom" tells nobody which server it is: its own name does, else its address. */
function placeName({ provider, baseUrl, custom, localServer }: RuntimeProvider): string {
  const address = URL.parse(baseUrl)?.host ?? baseUrl;
  if (custom) return custom.name === entryNameFor(baseUrl) ? address : custom.name;
  return localServer ?? (provider === "custom" ? address : provider);
}

function onOpenRouter(baseUrl: string): boolean {
  return hostBelongs(hostOf(baseUrl), "openrouter.ai");
}

// Ollama loads a model with a small window of its own choosing unless the request says otherwise.
function ollamaBody(runtime: RuntimeProvider, numCtx: number | undefined): Readonly<Record<string, unknown>> {
  return numCtx && runtime.apiMode === "chat_completions" ? { options: { num_ctx: numCtx } } : {};
}

/** A window the user stated is also the one Ollama shall load the model with. */
function statedFor(runtime: RuntimeProvider, configured: number | undefined): number | undefined {
  return runtime.localServer === "ollama" ? configured : undefined;
}

// What OpenRouter wants besides the plain protocol: routing preferences in the body, and who is calling in the headers.

const SORTS = ["price", "throughput", "latency"];

/** `provider` and `plugins` of the request body; only what the user set. */
function openRouterBody(config: ProviderConfig, model: string): Readonly<Record<string, unknown>> {
  const routing = mapping(config.provider_routing);
  const provider: Record<string, unknown> = {};
  if (typeof routing.sort === "string" && SORTS.includes(routing.sort)) provider.sort = routing.sort;
  for (const key of ["only", "ignore", "order"] as const) {
    const names = Array.isArray(routing[key]) ? routing[key].filter((name) => typeof name === "string") : [];
    if (names.length > 0) provider[key] = names;
  }
  if (typeof routing.require_parameters === "boolean") provider.require_parameters = routing.require_parameters;
  if (routing.data_collection === "allow" || routing.data_collection === "deny") {
    provider.data_collection = routing.data_collection;
  }
  const score = mapping(config.openrouter).min_coding_score;
  const automatic = model === "openrouter/auto" || model === "auto";
  return {
    ...(Object.keys(provider).length > 0 ? { provider } : {}),
    ...(automatic && typeof score === "number" ? { plugins: [{ id: "pareto-router", min_coding_score: score }] } : {}),
  };
}

function openRouterHeaders(config: ProviderConfig, model: string): Readonly<Record<string, string>> {
  return {
    ...cacheHeaders(mapping(config.openrouter)),
    "HTTP-Referer": "https://www.npmjs.com/package/hermes-ts",
    "X-Title": "Hermes",
    ...(model.includes("claude") ? { "x-anthropic-beta": "fine-grained-tool-streaming-2025-05-14" } : {}),
  };
}

/** The same request again is answered from OpenRouter's own store for so many seconds, where the user wants that. */
function cacheHeaders({
  response_cache,
  response_cache_ttl: ttl,
}: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  if (response_cache !== true) return {};
  const seconds = typeof ttl === "number" && ttl >= 1 && ttl <= 86_400 ? Math.floor(ttl) : 300;
  return { "X-OpenRouter-Cache": "true", "X-OpenRouter-Cache-TTL": String(seconds) };
}
