import { ProviderError } from "./provider-error.ts";
import { providerRow } from "./table.ts";

const ALIASES: Readonly<Record<string, readonly string[]>> = {
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

/** The canonical id of a built-in provider. Throws `ProviderError` (`invalid_provider`) for a name nobody has. */
export function resolveProviderAlias(name: string): string {
  const wanted = name.trim().toLowerCase();
  const id = providerRow(wanted)?.id ?? byAlias.get(wanted);
  if (id) return id;
  throw new ProviderError(
    "invalid_provider",
    `Unknown provider "${name.trim()}". Run \`hermes model\` to choose one, or define it under \`providers:\` in config.yaml.`,
  );
}

/** Which of our own servers an alias of `custom` means, as a key of `LOCAL_SERVERS`. */
export function localServerName(name: string): string | null {
  const wanted = name.trim().toLowerCase();
  if (wanted === "llama.cpp" || wanted === "llama-cpp") return "llamacpp";
  return byAlias.get(wanted) === "custom" ? wanted : null;
}

export function aliasesOf(id: string): readonly string[] {
  return ALIASES[id] ?? [];
}
