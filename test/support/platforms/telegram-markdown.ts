// Reads MarkdownV2 by the vendor's rules: https://core.telegram.org/bots/api#markdownv2-style, and what its own parser does where the page
// is silent. Strict: it refuses what Telegram refuses, in Telegram's words.

interface Entity {
  readonly type: string;
  readonly offset: number;
  readonly length: number;
  readonly url?: string;
  readonly language?: string;
}

interface ParsedText {
  readonly text: string;
  readonly entities: readonly Entity[];
  /** Addresses of links that lead nowhere: Telegram shows their text alone. Offsets are those before blanks at the ends were cut. */
  readonly dropped: readonly { readonly offset: number; readonly url: string }[];
}

interface OpenEntity {
  type: Kind;
  readonly argument: string;
  readonly offset: number;
  /** Where it began in the text that was sent, in bytes. */
  readonly byteOffset: number;
}

type Kind =
  | "bold"
  | "italic"
  | "underline"
  | "strikethrough"
  | "spoiler"
  | "code"
  | "pre"
  | "text_link"
  | "custom_emoji"
  | "blockquote"
  | "expandable_blockquote";

export class MarkdownRefused extends Error {
  override name = "MarkdownRefused";
}

const RESERVED = "_*[]()~`>#+-=|{}.!\n";

