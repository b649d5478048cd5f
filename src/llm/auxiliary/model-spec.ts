// From a provider's name to a target that can be asked, with the keys of one home.
import type { Config } from "../../home/config/schema.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { learnedWindows } from "../catalogue/context-length.ts";
import { pooledKeys } from "../keys/pools.ts";
import { resolveRuntimeProvider } from "../providers/resolve.ts";
import { ProviderError } from "../providers/settings.ts";
import { targetFor } from "../providers/target.ts";
import type { Target } from "../wire.ts";
import { cheapModel } from "./client.ts";
import type { ModelSpec } from "./contract.ts";

/** Throws `ProviderError` when it cannot be asked: no key, no address, no model. */
export async function resolveSpec(home: OpenHome, spec: ModelSpec, clock: Clock): Promise<Target> {
  const config = home.config();
  const pooled = await pooledKeys(home, clock);
  const runtime = resolveRuntimeProvider({
    requested: spec.provider,
    apiKey: spec.apiKey ?? keyIn(spec, (name) => home.env(name)),
    baseUrl: spec.baseUrl,
    model: spec.model ?? cheapModel(spec.provider),
    apiMode: spec.apiMode,
    config: elsewhere(spec, config) ? { ...config, model: { ...config.model, api_mode: undefined } } : config,
    env: (name) => home.env(name),
    pooled,
  });
  const target = await targetFor(runtime, { config, ignoreConfiguredWindow: true, learned: learnedWindows(home) });
  return spec.contextLength ? { ...target, contextLength: spec.contextLength, windowAssumed: undefined } : target;
}

/** The wire in the settings was chosen for the main model's address; another address speaks for itself. */
function elsewhere({ baseUrl }: ModelSpec, { model }: Config): boolean {
  return baseUrl !== undefined && baseUrl.replace(/(?<!\/)\/+$/, "") !== model.base_url?.replace(/(?<!\/)\/+$/, "");
}

function keyIn({ keyEnv, provider }: ModelSpec, env: (name: string) => string | undefined): string | undefined {
  if (keyEnv === undefined) return undefined;
  const key = env(keyEnv)?.trim();
  if (key) return key;
  throw new ProviderError("missing_key", `${keyEnv} is not set, but the entry for ${provider} takes its key from it.`);
}
