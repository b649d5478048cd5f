// `providers.<name>.compat`: the user says how a custom server differs from the plain protocol.
import type { ProviderProfile } from "../wire.ts";

const FIELDS: Readonly<Record<keyof ProviderProfile, readonly string[] | "boolean" | "number">> = {
  maxTokensField: ["max_tokens", "max_completion_tokens"],
  defaultMaxTokens: "number",
  developerRole: "boolean",
  reasoningStyle: ["none", "openrouter", "kimi", "deepseek", "ollama", "openai"],
  echoReasoning: "boolean",
  streamUsage: "boolean",
  images: "boolean",
  cacheLayout: ["none", "envelope", "native"],
  supportsPromptCacheKey: "boolean",
  thinkingReplay: ["native", "strip", "keep", "unsigned-only"],
};

/** Accepts `camelCase` and `snake_case` keys; what does not fit is left out and named in a warning. */
export function readCompat(
  provider: string,
  raw: unknown,
): { readonly compat: Partial<ProviderProfile>; readonly warnings: readonly string[] } {
  if (typeof raw !== "object" || raw === null) return { compat: {}, warnings: [] };
  const compat: Record<string, unknown> = {};
  const warnings: string[] = [];
  for (const [key, value] of Object.entries(raw)) {
    const field = key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const rule = FIELDS[field as keyof ProviderProfile]; // undefined for a foreign key, checked next
    if (rule === undefined) {
      warnings.push(
        `providers.${provider}.compat.${key} is unknown and ignored. Known: ${Object.keys(FIELDS).join(", ")}.`,
      );
    } else if (!fits(value, rule)) {
      const legal = typeof rule === "string" ? `a ${rule}` : rule.join(", ");
      warnings.push(`providers.${provider}.compat.${key}: ${JSON.stringify(value)} is ignored. Legal: ${legal}.`);
    } else {
      compat[field] = value;
    }
  }
  return { compat, warnings };
}

function fits(value: unknown, rule: readonly string[] | "boolean" | "number"): boolean {
  if (rule === "number") return typeof value === "number" && value > 0;
  return rule === "boolean" ? typeof value === "boolean" : typeof value === "string" && rule.includes(value);
}
