// A page as a tree. The packages bring types for browsers; this is the little of them that is used.

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
  const inner = html.replace(/<!doctype[^>]*>|<\/?(?:html|head|body)(?:\s[^>]*)?>/gi, "");
  return `<!doctype html><html><head></head><body>${inner}</body></html>`;
}
