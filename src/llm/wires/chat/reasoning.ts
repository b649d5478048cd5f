// How each family of chat hosts is asked to think, and who wants its thinking sent back.
import type { ModelRequest } from "../../wire.ts";
import { isHost } from "../hosts.ts";
import type { Json } from "../json.ts";

const ROUTED_REASONERS = [
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

/** The body fields that carry the wish to think; none when the caller has no wish. */
export function reasoningFields({ target, reasoning }: ModelRequest): Json {
  if (reasoning === undefined) return {};
  const model = target.model.toLowerCase();
  const enabled = reasoning.enabled && reasoning.effort !== "none";
  const effort = reasoning.effort ?? "medium";
  switch (target.profile.reasoningStyle) {
    case "none":
      return {};
    case "openrouter":
      if (!ROUTED_REASONERS.some((prefix) => model.startsWith(prefix))) return {};
      return { reasoning: enabled ? { enabled: true, effort } : { enabled: false } };
    case "kimi":
      if (!enabled) return { thinking: { type: "disabled" } };
      return { reasoning_effort: kimiEffort(effort), thinking: { type: "enabled" } };
    case "deepseek":
      if (!/deepseek-(v[4-9]|reasoner)|(^|\/)v[4-9]/.test(model)) return {};
      if (!enabled) return { thinking: { type: "disabled" } };
      return { thinking: { type: "enabled" }, reasoning_effort: effort === "xhigh" ? "max" : effort };
    case "ollama":
      return enabled ? {} : { think: false };
    case "openai":
      // Models from before the reasoning series answer 400 to the field.
      return enabled && !/(^|\/)(gpt-[34]|chatgpt)/.test(model) ? { reasoning_effort: effort } : {};
  }
}

function kimiEffort(effort: string): string {
  if (effort === "minimal") return "low";
  return effort === "xhigh" || effort === "max" ? "high" : effort;
}

/** Hosts that refuse an assistant message whose `reasoning_content` does not come back. Everyone else refuses the key. */
export function needsReasoningEcho(provider: string, model: string, baseUrl: string): boolean {
  const id = provider.toLowerCase();
  const name = model.toLowerCase();
  const kimi =
    id === "kimi-coding" || id === "kimi-coding-cn" || isHost(baseUrl, "api.kimi.com", "moonshot.ai", "moonshot.cn");
  const deepseek = id === "deepseek" || name.includes("deepseek") || isHost(baseUrl, "api.deepseek.com");
  const mimo = id === "xiaomi" || name.includes("mimo") || isHost(baseUrl, "xiaomimimo.com");
  return kimi || deepseek || mimo;
}
