// Markdown in the marks of WhatsApp: *bold*, _italic_, ~gone~, `code`, ```blocks```, quotes and lists. It knows no links, headings and tables.
import { type Inline, parseInline } from "../../inline-markdown.ts";

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const TABLE_RULE = /^\s{0,3}\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?$/;

export function whatsappText(markdown: string): string {
  const source = markdown.split("\n");
  const lines: string[] = [];
  let header: readonly string[] | null = null;
  for (let at = 0; at < source.length; at++) {
    const line = source[at] ?? "";
    const [, marks] = FENCE.exec(line) ?? [];
    if (marks) {
      const end = source.findIndex((one, index) => index > at && one.trim().startsWith(marks) && /^[`~ ]*$/.test(one));
      const code = source.slice(at + 1, end < 0 ? undefined : end);
      lines.push(["```", ...code.map((one) => one.replaceAll("```", "'''")), "```"].join("\n"));
      at = end < 0 ? source.length : end;
      continue;
    }
    if (isRow(line) && TABLE_RULE.test(source[at + 1] ?? "")) {
      header = cellsOf(line);
      at++;
      continue;
    }
    if (header && isRow(line)) {
      lines.push(rowText(cellsOf(line), header));
      continue;
    }
    header = null;
    if (!RULE.test(line)) lines.push(marked(line));
  }
  return lines
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

function marked(line: string): string {
  const [start = ""] = /^[ \t]*(?:>[ \t]?)*/.exec(line) ?? [];
  const rest = line.slice(start.length);
  const [heading = ""] = /^#{1,6}[ \t]+/.exec(rest) ?? [];
  if (heading !== "") {
    const title = rest.slice(heading.length).replace(/(?<!#)#+$/, "");
    return start + bold(render(parseInline(title.trim()), "strong"));
  }
  const [bullet = ""] = /^(?:[*+-]|\d{1,9}[.)])[ \t]+/.exec(rest) ?? [];
  return start + bullet.replace(/^[*+]/, "-") + render(parseInline(rest.slice(bullet.length)));
}

const isRow = (line: string) => /^\s{0,3}\|/.test(line) && line.trimEnd().endsWith("|") && line.trim().length > 2;

const cellsOf = (row: string) =>
  row
    .trim()
    .slice(1, -1)
    .split("|")
    .map((cell) => cell.trim());

/** A row is a line: its first cell in bold, the others with the names of their columns. */
function rowText([first = "", ...rest]: readonly string[], header: readonly string[]): string {
  const cells = rest.map((cell, at) => {
    const name = header[at + 1] ?? "";
    return name === "" ? marked(cell) : `${render(parseInline(name))}: ${render(parseInline(cell))}`;
  });
  const head = first === "" ? "" : bold(render(parseInline(first), "strong"));
  return `- ${[head, ...cells].filter((cell) => cell !== "").join(", ")}`;
}

const bold = (text: string) => (text === "" ? "" : `*${text}*`);

const SIGNS = { strong: "*", emphasis: "_", strike: "~" } as const;

/** A mark inside the same mark would end it. */
function render(nodes: readonly Inline[], ...inside: readonly Inline["type"][]): string {
  return nodes.map((node) => renderOne(node, inside)).join("");
}

function renderOne(node: Inline, inside: readonly Inline["type"][]): string {
  switch (node.type) {
    case "text":
      return node.text;
    case "code":
      return node.text.includes("`") ? node.text : `\`${node.text}\``;
    case "image":
      return named(node.alt, node.url);
    case "link":
      return named(render(node.children, ...inside), node.url);
    case "spoiler":
      return render(node.children, ...inside);
    default: {
      const text = render(node.children, ...inside, node.type);
      const sign = SIGNS[node.type];
      return inside.includes(node.type) || text.trim() === "" ? text : `${sign}${text}${sign}`;
    }
  }
}

/** `words (address)`, or the address alone where the words are the same. */
function named(words: string, url: string): string {
  const bare = url.replace(/^(?:mailto|tel):/i, "");
  return words === "" || words === url || words === bare ? bare : `${words} (${bare})`;
}
