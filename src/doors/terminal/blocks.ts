// The pieces a transcript is made of. Each renders itself for a width and remembers the result until it changes.
import {
  type Component,
  type SelectListTheme,
  stripTerminalSequences,
  truncateToWidth,
  visibleWidth,
  wrapTextWithAnsi,
} from "@earendil-works/pi-tui";
import { stripAnsi } from "../../kit/terminal-text.ts";

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

/** Text that is wrapped, styled line by line. */
export class Lines extends CachedBlock {
  readonly #text: string;
  readonly #style: LineStyle;

  constructor(text: string, style: LineStyle = asIs) {
    super();
    this.#text = printable(text);
    this.#style = style;
  }

  protected draw(width: number): string[] {
    return wrapLines(this.#text, width).map(this.#style);
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
    return [this.#style(cut(head + "─".repeat(Math.max(0, width - visibleWidth(head))), width))];
  }
}

export function wrapLines(text: string, width: number): string[] {
  return text.split("\n").flatMap((line) => (visibleWidth(line) <= width ? [line] : wrapTextWithAnsi(line, width)));
}

// Colours by meaning. Without colour every function returns its text unchanged.

export interface Theme {
  readonly accent: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly bold: (text: string) => string;
  readonly italic: (text: string) => string;
  readonly underlined: (text: string) => string;
  readonly struck: (text: string) => string;
  readonly ok: (text: string) => string;
  readonly warn: (text: string) => string;
  readonly error: (text: string) => string;
  readonly added: (text: string) => string;
  readonly removed: (text: string) => string;
  readonly user: (text: string) => string;
}

export function makeTheme(color: boolean): Theme {
  const paint = (open: number, close: number) => (text: string) =>
    color && text !== "" ? `\u001b[${open}m${text}\u001b[${close}m` : text;
  return {
    accent: paint(36, 39),
    dim: paint(2, 22),
    bold: paint(1, 22),
    italic: paint(3, 23),
    underlined: paint(4, 24),
    struck: paint(9, 29),
    ok: paint(32, 39),
    warn: paint(33, 39),
    error: paint(31, 39),
    added: paint(32, 39),
    removed: paint(31, 39),
    user: paint(34, 39),
  };
}

export function selectTheme(theme: Theme): SelectListTheme {
  return {
    selectedPrefix: theme.accent,
    selectedText: theme.accent,
    description: theme.dim,
    scrollInfo: theme.dim,
    noMatch: theme.dim,
  };
}

// Cutting by cells, as the renderer counts them: a line that is one cell too long is an error there.

/** Cut by cells, with dots that never exceed the width. */
export function cut(text: string, width: number): string {
  if (visibleWidth(text) <= width) return text;
  if (width <= 3) return ".".repeat(Math.max(0, width));
  const shortened = truncateToWidth(text, width, "...");
  return text.includes("\u001b") ? shortened : stripTerminalSequences(shortened);
}

export const padTo = (text: string, width: number) => text + " ".repeat(Math.max(0, width - visibleWidth(text)));

// Text of models, tools and files must not drive the terminal: what is no text is left out, or shown where hiding it could deceive.

const TAB = "    ";

/** For reading: control sequences are gone, tabs are blanks, lines end with a newline. */
export function printable(text: string): string {
  if (!/[\x00-\x09\x0b-\x1f\x7f-\x9f]/.test(text)) return text;
  return stripAnsi(text)
    .replaceAll("\r\n", "\n")
    .replaceAll("\r", "\n")
    .replaceAll("\t", TAB)
    .replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, "");
}

// Direction marks and zero-width characters: they make a command look like another one.
const DECEIVING = /[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** For deciding: whatever would be invisible or reorder the text is spelled out. */
export function revealed(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replaceAll("\t", TAB)
    .replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, (char) => shownCode(char))
    .replace(DECEIVING, (char) => shownCode(char));
}

const shownCode = (char: string) => `<U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
