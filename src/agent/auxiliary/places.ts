// From a provider's name to a place that can be asked, with the keys of one home.
import type { OpenHome } from "../../home/open.ts";
import { resolveRuntimeProvider } from "../../llm/providers/resolve.ts";
import { targetFor } from "../../llm/providers/target.ts";
import type { Target } from "../../llm/wire.ts";
import { cheapModel } from "./candidates.ts";
import type { AuxPlace } from "./contract.ts";

/** Throws `ProviderError` when the place cannot be asked: no key, no address, no model. */
export async function resolvePlace(home: OpenHome, place: AuxPlace): Promise<Target> {
  const config = home.config();
  const runtime = resolveRuntimeProvider({
    requested: place.provider,
    apiKey: place.apiKey,
    baseUrl: place.baseUrl,
    model: place.model ?? cheapModel(place.provider),
    config,
    env: (name) => home.env(name),
  });
  const target = await targetFor(runtime, { config, ignoreConfiguredWindow: true });
  return place.contextLength ? { ...target, contextLength: place.contextLength } : target;
}
