// The steps every wire takes before it renders: images a host cannot see become text, cache markers are laid.

import { createHash } from "node:crypto";
import type { Json } from "../../kit/json.ts";
import { contentToSend, type OutgoingMessage, type OutgoingPart, type OutgoingTool } from "../cache-control.ts";
import { planCache } from "../cache-plan.ts";
import { type Message, textOf } from "../messages.ts";
import { isHost } from "../providers/hosts.ts";
import type { ModelRequest, ToolDefinition } from "../wire.ts";

const IMAGE_REMOVED = "[image content removed — server does not support images]";

interface Prepared {
  readonly messages: readonly OutgoingMessage[];
  readonly tools: readonly OutgoingTool[];
}

export function prepare({ target, messages, tools, cacheTtl = "5m", promptLayout }: ModelRequest): Prepared {
  const { images, cacheLayout } = target.profile;
  const seen = images ? messages : messages.map(withoutImages);
  const stable = promptLayout?.stable ?? "";
  const planned = planCache({ messages: seen, tools, target, ttl: cacheTtl, stable });
  return {
    tools: planned.tools,
    messages: cacheLayout === "envelope" ? planned.messages.map(withParts) : planned.messages,
  };
}

/** Text as a part in every message: a marker that moves on then takes only a key with it and leaves the shape as it was. */
function withParts(message: OutgoingMessage): OutgoingMessage {
  const content = partsOf(message);
  if (content.length === 0) return message;
  if (message.role === "system" || message.role === "assistant") return { ...message, content };
  const { api_content: _, ...rest } = message;
  return { ...rest, content };
}

/** The content as parts, blank texts left out. */
export function partsOf(message: OutgoingMessage): readonly OutgoingPart[] {
  const content = contentToSend(message);
  const parts: readonly OutgoingPart[] =
    typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  return parts.filter((part) => part.type !== "text" || part.text.trim() !== "");
}

function withoutImages(message: Message): Message {
  if (message.role === "assistant" || typeof message.content === "string") return message;
  if (!message.content.some((part) => part.type === "image_url")) return message;
  const content = message.content.map((part) =>
    part.type === "image_url" ? ({ type: "text", text: IMAGE_REMOVED } as const) : part,
  );
  return { ...message, content };
}

/** Header names in one case, so that a target's own header replaces ours instead of standing next to it. */
export function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Content-addressed, so that recurring jobs with the same prompt and tools share one cache. */
export function promptCacheKey(messages: readonly Message[], tools: readonly ToolDefinition[]): string {
  const system = messages.find((message) => message.role === "system");
  const schemas = tools.map((tool) => JSON.stringify(tool.function)).sort();
  return hashedKey([textOf(system?.content ?? ""), ...schemas].join("\n"));
}

/** A key given by the user, shortened the same way when it is over the limit of 64 characters. */
export function boundedCacheKey(key: string): string {
  return key.length > 64 ? hashedKey(key) : key;
}

function hashedKey(text: string): string {
  return `pck_${createHash("sha256").update(text).digest("hex").slice(0, 24)}`;
}

/** Others refuse what they do not know in words of their own, or take it and do not keep to it. */
export function answerFormat({ target, answerSchema }: ModelRequest): Json | null {
  if (!answerSchema || !isHost(target.baseUrl, "api.openai.com", "chatgpt.com")) return null;
  return { name: "answer", strict: true, schema: answerSchema };
}

/** OpenAI sells a quicker answer, which its apps call fast; other hosts know other words for it, or none. */
export function tierFields({ target, serviceTier = "" }: ModelRequest): Json {
  if (serviceTier === "" || !isHost(target.baseUrl, "api.openai.com", "chatgpt.com")) return {};
  return { service_tier: serviceTier === "fast" ? "priority" : serviceTier };
}

// How each family of chat hosts is asked to think.

/** The body fields that ask the model to think; none when the caller does not. */
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
