// The provider part of config.yaml, read once into typed values. Takes raw mappings too: what has the wrong type counts as absent.
import { UserError } from "../../kit/errors.ts";
import type { ProviderProfile, Target } from "../wire.ts";

export interface ProviderConfig {
  readonly model?: unknown;
  readonly providers?: unknown;
  readonly custom_providers?: unknown;
  readonly provider_routing?: unknown;
  readonly openrouter?: unknown;
}

export interface ModelSettings {
  readonly default?: string | undefined;
  readonly provider?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly apiMode?: string | undefined;
  readonly contextLength?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly ollamaNumCtx?: number | undefined;
  readonly supportsVision?: boolean | undefined;
}

/** One entry of `providers:` (or of the older list `custom_providers:`). */
export interface CustomProvider {
  readonly name: string;
  readonly slug: string;
  readonly baseUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly keyEnv?: string | undefined;
  readonly defaultModel?: string | undefined;
  readonly apiMode?: string | undefined;
  readonly extraBody?: Readonly<Record<string, unknown>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly models: Readonly<
    Record<string, { readonly contextLength?: number | undefined; readonly timeoutSeconds?: number | undefined }>
  >;
  readonly requestTimeoutSeconds?: number | undefined;
  readonly staleTimeoutSeconds?: number | undefined;
  readonly compat: Partial<ProviderProfile>;
  readonly warnings: readonly string[];
}

export function modelSettings(config: ProviderConfig): ModelSettings {
  if (typeof config.model === "string") return { default: text(config.model) };
  const model = mapping(config.model);
  return {
    default: text(model.default) ?? text(model.model) ?? text(model.name),
    provider: text(model.provider),
    baseUrl: text(model.base_url) ?? text(model.api_base),
    apiKey: text(model.api_key),
    apiMode: text(model.api_mode),
    contextLength: positive(model.context_length),
    maxTokens: positive(model.max_tokens),
    ollamaNumCtx: positive(model.ollama_num_ctx),
    supportsVision: typeof model.supports_vision === "boolean" ? model.supports_vision : undefined,
  };
}

export function customProviders(config: ProviderConfig): readonly CustomProvider[] {
  const older = Array.isArray(config.custom_providers) ? config.custom_providers.map(mapping) : [];
  return [
    ...Object.entries(mapping(config.providers)).map(([name, entry]) => readEntry(name, mapping(entry))),
    ...older.flatMap((entry) => (text(entry.name) ? [readEntry(String(entry.name), entry)] : [])),
  ];
}

/** What the settings say about how long a provider, built in or custom, may take for this model. */
export function patienceOf(config: ProviderConfig, provider: string, model: string): NonNullable<Target["patience"]> {
  const entry = customProviders(config).find(({ name, slug }) => name === provider || slug === provider);
  return {
    totalSeconds: entry?.models[model]?.timeoutSeconds ?? entry?.requestTimeoutSeconds,
    staleSeconds: entry?.staleTimeoutSeconds,
  };
}

export function slugOf(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}.]+/gu, "-")
    .replace(/^-+|-+$/g, "");
}

/** What setup calls the entry of a server: `http://127.0.0.1:8000/v1` -> `127-0-0-1-8000`. */
export function entryNameFor(baseUrl: string): string {
  const host = URL.parse(baseUrl)?.host ?? "";
  return host
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}

function readEntry(name: string, entry: Readonly<Record<string, unknown>>): CustomProvider {
  const { compat, warnings } = readCompat(name, entry.compat);
  return {
    name,
    slug: slugOf(name),
    baseUrl: text(entry.base_url) ?? text(entry.api) ?? text(entry.url),
    apiKey: text(entry.api_key),
    keyEnv: text(entry.key_env) ?? text(entry.api_key_env),
    defaultModel: text(entry.default_model) ?? text(entry.model),
    apiMode: text(entry.api_mode) ?? text(entry.transport),
    extraBody: present(entry.extra_body),
    headers: stringRecord(entry.headers),
    models: readModels(entry.models),
    requestTimeoutSeconds: positive(entry.request_timeout_seconds),
    staleTimeoutSeconds: positive(entry.stale_timeout_seconds),
    compat,
    warnings: [...warnings, ...unreadableTimes(name, entry)],
  };
}

