// Markdown as Signal shows it: plain text, and ranges of it that are bold, italic, struck out, hidden or of fixed width.
import { closesFence, type Fence, type Inline, openingFence, parseInline, plainText } from "../../inline-markdown.ts";

type Style = "BOLD" | "ITALIC" | "STRIKETHROUGH" | "SPOILER" | "MONOSPACE";

interface StyledText {
  readonly text: string;
  /** In UTF-16 units. */
  readonly ranges: readonly { readonly start: number; readonly length: number; readonly style: Style }[];
}

const HEADING = /^ {0,3}#{1,6}[ \t]+/;
const BULLET = /^( {0,12})[-*+][ \t]+/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const isRow = (line: string) => /^\|[^|]/.test(line.trim()) && line.trim().endsWith("|");

export function styledText(markdown: string): StyledText {
  const out = new Writer();
  const lines = markdown.replaceAll("\r\n", "\n").split("\n");
  let fence: Fence | null = null;
  let code: string[] = [];
  lines.forEach((line, index) => {
    const opened = openingFence(line);
    if (fence !== null && closesFence(line, fence)) {
      out.line(() => out.styled("MONOSPACE", () => out.add(code.join("\n"))));
      [fence, code] = [null, []];
    } else if (fence !== null) code.push(line);
    else if (opened !== null) fence = opened;
    else if (isRow(line)) out.line(() => out.styled("MONOSPACE", () => out.add(line.trim())));
    else if (RULE.test(line) && line.trim() !== "") out.line(() => out.add("———"));
    else if (HEADING.test(line))
      out.line(() => out.styled("BOLD", () => out.nodes(parseInline(line.replace(HEADING, "").trim()))));
    else {
      const [bullet = "", indent = ""] = BULLET.exec(line) ?? [];
      out.line(() => {
        out.add(bullet === "" ? "" : `${indent}• `);
        out.nodes(parseInline(line.slice(bullet.length)));
      });
    }
    // A block that was cut off is shown as far as it goes.
    if (fence !== null && index === lines.length - 1)
      out.line(() => out.styled("MONOSPACE", () => out.add(code.join("\n"))));
  });
  return out.result();
}

const STYLES = { strong: "BOLD", emphasis: "ITALIC", strike: "STRIKETHROUGH", spoiler: "SPOILER" } as const;

class Writer {
  #text = "";
  #isEmpty = true;
  readonly #ranges: { start: number; length: number; style: Style }[] = [];

  add(text: string): void {
    this.#text += text;
  }

  line(write: () => void): void {
    if (!this.#isEmpty) this.#text += "\n";
    this.#isEmpty = false;
    write();
  }

  styled(style: Style, write: () => void): void {
    const start = this.#text.length;
    const index = this.#ranges.push({ start, length: 0, style }) - 1;
    write();
    this.#ranges[index] = { start, length: this.#text.length - start, style };
  }

  nodes(nodes: readonly Inline[]): void {
    for (const node of nodes) this.#node(node);
  }

  #node(node: Inline): void {
    switch (node.type) {
      case "text":
        return this.add(node.text);
      case "code":
        return this.styled("MONOSPACE", () => this.add(node.text));
      case "image":
        return this.add(node.alt === "" ? node.url : `${node.alt} (${node.url})`);
      case "link":
        this.nodes(node.children);
        return this.add(plainText(node.children) === node.url ? "" : ` (${node.url})`);
      default:
        return this.styled(STYLES[node.type], () => this.nodes(node.children));
    }
  }

  /** Blanks at its end are cut: Signal trims the text, and refuses ranges beyond it. */
  result(): StyledText {
    const text = this.#text.trimEnd();
    const ranges = this.#ranges
      .map((range) => ({ ...range, length: Math.min(range.length, text.length - range.start) }))
      .filter(({ length }) => length > 0);
    return { text, ranges };
  }
}
