// Context windows by family, for models nothing is published about. The longest key contained in the name wins.

/** Names whose window is fixed, whatever a catalogue says. */
const FIXED: Readonly<Record<string, number>> = {
  "gpt-4": 8192,
  "gpt-4-turbo": 128_000,
  "claude-3-opus": 200_000,
  "deepseek-chat": 65_536,
  "gemini-2": 1_048_576,
};

const FAMILIES: Readonly<Record<string, number>> = {
  ...FIXED,
  claude: 200_000,
  "claude-opus-4-6": 1_000_000,
  "claude-sonnet-4-6": 1_000_000,
  "claude-opus-4-7": 1_000_000,
  "claude-opus-4-8": 1_000_000,
  "claude-sonnet-5": 1_000_000,
  "claude-opus-5": 1_000_000,
  "claude-fable": 1_000_000,
  "gpt-5": 400_000,
  "gpt-5.1-chat": 128_000,
  "gpt-5.3-codex-spark": 128_000,
  "gpt-5.4": 1_050_000,
  "gpt-5.5": 1_050_000,
  "gpt-5.6": 1_050_000,
  "gpt-5.4-mini": 400_000,
  "gpt-5.4-nano": 400_000,
  "gpt-4o": 128_000,
  "gpt-4.1": 1_047_576,
  gemini: 1_048_576,
  "gemma-4": 256_000,
  "gemma-3": 131_072,
  gemma: 8192,
  "deepseek-v4": 1_000_000,
  deepseek: 128_000,
  llama: 131_072,
  qwen: 131_072,
  "qwen3-coder": 262_144,
  "qwen3-coder-plus": 1_000_000,
  "qwen3.6-plus": 1_048_576,
  "qwen3.7-plus": 1_048_576,
  kimi: 262_144,
  "kimi-k3": 1_048_576,
  glm: 202_752,
  "glm-5.2": 1_048_576,
  minimax: 204_800,
  "minimax-m3": 1_000_000,
  grok: 131_072,
  "grok-4": 256_000,
  "grok-4.5": 500_000,
  "grok-4.3": 1_000_000,
  "grok-4-fast": 2_000_000,
  "grok-4.20": 2_000_000,
  "grok-code-fast": 256_000,
  "mimo-v2.5": 1_048_576,
  nemotron: 131_072,
  hy3: 262_144,
};

export const UNKNOWN_WINDOW = 256_000;

const byLength = Object.entries(FAMILIES).sort(([a], [b]) => b.length - a.length);

export function fixedWindow(model: string): number | null {
  return FIXED[bareName(model)] ?? null;
}

/** The window of the model's family; null when no family matches. */
export function familyWindow(model: string): number | null {
  const name = bareName(model);
  const hyphened = name.replaceAll(".", "-");
  // Claude versions are written with dots and with hyphens; other families mean different models by them.
  const hit = byLength.find(([key]) => name.includes(key) || (key.startsWith("claude") && hyphened.includes(key)));
  return hit?.[1] ?? null;
}

function bareName(model: string): string {
  const name = model.trim().toLowerCase();
  return name.slice(name.lastIndexOf("/") + 1);
}
