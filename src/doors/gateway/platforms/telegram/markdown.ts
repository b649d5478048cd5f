// The model's Markdown as Telegram's MarkdownV2. Blocks are found line by line, marks character by character; nothing is looked at twice, so
// that a long text costs no more than its length. Whatever comes in, the result is text that Telegram parses: a mark without its partner is
// an escaped character.

/** What Telegram takes for markup outside of code. */
const RESERVED = /[_*[\]()~`>#+\-=|{}.!\\]/g;
const escapeText = (text: string) => text.replace(RESERVED, "\\$&");
const escapeCode = (text: string) => text.replace(/[\\`]/g, "\\$&");
const escapeUrl = (url: string) => url.replace(/[\\()]/g, "\\$&");

interface Block {
  readonly text: string;
  /** The first line that is none of it. */
  readonly end: number;
}

export function toMarkdownV2(markdown: string): string {
  // Half a surrogate pair is refused with the whole message.
  const lines = markdown.toWellFormed().replace(/\r\n?/g, "\n").split("\n");
  const blocks: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const block = codeAt(lines, at) ?? tableAt(lines, at) ?? quoteAt(lines, at);
    blocks.push(block?.text ?? lineText(lines[at] ?? ""));
    at = block?.end ?? at + 1;
  }
  return blocks.join("\n");
}

function lineText(line: string): string {
  const title = /^ {0,3}#{1,6}[ \t]+(\S.*)$/.exec(line)?.[1];
  return title === undefined ? inlineText(line) : bold(title);
}

const bold = (text: string) => `*${inlineText(text.replaceAll("**", "").trim())}*`;

// Fenced code.

