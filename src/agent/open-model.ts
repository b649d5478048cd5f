// Which model answers: resolved from flags, settings and keys; the embedded demo when nothing is configured.
import { createHash } from "node:crypto";
import type { Config } from "../home/config/schema.ts";
import { kindNow } from "../home/looks.ts";
import type { OpenHome } from "../home/open.ts";
import { hermesCommand } from "../home/paths.ts";
import { type Clock, systemClock } from "../kit/clock.ts";
import { shortFetch } from "../kit/http.ts";
import type { AuxiliaryClient } from "../llm/auxiliary/contract.ts";
import { learnedWindows } from "../llm/catalogue/context-length.ts";
import { type Price, priceOf } from "../llm/catalogue/prices.ts";
import { useKeptFacts } from "../llm/catalogue/published-facts.ts";
import { createGate } from "../llm/gate/create-gate.ts";
import type { Caps, ModelGate } from "../llm/gate.ts";
import { isLocalEndpoint } from "../llm/providers/hosts.ts";
import type { ModelList } from "../llm/providers/local.ts";
import { resolveModelName, splitProviderPrefix } from "../llm/providers/model-names.ts";
import {
  cleanUrl,
  demoRuntime,
  type ResolveInput,
  type RuntimeProvider,
  resolveRuntimeProvider,
} from "../llm/providers/resolve.ts";
import { ProviderError } from "../llm/providers/settings.ts";
import { type TargetOptions, targetFor } from "../llm/providers/target.ts";
import { placeOf, type Target } from "../llm/wire.ts";
import { createWire } from "../llm/wires/drive.ts";
import { createModelFetch } from "../llm/wires/model-fetch.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { Agent } from "./agent.ts";
import { smallWindowNote, windowText } from "./usage-meter.ts";

interface AskedModel {
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly baseUrl?: string | undefined;
  /** The model is what the session was held with; nobody asked for it now. */
  readonly remembered?: boolean | undefined;
}

export interface ChosenModel {
  readonly target: Target;
  readonly demo: boolean;
  /** What to ask for to get this provider again: its id, or the name of the user's own entry. */
  readonly providerName: string;
  readonly warnings: readonly string[];
  /** The variable with a key for a provider, while nobody has chosen a provider or a model: the demo goes on answering. */
  readonly loneKey?: string;
}

/**
 * - `offline`: nobody is asked anything, servers on this machine included.
 * - `switched`: in the middle of a conversation; the window in the settings was stated for another model, unless it is this very one.
 */
export async function chooseTarget(
  home: OpenHome,
  request: AskedModel,
  { offline = false, switched = false }: { readonly offline?: boolean; readonly switched?: boolean } = {},
): Promise<ChosenModel> {
  const config = home.config();
  await useKeptFacts(home);
  const { model, provider } = splitProvider(request, config);
  const { baseUrl } = request;
  const kept = await keysIn(home);
  let runtime = configuredRuntime(home, { model, provider, baseUrl }, kept);
  if (runtime?.provider === "demo") return chosen(runtime, await targetFor(runtime, { config }));
  const named = model
    ? await resolveModelName(model, { provider: runtime?.provider ?? "demo", aliases: aliasesIn(config) })
    : null;
  if (named?.provider || named?.baseUrl)
    runtime = configuredRuntime(home, baseUrl ? { ...named, baseUrl } : named, kept);
  if (runtime === null) {
    const demo = demoRuntime();
    if (named && named.model !== demo.model && !request.remembered) throw noProviderFor(named.model);
    return chosen(demo, await targetFor(demo, { config }));
  }
  const loneKey = named === null && provider === undefined ? keyWithoutChoice(home, runtime) : null;
  if (loneKey !== null && baseUrl === undefined) {
    const demo = demoRuntime();
    return { ...chosen(demo, await targetFor(demo, { config })), loneKey };
  }
  const options = {
    config,
    model: named?.model,
    ignoreConfiguredWindow: switched && named !== null && named.model !== config.model.default,
    learned: learnedWindows(home),
    ...(offline ? {} : await localHelp(runtime, named?.model)),
  };
  return chosen(runtime, seeing(await targetFor(runtime, options), config));
}

