// Instructions hidden in markup: HTML comments, and elements that are not displayed.
import type { Find, Place } from "./matchers.ts";

const SIDE = 512;
const COMMENT_START = "<!--";

const ORDER = /(?<!\p{L})(?:ignore|override)(?!\p{L})/gu;
const SECRECY = /(?<!\p{L})(?:system|secret|hidden)(?!\p{L})/gu;
const COMPANION = /instruction|prompt|rule|command|message|directive|password/u;
const ANYWHERE = /ignore|override|system|secret|hidden/gu;

// What formatters and spell checkers are told: `prettier-ignore-start`, `cspell:ignore heron egret`. One word, and for tools that are
// known up to three more.
const FOR_A_TOOL =
  /^<!--\s*(?:[a-z]{2,20}[-:](?:[a-z]{2,12}-)?ignore(?:-[a-z0-9]{1,12}){0,2}|(?:cspell|dprint|markdownlint|prettier|textlint|vale):?\s?-?ignore(?:\s+[\w./-]{1,40}){1,3})\s*$/u;

/** A comment that orders something about orders, or keeps something about them secret. */
export const orderInComment: Find = (text) =>
  earliestComment(text, (body) => {
    if (FOR_A_TOOL.test(body)) return [];
    return [...body.matchAll(ORDER), ...(COMPANION.test(body) ? body.matchAll(SECRECY) : [])];
  });

/** The same words in a comment in any company, even inside other words. */
export const wordInComment: Find = (text) => earliestComment(text, (body) => [...body.matchAll(ANYWHERE)]);

function earliestComment(text: string, wordsIn: (body: string) => RegExpExecArray[]): Place | null {
  let from = 0;
  for (let close = text.indexOf("-->"); close !== -1; close = text.indexOf("-->", close + 3)) {
    // A comment holds no ">", so its start lies behind the last one; a word may be so far from either end and no further.
    const start = Math.max(from, text.lastIndexOf(">", close) + 1, close - 2 * SIDE - COMMENT_START.length - 16);
    from = close + 3;
    const tail = text.slice(start, close);
    const open = tail.indexOf(COMMENT_START);
    if (open === -1) continue;
    const body = tail.slice(open);
    for (const match of wordsIn(body)) {
      const opened = body.lastIndexOf(COMMENT_START, match.index - COMMENT_START.length);
      const near = opened !== -1 && match.index - opened - COMMENT_START.length <= SIDE;
      if (near && body.length - match.index - match[0].length <= SIDE) {
        return { index: start + open + opened, end: close + 3 };
      }
    }
  }
  return null;
}

const ATTRIBUTES = 2048;
const TAG_PARTS = /<(?:div|span)(?![\w-])|>|["']|(?<![\w-])style\s*=\s*["']?|(?<![\w-])display\s*:\s*none/gu;

/** A div or span whose style attribute says `display: none`. */
export const hiddenElement: Find = (text) => {
  let tag: Place | null = null;
  let quote: string | null = null; // of the style attribute we are in; empty when it has none
  for (const { 0: part, index } of text.matchAll(TAG_PARTS)) {
    const end = index + part.length;
    if (part === ">") {
      tag = null;
    } else if (part.startsWith("<")) {
      tag = { index, end };
      quote = null;
    } else if (tag && part.startsWith("style")) {
      quote = index - tag.end <= ATTRIBUTES ? (/["']$/.exec(part)?.[0] ?? "") : null;
    } else if (part === quote) {
      quote = null;
    } else if (tag && quote !== null && part.startsWith("display")) {
      return { index: tag.index, end };
    }
  }
  return null;
};
