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
