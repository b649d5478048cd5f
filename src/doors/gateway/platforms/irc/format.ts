// Markdown as plain lines: what a client of IRC shows as it is.
import { type Inline, parseInline } from "../../inline-markdown.ts";
import { withoutControls } from "./protocol.ts";

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** The words of a text without its marks; addresses of links behind their words. */
export function toPlain(markdown: string): string {
  let fence = "";
  const lines: string[] = [];
  for (const line of markdown.split(/\r\n?|\n/)) {
    const [, marks = ""] = FENCE.exec(line) ?? [];
    if (fence === "" && marks !== "") fence = marks;
    else if (fence !== "" && marks.startsWith(fence) && line.trim() === marks) fence = "";
    else if (fence !== "") lines.push(line);
    else if (!isTableRule(line)) lines.push(plainLine(line));
  }
  return lines.join("\n");
}

const isTableRule = (line: string) => /^[\s|:-]+$/.test(line) && line.includes("---") && line.includes("|");

function plainLine(line: string): string {
  return words(parseInline(line.replace(/^ {0,3}#{1,6} /, "").replace(/^(\s{0,20})\* /, "$1- ")));
}

function words(nodes: readonly Inline[]): string {
  return nodes.map(word).join("");
}

function word(node: Inline): string {
  if (node.type === "image") return node.alt === "" ? node.url : `${node.alt} (${node.url})`;
  if (node.type !== "link") return "children" in node ? words(node.children) : node.text;
  const text = words(node.children);
  return text === "" || text === node.url || `mailto:${text}` === node.url ? node.url : `${text} (${node.url})`;
}

/** Lines of at most so many bytes, cut between words where there are any; empty ones cannot be sent. */
export function toLines(text: string, maxBytes: number): readonly string[] {
  return text
    .split(/\r\n?|\n/)
    .map((line) => withoutControls(line.replaceAll("\t", "  ")))
    .filter((line) => line.trim() !== "")
    .flatMap((line) => cut(line, maxBytes));
}

function cut(line: string, maxBytes: number): readonly string[] {
  const pieces: string[] = [];
  let rest = line;
  while (Buffer.byteLength(rest) > maxBytes) {
    const fits = beginning(rest, maxBytes);
    const space = rest.charAt(fits.length) === " " ? fits.length : fits.lastIndexOf(" ");
    const end = space > 0 && fits.slice(0, space).trim() !== "" ? space : fits.length;
    pieces.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...pieces, rest].filter((piece) => piece.trim() !== "");
}

/** At least one character, and none in halves. */
function beginning(text: string, maxBytes: number): string {
  let [bytes, end] = [0, 0];
  for (const char of text.slice(0, maxBytes)) {
    bytes += Buffer.byteLength(char);
    if (bytes > maxBytes && end > 0) break;
    end += char.length;
  }
  return text.slice(0, end);
}
