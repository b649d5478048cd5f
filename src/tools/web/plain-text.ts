// The text of a page without building its tree: one pass, whatever the page is made of.

const VOID = new Set("area base br col embed hr img input link meta source track wbr".split(" "));
// Their end tags may be missing, so that counting them says nothing about depth.
const SELF_CLOSING = new Set(
  "p li dt dd tr td th thead tbody tfoot colgroup option optgroup rb rt rp html head body".split(" "),
);
const RAW = new Set(["script", "style", "noscript", "template", "svg", "textarea", "title"]);
const BLOCKS = new Set(
  "address article aside blockquote br dd div dl dt footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table td th tr ul".split(
    " ",
  ),
);

const MOST_DEPTH = 120;
const MOST_TAGS = 8_000;
const MOST_CHARS = 1_000_000;
const MOST_CHILDREN = 2_000;

/** Building the tree and walking it would take more time than any page is worth: the time grows with the square of the elements. */
export function isOutsized(html: string): boolean {
  if (html.length > MOST_CHARS) return true;
  if (html.split("<", MOST_TAGS + 2).length > MOST_TAGS + 1) return true;
  const children = [0];
  for (const { name, closes } of tagsOf(html)) {
    const here = children.length - 1;
    const nests = !VOID.has(name) && !SELF_CLOSING.has(name) && !RAW.has(name);
    if (!closes) children[here] = (children[here] ?? 0) + 1;
    if ((children[here] ?? 0) > MOST_CHILDREN) return true;
    if (nests && closes && here > 0) children.pop();
    if (nests && !closes) children.push(0);
    if (children.length > MOST_DEPTH) return true;
  }
  return false;
}

export function plainText(html: string): string {
  let text = "";
  let from = 0;
  for (const { name, start, end } of tagsOf(html)) {
    text += html.slice(from, start);
    if (BLOCKS.has(name)) text += "\n";
    from = end;
  }
  return decodeEntities(text + html.slice(from))
    .replace(/[^\S\n]+/g, " ")
    .replace(/ ?\n[ \n]*/g, "\n")
    .trim();
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
