// Markdown -> lines for the screen: emphasis, headings, lists with hanging indents, tables by width, code in colours, links with their
// address. The parser is the renderer package's own; how blocks look is decided here, because that package prints fences, ignores the
// alignment of columns and hides where a link leads.
import { Marked, renderLatex, type Token, type Tokens } from "@earendil-works/pi-tui";
import { cellWidth, makeTheme, padCells, type Theme, wrapLines } from "../terminal-text.ts";
import type { CodeState } from "./code-colours.ts";
import { linkText } from "./links.ts";

type Paint = (text: string) => string;
const asIs: Paint = (text) => text;

const CODE_INDENT = "  ";
const LEAST_WIDTH = 8;

export function renderMarkdown(text: string, width: number, theme: Theme): string[] {
  return new Renderer(theme).blocks(parser().lexer(text), Math.max(LEAST_WIDTH, width), asIs);
}

/** Code that a text left open: its language, and what the next line begins inside of. */
export interface OpenCode {
  readonly mark: string;
  readonly info: string;
  readonly state: CodeState | null;
}

/** The code that is open behind a line; null outside of code. */
export function codeAfter(line: string, open: OpenCode | null): OpenCode | null {
  const [, mark, rest = ""] = /^\s*(`{3,}|~{3,})(.*)/.exec(line) ?? [];
  if (open === null) return mark ? { mark, info: rest.trim(), state: null } : null;
  if (mark?.startsWith(open.mark) && rest.trim() === "") return null;
  return { ...open, state: colourCode([line], open, plainTheme).state };
}

/** Lines of code, in colours when they are loaded, indented and wrapped. */
export function renderCode(lines: readonly string[], open: OpenCode, width: number, theme: Theme): string[] {
  const room = Math.max(LEAST_WIDTH, width) - CODE_INDENT.length;
  return colourCode(lines, open, theme).lines.flatMap((line) =>
    wrapLines(line, room).map((part) => (part === "" ? "" : CODE_INDENT + part)),
  );
}

// The colours are loaded beside the first answer, not with the screen.

let colours: typeof import("./code-colours.ts") | null = null;

/** Resolves to whether blocks that were drawn before should be drawn again. */
export async function loadCodeColours(): Promise<boolean> {
  if (colours) return false;
  colours = await import("./code-colours.ts");
  return true;
}

function colourCode(lines: readonly string[], { info, state }: OpenCode, theme: Theme) {
  const language = colours?.languageOf(info) ?? null;
  if (!colours || language === null) return { lines, state: null };
  const painted: string[] = [];
  let within = state;
  for (const line of lines) {
    const next = colours.colourLine(line, language, within, theme);
    painted.push(next.text);
    within = next.state;
  }
  return { lines: painted, state: within };
}

const plainTheme = makeTheme(false);

/** No colours: what they would say is said by marks. */
export const isPlain = (theme: Theme) => theme.bold("x") === "x";

class Renderer {
  readonly #theme: Theme;
  /** Without colours, the marks that say most stay. */
  readonly #plain: boolean;

  constructor(theme: Theme) {
    this.#theme = theme;
    this.#plain = isPlain(theme);
  }

  /** One blank line where the text has some, none at the edges. */
  blocks(tokens: readonly Token[], width: number, paint: Paint): string[] {
    const out: string[] = [];
    let gap = false;
    for (const token of tokens) {
      const lines = token.type === "space" || token.type === "def" ? [] : this.#block(token, width, paint);
      if (gap && lines.length > 0 && out.length > 0) out.push("");
      if (lines.length > 0) gap = false;
      out.push(...lines);
      if (token.type === "space" || endsWithBlankLine(token.raw)) gap = true;
    }
    return out;
  }

  #block(token: Token, width: number, paint: Paint): string[] {
    const theme = this.#theme;
    switch (token.type) {
      case "heading":
        return this.#heading(token as Tokens.Heading, width);
      case "code": {
        const { text, lang = "", raw } = token as Tokens.Code;
        const code = renderCode(text.split("\n"), { mark: "", info: lang, state: null }, width, theme);
        const label = lang.trim().split(/\s/)[0] ?? "";
        if (!this.#plain)
          return label === ""
            ? code
            : [CODE_INDENT + theme.dim(theme.italic(label)), ...code].flatMap((line) => wrapLines(line, width));
        const mark = /^\s*(`{3,}|~{3,})/.exec(raw)?.[1];
        if (!mark) return code;
        const isClosed = raw.trimEnd().split("\n").at(-1)?.trim() === mark && raw.trimEnd() !== mark;
        return [...wrapLines(`${mark}${lang}`, width), ...code, ...(isClosed ? [mark] : [])];
      }
      case "blockquote": {
        const quoted = (text: string) => paint(theme.italic(text));
        const lines = this.blocks((token as Tokens.Blockquote).tokens, Math.max(1, width - 2), quoted);
        return lines.map((line) => theme.dim("│ ") + line);
      }
      case "list":
        return this.#list(token as Tokens.List, width, paint);
      case "table":
        return this.#table(token as Tokens.Table, width, paint);
      case "hr":
        return [theme.dim("─".repeat(Math.min(width, 40)))];
      case "formula": {
        const { raw, text } = token as Tokens.Generic;
        return wrapLines(renderLatex(text, { display: true }) ?? raw.trim(), width).map(paint);
      }
      case "paragraph":
      case "text": {
        const inner = (token as Tokens.Paragraph).tokens ?? [token];
        return wrapLines(this.#inline(inner, paint), width);
      }
      default:
        return wrapLines(token.raw.trim(), width).map(paint);
    }
  }

  #heading({ depth, tokens }: Tokens.Heading, width: number): string[] {
    const theme = this.#theme;
    const marks = this.#plain ? `${"#".repeat(depth)} ` : "";
    const look: Paint =
      depth === 1
        ? (text) => theme.bold(theme.underlined(theme.accent(text)))
        : depth === 2
          ? (text) => theme.bold(theme.accent(text))
          : theme.bold;
    return wrapLines(marks + this.#inline(tokens, look), width);
  }

  #list(list: Tokens.List, width: number, paint: Paint): string[] {
    const out: string[] = [];
    const numbers = list.ordered ? numbersOf(list) : [];
    for (const [index, item] of list.items.entries()) {
      const mark = list.ordered ? `${numbers[index]}. ` : "- ";
      const task = item.task ? `[${item.checked ? "x" : " "}] ` : "";
      const indent = Math.min(cellWidth(mark + task), Math.max(0, width - LEAST_WIDTH));
      const tokens = item.tokens.filter(({ type }) => type !== "checkbox");
      const lines = this.blocks(tokens, width - indent, paint);
      const head = this.#theme.accent(mark) + task;
      out.push(
        ...(lines.length === 0 ? [""] : lines).map((line, at) => (at === 0 ? head : line && " ".repeat(indent)) + line),
      );
      if (item.loose && index < list.items.length - 1) out.push("");
    }
    // What is narrower than a marker is cut by wrapping it again.
    return out.flatMap((line) => (cellWidth(line) > width ? wrapLines(line, width) : [line]));
  }

  /** Columns by their cells; a table that is wider than the screen becomes a list of `Name: value`. */
  #table({ header, rows, align }: Tokens.Table, width: number, paint: Paint): string[] {
    const theme = this.#theme;
    const heads = header.map((cell) => this.#inline(cell.tokens, theme.bold).replaceAll("\n", " "));
    const cells = rows.map((row) => row.map((cell) => this.#inline(cell.tokens, paint).replaceAll("\n", " ")));
    const columns = heads.map((head, at) => Math.max(cellWidth(head), ...cells.map((row) => cellWidth(row[at] ?? ""))));
    const total = columns.reduce((sum, cells) => sum + cells + 3, -1);
    if (total > width)
      return asRecords(
        header.map(({ text }) => text),
        cells,
        width,
        theme,
      );
    const bar = theme.dim("│");
    const line = (row: readonly string[]) =>
      columns
        .map((room, at) => ` ${aligned(row[at] ?? "", room, align[at] ?? null)}`)
        .join(` ${bar}`)
        .trimEnd();
    const rule = theme.dim(columns.map((room) => "─".repeat(room + 2)).join("┼")).trimEnd();
    return [line(heads), rule, ...cells.map(line)];
  }

  #inline(tokens: readonly Token[], paint: Paint): string {
    return tokens.map((token) => this.#span(token, paint)).join("");
  }

  #span(token: Token, paint: Paint): string {
    const theme = this.#theme;
    const inside = (look: Paint) => this.#inline((token as Tokens.Strong).tokens ?? [], (text) => paint(look(text)));
    switch (token.type) {
      case "strong":
        return inside(theme.bold);
      case "em":
        return inside(theme.italic);
      case "del":
        return inside(theme.struck);
      case "codespan":
        return eachLine(this.#plain ? token.raw : (token as Tokens.Codespan).text, (text) => paint(theme.accent(text)));
      case "link": {
        const { href, text } = token as Tokens.Link;
        const words = inside((part) => theme.underlined(theme.accent(part)));
        return linkText(words, href, { plainWords: text, paint, dim: theme.dim });
      }
      case "image": {
        const { href, text } = token as Tokens.Image;
        const words = paint(theme.accent(text === "" ? "picture" : text));
        return linkText(words, href, { plainWords: text, paint, dim: theme.dim });
      }
      case "br":
        return "\n";
      case "escape":
        return paint((token as Tokens.Escape).text);
      case "formula": {
        const { raw, text } = token as Tokens.Generic;
        return eachLine(renderLatex(text) ?? raw, paint);
      }
      case "checkbox":
        return "";
      case "text": {
        const { tokens, text } = token as Tokens.Text;
        return tokens && tokens.length > 0 ? this.#inline(tokens, paint) : eachLine(withoutEntities(text), paint);
      }
      default:
        return eachLine(token.raw, paint);
    }
  }
}

/** As they were written, unless they are all the same: then they are counted. */
function numbersOf(list: Tokens.List): readonly number[] {
  const first = list.start === "" ? 1 : Number(list.start);
  const written = list.items.map(({ raw }, index) => Number(/^\s*(\d{1,9})[.)]/.exec(raw)?.[1] ?? first + index));
  return written.length > 1 && written[0] === written[1] ? written.map((_, index) => first + index) : written;
}