/** Throws `MarkdownRefused` with the description that the Bot API answers with. */
export function parseMarkdownV2(source: string): ParsedText {
  const at = (index: number) => source.charAt(index);
  const canEscape = (index: number) => at(index) === "\\" && at(index + 1) >= "\u0001" && at(index + 1) <= "~";
  const open: OpenEntity[] = [];
  const entities: Entity[] = [];
  const dropped: { offset: number; url: string }[] = [];
  let text = "";
  let quoted = false;
  let mayQuote = true;

  for (let i = 0; i < source.length; i++) {
    const char = at(i);
    if (canEscape(i)) {
      i++;
      text += at(i);
      mayQuote = at(i) === "\n";
      continue;
    }
    const top = open.at(-1);
    const reserved = top?.type === "code" || top?.type === "pre" ? "`" : RESERVED;
    if (!reserved.includes(char)) {
      text += char;
      mayQuote = false;
      continue;
    }
    const endsQuote = quoted && char === "\n" && at(i + 1) !== ">";
    if (top && (endsQuote || ends(top.type, i))) i = endEntity(i, char);
    else i = beginEntity(i, char);
  }
  if (quoted) endQuote();
  const left = open.at(-1);
  if (left) throw unclosed(left);
  return { ...trimmed(text, entities), dropped };

  function ends(type: Kind, i: number): boolean {
    const next = at(i + 1);
    switch (type) {
      case "bold":
        return at(i) === "*";
      case "italic":
        return at(i) === "_" && next !== "_";
      case "underline":
        return at(i) === "_" && next === "_";
      case "strikethrough":
        return at(i) === "~";
      case "spoiler":
        return at(i) === "|" && next === "|";
      case "code":
        return at(i) === "`";
      case "pre":
        return source.startsWith("```", i);
      case "text_link":
      case "custom_emoji":
        return at(i) === "]";
      default:
        return false;
    }
  }

  /** Returns the index of the last character that was used. */
  function beginEntity(i: number, char: string): number {
    const push = (type: Kind, argument = "") =>
      open.push({ type, argument, offset: text.length, byteOffset: Buffer.byteLength(source.slice(0, i)) });
    switch (char) {
      case "\n":
        text += "\n";
        mayQuote = true;
        return i;
      case "_":
        push(at(i + 1) === "_" ? "underline" : "italic");
        return at(i + 1) === "_" ? i + 1 : i;
      case "*":
        push("bold");
        return i;
      case "~":
        push("strikethrough");
        return i;
      case "[":
        push("text_link");
        return i;
      case "|":
        if (at(i + 1) !== "|") throw isReserved(char);
        push("spoiler");
        return i + 1;
      case "!":
        if (at(i + 1) !== "[") throw isReserved(char);
        push("custom_emoji");
        return i + 1;
      case "`": {
        if (!source.startsWith("```", i)) {
          push("code");
          return i;
        }
        let start = i + 3;
        const [language = ""] = /^[^\s`]+(?=\s)/.exec(source.slice(start)) ?? [];
        push("pre", language);
        start += language.length;
        if (at(start) === "\n" || at(start) === "\r") start += source.startsWith("\r\n", start) ? 2 : 1;
        return start - 1;
      }
      case ">":
        if (!mayQuote) throw isReserved(char);
        if (!quoted) push("blockquote");
        quoted = true;
        return i;
      default:
        throw isReserved(char);
    }
  }

  function endEntity(i: number, char: string): number {
    if (quoted && char === "\n") {
      endQuote();
      const inside = open.at(-1);
      if (inside) throw unclosed(inside);
      text += "\n";
      mayQuote = true;
      return i;
    }
    const entity = open.pop() as OpenEntity; // whoever calls this has seen one
    const { type, argument, offset } = entity;
    const isEmpty = text.length === offset;
    const base = { type, offset, length: text.length - offset };
    if (type === "text_link" || type === "custom_emoji") {
      const address = addressAt(i + 1, type, text.slice(offset));
      if (type === "custom_emoji" && !/^tg:\/\/emoji\?id=\d+$/.test(address.url))
        throw new MarkdownRefused("custom emoji entity must contain a tg://emoji URL");
      if (!isEmpty && isAddress(address.url)) entities.push({ ...base, url: address.url });
      else dropped.push({ offset: text.length, url: address.url });
      return address.end;
    }
    if (!isEmpty) entities.push({ ...base, ...(argument === "" ? {} : { language: argument }) });
    return i + (type === "underline" || type === "spoiler" ? 1 : type === "pre" ? 2 : 0);
  }

  /** A spoiler that begins at the very end of a quote is the mark of one that can be folded. */
  function endQuote(): void {
    const last = open.at(-1);
    const isFolded = last?.type === "spoiler" && last.offset === text.length;
    if (isFolded) open.pop();
    const quote = open.at(-1);
    if (quote?.type !== "blockquote") throw unclosed(quote ?? (last as OpenEntity)); // a quote is open
    open.pop();
    quoted = false;
    const type = isFolded ? "expandable_blockquote" : "blockquote";
    if (text.length > quote.offset) entities.push({ type, offset: quote.offset, length: text.length - quote.offset });
  }

  function addressAt(start: number, type: Kind, label: string): { readonly url: string; readonly end: number } {
    if (at(start) !== "(") {
      if (type === "custom_emoji") throw new MarkdownRefused("custom emoji entity must contain a tg://emoji URL");
      return { url: label, end: start - 1 };
    }
    let url = "";
    let i = start + 1;
    for (; i < source.length && at(i) !== ")"; i++) {
      if (canEscape(i)) i++;
      url += at(i);
    }
    if (at(i) !== ")")
      throw new MarkdownRefused(
        `can't find end of a URL at byte offset ${Buffer.byteLength(source.slice(0, start + 1))}`,
      );
    return { url, end: i };
  }
}

const isReserved = (char: string) =>
  new MarkdownRefused(`character '${char}' is reserved and must be escaped with the preceding '\\'`);

const unclosed = ({ type, byteOffset, argument }: OpenEntity) =>
  new MarkdownRefused(
    `can't find end of ${type === "pre" && argument !== "" ? "PreCode" : titled(type)} entity at byte offset ${byteOffset}`,
  );

const titled = (type: Kind) => type.replace(/(?:^|_)([a-z])/g, (_, first: string) => first.toUpperCase());

const isAddress = (url: string) =>
  /^(?:https?|ftp|tg|ton|tonsite):/i.test(url) || /^[^\s/?#]+\.[^\s/?#.]{2,}(?:[/?#]|$)/.test(url);

/** Blanks at the end of a message are cut, those at its beginning as far as no entity is over them. */
export function trimmed(text: string, entities: readonly Entity[]): Omit<ParsedText, "dropped"> {
  const first = Math.min(text.length, ...entities.map(({ offset }) => offset));
  const start = Math.min(first, text.length - text.trimStart().length);
  const end = text.trimEnd().length;
  const kept = entities.flatMap((entity) => {
    const from = Math.max(start, entity.offset);
    const to = Math.min(end, entity.offset + entity.length);
    return to > from ? [{ ...entity, offset: from - start, length: to - from }] : [];
  });
  return {
    text: text.slice(start, Math.max(start, end)),
    entities: kept.sort((a, b) => a.offset - b.offset || b.length - a.length),
  };
}
