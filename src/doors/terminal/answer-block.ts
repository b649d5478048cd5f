// Markdown that grows. Lines that can no longer change become sections that are rendered once; only the end is looked at again, so that
// a long answer costs what is new in it.
import type { Component } from "@earendil-works/pi-tui";
import { fenceAfter, isTableRow, plainMarkdown } from "../plain-markdown.ts";
import { printable, type Theme, wrapLines } from "../terminal-text.ts";
import { CachedBlock, type LineStyle } from "./blocks.ts";
import { codeAfter, isPlain, type OpenCode, renderCode, renderMarkdown } from "./markdown.ts";
export type AnswerStyle = "strip" | "render" | "raw";

const SECTION_LINES = 40;
/** So many lines are looked at for a good place to cut, then for any place, and a table is held no longer than this. */
const REACH = [SECTION_LINES, 2 * SECTION_LINES, 4 * SECTION_LINES, 2000];

export class AnswerBlock implements Component {
  readonly #style: AnswerStyle;
  readonly #theme: Theme;
  readonly #paint: LineStyle;
  #sections: Section[] = [];
  /** The code that what is settled left open. */
  #code: OpenCode | null = null;
  /** What is settled ended with a blank line. */
  #gap = false;
  /** Lines behind what is settled; the last one is not whole yet. */
  #lines: string[] = [""];
  #open = true;
  #last: Section | null = null;

  constructor(style: AnswerStyle, theme: Theme, paint: LineStyle = (line) => line) {
    this.#style = style;
    this.#theme = theme;
    this.#paint = paint;
  }

  append(delta: string): void {
    const [first = "", ...more] = printable(delta).split("\n");
    this.#lines[this.#lines.length - 1] += first;
    for (const line of more) this.#lines.push(line);
    this.#last = null;
    if (more.length > 0) this.#settle();
  }

  /** No more will come. The whole text replaces what was shown, where it differs. */
  finish(text: string): void {
    const whole = printable(text);
    const shown = this.#sections.map((section) => section.text).join("\n");
    const same = this.#sections.length === 0 || whole.startsWith(`${shown}\n`);
    if (!same) {
      this.#sections = [];
      this.#code = null;
      this.#gap = false;
    }
    this.#lines = (same && this.#sections.length > 0 ? whole.slice(shown.length + 1) : whole).split("\n");
    this.#settle();
    this.end();
  }

  /** No more will come, and nobody knows the whole text: what was shown stays, with a table that was cut off. */
  end(): void {
    this.#open = false;
    this.#last = null;
  }

