// The built-in providers, as data. A new OpenAI-compatible provider is one more row (and, if it differs, one profile).
import { hermesCommand } from "../../home/paths.ts";
import type { ApiMode } from "../wire.ts";
import { ProviderError } from "./settings.ts";

export interface ProviderRow {
  readonly id: string;
  /** For people. */
  readonly name: string;
  /** Where its key may stand, in order of preference. */
  readonly keyEnv: readonly string[];
  /** Empty = the user gives it. */
  readonly baseUrl: string;
  /** A variable that replaces `baseUrl`. */
  readonly baseUrlEnv?: string;
  /** `by_url` and `by_model`: this row alone does not say. */
  readonly mode: ApiMode | "by_url" | "by_model";
  readonly auth: "api_key" | "optional_key" | "oauth" | "none";
  /** Its key is sent to these hosts and their subdomains, nowhere else. */
  readonly hosts: readonly string[];
  /** May be chosen only because its key is there. */
  readonly auto: boolean;
  /** The base URL variable does not widen `hosts`: these keys are the ones most often lying around. */
  readonly strictHosts?: true;
  /** Paid by plan, not by token. */
  readonly subscription?: true;
  /** The host also speaks the Anthropic protocol below a path ending in `/anthropic`. */
  readonly anthropicPath?: true;
}

const chat = (
  id: string,
  name: string,
  keyEnv: readonly string[],
  baseUrl: string,
  hosts: readonly string[],
  more: Partial<ProviderRow> = {},
): ProviderRow => ({
  id,
  name,
  keyEnv,
  baseUrl,
  mode: "chat_completions",
  auth: "api_key",
  hosts,
  auto: true,
  ...more,
});

