// A request remembered by the lengths and hashes of its parts: small enough to be stored with the session, so that the next process can
// still tell whether it goes on where the last one ended.
import type { PromptLayout, SentBody } from "../wire.ts";

/** Length in UTF-16 units, and hash. */
type Part = readonly [length: number, hash: number];

export interface Sketch {
  readonly system: Part;
  /** The named blocks of the system text, in order. */
  readonly blocks: readonly (readonly [id: string, ...Part])[];
  readonly tools: Part;
  /** Messages before those in `messages`, as one piece with the commas between them. */
  readonly older: readonly [count: number, ...Part];
  readonly messages: readonly Part[];
  /** The last message up to where a user may go on, and what closed it. */
  readonly open: readonly [...Part, closing: string];
}

const MAX_MESSAGES = 400;

const partOf = (text: string): Part => [text.length, quickHash(text)];
const isPart = (text: string, [length, hash]: Part) => text.length === length && quickHash(text) === hash;

/** What the request before already held is not looked at again. */
export function sketchOf(prefix: Prefix, blocks: PromptLayout["blocks"], before?: Sketched): Sketch {
  const known = before?.prefix && before.sketch ? { ...before.prefix, sketch: before.sketch } : null;
  const line = known && continues(prefix.messages, known.messages) ? known : null;
  const fresh = piecesOf(line ? prefix.messages.slice(line.messages.length).replace(/^,/, "") : prefix.messages);
  const last = fresh.at(-1);
  const spoken = [...(line?.sketch.messages ?? []), ...fresh.map(partOf)];
  const { system, blocks: named } =
    known?.system === prefix.system
      ? known.sketch
      : { system: partOf(prefix.system), blocks: blockParts(prefix.system, blocks) };
  return {
    system,
    blocks: named,
    tools: known?.tools === prefix.tools ? known.sketch.tools : partOf(prefix.tools),
    ...fold(prefix.messages, line?.sketch.older ?? [0, 0, quickHash("")], spoken),
    open: last === undefined && line ? line.sketch.open : openOf(last ?? ""),
  };
}

function openOf(message: string): Sketch["open"] {
  const open = openPart(message);
  return [...partOf(open), message.slice(open.length)];
}

/** A request of this process as it was, and its sketch; either may be missing. */
interface Sketched {
  readonly prefix: Prefix | null;
  readonly sketch: Sketch | null;
}

/** Long conversations keep a hash per message for the newest ones only. */
function fold(messages: string, older: Sketch["older"], parts: readonly Part[]): Pick<Sketch, "older" | "messages"> {
  if (parts.length <= MAX_MESSAGES) return { older, messages: parts };
  const gone = parts.slice(0, parts.length - MAX_MESSAGES / 2);
  const count = older[0] + gone.length;
  const length = gone.reduce((sum, [size]) => sum + size, older[1]) + (count - Math.max(1, older[0]));
  return { older: [count, ...partOf(messages.slice(0, length))], messages: parts.slice(gone.length) };
}

function blockParts(system: string, blocks: PromptLayout["blocks"]): Sketch["blocks"] {
  let at = 0;
  return blocks.map(({ id, length }) => {
    const text = system.slice(at, at + length);
    at += length;
    return [id, ...partOf(text)];
  });
}

/** As `comparePrefix`, as far as hashes can tell: the offset is where the part that differs begins. */
export function compareSketch(before: Sketch, now: Prefix): Comparison {
  const bytes = sizeOf(now);
  const broken = (text: string, owner: string): Comparison => {
    const commonBytes = Buffer.byteLength(text);
    return { bytes, commonBytes, broke: { owner, offset: commonBytes } };
  };
  if (!isPart(now.system, before.system)) {
    const { at, owner } = blockThatDiffers(before, now.system);
    return broken(now.system.slice(0, at), owner);
  }
  if (!isPart(now.tools, before.tools)) return broken(now.system, "tools");
  const same = now.system + now.tools;
  const [count, ...older] = before.older;
  if (count > 0 && !isPart(now.messages.slice(0, older[0]), older)) return broken(same, `messages 0 to ${count - 1}`);
  let at = older[0];
  for (const [index, part] of before.messages.entries()) {
    const start = at === 0 ? 0 : at + 1;
    const text = now.messages.slice(start, start + part[0]);
    const ends = now.messages[start + part[0]];
    at = start + part[0];
    if (isPart(text, part) && (ends === undefined || ends === ",")) continue;
    const message = now.messages.slice(start);
    const shared = same + now.messages.slice(0, start);
    const kept = index === before.messages.length - 1 ? keptOf(message, before.open) : null;
    if (kept !== null) return { bytes, commonBytes: Buffer.byteLength(shared + kept), broke: null };
    return broken(shared, `message ${count + index} (${message === "" ? "gone" : roleOf(message)})`);
  }
  return { bytes, commonBytes: Buffer.byteLength(same) + Buffer.byteLength(now.messages.slice(0, at)), broke: null };
}

function blockThatDiffers({ blocks }: Sketch, system: string): { at: number; owner: string } {
  let at = 0;
  for (const [id, ...part] of blocks) {
    if (!isPart(system.slice(at, at + part[0]), part)) return { at, owner: id };
    at += part[0];
  }
  return { at, owner: blocks.length > 0 ? EPHEMERAL : "system" };
}

/** What is left of the message that ended the request before, where a user went on in it; null where nobody did. */
function keptOf(message: string, [length, hash, closing]: Sketch["open"]): string | null {
  if (roleOf(message) !== "user" || length === 0 || !isPart(message.slice(0, length), [length, hash])) return null;
  let at = 0;
  while (at < closing.length && message[length + at] === closing[at]) at++;
  return message.slice(0, length + at);
}

// Does a request begin with the one before it? Three things in order: the system text, the tool list, the messages.

/** The comparable part of a request. */
export type Prefix = Pick<SentBody, "system" | "tools" | "messages">;

interface Break {
  /** A block of the prompt, `ephemeral`, `system`, `tools`, or `message <index> (<role>)`. */
  readonly owner: string;
  /** Of the first byte that differs, counted over system text, tool list and messages. */
  readonly offset: number;
}

interface Comparison {
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
function continues(now: string, before: string): boolean {
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
function piecesOf(messages: string): readonly string[] {
  return (JSON.parse(`[${messages}]`) as readonly unknown[]).map((entry) => JSON.stringify(entry)); // a list, as the brackets say
}

/** Words of a user whose answer was thrown away are joined by those that follow: the message goes on where it ended. */
function hasGrown(before: string, now: string): boolean {
  if (roleOf(before) !== "user" || roleOf(now) !== "user") return false;
  return now.startsWith(openPart(before));
}

/**
 * A message up to where more may be said in it: behind its text, or behind its last part. What closes it is known by its shape, because
 * quotes and brackets may as well be the last words of the user.
 */
function openPart(message: string): string {
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

/**
 * A 53-bit number for a text: the same text, the same number, on every machine. For telling whether something changed, not for secrets;
 * unlike the hashes of `node:crypto` and `node:zlib` it loads nothing.
 */
export function quickHash(text: string): number {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    a = Math.imul(a ^ unit, 0x9e3779b1);
    b = Math.imul(b ^ unit, 0x5f356495);
  }
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35);
  b = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
  return (b & 0x1fffff) * 0x1_0000_0000 + (a >>> 0);
}
