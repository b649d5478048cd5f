// Markdown of a long page, piece by piece: the package walks its whole result again with every word it adds.
import { type PageElement, parsePage } from "./dom.ts";

/** Characters of HTML that are translated at once. */
const MOST_CHARS = 20_000;
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

export async function translateInPieces(html: string, translate: (html: string) => string): Promise<string> {
  if (html.length <= MOST_CHARS) return translate(html);
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
    if (inline || html.length + run.length <= MOST_CHARS) {
      run += html;
      continue;
    }
    if (run.trim() !== "") yield block(run);
    run = "";
    if (html.length <= MOST_CHARS) run = html;
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
    if (html !== "" && html.length + part.length > MOST_CHARS) {
      yield { html, before: first };
      html = "";
      first = index;
    }
    html += part;
  }
  yield { html, before: first };
}

const escapeText = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
