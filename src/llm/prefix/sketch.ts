// A request remembered by the lengths and hashes of its parts: small enough to be stored with the session, so that the next process can
// still tell whether it goes on where the last one ended.

import type { PromptLayout } from "../wire.ts";
import { type Comparison, continues, EPHEMERAL, openPart, type Prefix, piecesOf, roleOf, sizeOf } from "./compare.ts";
import { quickHash } from "./quick-hash.ts";

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

const MOST_MESSAGES = 400;

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
  if (parts.length <= MOST_MESSAGES) return { older, messages: parts };
  const gone = parts.slice(0, parts.length - MOST_MESSAGES / 2);
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