const endsWithBlankLine = (raw: string) => raw.slice(raw.trimEnd().length).split("\n").length > 2;

const eachLine = (text: string, paint: Paint) => text.split("\n").map(paint).join("\n");

function aligned(text: string, room: number, align: "left" | "right" | "center" | null): string {
  const free = Math.max(0, room - cellWidth(text));
  if (align === "right") return " ".repeat(free) + text;
  return align === "center"
    ? " ".repeat(Math.floor(free / 2)) + padCells(text, room - Math.floor(free / 2))
    : padCells(text, room);
}

function asRecords(
  names: readonly string[],
  rows: readonly (readonly string[])[],
  width: number,
  theme: Theme,
): string[] {
  return rows.flatMap((row, index) => [
    ...(index > 0 ? [""] : []),
    ...names.flatMap((name, at) =>
      wrapLines(`${theme.bold(`${name}:`)} ${row[at] ?? ""}`, Math.max(LEAST_WIDTH, width - 2)).map((line, i) =>
        i > 0 ? `  ${line}` : line,
      ),
    ),
  ]);
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  "#39": "'",
  apos: "'",
  nbsp: " ",
};
const withoutEntities = (text: string) =>
  text.includes("&")
    ? text.replace(/&(amp|lt|gt|quot|#39|apos|nbsp);/g, (all, name: string) => ENTITIES[name] ?? all)
    : text;

// The parser, made with the first answer. `~5 and ~6` is not struck out, and formulas are told from prices.

let made: Marked | null = null;

function parser(): Marked {
  if (made) return made;
  made = new Marked();
  made.use({
    tokenizer: {
      del(src: string) {
        const [raw, text] = /^~~(?=[^\s~])([^~]{1,2000}?[^\s~]|[^\s~])~~(?!~)/.exec(src) ?? [];
        if (raw === undefined || text === undefined) return undefined;
        return { type: "del", raw, text, tokens: this.lexer.inlineTokens(text) };
      },
    },
    extensions: [
      {
        name: "formula",
        level: "block",
        start: (src: string) => /(?:^|\n) {0,3}(?:\$\$|\\\[)/.exec(src)?.index,
        tokenizer: (src: string) =>
          formula(/^ {0,3}(?:\$\$([^$]{1,4000})\$\$|\\\[((?:(?!\\\])[\s\S]){1,4000})\\\])[ \t]*(?:\n|$)/.exec(src)),
      },
      {
        name: "formula",
        level: "inline",
        start: (src: string) => /\$|\\\(/.exec(src)?.index,
        tokenizer: (src: string) =>
          formula(/^\\\(((?:(?!\\\)).){1,1000})\\\)/.exec(src)) ??
          // Between prices and names of variables stands no command, power or index.
          formula(/^\$(?=[^\s$][^$\n]*[\\^_])([^$\n]{1,1000})(?<!\s)\$(?![\w$])/.exec(src)),
      },
    ],
  });
  return made;
}

function formula(match: RegExpExecArray | null) {
  const text = match?.[1] ?? match?.[2];
  return match && text !== undefined ? { type: "formula", raw: match[0], text: text.trim() } : undefined;
}
