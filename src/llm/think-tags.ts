// Some models write their reasoning, or leak tool calls, as tags inside the visible text.

const NAMES = ["think", "thinking", "reasoning", "thought", "reasoning_scratchpad"] as const;
const THINK = NAMES.join("|");
const LEAKED = "tool_call|tool_calls|tool_result|function_call|function_calls";

const CLOSED_PAIR = new RegExp(`<(${THINK})>[\\s\\S]*?</\\1>`, "gi");
const LEAKED_BLOCK = new RegExp(`<(${LEAKED})(?:\\s[^>]*)?>[\\s\\S]*?</\\1>`, "gi");
// Only where a sentence or a line begins: prose such as "Call <function> in JS" is left alone.
const LEAKED_FUNCTION = /(^|\n|[.!?:])([ \t]*)<function\s+name\s*=[^>]*>[\s\S]*?<\/function>/gi;
const UNCLOSED_AT_LINE_START = new RegExp(`(?:^|\\n)[ \\t]*<(?:${THINK})>[\\s\\S]*$`, "i");
const STRAY_TAG = new RegExp(`(?:</?(?:${THINK})>|</(?:${LEAKED}|function)>)\\s*`, "gi");

/** The visible part of a complete text. */
export function stripThinkBlocks(text: string): string {
  if (!text.includes("<")) return text;
  return text
    .replace(CLOSED_PAIR, "")
    .replace(LEAKED_BLOCK, "")
    .replace(LEAKED_FUNCTION, "$1$2")
    .replace(UNCLOSED_AT_LINE_START, "")
    .replace(STRAY_TAG, "");
}

const OPENERS = NAMES.map((name) => `<${name}>`);
const CLOSERS = NAMES.map((name) => `</${name}>`);
const LONGEST_TAG = Math.max(...CLOSERS.map((tag) => tag.length));

/**
 * The visible part of a stream, whatever its chunking.
 *
 * - An opener where a line begins hides everything up to its closer, or to the end of the stream.
 * - An opener inside a line hides only a closed pair: text from it on is held back until the closer comes or the stream ends.
 * - Half a tag at the end of a chunk is held back; a closer without an opener is dropped with the whitespace after it.
 */
export class ThinkScrubber {
  #held = "";
  #inside: string | null = null;
  #lineIsBlank = true;
  #dropSpace = false;
  /** How far the closer of a held opener has been looked for already. */
  #searched = 0;

  feed(delta: string): string {
    this.#held += delta;
    return this.#scan(false);
  }

  /** The end of the stream: what was held back and turned out to be text. */
  flush(): string {
    const rest = this.#inside === null ? this.#scan(true) : "";
    this.reset();
    return rest;
  }

  reset(): void {
    this.#held = "";
    this.#inside = null;
    this.#lineIsBlank = true;
    this.#dropSpace = false;
    this.#searched = 0;
  }

  #scan(final: boolean): string {
    let visible = "";
    while (this.#held !== "") {
      if (this.#inside !== null) {
        if (!this.#skipPast(this.#inside)) break;
        this.#inside = null;
        continue;
      }
      const at = this.#held.indexOf("<");
      visible += this.#show(at < 0 ? this.#held : this.#held.slice(0, at));
      this.#held = at < 0 ? "" : this.#held.slice(at);
      if (at < 0) break;

      const head = asciiLower(this.#held.slice(0, LONGEST_TAG));
      if (CLOSERS.some((tag) => head.startsWith(tag))) {
        this.#held = this.#held.slice(head.indexOf(">") + 1);
        this.#lineIsBlank = false;
        this.#dropSpace = true;
        continue;
      }
      const opener = OPENERS.find((tag) => head.startsWith(tag));
      if (opener !== undefined) {
        const closer = `</${opener.slice(1)}`;
        if (this.#dropClosedPair(closer)) continue;
        if (this.#lineIsBlank) {
          this.#inside = closer;
          continue;
        }
        if (!final) break;
      } else if (!final && couldBecomeTag(head)) break;
      const literal = opener?.length ?? 1;
      visible += this.#show(this.#held.slice(0, literal));
      this.#held = this.#held.slice(literal);
      this.#searched = 0;
    }
    return visible;
  }

  #dropClosedPair(closer: string): boolean {
    const end = asciiLower(this.#held.slice(this.#searched)).indexOf(closer);
    if (end < 0) {
      this.#searched = Math.max(0, this.#held.length - closer.length + 1);
      return false;
    }
    this.#held = this.#held.slice(this.#searched + end + closer.length);
    this.#searched = 0;
    return true;
  }

  #skipPast(closer: string): boolean {
    const end = asciiLower(this.#held).indexOf(closer);
    // Hidden text is thrown away as it comes; only what may be the beginning of the closer stays.
    this.#held = end < 0 ? this.#held.slice(-(closer.length - 1)) : this.#held.slice(end + closer.length);
    this.#searched = 0;
    return end >= 0;
  }

  #show(text: string): string {
    for (const char of text) {
      if (char === "\n") this.#lineIsBlank = true;
      else if (char !== " " && char !== "\t") this.#lineIsBlank = false;
    }
    if (!this.#dropSpace || text === "") return text;
    const shown = text.trimStart();
    if (shown !== "") this.#dropSpace = false;
    return shown;
  }
}

function couldBecomeTag(head: string): boolean {
  return [...OPENERS, ...CLOSERS].some((tag) => tag.startsWith(head));
}

// Not toLowerCase(): it changes the length of some strings, and offsets must stay true.
function asciiLower(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
