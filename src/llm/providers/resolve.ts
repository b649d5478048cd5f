// From what the user configured to one usable runtime: provider, wire, endpoint, key. Pure: no network, no files.
import { hermesCommand } from "../../home/paths.ts";
import type { ApiMode } from "../wire.ts";
import { determineApiMode, hostBelongs, hostOf, isLocalEndpoint, legalMode } from "./hosts.ts";
import { type BoundKey, type EnvLookup, hostsOf, isUsableKey, keyForHost, keyFromEnv, needsNoKey } from "./keys.ts";
import {
  type CustomProvider,
  customProviders,
  type ModelSettings,
  modelSettings,
  type ProviderConfig,
  ProviderError,
  slugOf,
  text,
} from "./settings.ts";
import {
  LMSTUDIO_KEY,
  LOCAL_SERVERS,
  localServerName,
  NO_KEY,
  PROVIDERS,
  type ProviderRow,
  providerRow,
  resolveProviderAlias,
} from "./table.ts";

export interface ResolveInput {
  readonly requested?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly model?: string | undefined;
  readonly apiMode?: string | undefined;
  readonly config: ProviderConfig;
  readonly env: Readonly<Record<string, string | undefined>> | EnvLookup;
  /** A credential of the pool of a provider, if there is one. */
  readonly pooled?: (provider: string) => { readonly key: string; readonly baseUrl?: string | undefined } | null;
  /** The provider the user is logged in to. */
  readonly activeLogin?: string | null;
}

export interface RuntimeProvider {
  readonly provider: string;
  readonly apiMode: ApiMode;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly keyHosts: readonly string[];
  /** Where the key (or the endpoint, when it needs none) came from: `explicit`, `config`, `env:NAME`, `pool`, `custom_provider:NAME`, `local:NAME`, `none`. */
  readonly source: string;
  readonly model?: string;
  /** The entry of `providers:` this runtime stands for. */
  readonly custom?: CustomProvider;
  /** `ollama`, `vllm` or `llamacpp` when the user named a server, not a URL. */
  readonly localServer?: string;
  readonly warnings: readonly string[];
}

type Choice =
  | { readonly type: "row"; readonly row: ProviderRow }
  | { readonly type: "entry"; readonly entry: CustomProvider }
  | { readonly type: "custom"; readonly server: string | null };

interface Facts {
  readonly input: ResolveInput;
  readonly settings: ModelSettings;
  readonly entries: readonly CustomProvider[];
  readonly env: EnvLookup;
}

/** Throws `ProviderError`; code `no_provider_configured` means the user has not chosen anything yet. */
export function resolveRuntimeProvider(input: ResolveInput): RuntimeProvider {
  const lookup = input.env;
  const facts: Facts = {
    input,
    settings: modelSettings(input.config),
    entries: customProviders(input.config),
    env: typeof lookup === "function" ? lookup : (name) => lookup[name],
  };
  const wanted = text(input.requested) ?? facts.settings.provider ?? text(facts.env("HERMES_INFERENCE_PROVIDER"));
  const choice = !wanted || wanted.toLowerCase() === "auto" ? chooseAutomatically(facts) : identify(wanted, facts);
  if (choice.type === "row") return runtimeOfRow(choice.row, facts);
  if (choice.type === "entry") return runtimeOfEntry(choice.entry, facts);
  return runtimeOfUrl(choice.server, facts);
}

/** The embedded model that answers when nothing is configured. */
export function demoRuntime(): RuntimeProvider {
  return {
    provider: "demo",
    apiMode: "chat_completions",
    baseUrl: "demo:/v1",
    apiKey: NO_KEY,
    keyHosts: [],
    source: "none",
    model: "demo",
    warnings: [],
  };
}

function identify(name: string, { entries }: Facts): Choice {
  const wanted = name.trim().toLowerCase();
  const row = providerRow(wanted);
  if (row && row.id !== "custom") return { type: "row", row };
  const slug = slugOf(wanted.replace(/^custom:/, ""));
  const entry = entries.find((item) => item.slug === slug && item.baseUrl);
  if (entry && wanted !== "custom") return { type: "entry", entry };
  const id = resolveProviderAlias(wanted);
  const aliased = providerRow(id);
  if (id === "custom" || !aliased) return { type: "custom", server: localServerName(wanted) };
  return { type: "row", row: aliased };
}