/**
 * A key alone is no choice: it may be one that was pasted and kept, or that the shell holds for other programs. What ran before it
 * came goes on.
 */
function keyWithoutChoice(home: OpenHome, { model, source, baseUrl }: RuntimeProvider): string | null {
  const { provider, base_url } = home.config().model;
  if (model || base_url || (provider && provider !== "auto") || isLocalEndpoint(baseUrl)) return null;
  if (home.env("HERMES_INFERENCE_PROVIDER") || home.env("CUSTOM_BASE_URL")) return null;
  return source.startsWith("env:") ? source.slice("env:".length) : null;
}

/**
 * Keeps a key that was mentioned in passing, which is no choice either: where another provider would now be found by itself, the one in use
 * is written down. Resolves to what there is to say about that.
 */
export async function keepKey(home: OpenHome, name: string, value: string): Promise<string | null> {
  const before = await providerFound(home);
  await home.setEnv(name, value);
  if (before === null || (await providerFound(home)) === before) return null;
  await home.setConfigKey(["model", "provider"], before);
  return `${before} stays your provider (model.provider).`;
}

/** Null: the demo, or none that can be used. */
async function providerFound(home: OpenHome): Promise<string | null> {
  try {
    const { demo, providerName } = await chooseTarget(home, {}, { offline: true });
    return demo ? null : providerName;
  } catch (error) {
    if (error instanceof ProviderError) return null;
    throw error;
  }
}

function noProviderFor(model: string): ProviderError {
  return new ProviderError(
    "no_provider_configured",
    `The model ${model} cannot be used: no model provider is configured. Run \`${hermesCommand("setup")}\`, set a key such as OPENROUTER_API_KEY with ` +
      `\`${hermesCommand("config set OPENROUTER_API_KEY ...")}\`, or name a provider with the model: PROVIDER:MODEL.`,
  );
}

/** A user who says that pictures are sent as they are knows better than our table. */
function seeing(target: Target, { agent }: Config): Target {
  if (agent.image_input_mode !== "native" || target.profile.images) return target;
  return { ...target, profile: { ...target.profile, images: true } };
}

/**
 * What this run asks for, filled up from what the session was held with. Another provider does not have the same models, and
 * the demo only stood in for a model that was not configured yet.
 */
export function resumedModel(home: OpenHome, request: AskedModel, recorded: AskedModel): AskedModel {
  const asked = splitProvider(request, home.config());
  if (recorded.provider === "demo") return asked;
  const provider = asked.provider ?? recorded.provider;
  if (asked.model) return { provider, model: asked.model };
  return { provider, model: provider === recorded.provider ? recorded.model : undefined, remembered: true };
}

const chosen = (runtime: RuntimeProvider, target: Target): ChosenModel => ({
  target,
  demo: runtime.provider === "demo",
  providerName: runtime.custom?.name ?? runtime.localServer ?? runtime.provider,
  warnings: runtime.warnings,
});

/** A model that somebody else has chosen already. */
export const handedOver = (target: Target): ChosenModel => ({
  target,
  demo: target.provider === "demo",
  providerName: target.provider,
  warnings: [],
});

/** A server on this machine can be asked what it holds; one elsewhere only about a model nothing is known of, and once. */
async function localHelp(runtime: RuntimeProvider, requested: string | undefined): Promise<Partial<TargetOptions>> {
  if (!isLocalEndpoint(runtime.baseUrl)) {
    if (runtime.provider !== "custom" || runtime.apiMode === "anthropic_messages") return {};
    return {
      lastResort: async (...question) =>
        (await import("../llm/providers/local.ts")).probeListedModel(...question, { fetch: shortFetch }),
    };
  }
  const { listEndpointModels, probeLocalModel } = await import("../llm/providers/local.ts");
  const offered = runtime.model || requested ? null : await listEndpointModels(runtime.baseUrl, { fetch: shortFetch });
  const [only] = offered?.ok && offered.models.length === 1 ? offered.models : [];
  if (offered && !only) throw noModelAt(runtime, offered);
  return {
    ...(only ? { model: only } : {}),
    probe: (asked, model) => probeLocalModel(asked, model, { fetch: shortFetch }),
  };
}