  render(width: number): string[] {
    const tail = this.#tailSection();
    return [...this.#sections, tail].flatMap((section) => section.render(width));
  }

  invalidate(): void {
    for (const section of this.#sections) section.invalidate();
    this.#last = null;
  }

  #tailSection(): Section {
    this.#last ??= this.#section(this.#open ? this.#withoutGrowingTable() : this.#lines);
    return this.#last;
  }

  #section(lines: readonly string[]): Section {
    const first = this.#sections.length === 0;
    const text = lines.join("\n");
    return new Section(first ? text.replace(/^\n+/, "") : text, this.#draw(this.#code, this.#gap));
  }

  #draw(code: OpenCode | null, gap: boolean): (text: string, width: number) => string[] {
    if (this.#style === "render")
      return (text, width) => {
        const lines = renderFrom(text, code, width, this.#theme);
        return (gap && lines.length > 0 ? ["", ...lines] : lines).map(this.#paint);
      };
    const plain = this.#style === "strip";
    return (text, width) =>
      wrapLines(plain ? plainMarkdown(text, width, code?.mark ?? null) : text, width).map((line) => this.#paint(line));
  }

  /** Moves lines that are settled from the tail to a section of their own. Where it cuts depends on the lines alone, not on how they came. */
  #settle(): void {
    for (;;) {
      if (this.#lines.length <= SECTION_LINES) return;
      const cut = this.#style === "render" ? this.#renderedEnd() : lineEnd(this.#lines);
      if (cut === null) return;
      const settled = this.#lines.slice(0, cut);
      this.#sections.push(this.#section(settled));
      for (const line of settled) this.#code = codeAfter(line, this.#code);
      this.#gap = this.#code === null && settled.at(-1)?.trim() === "";
      this.#lines = this.#lines.slice(cut);
    }
  }

  /** A place where rendered text may be cut: the sooner the better, the longer nothing is found the worse it may be. */
  #renderedEnd(): number | null {
    const last = this.#lines.length - 1;
    for (const [step, reach] of REACH.entries()) {
      if (last < reach) return null;
      const found = this.#cutWithin(reach, step);
      if (found !== null) return found;
    }
    return SECTION_LINES;
  }

  #cutWithin(reach: number, step: number): number | null {
    const lines = this.#lines;
    let fence = this.#code?.mark ?? null;
    let item: number | null = null;
    for (let at = 0; at < reach; at++) {
      const line = lines[at] as string; // in range
      const enough = at >= SECTION_LINES / 2 && fence === null;
      // A paragraph that begins at the margin cannot belong to what stands before it.
      if (enough && lines[at - 1]?.trim() === "" && /^[^\s|>*+\-\d]/.test(line)) return at;
      if (enough && /^(?:[-*+]|\d{1,9}[.)])\s/.test(line)) item = at;
      fence = fenceAfter(line, fence);
    }
    if (fence !== null) return reach;
    if (step >= 1 && item !== null) return item;
    if (step < 2) return null;
    let table = reach;
    while (table > 0 && isTableRow(lines[table - 1] ?? "")) table--;
    return table > 0 ? table : null;
  }

  /** Columns are known when the last row is; until then the rows are counted, not shown. */
  #withoutGrowingTable(): readonly string[] {
    const lines = this.#lines.at(-1) === "" ? this.#lines.slice(0, -1) : this.#lines;
    let from = lines.length;
    while (from > 0 && lines[from - 1]?.trimStart().startsWith("|")) from--;
    const rows = lines.length - from;
    if (rows < 2 || this.#style === "raw" || insideFence(lines.slice(0, from), this.#code?.mark ?? null))
      return this.#lines;
    return [...lines.slice(0, from), `(a table, ${rows} rows so far)`];
  }
}

/** Text whose first lines may be the rest of code. */
function renderFrom(text: string, code: OpenCode | null, width: number, theme: Theme): string[] {
  if (code === null) return renderMarkdown(text, width, theme);
  const lines = text.split("\n");
  const end = lines.findIndex((line) => fenceAfter(line, code.mark) === null);
  if (end < 0) return renderCode(lines, code, width, theme);
  const rest = lines.slice(end + 1);
  const after = renderMarkdown(rest.join("\n"), width, theme);
  const gap = after.length > 0 && rest[0]?.trim() === "" ? [""] : [];
  const fence = isPlain(theme) ? [code.mark] : [];
  return [...renderCode(lines.slice(0, end), code, width, theme), ...fence, ...gap, ...after];
}

/** After so many whole lines, but not in a table and not after a blank line. The last line is not whole yet. */
function lineEnd(lines: readonly string[]): number | null {
  for (let end = Math.min(SECTION_LINES, lines.length - 1); end > 0; end--) {
    const last = lines[end - 1] ?? "";
    if (last.trim() !== "" && !isTableRow(last)) return end;
  }
  const all = lines.slice(0, -1).findIndex((line, index) => index >= SECTION_LINES && line !== "" && !isTableRow(line));
  return all === -1 ? null : all + 1;
}

function insideFence(lines: readonly string[], open: string | null): boolean {
  return lines.reduce<string | null>((fence, line) => fenceAfter(line, fence), open) !== null;
}

class Section extends CachedBlock {
  readonly text: string;
  readonly #draw: (text: string, width: number) => string[];

  constructor(text: string, draw: (text: string, width: number) => string[]) {
    super();
    this.text = text;
    this.#draw = draw;
  }

  protected draw(width: number): string[] {
    return this.#draw(this.text, width);
  }
}
