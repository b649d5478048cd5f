// How each provider or host differs from the plain protocol, as data. Later rows of a list override earlier ones.
import type { ApiMode, ProviderProfile } from "../wire.ts";
import { hostBelongs, hostOf, isLocalEndpoint, isOpenAiNative, pathOf } from "./hosts.ts";

interface Destination {
  readonly provider: string;
  readonly model: string;
  readonly baseUrl: string;
  readonly apiMode: ApiMode;
}

const PLAIN: ProviderProfile = {
  maxTokensField: "max_tokens",
  developerRole: false,
  reasoningStyle: "none",
  echoReasoning: false,
  streamUsage: true,
  images: true,
  cacheLayout: "none",
  thinkingReplay: "strip",
};

interface Rule {
  readonly when: (to: HostedModel) => boolean;
  readonly profile: Partial<ProviderProfile>;
}

interface HostedModel extends Destination {
  readonly host: string;
  readonly slug: string;
}

const at =
  (...domains: readonly string[]) =>
  ({ host }: HostedModel) =>
    domains.some((domain) => hostBelongs(host, domain));
const aggregator = at("openrouter.ai", "nousresearch.com");
const chatWire = ({ apiMode }: HostedModel) => apiMode === "chat_completions";
const anthropicWire = ({ apiMode }: HostedModel) => apiMode === "anthropic_messages";

/** OpenRouter and Nous take `reasoning` for these families only; others answer 400. */
const REASONING_PREFIXES = [
  "deepseek/",
  "anthropic/",
  "openai/",
  "x-ai/",
  "google/gemini-2",
  "google/gemma-4",
  "qwen/qwen3",
  "tencent/hy3-preview",
  "xiaomi/",
];

const RULES: readonly Rule[] = [
  {
    when: at("api.openai.com", "openai.azure.com", "api.githubcopilot.com"),
    profile: { maxTokensField: "max_completion_tokens" },
  },
  { when: ({ baseUrl }) => isOpenAiNative(baseUrl), profile: { reasoningStyle: "openai" } },
  {
    when: ({ baseUrl, slug }) => isOpenAiNative(baseUrl) && /gpt-5|codex/.test(slug),
    profile: { developerRole: true },
  },
  { when: ({ baseUrl }) => isLocalEndpoint(baseUrl), profile: { reasoningStyle: "ollama" } },
  { when: at("ollama.com"), profile: { reasoningStyle: "ollama" } },
  {
    when: (to) => aggregator(to) && REASONING_PREFIXES.some((prefix) => to.model.toLowerCase().startsWith(prefix)),
    profile: { reasoningStyle: "openrouter" },
  },
  {
    when: (to) => (to.provider === "deepseek" || at("deepseek.com")(to)) && /v4|reasoner/.test(to.slug),
    profile: { reasoningStyle: "deepseek" },
  },
  {
    when: (to) => isKimi(to.provider, to.host),
    profile: { reasoningStyle: "kimi", defaultMaxTokens: 32_000 },
  },
  {
    when: (to) => to.provider === "nvidia" || at("integrate.api.nvidia.com")(to),
    profile: { defaultMaxTokens: 16_384 },
  },
  { when: (to) => needsReasoningEcho(to.provider, to.model, to.baseUrl), profile: { echoReasoning: true } },

  // Who gets cache markers, and in which layout.
  {
    when: (to) => chatWire(to) && aggregator(to) && /claude|kimi|moonshot/.test(to.model.toLowerCase()),
    profile: { cacheLayout: "envelope" },
  },
  {
    when: (to) => chatWire(to) && at("nousresearch.com")(to) && /qwen/.test(to.model.toLowerCase()),
    profile: { cacheLayout: "envelope" },
  },
  {
    when: (to) =>
      to.apiMode !== "codex_responses" &&
      /^(opencode|opencode-zen|opencode-go|alibaba)$/.test(to.provider) &&
      /qwen/.test(to.model.toLowerCase()),
    profile: { cacheLayout: "envelope" },
  },
  {
    when: (to) =>
      anthropicWire(to) &&
      (to.provider === "anthropic" ||
        /^minimax(-cn)?$/.test(to.provider) ||
        at("api.anthropic.com", "api.minimax.io", "api.minimaxi.com")(to) ||
        /claude/.test(to.model.toLowerCase())),
    profile: { cacheLayout: "native" },
  },

  // What happens to thinking blocks that go back.
  {
    when: (to) => to.provider === "anthropic" || at("api.anthropic.com", "nousresearch.com")(to),
    profile: { thinkingReplay: "native" },
  },
  { when: (to) => isKimi(to.provider, to.host), profile: { thinkingReplay: "keep" } },
  {
    when: (to) => at("deepseek.com")(to) && pathOf(to.baseUrl).endsWith("/anthropic"),
    profile: { thinkingReplay: "unsigned-only" },
  },
];

/** The profile of a destination; `compat` is the user's word and wins. */
export function profileFor(to: Destination, compat: Partial<ProviderProfile> = {}): ProviderProfile {
  const slug = to.model.slice(to.model.lastIndexOf("/") + 1).toLowerCase();
  const hosted: HostedModel = { ...to, host: hostOf(to.baseUrl), slug };
  const rules = RULES.filter((rule) => rule.when(hosted)).map((rule) => rule.profile);
  return Object.assign({}, PLAIN, ...rules, compat);
}

/** These servers want `reasoning_content` back on every assistant message; all others answer 400 to it. */
function needsReasoningEcho(provider: string, model: string, baseUrl: string): boolean {
  const host = hostOf(baseUrl);
  const name = model.toLowerCase();
  if (isKimi(provider, host)) return true;
  if (provider === "deepseek" || name.includes("deepseek") || host === "api.deepseek.com") return true;
  return provider === "xiaomi" || name.includes("mimo") || hostBelongs(host, "xiaomimimo.com");
}

function isKimi(provider: string, host: string): boolean {
  if (provider === "kimi-coding" || provider === "kimi-coding-cn" || host === "api.kimi.com") return true;
  return hostBelongs(host, "moonshot.ai") || hostBelongs(host, "moonshot.cn");
}
