// Some models write their reasoning, or leak tool calls, as tags inside the visible text.

const NAMES = ["think", "thinking", "reasoning", "thought", "reasoning_scratchpad"] as const;
const THINK = NAMES.join("|");
const LEAKED = "tool_call|tool_calls|tool_result|function_call|function_calls";

const THINK_OPENER = new RegExp(`()<(${THINK})>`, "gi");
const LEAKED_OPENER = new RegExp(`()<(${LEAKED})(?:\\s[^<>]*)?>`, "gi");
// Only where a sentence or a line begins: prose such as "Call <function> in JS" is left alone.
const FUNCTION_OPENER = /((?:^|\n|[.!?:])[ \t]*)<(function)\s+name\s*=[^<>]*>/gi;
const UNCLOSED_AT_LINE_START = new RegExp(`(?:^|\\n)[ \\t]*<(?:${THINK})>[\\s\\S]*$`, "i");
const STRAY_TAG = new RegExp(`(?:</?(?:${THINK})>|</(?:${LEAKED}|function)>)\\s*`, "gi");

/** The visible part of a complete text. */
export function stripThinkBlocks(text: string): string {
  if (!text.includes("<")) return text;
  return [THINK_OPENER, LEAKED_OPENER, FUNCTION_OPENER]
    .reduce(dropBlocks, text)
    .replace(UNCLOSED_AT_LINE_START, "")
    .replace(STRAY_TAG, "");
}

