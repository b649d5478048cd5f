// Markdown that grows. Lines that can no longer change become sections that are rendered once; only the end is looked at again, so that
// a long answer costs what is new in it.
import { type Component, Markdown, type MarkdownTheme } from "@earendil-works/pi-tui";
import { fenceAfter, isTableRow, plainMarkdown } from "../plain-markdown.ts";
import { printable, type Theme, wrapLines } from "../terminal-text.ts";
import { CachedBlock, type LineStyle } from "./blocks.ts";
export type AnswerStyle = "strip" | "render" | "raw";

const SECTION_LINES = 40;

export class AnswerBlock implements Component {
  readonly #style: AnswerStyle;
  readonly #theme: Theme;
  readonly #paint: LineStyle;
  #sections: Section[] = [];
  #fence: string | null = null;
  #tail = "";
  #open = true;
  #last: Section | null = null;

  constructor(style: AnswerStyle, theme: Theme, paint: LineStyle = (line) => line) {
    this.#style = style;
    this.#theme = theme;
    this.#paint = paint;
  }

  append(delta: string): void {
    this.#tail += printable(delta);
    this.#last = null;
    this.#settle();
  }

  /** No more will come. The whole text replaces what was shown, where it differs. */
  finish(text: string): void {
    const whole = printable(text);
    const shown = this.#sections.map((section) => section.text).join("\n");
    const same = this.#sections.length === 0 || whole.startsWith(`${shown}\n`);
    if (!same) {
      this.#sections = [];
      this.#fence = null;
    }
    this.#tail = same && this.#sections.length > 0 ? whole.slice(shown.length + 1) : whole;
    this.#last = null;
    this.#settle();
    this.#open = false;
  }

  render(width: number): string[] {
    const tail = this.#tailSection();
    const sections = tail ? [...this.#sections, tail] : this.#sections;
    return sections.flatMap((section) => section.render(width));
  }

  invalidate(): void {
    for (const section of this.#sections) section.invalidate();
    this.#last = null;
  }

  #tailSection(): Section | null {
    this.#last ??= this.#section(this.#open ? this.#withoutGrowingTable(this.#tail) : this.#tail);
    return this.#last;
  }

  #section(text: string): Section {
    const first = this.#sections.length === 0;
    return new Section(first ? text.replace(/^\n+/, "") : text, this.#draw(this.#fence));
  }

  #draw(fence: string | null): (text: string, width: number) => string[] {
    if (this.#style === "render") return (text, width) => renderMarkdown(text, width, this.#theme);
    const plain = this.#style === "strip";
    return (text, width) =>
      wrapLines(plain ? plainMarkdown(text, width, fence) : text, width).map((line) => this.#paint(line));
  }

  /** Moves lines that are settled from the tail to a section of their own. */
  #settle(): void {
    for (;;) {
      const lines = this.#tail.split("\n");
      if (lines.length <= SECTION_LINES) return;
      const cut = this.#style === "render" ? this.#paragraphEnd(lines) : lineEnd(lines);
      if (cut === null) return;
      const settled = lines.slice(0, cut);
      this.#sections.push(this.#section(settled.join("\n")));
      for (const line of settled) this.#fence = fenceAfter(line, this.#fence);
      this.#tail = lines.slice(cut).join("\n");
    }
  }

  /** A paragraph that begins at the margin cannot belong to what stands before it; inside code there is no such place. */
  #paragraphEnd(lines: readonly string[]): number | null {
    let fence: string | null = null;
    let found: number | null = null;
    for (let i = 0; i < lines.length - 1; i++) {
      const line = lines[i] as string; // in range
      const fresh = i > 0 && fence === null && lines[i - 1]?.trim() === "" && /^[^\s|>*+\-\d]/.test(line);
      if (fresh && i >= SECTION_LINES / 2) {
        found = i;
        break;
      }
      fence = fenceAfter(line, fence);
    }
    return found;
  }

  /** Columns are known when the last row is; until then the rows are counted, not shown. */
  #withoutGrowingTable(text: string): string {
    const lines = text.replace(/\n$/, "").split("\n");
    let from = lines.length;
    while (from > 0 && lines[from - 1]?.trimStart().startsWith("|")) from--;
    const rows = lines.length - from;
    if (rows < 2 || this.#style === "raw" || this.#fence !== null || insideFence(lines.slice(0, from))) return text;
    return [...lines.slice(0, from), `(a table, ${rows} rows so far)`].join("\n");
  }
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

function insideFence(lines: readonly string[]): boolean {
  return lines.reduce<string | null>((fence, line) => fenceAfter(line, fence), null) !== null;
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

function renderMarkdown(text: string, width: number, theme: Theme): string[] {
  return new Markdown(text, 0, 0, markdownTheme(theme)).render(width);
}

function markdownTheme(theme: Theme): MarkdownTheme {
  const same = (text: string) => text;
  return {
    heading: (text) => theme.bold(theme.accent(text)),
    link: theme.accent,
    linkUrl: theme.dim,
    code: theme.accent,
    codeBlock: same,
    codeBlockBorder: theme.dim,
    quote: theme.dim,
    quoteBorder: theme.dim,
    hr: theme.dim,
    listBullet: theme.accent,
    bold: theme.bold,
    italic: theme.italic,
    strikethrough: theme.struck,
    underline: theme.underlined,
  };
}
