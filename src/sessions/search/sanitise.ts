// From what a person or a model types to an expression FTS5 accepts. Word characters are Unicode's, not JavaScript's `\w`.
import { sliceCodePoints } from "../../kit/code-points.ts";

const MAX_QUERY = 2048;
const WORD = String.raw`[\p{L}\p{N}\p{M}_]`;
const PHRASE = /"[^"]*"/g;
const HELD = /\ue000(\d+)\ue001/g;
/** A phrase that is set aside, with what may cling to it. */
const HELD_TOKEN = /^\ue000\d+\ue001\*?$/;
const JOINED = new RegExp(`^${WORD}+(?:[._-]${WORD}+)+$`, "u");
/** FTS5 takes ASCII letters, digits, `_` and everything beyond ASCII without quotes. */
const BARE = /^[A-Za-z0-9_\u0080-\u{10ffff}]+$/u;
/** Emoji are no words to the index, but people look for them. */
const SEARCHABLE = /[\p{L}\p{N}\p{Extended_Pictographic}]/u;
const OPERATOR_AT_EDGE = /^\s*(?:AND|OR|NOT)(?=\s|$)|(?:^|(?<=\s))(?:AND|OR|NOT)\s*$/i;

/** Empty when nothing searchable is left. */
export function sanitiseQuery(query: string): string {
  const phrases: string[] = [];
  const held = sliceCodePoints(query.replace(/[\0\ue000\ue001]/g, ""), 0, MAX_QUERY)
    .replace(PHRASE, (phrase) => `\ue000${phrases.push(phrase) - 1}\ue001`)
    .replaceAll('"', " ")
    .replace(/[+{}():^]/g, " ")
    .replace(/\*+/g, "*")
    .replace(/(^|\s)\*/g, "$1");
  const quoted = withoutEdgeOperators(held)
    .split(/(\s+)/)
    .map((token) => (/^\s*$/.test(token) ? token : quoteToken(token)))
    .join("");
  return withoutEdgeOperators(quoted)
    .replace(HELD, (_, index: string) => phrases[Number(index)] ?? "")
    .trim();
}

function withoutEdgeOperators(text: string): string {
  for (let current = text; ; ) {
    const next = current.replace(OPERATOR_AT_EDGE, "");
    if (next === current) return current;
    current = next;
  }
}

function quoteToken(token: string): string {
  if (HELD_TOKEN.test(token)) return token;
  // A phrase with letters stuck to it: the parts stand for themselves.
  if (token.includes("\ue000"))
    return token
      .split(/(\ue000\d+\ue001\*?)/)
      .filter(Boolean)
      .map(quoteToken)
      .join(" ");
  const prefix = token.endsWith("*");
  const word = prefix ? token.slice(0, -1) : token;
  if (!SEARCHABLE.test(word)) return "";
  if (BARE.test(word) && !JOINED.test(word)) return token;
  return `"${word}"${prefix ? "*" : ""}`;
}