/** Removes what stands between an opener and its closer. Groups of `opener`: what to keep in front of the tag, and its name. */
function dropBlocks(text: string, opener: RegExp): string {
  const lower = asciiLower(text);
  // A closer that is missing here is missing further on too; without this a text full of openers takes quadratic time.
  const missing = new Set<string>();
  let kept = "";
  let end = 0;
  for (const match of text.matchAll(opener)) {
    const [tag, front = "", name = ""] = match;
    const closer = `</${asciiLower(name)}>`;
    if (match.index < end || missing.has(closer)) continue;
    const at = lower.indexOf(closer, match.index + tag.length);
    if (at < 0) {
      missing.add(closer);
      continue;
    }
    kept += text.slice(end, match.index) + front;
    end = at + closer.length;
  }
  return kept + text.slice(end);
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
  #waiting: Waiting | null = null;

  feed(delta: string): string {
    if (this.#waiting && !arrives(this.#waiting, delta)) return "";
    this.#held += this.#waiting ? this.#waiting.pieces.join("") : delta;
    this.#waiting = null;
    return this.#scan(false);
  }

  /** The end of the stream: what was held back and turned out to be text. */
  flush(): string {
    this.#held += this.#waiting?.pieces.join("") ?? "";
    const rest = this.#inside === null ? this.#scan(true) : "";
    this.reset();
    return rest;
  }

  reset(): void {
    this.#held = "";
    this.#inside = null;
    this.#lineIsBlank = true;
    this.#dropSpace = false;
    this.#waiting = null;
  }

  #scan(final: boolean): string {
    const lower = asciiLower(this.#held);
    const missing = new Set<string>();
    let visible = "";
    let at = 0;
    const past = (tag: string, from: number) => {
      const found = missing.has(tag) ? -1 : lower.indexOf(tag, from);
      if (found < 0) missing.add(tag);
      return found < 0 ? -1 : found + tag.length;
    };
    while (at < lower.length) {
      if (this.#inside !== null) {
        const end = past(this.#inside, at);
        // Hidden text is thrown away as it comes; only what may be the beginning of the closer stays.
        at = end >= 0 ? end : Math.max(at, lower.length - this.#inside.length + 1);
        if (end < 0) break;
        this.#inside = null;
        continue;
      }
      const tagAt = lower.indexOf("<", at);
      visible += this.#show(this.#held.slice(at, tagAt < 0 ? undefined : tagAt));
      at = tagAt < 0 ? lower.length : tagAt;
      if (tagAt < 0) break;

      const head = lower.slice(at, at + LONGEST_TAG);
      const orphan = CLOSERS.find((tag) => head.startsWith(tag));
      if (orphan !== undefined) {
        at += orphan.length;
        this.#lineIsBlank = false;
        this.#dropSpace = true;
        continue;
      }
      const opener = OPENERS.find((tag) => head.startsWith(tag));
      if (opener !== undefined) {
        const closer = `</${opener.slice(1)}`;
        const end = past(closer, at);
        if (end >= 0) {
          at = end;
          continue;
        }
        if (this.#lineIsBlank) {
          this.#inside = closer;
          continue;
        }
        if (!final) {
          this.#waiting = { closer, pieces: [], tail: lower.slice(at).slice(-closer.length) };
          break;
        }
      } else if (!final && couldBecomeTag(head)) break;
      const end = at + (opener?.length ?? 1);
      visible += this.#show(this.#held.slice(at, end));
      at = end;
    }
    this.#held = this.#held.slice(at);
    return visible;
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

/** An opener inside a line: everything after it waits for its closer. The pieces are not joined before it comes. */
interface Waiting {
  readonly closer: string;
  readonly pieces: string[];
  /** The end of what has come so far: the closer may be split between two deltas. */
  tail: string;
}

function arrives(waiting: Waiting, delta: string): boolean {
  waiting.pieces.push(delta);
  const recent = waiting.tail + asciiLower(delta);
  waiting.tail = recent.slice(-waiting.closer.length);
  return recent.includes(waiting.closer);
}

function couldBecomeTag(head: string): boolean {
  return [...OPENERS, ...CLOSERS].some((tag) => tag.startsWith(head));
}

// Not toLowerCase(): it changes the length of some strings, and offsets must stay true.
function asciiLower(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

// Some models repeat the recalled block in their answer. What the user sees goes without it, whatever the chunks of the stream are.
const OPENER = "<memory-context>";
const CLOSER = "</memory-context>";
/** An opener counts where a line begins and nothing but blanks follow on its line; elsewhere somebody writes about it. */
const BLOCK = /(?<![^\n])[ \t]*<memory-context>[ \t]*\r?\n[\s\S]*?(?:<\/memory-context>[ \t]*(?:\r?\n)?|$)/gi;

/** The same for a whole text. */
export function scrubRecall(text: string): string {
  return /<memory-context>/i.test(text) ? text.replace(BLOCK, "") : text;
}

type State = "text" | "block" | "behind";

export class RecallScrubber {
  #held = "";
  #state: State = "text";
  #lineStart = true;

  feed(delta: string): string {
    this.#held += delta;
    return this.#scan(false);
  }

  /** The end of the stream: what was held back and turned out to be text. */
  flush(): string {
    const rest = this.#scan(true);
    this.#held = "";
    this.#state = "text";
    this.#lineStart = true;
    return rest;
  }

  #scan(final: boolean): string {
    let visible = "";
    for (;;) {
      if (this.#state === "block") {
        const end = this.#held.toLowerCase().indexOf(CLOSER);
        if (end < 0) {
          // Thrown away as it comes; only what may be the beginning of the closer stays.
          this.#held = final ? "" : this.#held.slice(-(CLOSER.length - 1));
          return visible;
        }
        this.#held = this.#held.slice(end + CLOSER.length);
        this.#state = "behind";
      }
      if (this.#state === "behind") {
        const [blank = ""] = /^[ \t]*(?:\r?\n)?/.exec(this.#held) ?? [];
        if (!final && /^[ \t]*\r?$/.test(this.#held)) return visible;
        this.#held = this.#held.slice(blank.length);
        this.#state = "text";
        this.#lineStart = blank.endsWith("\n");
      }
      const step = this.#step(final);
      visible += step;
      if (this.#state === "text") return visible;
    }
  }

  /** Shows text up to a block, or up to what may become one. */
  #step(final: boolean): string {
    let visible = "";
    while (this.#held !== "") {
      if (this.#lineStart) {
        const verdict = opens(this.#held, final);
        if (verdict === "maybe") return visible;
        if (verdict !== "no") {
          this.#held = this.#held.slice(verdict);
          this.#state = "block";
          return visible;
        }
      }
      const end = this.#held.indexOf("\n");
      const line = end < 0 ? this.#held : this.#held.slice(0, end + 1);
      visible += line;
      this.#held = this.#held.slice(line.length);
      this.#lineStart = end >= 0;
    }
    return visible;
  }
}

/** Whether a line that begins here opens a block: its length if so. */
function opens(held: string, final: boolean): "no" | "maybe" | number {
  const [blanks = ""] = /^[ \t]*/.exec(held) ?? [];
  const rest = held.slice(blanks.length);
  const head = rest.slice(0, OPENER.length).toLowerCase();
  if (!OPENER.startsWith(head)) return "no";
  if (head.length < OPENER.length) return final ? "no" : "maybe";
  const [tail = ""] = /^[ \t]*(?:\r?\n)?/.exec(rest.slice(OPENER.length)) ?? [];
  if (tail.endsWith("\n")) return blanks.length + OPENER.length + tail.length;
  const isWhole = OPENER.length + tail.length === rest.length || rest.slice(OPENER.length + tail.length) === "\r";
  return isWhole && !final ? "maybe" : "no";
}
