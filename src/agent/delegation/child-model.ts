// Which model a child talks to: what the settings name for sub-agents, else what the parent talks to now.
import type { Config } from "../../home/config/schema.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import type { AuxPlace } from "../../llm/auxiliary/contract.ts";
import { legalMode } from "../../llm/providers/api-mode.ts";
import type { ModelChoice } from "../options.ts";

/** Throws `ProviderError` when the settings name something that cannot be asked; nothing else is taken in its place. */
export async function childModel(home: OpenHome, parent: ModelChoice, clock: Clock): Promise<ModelChoice> {
  const settings = home.config().delegation;
  const { reasoning_effort: effort, fallback_providers: standIns } = settings;
  const { reasoning: inherited, ...rest } = parent;
  const reasoning = effort === "" ? inherited : reasoningOf(effort);
  const model: ModelChoice = {
    ...rest,
    ...(reasoning ? { reasoning } : {}),
    ...(standIns.length > 0 ? { fallbacks: standIns } : {}),
  };
  if (!settings.model && !settings.provider && !settings.base_url) return model;
  const { resolvePlace } = await import("../../llm/auxiliary/places.ts");
  const target = await resolvePlace(home, placeOf(settings, parent), clock);
  const { maxTokens: _cap, overrides: _own, ...general } = model;
  return { ...general, target };
}

function placeOf(settings: Config["delegation"], { target }: ModelChoice): AuxPlace {
  const { model, provider, base_url: baseUrl, api_key: apiKey, api_mode } = settings;
  const apiMode = api_mode ? legalMode(api_mode) : undefined;
  if (!provider && !baseUrl) {
    const { provider: same, baseUrl: there, apiKey: key } = target;
    return { provider: same, model, baseUrl: there, apiKey: key, apiMode };
  }
  return {
    provider: provider || "custom",
    model: model || (provider === target.provider ? target.model : undefined),
    baseUrl: baseUrl || undefined,
    apiKey: apiKey || undefined,
    apiMode,
  };
}

function reasoningOf(effort: string): ModelChoice["reasoning"] {
  if (effort === "none") return { enabled: false };
  return { enabled: true, effort: effort as "medium" }; // an effort a provider does not know is its own to refuse
}