function unreadableTimes(name: string, entry: Readonly<Record<string, unknown>>): readonly string[] {
  const models = Object.entries(mapping(entry.models)).map(([model, facts]) => [`models.${model}.`, facts] as const);
  return [["", entry] as const, ...models].flatMap(([prefix, facts]) =>
    Object.entries(mapping(facts))
      .filter(([key, value]) => TIMES.has(key) && value !== null && positive(value) === undefined)
      .map(
        ([key, value]) =>
          `providers.${name}.${prefix}${key}: ${JSON.stringify(value)} is ignored. Legal: seconds, over 0.`,
      ),
  );
}

const TIMES: ReadonlySet<string> = new Set(["request_timeout_seconds", "stale_timeout_seconds", "timeout_seconds"]);

function readModels(value: unknown): CustomProvider["models"] {
  const facts = Object.entries(mapping(value)).map(([model, entry]) => {
    const { context_length, timeout_seconds } = mapping(entry);
    return [model, { contextLength: positive(context_length), timeoutSeconds: positive(timeout_seconds) }] as const;
  });
  return Object.fromEntries(facts);
}

export function mapping(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}; // checked just before
}

export function text(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

function positive(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : undefined;
}

function present(value: unknown): Readonly<Record<string, unknown>> | undefined {
  const record = mapping(value);
  return Object.keys(record).length > 0 ? record : undefined;
}

function stringRecord(value: unknown): Readonly<Record<string, string>> | undefined {
  const entries = Object.entries(mapping(value)).flatMap(([key, item]) =>
    typeof item === "string" || typeof item === "number" ? [[key, String(item)] as const] : [],
  );
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

// `providers.<name>.compat`: the user says how a custom server differs from the plain protocol.

const FIELDS: Readonly<Record<keyof ProviderProfile, readonly string[] | "boolean" | "number">> = {
  maxTokensField: ["max_tokens", "max_completion_tokens"],
  defaultMaxTokens: "number",
  developerRole: "boolean",
  reasoningStyle: ["none", "openrouter", "kimi", "deepseek", "ollama", "openai"],
  echoReasoning: "boolean",
  streamUsage: "boolean",
  images: "boolean",
  cacheLayout: ["none", "envelope", "native"],
  supportsPromptCacheKey: "boolean",
  thinkingReplay: ["native", "strip", "keep", "unsigned-only"],
};

/** Accepts `camelCase` and `snake_case` keys; what does not fit is left out and named in a warning. */
function readCompat(
  provider: string,
  raw: unknown,
): { readonly compat: Partial<ProviderProfile>; readonly warnings: readonly string[] } {
  if (typeof raw !== "object" || raw === null) return { compat: {}, warnings: [] };
  const compat: Record<string, unknown> = {};
  const warnings: string[] = [];
  for (const [key, value] of Object.entries(raw)) {
    const field = key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const rule = FIELDS[field as keyof ProviderProfile]; // undefined for a foreign key, checked next
    if (rule === undefined) {
      warnings.push(
        `providers.${provider}.compat.${key} is unknown and ignored. Known: ${Object.keys(FIELDS).join(", ")}.`,
      );
    } else if (!fits(value, rule)) {
      const legal = typeof rule === "string" ? `a ${rule}` : rule.join(", ");
      warnings.push(`providers.${provider}.compat.${key}: ${JSON.stringify(value)} is ignored. Legal: ${legal}.`);
    } else {
      compat[field] = value;
    }
  }
  return { compat, warnings };
}

function fits(value: unknown, rule: readonly string[] | "boolean" | "number"): boolean {
  if (rule === "number") return typeof value === "number" && value > 0;
  return rule === "boolean" ? typeof value === "boolean" : typeof value === "string" && rule.includes(value);
}

type ProviderErrorCode =
  | "invalid_provider"
  | "no_provider_configured"
  | "missing_key"
  | "login_required"
  | "missing_base_url"
  | "invalid_base_url"
  | "invalid_api_mode"
  | "no_model_configured"
  | "key_host_mismatch";

/** A provider that cannot be used as things stand, in words for the user: what, where, what to do. */
export class ProviderError extends UserError {
  override name = "ProviderError";
  readonly code: ProviderErrorCode;
  override readonly exitCode: number;
  constructor(code: ProviderErrorCode, message: string) {
    super(message);
    this.code = code;
    this.exitCode = code === "no_model_configured" ? 2 : 1;
  }
}
