// Markdown as Slack's own markup. The order of the steps is part of it: what one has finished, no later one touches.

/**
 * Slack reads `<...>` and `&amp;` everywhere, in code too, so code stays as it is except where it would be read as markup.
 * Linear in the text.
 */
export function toMrkdwn(markdown: string): string {
  const kept = new Kept(markdown);
  const steps: readonly ((text: string) => string)[] = [
    (text) => keepFences(text, kept),
    (text) => text.replace(/`[^`\n]+`/g, (code) => kept.put(asCode(code))),
    (text) => keepLinks(text, kept),
    (text) => text.replace(OWN_MARKUP, (markup) => kept.put(markup)),
    (text) => text.replace(/^>+ /gm, (marks) => kept.put(marks)),
    (text) => escapeMrkdwn(unescapeMrkdwn(text)),
    (text) =>
      text.replace(/^#{1,6}[ \t]+([^\s#].*)$/gm, (_, title: string) =>
        emphasis(kept, "*", withoutMarks(title, kept), "*"),
      ),
    (text) => text.replace(/\*\*\*(?=\S)([^*\n]+)(?<=\S)\*\*\*/g, (_, inner) => emphasis(kept, "*_", inner, "_*")),
    (text) =>
      text.replace(/\*\*(?=\S)((?:[^*\n]|\*(?!\*))+)(?<=\S)\*\*/g, (_, inner: string) =>
        emphasis(kept, "*", italics(inner, kept), "*"),
      ),
    (text) => italics(text, kept),
    (text) => text.replace(/~~(?=\S)([^~\n]+)(?<=\S)~~/g, "~$1~"),
  ];
  return kept.restore(steps.reduce((text, step) => step(text), kept.text));
}

/** As it is shown, sign by sign: for text that is no Markdown. */
export const escapeMrkdwn = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export const unescapeMrkdwn = (text: string) =>
  text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

/** People, channels, groups and links that are written in Slack's way already. */
const OWN_MARKUP = /<(?:@[A-Z0-9]+|#[A-Z0-9]+|![\w^-]+|(?:https?:\/\/|mailto:|tel:)[^\s<>|]+)(?:\|[^<>|\n]*)?>/g;

/** Finished parts, each a number between two signs that the text does not have. */
class Kept {
  readonly text: string;
  readonly #sign: string;
  readonly #parts: string[] = [];

  constructor(text: string) {
    let code = 0xe000;
    while (text.includes(String.fromCharCode(code))) code++;
    this.#sign = String.fromCharCode(code);
    this.text = text;
  }

  put(part: string): string {
    this.#parts.push(part);
    return `${this.#sign}${this.#parts.length - 1}${this.#sign}`;
  }

  /** A part may hold others that were put before it. */
  restore(text: string): string {
    const [first = "", ...rest] = text.split(this.#sign);
    let whole = first;
    for (let at = 0; at < rest.length; at += 2)
      whole += this.restore(this.#parts[Number(rest[at])] ?? "") + (rest[at + 1] ?? "");
    return whole;
  }
}

/** The marks are finished, what is between them is not: it may be struck through. */
const emphasis = (kept: Kept, before: string, inner: string, after: string) =>
  `${kept.put(before)}${inner}${kept.put(after)}`;

const italics = (text: string, kept: Kept) =>
  text.replace(/(?<!\*)\*(?=[^\s*])([^*\n]+)(?<=\S)\*(?!\*)/g, (_, inner: string) => emphasis(kept, "_", inner, "_"));

/** A heading is bold as a whole: marks inside it would end that. */
function withoutMarks(title: string, kept: Kept): string {
  const plain = title.replaceAll("**", "").replace(/[ \t]#+[ \t]*$/, "");
  return italics(plain.trim(), kept);
}

/** Lines of code from fence to fence; one that is never closed goes to the end. */
function keepFences(text: string, kept: Kept): string {
  if (!text.includes("```") && !text.includes("~~~")) return text;
  const out: string[] = [];
  let block: string[] | null = null;
  let fence = "";
  for (const line of text.split("\n")) {
    const [begin = "", marks = ""] = /^ {0,3}(`{3,}|~{3,})/.exec(line) ?? [];
    const info = line.slice(begin.length);
    if (block === null) {
      const opens = marks !== "" && !(marks.startsWith("`") && info.includes("`"));
      if (!opens) {
        out.push(line);
        continue;
      }
      fence = marks;
      block = [line.replace(/~{3,}/, "```")];
      continue;
    }
    const closes = marks.startsWith(fence) && info.trim() === "";
    block.push(closes ? line.replace(/~{3,}/, "```") : line);
    if (!closes) continue;
    out.push(kept.put(asCode(block.join("\n"))));
    block = null;
  }
  if (block !== null) out.push(kept.put(asCode(block.join("\n"))));
  return out.join("\n");
}

const asCode = (code: string) =>
  code
    .replace(/&(?=(?:amp|lt|gt);)/g, "&amp;")
    .split("\n")
    .map((line) => {
      const end = line.lastIndexOf(">");
      return end < 0 ? line : line.slice(0, end).replace(/<(?=\S|$)/g, "&lt;") + line.slice(end);
    })
    .join("\n");

/** `[text](address "title")`, with one level of parentheses in the address, or the address between `<` and `>`. Not images. */
function keepLinks(text: string, kept: Kept): string {
  if (!text.includes("](")) return text;
  const pattern =
    /(?<!!)\[([^[\]\n]*(?:\[[^[\]\n]*\][^[\]\n]*)?)\]\((?:<([^<>\n]+)>|((?:[^\s()<>]|\([^\s()<>]*\))+))(?:[ \t]+"[^"\n]*")?[ \t]*\)/g;
  return text.replace(pattern, (whole, label: string, wrapped: string | undefined, bare: string | undefined) => {
    const address = (wrapped ?? bare ?? "").trim();
    if (address === "" || label.trim() === "") return whole;
    const url = escapeMrkdwn(unescapeMrkdwn(address)).replaceAll("|", "%7C").replaceAll(" ", "%20");
    return kept.put(`<${url}|${escapeMrkdwn(unescapeMrkdwn(label))}>`);
  });
}
