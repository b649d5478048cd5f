// A page as Markdown: the article if there is one, else all of the page that a reader would see.
import { type PageDocument, type PageElement, parsePage } from "./plain-text.ts";

export interface MarkdownPage {
  readonly title: string;
  readonly markdown: string;
}

// What nobody sees on a page must not speak to the model either.
const UNSEEN =
  'title, script, style, noscript, template, svg, iframe, object, embed, [hidden], [aria-hidden="true"], [style*="display:none"], [style*="display: none"], [style*="visibility:hidden"], [style*="visibility: hidden"]';
const AROUND = "nav, header, footer, aside, form, dialog";
/** An article smaller than this part of the page is a guess that went wrong: an index, a table, a forum. */
const ARTICLE_SHARE = 0.25;
// The search for an article compares elements with each other: beyond this it takes seconds.
const MAX_ELEMENTS = 20_000;

export async function htmlToMarkdown(html: string, base: URL): Promise<MarkdownPage> {
  const document = await parsePage(html);
  const title = titleOf(document);
  for (const element of document.querySelectorAll(UNSEEN)) element.remove();
  makeAbsolute(document, base);
  const whole = wholePage(document);
  const article = await readArticle(document);
  const content = article && article.length >= ARTICLE_SHARE * whole.length ? article.html : whole.html;
  const { NodeHtmlMarkdown } = await import("node-html-markdown");
  const translator = new NodeHtmlMarkdown({ maxConsecutiveNewlines: 2 });
  const markdown = await translateInPieces(content, (html) => translator.translate(html));
  return { title, markdown: markdown.replace(/(?<![ \t])[ \t]+$/gm, "").trim() };
}

function titleOf(document: PageDocument): string {
  const named = document.querySelector("title")?.textContent;
  const shared = document.querySelector('meta[property="og:title"]')?.getAttribute("content");
  const heading = document.querySelector("h1")?.textContent;
  return (named?.trim() || shared?.trim() || heading?.trim() || "").replace(/\s+/g, " ");
}

/** Links that lead somewhere from outside the page; pictures by address, not by content. */
function makeAbsolute(document: PageDocument, page: URL): void {
  const given = document.querySelector("base")?.getAttribute("href") ?? "";
  const base = URL.canParse(given, page.href) ? new URL(given, page.href) : page;
  for (const link of document.querySelectorAll("a[href]")) point(link, "href", base);
  for (const image of document.querySelectorAll("img")) {
    point(image, "src", base);
    if (!image.getAttribute("src")) image.remove();
  }
}

function point(element: PageElement, attribute: "href" | "src", base: URL): void {
  const value = element.getAttribute(attribute) ?? "";
  const url = URL.canParse(value, base.href) ? new URL(value, base.href) : null;
  if (url && /^(?:https?|mailto):$/.test(url.protocol)) element.setAttribute(attribute, url.href);
  else element.removeAttribute(attribute);
}

interface Part {
  readonly html: string;
  /** Characters of text. */
  readonly length: number;
}

const lengthOf = (text: string | null | undefined) => (text ?? "").replace(/\s+/g, " ").length;

/** Read before the search for an article, which takes the page apart. */
function wholePage({ body }: PageDocument): Part {
  const all = { html: body.innerHTML, length: lengthOf(body.textContent) };
  const around = [...body.querySelectorAll(AROUND)];
  if (around.length === 0) return all;
  const outside = around.reduce((sum, element) => sum + lengthOf(element.textContent), 0);
  // A page may be nothing but its header and footer.
  if (all.length - outside < 200) return all;
  for (const element of around) element.remove();
  return { html: body.innerHTML, length: lengthOf(body.textContent) };
}

async function readArticle(document: PageDocument): Promise<Part | null> {
  const { Readability } = await import("@mozilla/readability");
  try {
    const article = new Readability(document as never, { maxElemsToParse: MAX_ELEMENTS }).parse(); // a whole document behind the narrow type
    return article?.content ? { html: article.content, length: lengthOf(article.textContent) } : null;
  } catch {
    return null; // too many elements, or a page that confuses it: the whole page serves
  }
}

