// Markdown as the HTML that Matrix clients show. Only tags and attributes of the specification's list are made, and all text is escaped.
import { closesFence, type Fence, type Inline, openingFence, parseInline, plainText } from "../../inline-markdown.ts";

/** HTML of a message; null when it would say nothing that the text does not say. */
export function formattedBody(markdown: string): string | null {
  const html = blocks(markdown.replaceAll("\r\n", "\n").split("\n"), 0);
  const isOneParagraph = html.startsWith("<p>") && html.indexOf("</p>") === html.length - 4;
  const bare = isOneParagraph ? html.slice(3, -4) : html;
  return bare === escaped(markdown) ? null : bare;
}

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const attribute = (text: string) => escaped(text).replaceAll('"', "&quot;");

const MAX_DEPTH = 8;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t])/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,12})([-*+]|\d{1,9}[.)])(?:[ \t]+|$)/;

function blocks(lines: readonly string[], depth: number): string {
  const parts: string[] = [];
  let text: string[] = [];
  const endText = () => {
    if (text.length > 0) parts.push(`<p>${text.map((line) => inline(parseInline(line.trim()))).join("<br>\n")}</p>`);
    text = [];
  };
  const put = (html: string) => {
    endText();
    parts.push(html);
  };
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    const fence = openingFence(line);
    const heading = HEADING.exec(line);
    const item = depth < MAX_DEPTH ? ITEM.exec(line) : null;
    if (line.trim() === "") {
      endText();
      at++;
    } else if (fence) {
      const { html, end } = codeBlock(lines, at, fence);
      put(html);
      at = end;
    } else if (heading) {
      const level = heading[1]?.length ?? 1;
      put(`<h${level}>${inline(parseInline(headingText(line.slice(heading[0].length).trim())))}</h${level}>`);
      at++;
    } else if (RULE.test(line)) {
      put("<hr>");
      at++;
    } else if (QUOTE.test(line) && depth < MAX_DEPTH) {
      const end = endOf(lines, at, (one) => QUOTE.test(one));
      put(
        `<blockquote>${blocks(
          lines.slice(at, end).map((one) => one.replace(QUOTE, "")),
          depth + 1,
        )}</blockquote>`,
      );
      at = end;
    } else if (item && (text.length === 0 || /^[-*+]$|^1[.)]$/.test(item[2] ?? ""))) {
      const { html, end } = list(lines, at, depth);
      put(html);
      at = end;
    } else if (line.includes("|") && isTableRule(lines[at + 1] ?? "")) {
      const end = endOf(lines, at + 2, (one) => one.includes("|") && one.trim() !== "");
      put(table(lines.slice(at, end)));
      at = end;
    } else {
      text.push(line);
      at++;
    }
  }
  endText();
  return parts.join("\n");
}

