// The pieces a transcript is made of. Each renders itself for a width and remembers the result until it changes.
import { type Component, type SelectListTheme, stripTerminalSequences } from "@earendil-works/pi-tui";
import { cellWidth, cut, printable, type Theme, wrapColumns } from "../terminal-text.ts";

export type LineStyle = (line: string) => string;
const asIs: LineStyle = (line) => line;

export abstract class CachedBlock implements Component {
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

/** Text that is wrapped with its columns kept, styled line by line. */
export class Lines extends CachedBlock {
  readonly #text: string;
  readonly #style: LineStyle;

  constructor(text: string, style: LineStyle = asIs) {
    super();
    this.#text = printable(text);
    this.#style = style;
  }

  protected draw(width: number): string[] {
    return wrapColumns(this.#text, width).map(this.#style);
  }
}

/** Lines that carry their own styles; cut at the edge instead of wrapped, so that columns stay columns. */
export class CutLines extends CachedBlock {
  readonly #lines: (width: number) => readonly string[];

  constructor(lines: readonly string[] | ((width: number) => readonly string[])) {
    super();
    this.#lines = typeof lines === "function" ? lines : () => lines;
  }

  protected draw(width: number): string[] {
    return this.#lines(width).map((line) => cut(line, width));
  }
}

/** What was taken back: struck out from one of its lines on; those before it have scrolled away and cannot be drawn again. */
export class Withdrawn extends CachedBlock {
  readonly #block: Component;
  readonly #from: number;
  readonly #theme: Theme;

  constructor(block: Component, from: number, theme: Theme) {
    super();
    this.#block = block;
    this.#from = from;
    this.#theme = theme;
  }

  protected draw(width: number): string[] {
    const strike = (line: string) => this.#theme.dim(this.#theme.struck(stripTerminalSequences(line).trimEnd()));
    return this.#block.render(width).map((line, at) => (at < this.#from ? line : strike(line)));
  }
}

/** `─ label ─────` over the whole width. */
export class Rule extends CachedBlock {
  readonly #label: string;
  readonly #style: LineStyle;

  constructor(label: string, style: LineStyle) {
    super();
    this.#label = label;
    this.#style = style;
  }

  protected draw(width: number): string[] {
    const head = `─ ${this.#label} `;
    return [this.#style(cut(head + "─".repeat(Math.max(0, width - cellWidth(head))), width))];
  }
}

export function selectTheme(theme: Theme): SelectListTheme {
  return {
    selectedPrefix: theme.menuRow,
    selectedText: theme.menuRow,
    description: theme.menuText,
    scrollInfo: theme.dim,
    noMatch: theme.dim,
  };
}
