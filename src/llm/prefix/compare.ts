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
  return bytesIn(system) + bytesIn(tools) + bytesIn(messages);
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
  if (continues(now.messages, before.messages))
    return { bytes, commonBytes: common + bytesIn(before.messages), broke: null };
  common += commonBytes(before.messages, now.messages);
  const at = firstDifferent(before.messages, now.messages);
  return at.grown ? { bytes, commonBytes: common, broke: null } : broken(common, `message ${at.index} (${at.role})`);
}

/** `startsWith` looks at every character; equality compares memory. */
export function continues(now: string, before: string): boolean {
  if (now.length > before.length && before !== "" && now[before.length] !== ",") return false;
  return now.slice(0, before.length) === before;
}

/** Only a break is worth taking the lists apart for. */
function firstDifferent(before: string, now: string): { index: number; role: string; grown: boolean } {
  const [old, next] = [piecesOf(before), piecesOf(now)];
  const index = old.findIndex((piece, at) => piece !== next[at]);
  const [was = "", is] = [old[index], next[index]];
  const grown = is !== undefined && index === old.length - 1 && hasGrown(was, is);
  return { index, role: roleOf(is ?? was), grown };
}

/** The single messages of a text in which they stand one behind the other. */
export function piecesOf(messages: string): readonly string[] {
  return (JSON.parse(`[${messages}]`) as readonly unknown[]).map((entry) => JSON.stringify(entry)); // a list, as the brackets say
}

/** Words of a user whose answer was thrown away are joined by those that follow: the message goes on where it ended. */
function hasGrown(before: string, now: string): boolean {
  if (roleOf(before) !== "user" || roleOf(now) !== "user") return false;
  return now.startsWith(openPart(before));
}

/**
 * A message up to where more may be said in it: behind its text, or behind its last part. What closes it is told by its shape, because
 * quotes and brackets may as well be the last words of the user.
 */
export function openPart(message: string): string {
  return message.slice(0, message.length - closingOf(message).length);
}

function closingOf(message: string): string {
  if (message.endsWith('"}')) return '"}';
  if (!message.endsWith("]}")) return "";
  const inText = message.endsWith('"}]}') && LAST_PART_IS_TEXT.test(message.slice(message.lastIndexOf('{"type":"')));
  return inText ? '"}]}' : "]}";
}

const LAST_PART_IS_TEXT = /^\{"type":"(?:input_)?text","text":"/;

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

/** Of a message or item as JSON; whatever has no role is part of an answer. */
export function roleOf(message: string): string {
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