function chooseAutomatically(facts: Facts): Choice {
  const { input, settings, env } = facts;
  const url = text(input.baseUrl) ?? text(env("CUSTOM_BASE_URL")) ?? (settings.provider ? undefined : settings.baseUrl);
  if (url) return hostBelongs(hostOf(url), "openrouter.ai") ? pick("openrouter") : { type: "custom", server: null };
  if (isUsableKey(input.apiKey) || (!settings.provider && isUsableKey(settings.apiKey))) return pick("openrouter");
  if (input.activeLogin && providerRow(input.activeLogin)) return pick(input.activeLogin);
  const withKey = ["openrouter", "openai-api", ...PROVIDERS.map((row) => row.id)].find((id) => {
    const row = providerRow(id);
    if (!row?.auto || !keyOfRow(row, facts)) return false;
    return row.baseUrl !== "" || text(env(row.baseUrlEnv ?? "")) !== undefined;
  });
  if (withKey) return pick(withKey);
  throw new ProviderError(
    "no_provider_configured",
    `No model provider is configured. Run \`${hermesCommand("setup")}\`, or set a key such as OPENROUTER_API_KEY with \`${hermesCommand("config set OPENROUTER_API_KEY ...")}\`.`,
  );
}

function pick(id: string): Choice {
  const row = providerRow(id);
  if (!row) throw new ProviderError("invalid_provider", `Unknown provider "${id}".`);
  return { type: "row", row };
}

function runtimeOfRow(row: ProviderRow, facts: Facts): RuntimeProvider {
  if (row.id === "demo") return { ...demoRuntime(), ...modelOf(facts, undefined) };
  const { input, settings, env } = facts;
  const bound = keyOfRow(row, facts);
  const ownUrl =
    text(input.baseUrl) ??
    (configMeans(row.id, facts) ? settings.baseUrl : undefined) ??
    text(env(row.baseUrlEnv ?? ""));
  const given = ownUrl ?? input.pooled?.(row.id)?.baseUrl ?? defaultUrl(row, bound, env);
  if (!given) {
    throw new ProviderError(
      "missing_base_url",
      `Provider ${row.id} needs the URL of your endpoint. Set it with \`${hermesCommand("config set model.base_url ...")}\`.`,
    );
  }
  const model = modelOf(facts, undefined);
  const url = cleanUrl(given);
  const apiMode = determineApiMode(row.id, url, {
    explicit: input.apiMode,
    persisted: persistedMode(row.id, facts),
    model: model.model,
  });
  const baseUrl = urlForMode(url, apiMode);
  const { apiKey, keyHosts, source, warnings } = admit(bound, baseUrl, row, facts);
  return { provider: row.id, apiMode, baseUrl, apiKey, keyHosts, source, ...model, warnings };
}

/** Lets a key through only to a host it is bound to; otherwise goes without, or fails when the provider cannot. */
function admit(
  bound: BoundKey | null,
  baseUrl: string,
  row: ProviderRow,
  { env }: Facts,
): { apiKey: string; keyHosts: readonly string[]; source: string; warnings: readonly string[] } {
  const host = hostOf(baseUrl);
  if (bound?.hosts.some((domain) => hostBelongs(host, domain))) {
    return { apiKey: bound.key, keyHosts: bound.hosts, source: bound.source, warnings: [] };
  }
  const without = { apiKey: row.id === "lmstudio" ? LMSTUDIO_KEY : NO_KEY, keyHosts: [], source: "none", warnings: [] };
  const atHome = row.hosts.some((domain) => hostBelongs(host, domain));
  if (needsNoKey(baseUrl) || row.auth === "optional_key") return without;
  const derived = atHome ? null : keyForHost(baseUrl, env);
  if (derived) return { apiKey: derived.key, keyHosts: derived.hosts, source: derived.source, warnings: [] };
  if (bound) {
    const warning = `The key from ${bound.source} was not sent to ${host}: it belongs to ${bound.hosts.join(", ")}. If ${host} needs a key, set \`model.api_key\` next to \`model.base_url\` in config.yaml.`;
    return { ...without, warnings: [warning] };
  }
  if (!atHome) return without;
  if (row.auth === "oauth") {
    throw new ProviderError(
      "login_required",
      `Provider ${row.id} needs a login, and there is none in this home. Choose another provider with \`${hermesCommand("model")}\`, or set \`model.api_key\` in config.yaml.`,
    );
  }
  throw new ProviderError(
    "missing_key",
    `No API key for provider ${row.id}. Set it with \`${hermesCommand(`config set ${row.keyEnv[0] ?? "model.api_key"} ...`)}\`, or run \`${hermesCommand("setup")}\`.`,
  );
}

