// The pieces a transcript is made of. Each renders itself for a width and remembers the result until it changes.
import { type Component, Markdown, type MarkdownTheme, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui";
import { plainMarkdown } from "../plain-markdown.ts";
import { cut } from "./status-line.ts";
import type { Theme } from "./theme.ts";

abstract class CachedBlock implements Component {
  #cache: { readonly width: number; readonly lines: string[] } | null = null;

  render(width: number): string[] {
    if (this.#cache?.width !== width) this.#cache = { width, lines: this.draw(width) };
    return this.#cache.lines;
  }

  invalidate(): void {
    this.#cache = null;
  }

  protected abstract draw(width: number): string[];
}

/** Text that is wrapped, styled line by line. */
export class Lines extends CachedBlock {
  readonly #text: string;
  readonly #style: (line: string) => string;

  constructor(text: string, style: (line: string) => string = (line) => line) {
    super();
    this.#text = text;
    this.#style = style;
  }

  protected draw(width: number): string[] {
    return this.#text
      .split("\n")
      .flatMap((line) => wrapTextWithAnsi(line, width))
      .map(this.#style);
  }
}

/** One line that is cut at the edge instead of wrapped. */
export class CutLine extends CachedBlock {
  readonly #text: string;
  readonly #style: (line: string) => string;

  constructor(text: string, style: (line: string) => string) {
    super();
    this.#text = text;
    this.#style = style;
  }

  protected draw(width: number): string[] {
    return [this.#style(cut(this.#text, width))];
  }
}

export type AnswerStyle = "strip" | "render" | "raw";

/** The answer as it grows. */
export class AnswerBlock extends CachedBlock {
  readonly #style: AnswerStyle;
  readonly #markdown: Markdown;
  #text = "";

  constructor(style: AnswerStyle, theme: Theme) {
    super();
    this.#style = style;
    this.#markdown = new Markdown("", 0, 0, markdownTheme(theme));
  }

  append(delta: string): void {
    this.setText(this.#text + delta);
  }

  setText(text: string): void {
    this.#text = text;
    this.#markdown.setText(text);
    this.invalidate();
  }

  get text(): string {
    return this.#text;
  }

  protected draw(width: number): string[] {
    if (this.#style === "render") return this.#markdown.render(width);
    const text = this.#style === "strip" ? plainMarkdown(this.#text, width) : this.#text;
    return text
      .replace(/^\n+/, "")
      .split("\n")
      .flatMap((line) => (visibleWidth(line) <= width ? [line] : wrapTextWithAnsi(line, width)));
  }
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
    italic: (text) => text,
    strikethrough: same,
    underline: same,
  };
}
