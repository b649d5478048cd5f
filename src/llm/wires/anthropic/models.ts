// What is known about Claude models and their relatives by name: how they are called, how much they write, how they think.

/** The name the Messages API knows. Bedrock ids and names of other vendors are left alone. */
export function normalizeAnthropicModelName(model: string, preserveDots = false): string {
  const name = model.trim().replace(/^anthropic\//i, "");
  const isBedrock = /^([a-z-]+\.)?anthropic\./i.test(name);
  if (isBedrock || preserveDots || !/claude/i.test(name)) return name;
  return name.replaceAll(".", "-");
}

const OUTPUT_LIMITS: readonly [part: string, tokens: number][] = [
  ["opus-4-6", 128_000],
  ["opus-4-7", 128_000],
  ["opus-4-8", 128_000],
  ["sonnet-5", 128_000],
  ["fable", 128_000],
  ["sonnet-4-6", 64_000],
  ["opus-4-5", 64_000],
  ["sonnet-4-5", 64_000],
  ["haiku-4-5", 64_000],
  ["sonnet-4", 64_000],
  ["opus-4", 32_000],
  ["3-7-sonnet", 128_000],
  ["claude-3-5", 8_192],
  ["claude-3", 4_096],
  ["minimax", 131_072],
  ["qwen3", 65_536],
];

/** The most a model writes in one answer; the longest matching part of the name decides. */
export function outputLimit(model: string): number {
  const name = model.toLowerCase().replaceAll(".", "-");
  const [best] = OUTPUT_LIMITS.filter(([part]) => name.includes(part)).sort(([a], [b]) => b.length - a.length);
  return best?.[1] ?? 128_000;
}

interface ThinkingStyle {
  /** `adaptive`: the model decides, guided by an effort. `budget`: a number of tokens. */
  readonly kind: "none" | "adaptive" | "budget";
  /** The 4.6 family calls its highest effort `max`. */
  readonly topEffort: "xhigh" | "max";
  /** False: temperature and its kin are refused. */
  readonly sampling: boolean;
}

export function thinkingStyle(model: string): ThinkingStyle {
  const name = model.toLowerCase().replaceAll(".", "-");
  const isClaude = name.includes("claude");
  const version = claudeVersion(name);
  const kind = name.includes("haiku") ? "none" : isAdaptive(name, isClaude, version) ? "adaptive" : "budget";
  return {
    kind,
    topEffort: version === 4.06 ? "max" : "xhigh",
    sampling: !isClaude || (version !== null && version < 4.07),
  };
}

function isAdaptive(name: string, isClaude: boolean, version: number | null): boolean {
  if (!isClaude) return name.includes("kimi");
  return version === null || version >= 4.06;
}

/** `claude-opus-4-6` → 4.06; a date is not a version: `claude-sonnet-4-20250514` → 4. Null = no version in the name. */
function claudeVersion(name: string): number | null {
  const match = /claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?!\d)/.exec(name);
  return match ? Number(match[1]) + Number(match[2] ?? 0) / 100 : null;
}