// Markdown of a long page, piece by piece: the package walks its whole result again with every word it adds.

/** Characters of HTML that are translated at once. */
const MAX_CHARS = 20_000;
const INLINE = new Set(
  "A ABBR B BDI BDO BR CITE CODE DATA EM I IMG KBD MARK Q S SAMP SMALL SPAN STRONG SUB SUP TIME U VAR WBR".split(" "),
);
const CONTAINERS = new Set(
  "BODY DIV MAIN ARTICLE SECTION HEADER FOOTER ASIDE NAV CENTER FORM FIELDSET FIGURE DETAILS DL".split(" "),
);
const ROWS = new Set("TABLE THEAD TBODY TFOOT".split(" "));

/** Pieces are joined by an empty line, and parts of one list or table by a line's end. */
interface Piece {
  readonly html: string;
  readonly type: "block" | "list" | "table";
  /** How many items or rows of the same list or table stand in pieces before it. */
  readonly before: number;
}

async function translateInPieces(html: string, translate: (html: string) => string): Promise<string> {
  if (html.length <= MAX_CHARS) return translate(html);
  let markdown = "";
  for (const piece of cut((await parsePage(html)).body)) {
    const text = asPart(translate(piece.html).trim(), piece);
    if (text !== "") markdown += `${markdown === "" ? "" : piece.before > 0 ? "\n" : "\n\n"}${text}`;
  }
  return markdown;
}

/** Later parts of a table do not repeat its head, those of a numbered list go on counting. */
function asPart(text: string, { type, before }: Piece): string {
  if (before === 0 || type === "block") return text;
  if (type === "table") return text.split("\n").slice(2).join("\n");
  return text.replace(/^(\d+)\. /gm, (_, number) => `${Number(number) + before}. `);
}

function* cut(element: PageElement): Generator<Piece> {
  let run = "";
  const block = (html: string): Piece => ({ html, type: "block", before: 0 });
  for (const node of element.childNodes) {
    const html = node.outerHTML ?? escapeText(node.textContent ?? "");
    const inline = node.tagName === undefined || INLINE.has(node.tagName);
    if (inline || html.length + run.length <= MAX_CHARS) {
      run += html;
      continue;
    }
    if (run.trim() !== "") yield block(run);
    run = "";
    if (html.length <= MAX_CHARS) run = html;
    else if (CONTAINERS.has(node.tagName ?? "")) yield* cut(node);
    else if (node.tagName === "UL" || node.tagName === "OL") yield* cutList(node, node.tagName);
    else if (node.tagName === "TABLE") yield* cutTable(node);
    else yield block(html);
  }
  if (run.trim() !== "") yield block(run);
}

function* cutList(list: PageElement, tag: "UL" | "OL"): Generator<Piece> {
  const items = elementsIn(list).map(({ outerHTML }) => outerHTML ?? "");
  for (const { html, before } of groups(items)) yield { html: `<${tag}>${html}</${tag}>`, type: "list", before };
}

function* cutTable(table: PageElement): Generator<Piece> {
  const [head, ...rows] = rowsOf(table).map(({ outerHTML }) => outerHTML ?? "");
  if (head === undefined) return yield { html: table.outerHTML ?? "", type: "block", before: 0 };
  for (const { html, before } of groups(rows)) yield { html: `<table>${head}${html}</table>`, type: "table", before };
}

function rowsOf(part: PageElement): readonly PageElement[] {
  return elementsIn(part).flatMap((node) => {
    if (node.tagName === "TR") return [node];
    return ROWS.has(node.tagName ?? "") ? rowsOf(node) : [];
  });
}

const elementsIn = ({ childNodes }: PageElement) => [...childNodes].filter(({ tagName }) => tagName !== undefined);

function* groups(parts: readonly string[]): Generator<{ readonly html: string; readonly before: number }> {
  let html = "";
  let first = 0;
  for (const [index, part] of parts.entries()) {
    if (html !== "" && html.length + part.length > MAX_CHARS) {
      yield { html, before: first };
      html = "";
      first = index;
    }
    html += part;
  }
  yield { html, before: first };
}

const escapeText = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
