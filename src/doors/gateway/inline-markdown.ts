// The marks inside of a line of Markdown as a tree, for platforms that want something else than Markdown, and the borders of code. Each
// character is looked at once, whatever is in the text.

export type Inline =
  | { readonly type: "text" | "code"; readonly text: string }
  | { readonly type: "strong" | "emphasis" | "strike" | "spoiler"; readonly children: readonly Inline[] }
  | { readonly type: "link"; readonly url: string; readonly children: readonly Inline[] }
  | { readonly type: "image"; readonly url: string; readonly alt: string };

/** A mark that may still be closed, and what stands behind it so far. */
interface Frame {
  readonly sign: string;
  left: number;
  readonly children: Inline[];
}

const ESCAPABLE = /[!-/:-@[-`{-~]/;
const PUNCTUATION = /[\p{P}\p{S}]/u;

export function parseInline(text: string): readonly Inline[] {
  const frames: Frame[] = [{ sign: "", left: 0, children: [] }];
  const open = new Map<string, number>();
  const top = () => frames[frames.length - 1] as Frame; // the first frame is never taken away
  let plain = "";
  const add = (node: Inline) => {
    flush();
    top().children.push(node);
  };
  const flush = () => {
    if (plain !== "") top().children.push({ type: "text", text: plain });
    plain = "";
  };

  for (let at = 0; at < text.length; ) {
    const char = text.charAt(at);
    if (char === "\\" && ESCAPABLE.test(text.charAt(at + 1))) {
      plain += text.charAt(at + 1);
      at += 2;
      continue;
    }
    const special =
      char === "`" ? codeAt(text, at) : char === "[" || char === "!" || char === "<" ? linkAt(text, at) : null;
    if (special) {
      add(special.node);
      at = special.end;
      continue;
    }
    const ticks = char === "`" ? runAt(text, at) : 0;
    const run = "*_~|".includes(char) ? runAt(text, at) : 0;
    const isPair = char === "~" || char === "|";
    if (run === 0 || (isPair && run !== 2)) {
      const length = Math.max(1, run, ticks);
      plain += text.slice(at, at + length);
      at += length;
      continue;
    }
    const { opens, closes } = flanks(text, at, run);
    let left = run;
    while (closes && left > 0 && (open.get(char) ?? 0) > 0) left -= close(char, left);
    flush();
    if (left > 0 && opens) {
      frames.push({ sign: char, left, children: [] });
      open.set(char, (open.get(char) ?? 0) + 1);
    } else plain += char.repeat(left);
    at += run;
  }
  flush();
  flatten(0);
  return joined(top().children);

  /** Closes the innermost open mark of this sign by at most this many characters; those above it were only characters. */
  function close(sign: string, count: number): number {
    flush();
    const index = frames.findLastIndex((frame) => frame.sign === sign);
    flatten(index);
    const frame = frames[index] as Frame; // counted in `open`
    const used = Math.min(2, frame.left, count);
    const children = joined(frame.children.splice(0));
    const type = sign === "~" ? "strike" : sign === "|" ? "spoiler" : used === 2 ? "strong" : "emphasis";
    frame.left -= used;
    if (frame.left === 0) {
      frames.pop();
      open.set(sign, (open.get(sign) ?? 1) - 1);
    }
    top().children.push({ type, children });
    return used;
  }

  /** Frames above this one were never closed: their marks are text. */
  function flatten(index: number): void {
    const kept = frames[index] as Frame; // an index of the list
    for (const frame of frames.splice(index + 1)) {
      kept.children.push({ type: "text", text: frame.sign.repeat(frame.left) }, ...frame.children);
      open.set(frame.sign, (open.get(frame.sign) ?? 1) - 1);
    }
  }
}

/** What is read on the screen of a client that shows no marks. */
export function plainText(nodes: readonly Inline[]): string {
  return nodes
    .map((node) => ("children" in node ? plainText(node.children) : node.type === "image" ? node.alt : node.text))
    .join("");
}

function joined(nodes: readonly Inline[]): Inline[] {
  const result: Inline[] = [];
  for (const node of nodes) {
    const last = result.at(-1);
    if (node.type === "text" && last?.type === "text")
      result[result.length - 1] = { type: "text", text: last.text + node.text };
    else result.push(node);
  }
  return result;
}

function runAt(text: string, at: number): number {
  let end = at;
  while (text.charAt(end) === text.charAt(at) && end < text.length) end++;
  return end - at;
}

/** Whether a run of signs can begin and end something, by what is around it: `2 * 3 * 4` and `some_name_here` mark nothing. */
function flanks(text: string, at: number, run: number): { readonly opens: boolean; readonly closes: boolean } {
  const before = [...text.slice(Math.max(0, at - 2), at)].at(-1) ?? " ";
  const [after = " "] = text.slice(at + run, at + run + 2);
  const [blankBefore, blankAfter] = [/\s/.test(before), /\s/.test(after)];
  const [signBefore, signAfter] = [PUNCTUATION.test(before), PUNCTUATION.test(after)];
  const left = !blankAfter && (!signAfter || blankBefore || signBefore);
  const right = !blankBefore && (!signBefore || blankAfter || signAfter);
  if (text.charAt(at) !== "_") return { opens: left, closes: right };
  return { opens: left && (!right || signBefore), closes: right && (!left || signAfter) };
}

interface Found {
  readonly node: Inline;
  readonly end: number;
}

function codeAt(text: string, at: number): Found | null {
  const run = runAt(text, at);
  for (let end = text.indexOf("`", at + run); end !== -1; ) {
    const closing = runAt(text, end);
    if (closing === run) {
      const inside = text.slice(at + run, end).replaceAll("\n", " ");
      const isPadded = /^ .* $/.test(inside) && inside.trim() !== "";
      return { node: { type: "code", text: isPadded ? inside.slice(1, -1) : inside }, end: end + run };
    }
    end = text.indexOf("`", end + closing);
  }
  return null;
}

const MAX_LINK = 2048;
/** `[text](url "title")`; brackets in the text and parentheses in the address may be nested once. */
const LINK =
  /^(!?)\[((?:[^[\]\\\n]|\\[^\n]|\[[^[\]\n]{0,500}\]){0,1000})\]\(\s{0,5}(<[^<>\n]{0,2000}>|(?:[^\s()<>]|\([^\s()]{0,1000}\)){1,2000})(?:\s{1,5}(?:"[^"\n]{0,500}"|'[^'\n]{0,500}'))?\s{0,5}\)/;
const AUTOLINK = /^<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/i;

function linkAt(text: string, at: number): Found | null {
  const rest = text.slice(at, at + MAX_LINK * 2);
  const auto = AUTOLINK.exec(rest);
  if (auto?.[1])
    return {
      node: { type: "link", url: auto[1], children: [{ type: "text", text: auto[1] }] },
      end: at + auto[0].length,
    };
  const found = LINK.exec(rest);
  if (!found) return null;
  const [whole, bang, label = "", target = ""] = found;
  const url = target.replace(/^<|>$/g, "");
  const end = at + whole.length;
  if (bang) return { node: { type: "image", url, alt: label }, end };
  return { node: { type: "link", url, children: parseInline(label) }, end };
}

// Blocks of code, which every platform has to leave alone.

export interface Fence {
  readonly marks: string;
  readonly language: string;
}

/** The line that a block of code begins with; null: it is none. */
export function openingFence(line: string): Fence | null {
  const [whole = "", marks] = /^ {0,3}(`{3,}|~{3,})/.exec(line) ?? [];
  const rest = line.slice(whole.length).trim();
  // Behind backticks there is no other one: that would be code inside of a line.
  if (marks === undefined || (marks.startsWith("`") && rest.includes("`"))) return null;
  return { marks, language: rest.split(/\s/, 1)[0] ?? "" };
}

export function closesFence(line: string, { marks }: Fence): boolean {
  const found = line.trim();
  return found.startsWith(marks) && found.replaceAll(marks.charAt(0), "") === "";
}
