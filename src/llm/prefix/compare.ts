// Does a request begin with the one before it? Three things in order: the system text, the tool list, the messages.
import type { PromptLayout, SentBody } from "../wire.ts";

/** The comparable part of a request. */
export type Prefix = Pick<SentBody, "system" | "tools" | "messages">;

export interface Break {
  /** A block of the prompt, `ephemeral`, `system`, `tools`, or `message <index> (<role>)`. */
  readonly owner: string;
  /** Of the first byte that differs, counted over system text, tool list and messages. */
  readonly offset: number;
}

export interface Comparison {
  /** Of system text, tool list and messages together. */
  readonly bytes: number;
  readonly commonBytes: number;
  readonly broke: Break | null;
}

export const EPHEMERAL = "ephemeral";

export function sizeOf({ system, tools, messages }: Prefix): number {
  return messages.reduce((sum, message) => sum + bytesIn(message), bytesIn(system) + bytesIn(tools));
}

export function comparePrefix(before: Prefix, now: Prefix, blocks: PromptLayout["blocks"] = []): Comparison {
  const bytes = sizeOf(now);
  const broken = (common: number, owner: string): Comparison => ({
    bytes,
    commonBytes: common,
    broke: { owner, offset: common },
  });
  if (before.system !== now.system) {
    const at = commonLength(before.system, now.system);
    return broken(bytesIn(now.system.slice(0, at)), blockAt(blocks, at));
  }
  let common = bytesIn(now.system);
  if (before.tools !== now.tools) return broken(common + commonBytes(before.tools, now.tools), "tools");
  common += bytesIn(now.tools);
  for (const [index, message] of before.messages.entries()) {
    const next = now.messages[index];
    if (next === message) {
      common += bytesIn(next);
      continue;
    }
    const same = next === undefined ? 0 : commonBytes(message, next);
    if (next !== undefined && index === before.messages.length - 1 && hasGrown(message, next))
      return { bytes, commonBytes: common + same, broke: null };
    return broken(common + same, `message ${index} (${roleOf(next ?? message)})`);
  }
  return { bytes, commonBytes: common, broke: null };
}

/** Words of a user whose answer was thrown away are joined by those that follow: the message goes on where it ended. */
function hasGrown(before: string, now: string): boolean {
  if (roleOf(before) !== "user" || roleOf(now) !== "user") return false;
  return now.startsWith(before.replace(/["\]}]+$/, ""));
}

function blockAt(blocks: PromptLayout["blocks"], at: number): string {
  let end = 0;
  for (const { id, length } of blocks) {
    end += length;
    if (at < end) return id;
  }
  return blocks.length > 0 ? EPHEMERAL : "system";
}

const ITEM_ROLES: Readonly<Record<string, string>> = {
  function_call_output: "tool",
  function_call: "assistant",
  reasoning: "assistant",
};

function roleOf(message: string): string {
  const [, key, word = ""] = /^\{"(role|type)":"(\w+)"/.exec(message) ?? [];
  return key === "role" ? word : (ITEM_ROLES[word] ?? "assistant");
}

function commonBytes(a: string, b: string): number {
  return bytesIn(b.slice(0, commonLength(a, b)));
}

/** In UTF-16 units, never in the middle of a pair. */
function commonLength(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  let at = 0;
  while (at < end && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  const last = at > 0 ? b.charCodeAt(at - 1) : 0;
  return last >= 0xd800 && last <= 0xdbff ? at - 1 : at;
}

const bytesIn = (text: string) => Buffer.byteLength(text);