/** Explicit, then configuration, then environment, then pool. */
function keyOfRow(row: ProviderRow, facts: Facts): BoundKey | null {
  const { input, settings, entries, env } = facts;
  const explicitHost = hostOf(text(input.baseUrl) ?? "");
  const hosts = hostsOf(row, env);
  if (isUsableKey(input.apiKey)) {
    const home = explicitHost || (configMeans(row.id, facts) ? hostOf(settings.baseUrl ?? "") : "");
    return { key: input.apiKey.trim(), hosts: home ? [...hosts, home] : hosts, source: "explicit" };
  }
  if (configMeans(row.id, facts) && isUsableKey(settings.apiKey)) {
    const home = hostOf(settings.baseUrl ?? "");
    return { key: settings.apiKey, hosts: home ? [...hosts, home] : hosts, source: "config" };
  }
  const block = entries.find((entry) => entry.slug === row.id);
  if (block && isUsableKey(block.apiKey)) return { key: block.apiKey, hosts, source: "config" };
  const named = keyFromEnv([...(block?.keyEnv ? [block.keyEnv] : []), ...row.keyEnv], env);
  if (named) return { key: named.key, hosts, source: `env:${named.name}` };
  const pooled = input.pooled?.(row.id);
  if (!pooled || !isUsableKey(pooled.key)) return null;
  const home = hostOf(pooled.baseUrl ?? "");
  return { key: pooled.key, hosts: home ? [...hosts, home] : hosts, source: "pool" };
}

function runtimeOfEntry(entry: CustomProvider, facts: Facts): RuntimeProvider {
  const { input, env } = facts;
  const url = cleanUrl(text(input.baseUrl) ?? entry.baseUrl ?? "");
  const model = modelOf(facts, entry);
  const apiMode = determineApiMode("custom", url, {
    explicit: input.apiMode ?? (entry.apiMode ? legalMode(entry.apiMode) : undefined),
    model: model.model,
  });
  const baseUrl = urlForMode(url, apiMode);
  const host = hostOf(baseUrl);
  // The entry pairs its key with its own host; a different URL on the command line does not inherit it.
  const home = hostOf(entry.baseUrl ?? "");
  const named = entry.keyEnv ? keyFromEnv([entry.keyEnv], env) : null;
  const own = isUsableKey(entry.apiKey) ? entry.apiKey : named?.key;
  const bound: BoundKey | null = isUsableKey(input.apiKey)
    ? { key: input.apiKey.trim(), hosts: [host], source: "explicit" }
    : own
      ? { key: own, hosts: [home], source: "config" }
      : keyForHost(baseUrl, env);
  const warnings = [...entry.warnings];
  if (entry.keyEnv && !own) warnings.push(`providers.${entry.name}.key_env: ${entry.keyEnv} is not set.`);
  const usable = bound?.hosts.some((domain) => hostBelongs(host, domain)) ? bound : null;
  return {
    provider: "custom",
    apiMode,
    baseUrl,
    apiKey: usable?.key ?? NO_KEY,
    keyHosts: usable?.hosts ?? [],
    source: `custom_provider:${entry.name}`,
    ...model,
    custom: entry,
    warnings,
  };
}

