import { createHash } from "node:crypto";
import { type Message, textOf } from "../messages.ts";
import type { ToolDefinition } from "../wire.ts";

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
