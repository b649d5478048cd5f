import { API_MODES, type ApiMode } from "../wire.ts";
import { ProviderError } from "./settings.ts";
import { providerRow } from "./table.ts";

// Hosts are compared as parsed names, label by label, never as pieces of a URL's text.

/** Lower-case host name without port and brackets; empty when there is none. The scheme may be missing. */
export function hostOf(url: string): string {
  const text = url.trim();
  if (text === "") return "";
  const parsed = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  return parsed?.hostname.toLowerCase().replace(/^\[|\]$|\.$/g, "") ?? "";
}

export function pathOf(url: string): string {
  return (URL.parse(url.trim())?.pathname ?? "").replace(/(?<!\/)\/+$/, "");
}

/** The host is `domain` or lies below it. `api.openai.com.evil.example` does not belong to `openai.com`. */
export function hostBelongs(host: string, domain: string): boolean {
  return host !== "" && (host === domain || host.endsWith(`.${domain}`));
}

function isIpAddress(host: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(host) || host.includes(":");
}

/** `https://api.mistral.ai/v1` -> `MISTRAL_API_KEY`; null for addresses and single-label hosts. */
export function hostDerivedApiKeyName(url: string): string | null {
  const host = hostOf(url);
  if (isIpAddress(host)) return null;
  const vendor = host.split(".").at(-2);
  return vendor ? `${vendor.toUpperCase().replace(/[^A-Z0-9]/g, "_")}_API_KEY` : null;
}

/** The endpoint is this machine or a private network: no key needed, no stale timers, its window may be probed. */
export function isLocalEndpoint(url: string): boolean {
  const host = hostOf(url);
  if (host === "localhost" || host.endsWith(".localhost")) return true;
  if (/\.(docker|containers|lima)\.internal$/.test(host)) return true;
  if (host.includes(":")) return isLocalIpv6(host);
  return isIpAddress(host) && isLocalIpv4(host);
}

function isLocalIpv4(host: string): boolean {
  const [a = 0, b = 0] = host.split(".").map(Number);
  if (host === "0.0.0.0" || a === 127 || a === 10) return true;
  if (a === 172) return b >= 16 && b <= 31;
  if (a === 100) return b >= 64 && b <= 127;
  return (a === 192 && b === 168) || (a === 169 && b === 254);
}

function isLocalIpv6(host: string): boolean {
  if (host === "::1" || host === "::") return true;
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(host);
  if (mapped?.[1] && mapped[2]) {
    const bytes = [mapped[1], mapped[2]].flatMap((part) => {
      const value = Number.parseInt(part, 16);
      return [value >> 8, value & 255];
    });
    return isLocalIpv4(bytes.join("."));
  }
  return /^(fe[89ab]|f[cd])/.test(host);
}

// The one place that knows which wire a destination speaks.

interface ModeFacts {
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

/** True when the URL's host is one of the domains, or lies below one. */
export function isHost(url: string, ...domains: readonly string[]): boolean {
  const host = hostOf(url);
  return domains.some((domain) => hostBelongs(host, domain));
}

/** Adds a path to a base URL that may end in a slash, carry a query, or name the endpoint already. */
export function joinUrl(baseUrl: string, path: string): string {
  const [base = "", query] = baseUrl.trim().split("?", 2);
  const trimmed = base.replace(/(?<!\/)\/+$/, "");
  const url = trimmed.endsWith(path) ? trimmed : trimmed + path;
  return query === undefined ? url : `${url}?${query}`;
}
