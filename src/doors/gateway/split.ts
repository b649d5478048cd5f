// A long message in parts that each stand for themselves: code stays code, nothing is lost, and no part is longer than its platform takes.

/** Room for ` (10/12)` behind each part. */
const COUNTER = 10;

interface SplitOptions {
  readonly max: number;
  /** How the platform counts: UTF-16 units, code points or bytes. */
  readonly length?: (text: string) => number;
  /** What a part becomes before it is sent; the limit holds for that. */
  readonly format?: (part: string) => string;
}

/** Every part, formatted, fits. A limit that leaves no room for anything still gives parts, of a character each at worst. */
export function splitMessage(text: string, { max, length = utf16, format = (part) => part }: SplitOptions): string[] {
  if (length(format(text)) <= max) return [text];
  // Formatting makes a text longer by what has to be escaped in it, so the limit of the source is found by trying.
  for (let limit = max; ; ) {
    const parts = numbered(cutIntoParts(text, limit, length));
    const longest = Math.max(...parts.map((part) => length(format(part))));
    if (longest <= max || limit <= COUNTER * 2) return parts;
    limit = Math.max(COUNTER * 2, Math.min(limit - 1, Math.floor((limit * max) / longest)));
  }
}

export const utf16 = (text: string) => text.length;
export const codePoints = (text: string) => [...text].length;
export const utf8Bytes = (text: string) => Buffer.byteLength(text);

interface Fence {
  readonly marks: string;
  readonly language: string;
}

function cutIntoParts(text: string, max: number, length: (text: string) => number): string[] {
  const parts: string[] = [];
  let fence: Fence | null = null;
  for (let rest = text; rest !== ""; ) {
    const prefix: string = fence ? `${fence.marks}${fence.language}\n` : "";
    if (length(prefix) + length(rest) <= max - COUNTER) {
      parts.push(prefix + rest);
      break;
    }
    const room = max - COUNTER - length(prefix) - ((fence?.marks.length ?? 3) + 1);
    const budget = room < 1 ? Math.max(1, Math.floor(max / 2)) : room;
    const body = rest.slice(0, cutWithin(rest, budget, length));
    fence = fenceAtEnd(body, fence);
    parts.push(prefix + (fence ? `${body}\n${fence.marks}` : body));
    rest = afterCut(rest.slice(body.length), fence !== null);
    // A block that ends right here is closed already: no empty one begins the next part.
    const end: string | undefined = fence ? /^ {0,3}(?:`{3,}|~{3,})[ \t]*(?:\n|$)/.exec(rest)?.[0] : undefined;
    if (!fence || !end?.trim().startsWith(fence.marks)) continue;
    fence = null;
    rest = afterCut(rest.slice(end.length), false);
  }
  return parts;
}

/** Where to cut, by what is lost least: behind a line, behind a word, in a word; not inside inline code if that can be helped. */
function cutWithin(text: string, budget: number, length: (text: string) => number): number {
  const region = startOf(text, budget, length);
  const newline = region.lastIndexOf("\n");
  const space = region.lastIndexOf(" ");
  const cut = newline >= region.length / 2 ? newline : space > 0 ? space : region.length;
  const before = text.slice(0, cut);
  const ticks = [...before.matchAll(/(?<!\\)`/g)];
  const last = ticks.at(-1)?.index ?? 0;
  if (ticks.length % 2 === 0) return cut;
  const outside = Math.max(text.lastIndexOf(" ", last - 1), text.lastIndexOf("\n", last - 1));
  return last > 0 && outside > region.length / 4 ? outside : cut;
}

/** The longest beginning within the budget that cuts no character in two; at least one character. */
function startOf(text: string, budget: number, length: (text: string) => number): string {
  let low = 1;
  let high = Math.min(text.length, budget);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (length(text.slice(0, middle)) <= budget) low = middle;
    else high = middle - 1;
  }
  const splitsPair = /[\ud800-\udbff]/.test(text.charAt(low - 1)) && /[\udc00-\udfff]/.test(text.charAt(low));
  return text.slice(0, splitsPair ? Math.max(low - 1, low === 1 ? 2 : 1) : low);
}

/** In code one line end goes with the cut and the indentation stays; in prose all blanks go. */
function afterCut(rest: string, inCode: boolean): string {
  return inCode ? rest.replace(/^\r?\n/, "") : rest.trimStart();
}

function fenceAtEnd(body: string, open: Fence | null): Fence | null {
  let fence = open;
  for (const line of body.split("\n")) {
    const found = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)/.exec(line);
    if (!found) continue;
    const [, marks = "", language = ""] = found;
    if (fence === null) fence = { marks, language };
    else if (marks.startsWith(fence.marks) && line.trim() === marks) fence = null;
  }
  return fence;
}

function numbered(parts: readonly string[]): string[] {
  if (parts.length < 2) return [...parts];
  return parts.map((part, index) => {
    const afterFence = /(?:^|\n) {0,3}(?:`{3,}|~{3,})$/.test(part);
    return `${part}${afterFence ? "\n" : " "}(${index + 1}/${parts.length})`;
  });
}