function noModelAt({ provider, localServer, baseUrl }: RuntimeProvider, offered: ModelList): ProviderError {
  const place = `No model is set for ${localServer ?? provider} at ${baseUrl}`;
  const asked = offered.ok
    ? `, which offers ${offered.models.slice(0, 5).join(", ") || "none"}${offered.models.length > 5 ? ", ..." : ""}. Choose`
    : `, and it could not be asked for one (${offered.attempt}). Start it, or correct \`model.base_url\`; or choose`;
  const message = `${place}${asked} one with \`-m MODEL\` or \`model.default\` in config.yaml.`;
  return new ProviderError("no_model_configured", message);
}

export function aliasesIn(config: Config): Readonly<Record<string, unknown>> {
  const own = typeof config.model === "object" ? config.model.aliases : undefined;
  return { ...config.model_aliases, ...own };
}

/** `connectWith` is what to type to connect a model, where that is not a command of the shell. */
export function demoNote({ loneKey }: Pick<ChosenModel, "loneKey">, connectWith?: string): string {
  if (loneKey === undefined)
    return `No model is connected, so the built-in demo answers (it is not an AI). Connect one: ${connectWith ?? hermesCommand("setup")}`;
  return `${loneKey} is set, but no model is chosen, so the built-in demo answers (it is not an AI). Choose one: ${connectWith ?? hermesCommand("model")}`;
}

/** `provider:model` in one word, when what stands before the colon is a provider, built in or the user's own. */
function splitProvider(request: AskedModel, config: Config): AskedModel {
  if (!request.model || request.provider) return request;
  return splitProviderPrefix(request.model, (name) => isProvider(name, config)) ?? request;
}

function isProvider(name: string, config: Config): boolean {
  try {
    resolveRuntimeProvider({ requested: name, config, env: {} });
    return true;
  } catch (error) {
    return error instanceof ProviderError && error.code !== "invalid_provider";
  }
}

/** What `auth.json` holds. */
interface KeptKeys {
  readonly pooled?: ResolveInput["pooled"];
  readonly activeLogin?: string | null;
}

/** Most homes have no file of keys, and then its reader is not even loaded. */
export async function keysIn(home: OpenHome): Promise<KeptKeys> {
  if (kindNow(home.paths.at("auth.json")) === null) return {}; // the reader would say the same
  const { activeLogin, pooledKeys } = await import("../llm/keys/pools.ts");
  return { pooled: await pooledKeys(home, systemClock), activeLogin: await activeLogin(home) };
}

/** Null when no provider is configured. */
function configuredRuntime(home: OpenHome, request: AskedModel, kept: KeptKeys): RuntimeProvider | null {
  if (request.provider === "demo") return demoRuntime();
  try {
    return resolveRuntimeProvider({
      requested: request.provider,
      model: request.model,
      baseUrl: request.baseUrl,
      config: home.config(),
      env: (name) => home.env(name),
      ...(kept.pooled ? { pooled: kept.pooled } : {}),
      activeLogin: kept.activeLogin ?? null,
    });
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (error.code === "no_provider_configured") return null;
    const model = request.model ?? (home.config().model.default || home.env("HERMES_INFERENCE_MODEL"));
    if (!request.provider || model || !UNUSABLE.has(error.code)) throw error;
    throw new ProviderError(
      "no_model_configured",
      `${error.message} No model is set either: pass \`-m MODEL\`, or set \`model.default\` in config.yaml.`,
    );
  }
}