/** Signs may close a heading, but not a word: `# About C#`. */
function headingText(text: string): string {
  const open = text.replace(/(?<!#)#+$/, "");
  return open === "" || /[ \t]$/.test(open) ? open.trimEnd() : text;
}

function endOf(lines: readonly string[], from: number, belongs: (line: string) => boolean): number {
  const length = lines.slice(from).findIndex((line) => !belongs(line));
  return length === -1 ? lines.length : from + length;
}

function codeBlock(lines: readonly string[], at: number, fence: Fence) {
  const { language } = fence;
  const end = endOf(lines, at + 1, (line) => !closesFence(line, fence));
  const code = lines.slice(at + 1, end).map((line) => `${line}\n`);
  const name = /^[\w+#.-]{1,40}$/.test(language) ? ` class="language-${attribute(language)}"` : "";
  return { html: `<pre><code${name}>${escaped(code.join(""))}</code></pre>`, end: end + 1 };
}

/** Items of one kind, each with the lines below it that are indented further. */
function list(lines: readonly string[], from: number, depth: number) {
  const [, indent = "", mark = "-"] = ITEM.exec(lines[from] ?? "") ?? [];
  const isOrdered = /\d/.test(mark);
  const kind = mark.slice(-1);
  const items: string[] = [];
  let at = from;
  while (at < lines.length) {
    const found = ITEM.exec(lines[at] ?? "");
    if (!found || (found[1] ?? "").length > indent.length + 1 || (found[1] ?? "").length < indent.length) break;
    if ((found[2] ?? "").slice(-1) !== kind) break;
    const end = itemEnd(lines, at + 1, indent.length);
    const width = Math.min((found[0] ?? "").length, indent.length + 4);
    const first = (lines[at] ?? "").slice((found[0] ?? "").length);
    const rest = lines
      .slice(at + 1, end)
      .map((line) => line.slice(Math.min(width, line.length - line.trimStart().length)));
    const inside = blocks([first, ...rest], depth + 1);
    // A single paragraph needs no room around it.
    items.push(`<li>${/^<p>(?:(?!<p>)[\s\S])*$/.test(inside) ? inside.replace(/<\/?p>/g, "") : inside}</li>`);
    at = end;
  }
  const start = isOrdered && Number.parseInt(mark, 10) !== 1 ? ` start="${Number.parseInt(mark, 10)}"` : "";
  const tag = isOrdered ? "ol" : "ul";
  return { html: `<${tag}${start}>\n${items.join("\n")}\n</${tag}>`, end: at };
}

/** A blank line belongs to an item if an indented one, or the next item, follows it. */
function itemEnd(lines: readonly string[], from: number, indent: number): number {
  let at = from;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      const next = lines[at + 1] ?? "";
      if (next.trim() === "" || indentOf(next) <= indent)
        return ITEM.test(next) && indentOf(next) === indent ? at + 1 : at;
    } else if (indentOf(line) <= indent) {
      if (
        lines[at - 1]?.trim() === "" ||
        openingFence(line) ||
        [ITEM, HEADING, QUOTE, RULE].some((begins) => begins.test(line))
      )
        return at;
    }
    at++;
  }
  return at;
}

const indentOf = (line: string) => line.length - line.trimStart().length;

function table([head = "", rule = "", ...rows]: readonly string[]): string {
  const width = cells(rule).length;
  const row = (line: string, tag: "th" | "td") => {
    const found = [...cells(line), ...Array<string>(width).fill("")].slice(0, width);
    return `<tr>${found.map((cell) => `<${tag}>${inline(parseInline(cell))}</${tag}>`).join("")}</tr>`;
  };
  const body = rows.length > 0 ? `\n<tbody>\n${rows.map((line) => row(line, "td")).join("\n")}\n</tbody>` : "";
  return `<table>\n<thead>\n${row(head, "th")}\n</thead>${body}\n</table>`;
}

/** The line below the head of a table: `|---|:-:|`. */
function isTableRule(line: string): boolean {
  const found = cells(line);
  return found.length > 0 && found.every((cell) => /^:?-+:?$/.test(cell));
}

/** Bars behind a backslash and inside code divide nothing. */
function cells(line: string): readonly string[] {
  const found: string[] = [];
  let cell = "";
  let isCode = false;
  const trimmed = line.trim().replace(/^\|/, "");
  for (let at = 0; at < trimmed.length; at++) {
    const char = trimmed.charAt(at);
    if (char === "`") isCode = !isCode;
    if (char === "\\" && trimmed.charAt(at + 1) === "|") {
      cell += "|";
      at++;
    } else if (char === "|" && !isCode) {
      found.push(cell.trim());
      cell = "";
    } else cell += char;
  }
  return cell.trim() === "" ? found : [...found, cell.trim()];
}

const TAGS = { strong: "strong", emphasis: "em", strike: "del" } as const;

function inline(nodes: readonly Inline[]): string {
  return nodes.map(one).join("");
}

function one(node: Inline): string {
  switch (node.type) {
    case "text":
      return escaped(node.text);
    case "code":
      return `<code>${escaped(node.text)}</code>`;
    case "spoiler":
      return `<span data-mx-spoiler>${inline(node.children)}</span>`;
    case "link":
      return anchor(node.url, inline(node.children), plainText(node.children));
    case "image": // clients show pictures of the Matrix server only
      return anchor(node.url, escaped(node.alt || node.url), node.alt);
    default:
      return `<${TAGS[node.type]}>${inline(node.children)}</${TAGS[node.type]}>`;
  }
}

/** An address of another kind stays visible, and is not one to click on. */
function anchor(url: string, html: string, label: string): string {
  if (/^(?:https?|ftp|mailto|magnet|matrix):/i.test(url)) return `<a href="${attribute(url)}">${html}</a>`;
  return label === url ? html : `${html} (${escaped(url)})`;
}
