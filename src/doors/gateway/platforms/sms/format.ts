// Markdown as plain words: a text message shows every mark as it is.
import { type Inline, parseInline } from "../../inline-markdown.ts";

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const TABLE_RULE = /^\s{0,3}\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?$/;

/** Words, addresses and code stay; marks go. */
export function withoutMarks(markdown: string): string {
  const lines: string[] = [];
  let fence: string | null = null;
  for (const line of markdown.split("\n")) {
    const [, marks] = FENCE.exec(line) ?? [];
    if (fence !== null) {
      if (marks?.startsWith(fence) && line.trim() === marks) fence = null;
      else lines.push(line);
    } else if (marks) fence = marks;
    else if (!RULE.test(line) && !TABLE_RULE.test(line)) lines.push(plainLine(line));
  }
  return lines
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

function plainLine(line: string): string {
  const [indent = ""] = /^[ \t]*/.exec(line) ?? [];
  const text = line
    .slice(indent.length)
    .replace(/^(?:>[ \t]?)+/, "")
    .replace(/^#{1,6}[ \t]+/, "")
    .replace(/^[*+][ \t]+/, "- ");
  return indent + plain(parseInline(isRow(text) ? cellsOf(text) : text));
}

const isRow = (text: string) => text.startsWith("|") && text.trimEnd().endsWith("|") && text.trim().length > 2;

const cellsOf = (row: string) =>
  row
    .trim()
    .slice(1, -1)
    .split("|")
    .map((cell) => cell.trim())
    .join(" | ");

function plain(nodes: readonly Inline[]): string {
  return nodes.map(wordsOf).join("");
}

function wordsOf(node: Inline): string {
  if (node.type === "image") return named(node.alt, node.url);
  if (node.type === "link") return named(plain(node.children), node.url);
  return "children" in node ? plain(node.children) : node.text;
}

/** `words (address)`, or the address alone where the words are the same. */
function named(words: string, url: string): string {
  const bare = url.replace(/^(?:mailto|tel):/i, "");
  return words === "" || words === url || words === bare ? bare : `${words} (${bare})`;
}