/** The provider itself cannot be used, so it was not looked which model is meant. */
const UNUSABLE: ReadonlySet<string> = new Set([
  "missing_key",
  "login_required",
  "missing_base_url",
  "invalid_provider",
]);

/**
 * Changes when the key, the address or the API mode changes that the settings give for a model; nothing of the key can be read from it.
 * Pools do not count: they exchange their keys by themselves, in an open conversation too. Null where the settings alone give no answer.
 */
export async function accessMark(home: OpenHome, request: AskedModel): Promise<string | null> {
  try {
    const config = home.config();
    const { model, provider } = splitProvider(request, config);
    let runtime = configuredRuntime(home, { model, provider }, {});
    const aliases = aliasesIn(config);
    const named = model ? await resolveModelName(model, { provider: runtime?.provider ?? "demo", aliases }) : null;
    if (named?.provider || named?.baseUrl) runtime = configuredRuntime(home, named, {});
    if (runtime === null) return null;
    const facts = [runtime.provider, runtime.apiMode, runtime.baseUrl, runtime.apiKey];
    return createHash("sha256").update(JSON.stringify(facts)).digest("hex");
  } catch (error) {
    // Whoever opens a conversation with these settings is told.
    if (error instanceof ProviderError) return null;
    throw error;
  }
}

interface SwitchRequest {
  readonly model: string;
  readonly provider?: string | undefined;
  /** Serves when no provider is named. */
  readonly present: string;
}

/** Where a switch would lead. */
export function nextTarget(home: OpenHome, request: SwitchRequest): Promise<ChosenModel> {
  // The demo only stands in: it has no other models, and a provider may have been configured since.
  const present = request.present === "demo" && request.model !== "demo" ? undefined : request.present;
  const { model, provider = present } = splitProvider(request, home.config());
  return chooseTarget(home, { model, provider }, { switched: true });
}

/** All or nothing: the new target is complete before the agent hears of it. */
export async function switchTarget(
  home: OpenHome,
  agent: Agent,
  request: SwitchRequest & { readonly global?: boolean | undefined },
  store: SessionStore,
): Promise<{ chosen: ChosenModel; said: string }> {
  const next = await nextTarget(home, request);
  const { target, providerName } = next;
  await agent.switchModel({ ...agent.model, target });
  if (await store.get(agent.sessionId)) {
    await store.update(agent.sessionId, { model: target.model, modelConfig: modelConfig(next) });
  }
  if (request.global) {
    await saveModel(home, { provider: providerName, model: target.model, baseUrl: target.baseUrl });
  }
  const kept = request.global ? " Saved as the standard model." : "";
  const price = priceLine(await priceOf(target));
  const now = `Now using ${target.model} (${placeOf(target)}), ${windowText(target)}, ${price}.${kept}`;
  const small = smallWindowNote(target);
  const said = small === null ? now : `${now}\n${small}`;
  return { chosen: next, said };
}

function priceLine(price: Price): string {
  if (price.type === "unknown") return "price unknown";
  if (price.type === "included") return price.source === "subscription" ? "paid by your plan" : "no price per token";
  const { input, output } = price.rates;
  return `$${input} in and $${output} out per million tokens`;
}

interface SavedModel {
  readonly provider: string;
  readonly model: string;
  /** Where its requests go, if that is not simply the provider's own address. */
  readonly baseUrl?: string | undefined;
  /** A server of the user's own whose key is in a variable: written as an entry of `providers:`, under the name `provider` has. */
  readonly entry?: { readonly name: string; readonly baseUrl: string; readonly keyEnv: string } | undefined;
  /** Its key was stored just now, so one that stands in config.yaml is an old one. */
  readonly newKey?: boolean | undefined;
}

