// The text of a page without building its tree: one pass, whatever the page is made of.
import type { MarkdownPage } from "./markdown.ts";

const VOID = new Set("area base br col embed hr img input link meta source track wbr".split(" "));
// Their end tags may be missing, so that counting them says nothing about depth.
const SELF_CLOSING = new Set(
  "p li dt dd tr td th thead tbody tfoot colgroup option optgroup rb rt rp html head body".split(" "),
);
const RAW = new Set(["script", "style", "noscript", "template", "svg", "textarea", "title"]);
const BLOCKS = new Set(
  "address article aside blockquote br dd div dl dt footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table tr ul".split(
    " ",
  ),
);

const LARGE = { depth: 120, tags: 2_000, chars: 200_000 };
const HOPELESS_DEPTH = 1_000;
/** Each takes a few microseconds; no page that is read has more. */
const MAX_LINKS = 20_000;

/** `large`: building the tree and walking it keeps a thread busy for a while. `hopeless`: nobody comes back from that depth. */
export function sizeOf(html: string): "small" | "large" | "hopeless" {
  let [tags, depth, deepest] = [0, 0, 0];
  for (const { name, closes } of tagsOf(html)) {
    tags++;
    if (VOID.has(name) || SELF_CLOSING.has(name) || RAW.has(name)) continue;
    depth = Math.max(0, depth + (closes ? -1 : 1));
    deepest = Math.max(deepest, depth);
    if (deepest > HOPELESS_DEPTH) return "hopeless";
  }
  return html.length > LARGE.chars || tags > LARGE.tags || deepest > LARGE.depth ? "large" : "small";
}

/** Headings, list items and links are kept; everything else is text. */
export function plainMarkdown(html: string, base: URL): MarkdownPage {
  let text = "";
  let from = 0;
  let links = 0;
  let target: string | null = null;
  for (const { name, closes, start, end } of seenTagsOf(html)) {
    text += html.slice(from, start);
    if (BLOCKS.has(name)) text += "\n";
    if (name === "a") {
      if (target !== null) text += `](${target})`;
      target = closes || ++links > MAX_LINKS ? null : targetOf(html.slice(start, end), base);
      if (target !== null) text += "[";
    }
    if (!closes && name === "li") text += "- ";
    if (!closes && (name === "td" || name === "th")) text += " | ";
    if (!closes && /^h[1-6]$/.test(name)) text += `${"#".repeat(Number(name[1]))} `;
    from = end;
  }
  const tail = target === null ? "" : `](${target})`;
  const markdown = decodeEntities(text + html.slice(from) + tail)
    .replace(/[^\S\n]+/g, " ")
    .replace(/ ?\n[ \n]*/g, "\n")
    .replace(/\[\s*\]\([^)[\s]*\)/g, "")
    .trim();
  return { title: titleOf(html), markdown };
}

