// The one place that knows which wire a destination speaks.
import { API_MODES, type ApiMode } from "../wire.ts";
import { hostBelongs, hostOf, pathOf } from "./hosts.ts";
import { ProviderError } from "./provider-error.ts";
import { providerRow } from "./table.ts";

export interface ModeFacts {
  /** Said by the caller; wins over everything. */
  readonly explicit?: string | undefined;
  /** `model.api_mode` of the configuration, with the provider it was written for. */
  readonly persisted?: { readonly provider: string; readonly apiMode: string } | undefined;
  readonly model?: string | undefined;
}

/** The mode of a destination: explicit, persisted, provider, base URL, then `chat_completions`. */
export function determineApiMode(provider: string, baseUrl: string, facts: ModeFacts = {}): ApiMode {
  if (facts.explicit) return legalMode(facts.explicit);
  if (facts.persisted && facts.persisted.provider === provider) return legalMode(facts.persisted.apiMode);
  const mode = modeOfProvider(provider, baseUrl, facts.model ?? "") ?? modeOfUrl(baseUrl) ?? "chat_completions";
  return mode === "chat_completions" && isOpenAiNative(baseUrl) && /^gpt-[5-9]/.test(facts.model ?? "")
    ? "codex_responses"
    : mode;
}

/** api.openai.com itself: not Azure, not Copilot, not an aggregator. */
export function isOpenAiNative(baseUrl: string): boolean {
  return hostOf(baseUrl) === "api.openai.com";
}

function modeOfProvider(provider: string, baseUrl: string, model: string): ApiMode | null {
  const row = providerRow(provider);
  if (!row || row.mode === "by_url") return null;
  if (row.mode === "by_model") return modeOfModel(model);
  if (row.anthropicPath && modeOfUrl(baseUrl) === "anthropic_messages") return "anthropic_messages";
  return row.mode;
}

function modeOfUrl(baseUrl: string): ApiMode | null {
  const host = hostOf(baseUrl);
  const path = pathOf(baseUrl);
  if (host === "chatgpt.com" && path.startsWith("/backend-api/codex")) return "codex_responses";
  if (host === "api.openai.com" || host === "api.x.ai") return "codex_responses";
  if (hostBelongs(host, "api.anthropic.com") || path.endsWith("/anthropic")) return "anthropic_messages";
  return host === "api.kimi.com" && path.startsWith("/coding") ? "anthropic_messages" : null;
}

/** Relays that offer each vendor's models in that vendor's own protocol. */
function modeOfModel(model: string): ApiMode {
  if (/^claude-/.test(model)) return "anthropic_messages";
  if (/^(gpt-|grok-|muse-)/.test(model)) return "codex_responses";
  return "chat_completions";
}

// Other spellings found in configuration files.
const SPELLINGS: Readonly<Record<string, ApiMode>> = {
  openai_chat: "chat_completions",
  openai_responses: "codex_responses",
  responses: "codex_responses",
  anthropic: "anthropic_messages",
};

export function legalMode(value: string): ApiMode {
  const text = value.trim().toLowerCase();
  const mode = API_MODES.find((known) => known === text) ?? SPELLINGS[text];
  if (mode) return mode;
  throw new ProviderError(
    "invalid_api_mode",
    `Unknown api_mode "${value}". Legal values: ${API_MODES.join(", ")}. Correct \`model.api_mode\` (or the provider's \`api_mode\`) in config.yaml.`,
  );
}
