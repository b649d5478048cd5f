// A page as Markdown: the article if there is one, else all of the page that a reader would see.
import { type PageDocument, type PageElement, parsePage } from "./dom.ts";
import { translateInPieces } from "./markdown-pieces.ts";

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
const MOST_ELEMENTS = 20_000;

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
  return { title, markdown: markdown.replace(/[ \t]+$/gm, "").trim() };
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
  const aside = around.reduce((sum, element) => sum + lengthOf(element.textContent), 0);
  // A page may be nothing but its header and footer.
  if (all.length - aside < 200) return all;
  for (const element of around) element.remove();
  return { html: body.innerHTML, length: lengthOf(body.textContent) };
}

async function readArticle(document: PageDocument): Promise<Part | null> {
  const { Readability } = await import("@mozilla/readability");
  try {
    const article = new Readability(document as never, { maxElemsToParse: MOST_ELEMENTS }).parse(); // a whole document behind the narrow type
    return article?.content ? { html: article.content, length: lengthOf(article.textContent) } : null;
  } catch {
    return null; // too many elements, or a page that confuses it: the whole page serves
  }
}