function codeAt(lines: readonly string[], at: number): Block | null {
  const [, marks, language = ""] = /^[ \t]*(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/.exec(lines[at] ?? "") ?? [];
  if (marks === undefined) return null;
  const isEnd = (line: string) => {
    const trimmed = line.trim();
    return trimmed.length >= marks.length && trimmed === marks.charAt(0).repeat(trimmed.length);
  };
  let end = at + 1;
  while (end < lines.length && !isEnd(lines[end] ?? "")) end++;
  const code = lines.slice(at + 1, end).join("\n");
  // Telegram shows nothing of a block without code, and refuses a message of which nothing is left.
  if (code.trim() === "")
    return {
      text: lines
        .slice(at, end + 1)
        .map(escapeText)
        .join("\n"),
      end: end + 1,
    };
  return { text: `\`\`\`${language}\n${escapeCode(code)}\n\`\`\``, end: end + 1 };
}

// Tables: Telegram has none, and columns do not fit a phone. Each row becomes a heading with a list below it.

function tableAt(lines: readonly string[], at: number): Block | null {
  const [head = "", rule = ""] = lines.slice(at, at + 2);
  if (!head.includes("|") || !rule.includes("-")) return null;
  const header = cellsOf(head);
  const columns = cellsOf(rule);
  if (!columns.every((cell) => /^:?-+:?$/.test(cell)) || Math.abs(columns.length - header.length) > 1) return null;
  if (!rule.includes("|") && header.length !== 1) return null;
  const rows: string[][] = [];
  for (let line = lines[at + 2]; line?.includes("|"); line = lines[at + 2 + rows.length]) rows.push(cellsOf(line));
  const texts = rows.length > 0 ? rows.map((row) => rowText(header, row)) : [bold(header.join(" · "))];
  return { text: texts.filter((text) => text !== "").join("\n\n"), end: at + 2 + rows.length };
}

function rowText(header: readonly string[], row: readonly string[]): string {
  const hasOwnTitle = row.length === header.length + 1;
  const titleAt = hasOwnTitle ? 0 : row.findIndex((cell) => cell !== "");
  const title = row[titleAt];
  if (title === undefined) return "";
  const values = row.flatMap((value, column) => {
    if (column === titleAt || value === "") return [];
    const name = header[hasOwnTitle ? column - 1 : column] ?? "";
    return [`• ${name === "" ? "" : `${inlineText(name)}: `}${inlineText(value)}`];
  });
  return [...(title === "" ? [] : [bold(title)]), ...values].join("\n");
}

/** The cells between the pipes; `\|` is a pipe inside one. */
function cellsOf(line: string): string[] {
  const cells = [""];
  const trimmed = line.trim();
  for (let at = trimmed.startsWith("|") ? 1 : 0; at < trimmed.length; at++) {
    const char = trimmed.charAt(at);
    const isPipe = char === "\\" && trimmed.charAt(at + 1) === "|";
    if (isPipe) at++;
    if (char === "|") cells.push("");
    else cells[cells.length - 1] += isPipe ? "|" : char;
  }
  if (cells.length > 1 && cells.at(-1) === "") cells.pop();
  return cells.map((cell) => cell.trim());
}

// Quotes. `**>` begins one that can be folded, which ends with `||`.

function quoteAt(lines: readonly string[], at: number): Block | null {
  const first = quotePrefix(lines[at] ?? "");
  if (first === null) return null;
  const canFold = first.startsWith("**");
  const quoted: string[] = [];
  for (let end = at; ; end++) {
    const prefix = quotePrefix(lines[end] ?? "");
    if (end < lines.length && prefix !== null && (end === at || !prefix.startsWith("**"))) {
      quoted.push((lines[end] ?? "").slice(prefix.length));
      continue;
    }
    const isFolded = canFold && (quoted.at(-1) ?? "").trimEnd().endsWith("||");
    if (isFolded) quoted.push((quoted.pop() ?? "").trimEnd().slice(0, -2));
    const texts = quoted.map((line, index) => {
      const signs = quotePrefix(lines[at + index] ?? "") ?? "";
      return signs + spaced(line);
    });
    return { text: texts.join("\n") + (isFolded ? "||" : ""), end };
  }
}

/** Behind the sign of a quote a heading still is one. */
const spaced = (line: string) => (line.startsWith(" ") ? ` ${lineText(line.slice(1))}` : lineText(line));

function quotePrefix(line: string): string | null {
  const [, plain, folding] = /^(?:(>{1,3})(?= |$)|(\*\*>{1,3}))/.exec(line) ?? [];
  if (folding !== undefined) return line.indexOf("**", folding.length) === -1 ? folding : null;
  return plain ?? null;
}

// Marks inside a line.

type Sign = "**" | "*" | "~~" | "||";
const WRITTEN: Readonly<Record<Sign, string>> = { "**": "*", "*": "_", "~~": "~", "||": "||" };

/** `[text](address "title")`; the address may hold one level of parentheses. */
const LINK = /\[([^[\]\n]+)\]\((<[^<>\n]+>|(?:[^\s()<>]|\([^\s()]*\))+)(?:[ \t]+"[^"\n]*")?\)/y;

function inlineText(line: string): string {
  /** In the end joined: a sign stays an escaped character until its partner is found. */
  const pieces: string[] = [];
  const open: { readonly sign: Sign; readonly piece: number }[] = [];
  const closer = codeClosers(line);
  let plainFrom = 0;
  const flush = (to: number) => {
    if (to > plainFrom) pieces.push(escapeText(line.slice(plainFrom, to)));
  };
  const put = (from: number, to: number, piece: string) => {
    flush(from);
    pieces.push(piece);
    plainFrom = to;
  };
  const close = (sign: Sign) => {
    const index = open.findLastIndex((one) => one.sign === sign);
    const opener = open[index];
    if (!opener) return false;
    open.length = index;
    pieces[opener.piece] = WRITTEN[sign];
    pieces.push(WRITTEN[sign]);
    return true;
  };
  const begin = (sign: Sign) => {
    if (open.some((one) => one.sign === sign)) return false;
    open.push({ sign, piece: pieces.length });
    pieces.push(escapeText(sign));
    return true;
  };

  for (let at = 0; at < line.length; ) {
    const char = line.charAt(at);
    if (char === "\\") {
      at += 2;
      continue;
    }
    if (char === "`") {
      const run = runAt(line, at);
      const end = closer(run, at + run);
      if (end !== null) put(at, end + run, `\`${escapeCode(codeText(line.slice(at + run, end), run))}\``);
      at = end === null ? at + run : end + run;
      continue;
    }
    if (char === "[") {
      LINK.lastIndex = at;
      const [whole, label = "", address = ""] = LINK.exec(line) ?? [];
      const url = address.replace(/^<|>$/g, "");
      // Telegram drops a link without a visible letter, and makes one of a bare address.
      const link = label.trim() === "" ? escapeText(url) : `[${inlineText(label)}](${escapeUrl(url)})`;
      if (whole !== undefined) put(at, at + whole.length, link);
      at += whole?.length ?? 1;
      continue;
    }
    const run = char === "*" || char === "~" || char === "|" ? runAt(line, at) : 0;
    const signs = run === 0 ? [] : signsIn(char, run, open.at(-1)?.sign);
    if (signs.length === 0) {
      at += Math.max(1, run);
      continue;
    }
    const canClose = /\S/.test(line.charAt(at - 1));
    const canOpen = /\S/.test(line.charAt(at + run));
    flush(at);
    for (const sign of signs)
      if (!(canClose && close(sign)) && !(canOpen && begin(sign))) pieces.push(escapeText(sign));
    at += run;
    plainFrom = at;
  }
  flush(line.length);
  return pieces.join("");
}

/** What a run of characters may mean. The last mark that was opened is closed first. */
function signsIn(char: string, run: number, innermost: Sign | undefined): readonly Sign[] {
  if (char !== "*") return run === 2 ? [char === "~" ? "~~" : "||"] : [];
  if (run === 3) return innermost === "*" ? ["*", "**"] : ["**", "*"];
  return run === 1 ? ["*"] : run === 2 ? ["**"] : [];
}

function runAt(text: string, at: number): number {
  let end = at + 1;
  while (end < text.length && text.charAt(end) === text.charAt(at)) end++;
  return end - at;
}

/** Where the next run of so many backticks begins, asked from left to right. */
function codeClosers(line: string): (run: number, from: number) => number | null {
  const places = new Map<number, number[]>();
  // From the right, so that the next one is always the last of its list.
  for (const { 0: ticks, index } of [...line.matchAll(/`+/g)].reverse()) {
    const known = places.get(ticks.length);
    if (known) known.push(index);
    else places.set(ticks.length, [index]);
  }
  return (run, from) => {
    const left = places.get(run) ?? [];
    while ((left.at(-1) ?? from) < from) left.pop();
    return left.at(-1) ?? null;
  };
}

/** Blanks that only keep backticks apart are none of the code. */
function codeText(inside: string, run: number): string {
  const isPadded = run > 1 && inside.startsWith(" ") && inside.endsWith(" ") && inside.trim() !== "";
  return isPadded ? inside.slice(1, -1) : inside;
}