export const PROVIDERS: readonly ProviderRow[] = [
  chat("openrouter", "OpenRouter", ["OPENROUTER_API_KEY"], "https://openrouter.ai/api/v1", ["openrouter.ai"], {
    baseUrlEnv: "OPENROUTER_BASE_URL",
    strictHosts: true,
  }),
  chat("nous", "Nous Portal", [], "https://inference-api.nousresearch.com/v1", ["nousresearch.com"], {
    auth: "oauth",
    auto: false,
  }),
  chat(
    "anthropic",
    "Anthropic",
    ["ANTHROPIC_API_KEY", "ANTHROPIC_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    "https://api.anthropic.com",
    ["anthropic.com"],
    { mode: "anthropic_messages", strictHosts: true },
  ),
  chat("openai-api", "OpenAI", ["OPENAI_API_KEY"], "https://api.openai.com/v1", ["openai.com", "openai.azure.com"], {
    mode: "codex_responses",
    baseUrlEnv: "OPENAI_BASE_URL",
    strictHosts: true,
  }),
  chat("openai-codex", "OpenAI Codex (ChatGPT plan)", [], "https://chatgpt.com/backend-api/codex", ["chatgpt.com"], {
    mode: "codex_responses",
    auth: "oauth",
    auto: false,
    subscription: true,
  }),
  chat(
    "gemini",
    "Google Gemini",
    ["GOOGLE_API_KEY", "GEMINI_API_KEY"],
    "https://generativelanguage.googleapis.com/v1beta/openai",
    ["generativelanguage.googleapis.com"],
  ),
  chat("xai", "xAI", ["XAI_API_KEY"], "https://api.x.ai/v1", ["x.ai"], { mode: "codex_responses" }),
  chat("deepseek", "DeepSeek", ["DEEPSEEK_API_KEY"], "https://api.deepseek.com/v1", ["deepseek.com"], {
    baseUrlEnv: "DEEPSEEK_BASE_URL",
    anthropicPath: true,
  }),
  chat(
    "zai",
    "Z.AI (GLM)",
    ["GLM_API_KEY", "ZAI_API_KEY", "Z_AI_API_KEY"],
    "https://api.z.ai/api/paas/v4",
    ["z.ai", "bigmodel.cn"],
    { baseUrlEnv: "GLM_BASE_URL", anthropicPath: true },
  ),
  chat(
    "kimi-coding",
    "Kimi (Moonshot)",
    ["KIMI_API_KEY", "KIMI_CODING_API_KEY"],
    "https://api.moonshot.ai/v1",
    ["moonshot.ai", "kimi.com"],
    { baseUrlEnv: "KIMI_BASE_URL", anthropicPath: true },
  ),
  chat("kimi-coding-cn", "Kimi (Moonshot, China)", ["KIMI_CN_API_KEY"], "https://api.moonshot.cn/v1", ["moonshot.cn"], {
    anthropicPath: true,
  }),
  chat("minimax", "MiniMax", ["MINIMAX_API_KEY"], "https://api.minimax.io/anthropic", ["minimax.io"], {
    mode: "anthropic_messages",
  }),
  chat(
    "minimax-cn",
    "MiniMax (China)",
    ["MINIMAX_CN_API_KEY"],
    "https://api.minimaxi.com/anthropic",
    ["minimaxi.com"],
    {
      mode: "anthropic_messages",
    },
  ),
  chat(
    "alibaba",
    "Alibaba Cloud (Qwen)",
    ["DASHSCOPE_API_KEY"],
    "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    ["aliyuncs.com"],
    { baseUrlEnv: "DASHSCOPE_BASE_URL", anthropicPath: true },
  ),
  chat(
    "copilot",
    "GitHub Copilot",
    ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
    "https://api.githubcopilot.com",
    ["githubcopilot.com"],
    { auto: false, subscription: true },
  ),
  chat("nvidia", "NVIDIA NIM", ["NVIDIA_API_KEY"], "https://integrate.api.nvidia.com/v1", ["nvidia.com"]),
  chat("huggingface", "Hugging Face", ["HF_TOKEN"], "https://router.huggingface.co/v1", ["huggingface.co"], {
    baseUrlEnv: "HF_BASE_URL",
  }),
  chat("opencode-zen", "OpenCode Zen", ["OPENCODE_ZEN_API_KEY"], "https://opencode.ai/zen/v1", ["opencode.ai"], {
    mode: "by_model",
  }),
  chat("opencode-go", "OpenCode Go", ["OPENCODE_GO_API_KEY"], "https://opencode.ai/zen/go/v1", ["opencode.ai"], {
    mode: "by_model",
  }),
  chat("kilocode", "Kilo Code", ["KILOCODE_API_KEY"], "https://api.kilo.ai/api/gateway", ["kilo.ai"]),
  chat("xiaomi", "Xiaomi MiMo", ["XIAOMI_API_KEY"], "https://api.xiaomimimo.com/v1", ["xiaomimimo.com"]),
  chat("stepfun", "StepFun", ["STEPFUN_API_KEY"], "https://api.stepfun.ai/step_plan/v1", ["stepfun.ai"]),
  chat("arcee", "Arcee AI", ["ARCEEAI_API_KEY"], "https://api.arcee.ai/api/v1", ["arcee.ai"]),
  chat("gmi", "GMI Cloud", ["GMI_API_KEY"], "https://api.gmi-serving.com/v1", ["gmi-serving.com"]),
  chat("tencent-tokenhub", "Tencent TokenHub", ["TOKENHUB_API_KEY"], "https://tokenhub.tencentmaas.com/v1", [
    "tencentmaas.com",
  ]),
  chat("ollama-cloud", "Ollama Cloud", ["OLLAMA_API_KEY"], "https://ollama.com/v1", ["ollama.com"], {
    strictHosts: true,
  }),
  chat("lmstudio", "LM Studio", ["LM_API_KEY"], "http://127.0.0.1:1234/v1", ["127.0.0.1", "localhost"], {
    baseUrlEnv: "LM_BASE_URL",
    auth: "optional_key",
    auto: false,
  }),
  chat("azure-foundry", "Azure AI Foundry", ["AZURE_FOUNDRY_API_KEY"], "", ["azure.com"], {
    baseUrlEnv: "AZURE_FOUNDRY_BASE_URL",
    mode: "by_url",
  }),
  chat("bedrock", "Amazon Bedrock", ["AWS_BEARER_TOKEN_BEDROCK"], "", ["amazonaws.com"], { auto: false }),
  chat("custom", "Custom endpoint", [], "", [], { mode: "by_url", auth: "none", auto: false }),
  chat("demo", "Demo (not an AI, no network)", [], "demo:/v1", [], { auth: "none", auto: false }),
];

const byId = new Map(PROVIDERS.map((row) => [row.id, row]));

export function providerRow(id: string): ProviderRow | undefined {
  return byId.get(id);
}

/** Servers people run themselves: a name without a URL means the server's usual port on this machine. */
export const LOCAL_SERVERS: Readonly<Record<string, string>> = {
  ollama: "http://127.0.0.1:11434/v1",
  vllm: "http://127.0.0.1:8000/v1",
  llamacpp: "http://127.0.0.1:8080/v1",
};

/** Sent where the protocol wants some key and the server wants none. */
export const NO_KEY = "no-key-required";
export const LMSTUDIO_KEY = "dummy-lm-api-key";

export const ALIASES: Readonly<Record<string, readonly string[]>> = {
  anthropic: ["claude", "claude-code"],
  "openai-api": ["openai"],
  gemini: ["google", "google-gemini", "google-ai-studio"],
  xai: ["grok", "x-ai", "x.ai"],
  zai: ["glm", "z-ai", "z.ai", "zhipu"],
  "kimi-coding": ["kimi", "moonshot", "kimi-for-coding"],
  "kimi-coding-cn": ["kimi-cn", "moonshot-cn"],
  "minimax-cn": ["minimax-china", "minimax_cn"],
  alibaba: ["dashscope", "qwen", "aliyun"],
  huggingface: ["hf"],
  copilot: ["github", "github-copilot", "github-models"],
  "opencode-zen": ["zen", "opencode"],
  "opencode-go": ["go"],
  kilocode: ["kilo"],
  xiaomi: ["mimo"],
  stepfun: ["step"],
  arcee: ["arcee-ai"],
  "tencent-tokenhub": ["tencent", "tokenhub"],
  bedrock: ["aws", "amazon"],
  lmstudio: ["lm-studio"],
  openrouter: ["or"],
  nvidia: ["nim"],
  custom: ["ollama", "vllm", "llamacpp", "llama.cpp", "llama-cpp"],
};

const byAlias = new Map(Object.entries(ALIASES).flatMap(([id, names]) => names.map((name) => [name, id] as const)));

/** The canonical id of a built-in provider. Throws `ProviderError` (`invalid_provider`) for an unknown name. */
export function resolveProviderAlias(name: string): string {
  const wanted = name.trim().toLowerCase();
  const id = providerRow(wanted)?.id ?? byAlias.get(wanted);
  if (id) return id;
  throw new ProviderError(
    "invalid_provider",
    `Unknown provider "${name.trim()}". Run \`${hermesCommand("model")}\` to choose one, or define it under \`providers:\` in config.yaml.`,
  );
}

/** Which of our own servers an alias of `custom` means, as a key of `LOCAL_SERVERS`. */
export function localServerName(name: string): string | null {
  const wanted = name.trim().toLowerCase();
  if (wanted === "llama.cpp" || wanted === "llama-cpp") return "llamacpp";
  return byAlias.get(wanted) === "custom" ? wanted : null;
}
