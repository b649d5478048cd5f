// Markdown as Message Styling (XEP-0393), which clients show: *strong*, _emphasis_, ~struck out~, `code`, blocks of code and quotes.
import { type Inline, parseInline } from "../../inline-markdown.ts";

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

export function toStyled(markdown: string): string {
  let fence = "";
  const lines = markdown.split("\n").map((line) => {
    const [, marks = ""] = FENCE.exec(line) ?? [];
    if (fence === "" && marks !== "") {
      fence = marks;
      return "```";
    }
    if (fence !== "" && marks.startsWith(fence) && line.trim() === marks) {
      fence = "";
      return "```";
    }
    return fence === "" ? styledLine(line) : line;
  });
  return xmlSafe(lines.join("\n"));
}

function styledLine(line: string): string {
  const heading = /^ {0,3}#{1,6} /.exec(line)?.[0];
  if (heading === undefined) return styled(parseInline(line.replace(/^(\s{0,20})\* /, "$1- ")));
  const text = words(parseInline(line.slice(heading.length).trim()));
  return text === "" ? "" : `*${text}*`;
}

const MARKS = { strong: "*", emphasis: "_", strike: "~", spoiler: "" } as const;

function styled(nodes: readonly Inline[]): string {
  return nodes
    .map((node) => {
      if (node.type === "code") return `\`${node.text}\``;
      if (!("children" in node) || node.type === "link") return word(node);
      return `${MARKS[node.type]}${styled(node.children)}${MARKS[node.type]}`;
    })
    .join("");
}

const words = (nodes: readonly Inline[]): string => nodes.map(word).join("");

function word(node: Inline): string {
  if (node.type === "image") return node.alt === "" ? node.url : `${node.alt} (${node.url})`;
  if (node.type !== "link") return "children" in node ? words(node.children) : node.text;
  const text = words(node.children);
  return text === "" || text === node.url || `mailto:${text}` === node.url ? node.url : `${text} (${node.url})`;
}

/** One character that XML does not know ends the whole stream. */
export const xmlSafe = (text: string) =>
  text.toWellFormed().replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");