/** One tag with its attributes; the word "hidden" in the value of one hides nothing. */
function isHidden(tag: string): boolean {
  if (/\shidden(?=[\s=/>])/i.test(tag.replace(/"[^"]*"|'[^']*'/g, '""'))) return true;
  if (/\saria-hidden\s*=\s*["']?true/i.test(tag)) return true;
  const [, double, single] = /\sstyle\s*=\s*(?:"([^"]*)|'([^']*))/i.exec(tag) ?? [];
  return /(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(double ?? single ?? "");
}

/** The tags of what is seen; a hidden element counts as one tag with everything in it. */
function* seenTagsOf(html: string): Generator<Tag> {
  let hidden: (Tag & { depth: number }) | null = null;
  for (const tag of tagsOf(html)) {
    if (hidden) {
      if (tag.name === hidden.name) hidden.depth += tag.closes ? -1 : 1;
      // An end tag that may be missing is not waited for.
      const over = SELF_CLOSING.has(hidden.name)
        ? BLOCKS.has(tag.name) || tag.name === hidden.name
        : hidden.depth === 0;
      if (!over) continue;
      const end = tag.closes ? tag.end : tag.start;
      yield { ...hidden, closes: true, end };
      hidden = null;
      if (tag.closes) continue;
    }
    const hides =
      !tag.closes && !VOID.has(tag.name) && isHidden(html.slice(tag.start, Math.min(tag.end, tag.start + 4000)));
    if (hides && !RAW.has(tag.name)) hidden = { ...tag, depth: 1 };
    else yield tag;
  }
  if (hidden) yield { ...hidden, closes: true, end: html.length };
}

function titleOf(html: string): string {
  const [, title = ""] = /<title(?:\s[^>]{0,200})?>([^<]{0,500})/i.exec(html) ?? [];
  return decodeEntities(title).replace(/\s+/g, " ").trim();
}

/** Null for what leads nowhere from outside the page. */
function targetOf(tag: string, base: URL): string | null {
  const [, double, single, bare] = /\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))/i.exec(tag.slice(0, 4000)) ?? [];
  const href = decodeEntities(double ?? single ?? bare ?? "").trim();
  if (href === "" || href.startsWith("#") || !URL.canParse(href, base.href)) return null;
  const url = new URL(href, base.href);
  return /^https?:$/.test(url.protocol) ? url.href.replaceAll("(", "%28").replaceAll(")", "%29") : null;
}

interface Tag {
  readonly name: string;
  readonly closes: boolean;
  readonly start: number;
  /** Behind the tag; behind the whole element where its content is no text. */
  readonly end: number;
}

function* tagsOf(html: string): Generator<Tag> {
  const lower = html.toLowerCase();
  const opening = /<(?:!--|(\/?)([a-z][a-z0-9-]*)|[!?])/g;
  for (let found = opening.exec(lower); found; found = opening.exec(lower)) {
    const start = found.index;
    const name = found[2] ?? "";
    const closes = found[1] === "/";
    const end = found[0] === "<!--" ? after(lower, "-->", start) : tagEnd(lower, { start, name, closes });
    yield { name, closes, start, end };
    opening.lastIndex = end;
  }
}

function tagEnd(lower: string, { start, name, closes }: Omit<Tag, "end">): number {
  const end = after(lower, ">", start);
  if (closes || !RAW.has(name)) return end;
  const closing = lower.indexOf(`</${name}`, end);
  return closing === -1 ? lower.length : after(lower, ">", closing);
}

function after(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at === -1 ? text.length : at + mark.length;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " };

export function decodeEntities(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|([a-z]{2,6}));/gi, (whole, hex, decimal, name) => {
    if (name !== undefined) return ENTITIES[String(name).toLowerCase()] ?? whole;
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : whole;
  });
}

// A page as a tree. The packages have types for browsers; this is the little of them that is used.

export interface PageElement {
  readonly textContent: string | null;
  readonly innerHTML: string;
  /** Absent on what is no element. */
  readonly outerHTML?: string;
  readonly tagName?: string;
  readonly childNodes: Iterable<PageElement>;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): Iterable<PageElement>;
  remove(): void;
}

export interface PageDocument extends Pick<PageElement, "querySelector" | "querySelectorAll"> {
  readonly body: PageElement;
}

/** Never fails for what a page is like. Pages may leave `<html>` and `<body>` out; the tree has both. */
export async function parsePage(html: string): Promise<PageDocument> {
  const { parseHTML } = await import("linkedom");
  return parseHTML(withBody(html)).document as unknown as PageDocument; // the part of a document named above
}

function withBody(html: string): string {
  if (/<body[\s>]/i.test(html) && /<html[\s>]/i.test(html)) return html;
  const inner = html.replace(/<!doctype[^<>]*>|<\/?(?:html|head|body)(?:\s[^<>]*)?>/gi, "");
  return `<!doctype html><html><head></head><body>${inner}</body></html>`;
}