function runtimeOfUrl(server: string | null, facts: Facts): RuntimeProvider {
  const { input, settings, env } = facts;
  const explicit = text(input.baseUrl);
  const fromEnv = text(env("CUSTOM_BASE_URL"));
  const configured = configUrlForCustom(facts);
  const fallback = server ? LOCAL_SERVERS[server] : undefined;
  const found = explicit ?? fromEnv ?? configured ?? fallback;
  if (!found) {
    throw new ProviderError(
      "missing_base_url",
      `Provider custom needs the URL of your endpoint. Set \`model.base_url\` in config.yaml (for example http://127.0.0.1:8000/v1), or run \`${hermesCommand("model")}\`.`,
    );
  }
  const url = cleanUrl(found);
  const model = modelOf(facts, undefined);
  const apiMode = determineApiMode("custom", url, {
    explicit: input.apiMode,
    persisted: persistedMode("custom", facts),
    model: model.model,
  });
  const baseUrl = urlForMode(url, apiMode);
  const bound = keyOfUrl(baseUrl, facts);
  const origin = explicit ? "explicit" : fromEnv ? "env:CUSTOM_BASE_URL" : configured ? "config" : `local:${server}`;
  return {
    provider: "custom",
    apiMode,
    baseUrl,
    apiKey: bound?.key ?? NO_KEY,
    keyHosts: bound?.hosts ?? [],
    source: bound?.source ?? origin,
    ...model,
    localServer: server ?? undefined,
    warnings: [],
  };

  function keyOfUrl(target: string, { input: given }: Facts): BoundKey | null {
    const host = hostOf(target);
    if (isUsableKey(given.apiKey)) return { key: given.apiKey.trim(), hosts: [host], source: "explicit" };
    const home = hostOf(settings.baseUrl ?? "");
    if (isUsableKey(settings.apiKey) && configUrlForCustom(facts) && home === host) {
      return { key: settings.apiKey, hosts: [host], source: "config" };
    }
    return keyForHost(target, env);
  }
}

/** A base URL written for another provider is not ours, unless it is this machine. */
function configUrlForCustom(facts: Facts): string | undefined {
  const { settings } = facts;
  if (!settings.baseUrl) return undefined;
  const unnamed = !settings.provider || settings.provider.toLowerCase() === "auto";
  return unnamed || configMeans("custom", facts) || isLocalEndpoint(settings.baseUrl) ? settings.baseUrl : undefined;
}

/** The `model` section of the configuration was written for this provider. */
function configMeans(id: string, facts: Facts): boolean {
  const { settings } = facts;
  if (!settings.provider || settings.provider.toLowerCase() === "auto") {
    return id === "openrouter" && hostBelongs(hostOf(settings.baseUrl ?? "https://openrouter.ai"), "openrouter.ai");
  }
  try {
    const choice = identify(settings.provider, facts);
    return choice.type === "row" ? choice.row.id === id : choice.type === "custom" && id === "custom";
  } catch (error) {
    if (error instanceof ProviderError) return false;
    throw error;
  }
}

function persistedMode(id: string, facts: Facts): { provider: string; apiMode: string } | undefined {
  const { apiMode } = facts.settings;
  return apiMode && configMeans(id, facts) ? { provider: id, apiMode } : undefined;
}

function modelOf({ input, settings, env }: Facts, entry: CustomProvider | undefined): { model?: string } {
  const meansEntry = entry !== undefined && slugOf(settings.provider?.replace(/^custom:/i, "") ?? "") !== entry.slug;
  const order = meansEntry ? [entry.defaultModel, settings.default] : [settings.default, entry?.defaultModel];
  const model = [text(input.model), ...order, text(env("HERMES_INFERENCE_MODEL"))].find((name) => name !== undefined);
  return model ? { model } : {};
}

function defaultUrl(row: ProviderRow, bound: BoundKey | null, env: EnvLookup): string {
  // Keys of the coding plan work on its own endpoint only.
  if (row.id === "kimi-coding" && bound?.key.startsWith("sk-kimi-")) return "https://api.kimi.com/coding";
  if (row.id !== "bedrock") return row.baseUrl;
  const region = text(env("AWS_REGION")) ?? text(env("AWS_DEFAULT_REGION")) ?? "us-east-1";
  return `https://bedrock-runtime.${region}.amazonaws.com/openai/v1`;
}

/** An address as requests use it. Throws `ProviderError` when it is none. */
export function cleanUrl(url: string): string {
  const trimmed = url.trim().replace(/(?<!\/)\/+$/, "");
  if (trimmed.startsWith("demo:")) return trimmed;
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed)
    ? trimmed
    : `${isLocalEndpoint(trimmed) ? "http" : "https"}://${trimmed}`;
  const parsed = URL.parse(whole);
  if (parsed && /^https?:$/.test(parsed.protocol) && parsed.hostname !== "") return whole;
  throw new ProviderError(
    "invalid_base_url",
    `"${url}" is not a URL. Use a URL such as http://host:port/v1 or https://host/v1.`,
  );
}

/** The Anthropic wire puts `/v1` into its own paths. */
function urlForMode(url: string, mode: ApiMode): string {
  return mode === "anthropic_messages" ? url.replace(/\/v1$/, "") : url;
}
