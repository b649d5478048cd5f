// How each family of chat hosts is asked to think.

import type { Json } from "../../../kit/moved-json.ts";
import type { ModelRequest } from "../../wire.ts";

/** The body fields that carry the wish to think; none when the caller has no wish. */
export function reasoningFields({ target, reasoning }: ModelRequest): Json {
  if (reasoning === undefined) return {};
  const enabled = reasoning.enabled && reasoning.effort !== "none";
  const effort = reasoning.effort ?? "medium";
  switch (target.profile.reasoningStyle) {
    case "none":
      return {};
    case "openrouter":
      return { reasoning: enabled ? { enabled: true, effort } : { enabled: false } };
    case "kimi":
      if (!enabled) return { thinking: { type: "disabled" } };
      return { reasoning_effort: kimiEffort(effort), thinking: { type: "enabled" } };
    case "deepseek":
      if (!enabled) return { thinking: { type: "disabled" } };
      return { thinking: { type: "enabled" }, reasoning_effort: effort === "xhigh" ? "max" : effort };
    case "ollama":
      return enabled ? {} : { think: false };
    case "openai":
      return enabled && canReason(target.model) ? { reasoning_effort: effort } : {};
  }
}

/** OpenAI's models from before the reasoning series answer 400 to every field about it. */
export function canReason(model: string): boolean {
  return !/(^|\/)(gpt-[34]|chatgpt|gpt-[\d.]+-chat)/i.test(model);
}

function kimiEffort(effort: string): string {
  if (effort === "minimal") return "low";
  return effort === "xhigh" || effort === "max" ? "high" : effort;
}