/** The standard model from now on. What was set for another provider goes: its address and key would be used for this one. */
export async function saveModel(
  home: OpenHome,
  saved: SavedModel,
  options?: { readonly backup?: boolean },
): Promise<void> {
  const { provider, base_url, default: before } = home.config().model;
  const sameProvider = provider === saved.provider || (!base_url && (!provider || provider === "auto"));
  const stays = base_url && saved.baseUrl ? cleanUrl(base_url) === cleanUrl(saved.baseUrl) : sameProvider;
  const writesAddress = saved.provider === "custom" && saved.baseUrl && !(stays && base_url);
  const others = ["base_url", "api_key", "api_mode", "context_length"].map((name) => [`model.${name}`, undefined]);
  const { entry } = saved;
  await home.setConfigKeys(
    {
      ...(stays && !entry ? {} : Object.fromEntries(others)),
      ...(saved.newKey ? { "model.api_key": undefined } : {}),
      ...(entry && {
        [`providers.${entry.name}.api`]: entry.baseUrl,
        [`providers.${entry.name}.key_env`]: entry.keyEnv,
        [`providers.${entry.name}.api_key`]: undefined,
      }),
      // A window that was stated for one model says nothing about another.
      ...(before && before !== saved.model ? { "model.context_length": undefined } : {}),
      "model.provider": saved.provider,
      ...(writesAddress ? { "model.base_url": saved.baseUrl } : {}),
      "model.default": saved.model,
    },
    options,
  );
}

/** What a session remembers of its model, for the day it is taken up again. */
export const modelConfig = ({ target, providerName }: ChosenModel) => ({
  provider: providerName,
  base_url: target.baseUrl,
});

// The one gate of a process, with this home's caps, prices and ledger.

/** For side tasks that belong to no conversation; null while no model is connected. */
export async function openSideModel(
  home: OpenHome,
  store: SessionStore,
  clock: Clock,
): Promise<AuxiliaryClient | null> {
  const { target, demo } = await chooseTarget(home, {});
  if (demo) return null;
  const [{ createAuxiliary }, { resolveSpec }, { lazyKeys }] = await Promise.all([
    import("../llm/auxiliary/client.ts"),
    import("../llm/auxiliary/model-spec.ts"),
    import("../llm/keys/ring.ts"),
  ]);
  const log = home.log.child("llm");
  return createAuxiliary({
    gate: openGate(home, store, clock, (message) => log.warn(message)),
    ...{ clock, log, config: () => home.config(), main: () => target, keys: lazyKeys(home, clock) },
    resolve: (spec) => resolveSpec(home, spec, clock),
  });
}

export function openGate(
  home: OpenHome,
  store: SessionStore,
  clock: Clock,
  warn: (message: string) => void,
  ofJob?: { readonly usd: number | null; readonly tokens: number | null },
): ModelGate {
  const log = home.log.child("llm");
  const fetch = createModelFetch();
  return createGate({
    ledger: store,
    caps: () => ({
      ...withJob(home.config().budget, ofJob),
      goal: { usd: home.config().goals.max_usd, tokens: null },
    }),
    priceOf,
    wireFor: (target) => createWire(target.apiMode, { fetch, clock }),
    clock,
    cacheTtl: () => home.config().prompt_caching.cache_ttl,
    prefixMemory: {
      read: (sessionId) => store.getValue(sessionId, "prefix"),
      write: (sessionId, state) => store.setValue(sessionId, "prefix", state),
    },
    onDefect: (what, error) => log.error(what, error),
    onColdCache: (message) => log.warn(message),
    onUnknownPrice: (message) => {
      log.warn(message);
      warn(message);
    },
  });
}

/** A job may spend less than the settings allow, never more. */
function withJob(caps: Caps, own: Caps["job"] | undefined): Caps {
  const lower = (one: number | null, other: number | null) =>
    one === null ? other : other === null ? one : Math.min(one, other);
  return own
    ? { ...caps, job: { usd: lower(caps.job.usd, own.usd), tokens: lower(caps.job.tokens, own.tokens) } }
    : caps;
}
