// Which model a child talks to: what the settings name for sub-agents, else what the parent talks to now.
import type { Config } from "../../home/config/schema.ts";
import type { OpenHome } from "../../home/open.ts";
import { legalMode } from "../../llm/providers/api-mode.ts";
import type { ModelChoice } from "../options.ts";

/** Throws `ProviderError` when the settings name something that cannot be asked; nothing else is taken in its place. */
export async function childModel(home: OpenHome, parent: ModelChoice): Promise<ModelChoice> {
  const settings = home.config().delegation;
  const { reasoning_effort: effort } = settings;
  const { reasoning: inherited, ...rest } = parent;
  const reasoning = effort === "" ? inherited : reasoningOf(effort);
  const model = { ...rest, ...(reasoning ? { reasoning } : {}) };
  if (!settings.model && !settings.provider && !settings.base_url) return model;
  const { resolvePlace } = await import("../auxiliary/places.ts");
  const target = await resolvePlace(home, placeOf(settings, parent));
  const { maxTokens: _cap, overrides: _own, ...general } = model;
  return { ...general, target: settings.api_mode ? { ...target, apiMode: legalMode(settings.api_mode) } : target };
}

function placeOf(settings: Config["delegation"], { target }: ModelChoice) {
  const { model, provider, base_url: baseUrl, api_key: apiKey } = settings;
  if (!provider && !baseUrl)
    return { provider: target.provider, model, baseUrl: target.baseUrl, apiKey: target.apiKey };
  return {
    provider: provider || "custom",
    model: model || (provider === target.provider ? target.model : undefined),
    baseUrl: baseUrl || undefined,
    apiKey: apiKey || undefined,
  };
}

function reasoningOf(effort: string): ModelChoice["reasoning"] {
  if (effort === "none") return { enabled: false };
  return { enabled: true, effort: effort as "medium" }; // an effort a provider does not know is its own to refuse
}
