// Instructions hidden in markup: comments, elements that are not displayed, and the marks by which a model tells who speaks.
import type { Find, Span } from "./matchers.ts";

const SIDE = 512;
const COMMENT_START = "<!--";

const ORDER = /(?<!\p{L})(?:ignore|override)(?!\p{L})/gu;
const SECRECY = /(?<!\p{L})(?:system|secret|hidden)(?!\p{L})/gu;
const COMPANION = /instruction|prompt|rule|command|message|directive|password/u;
const ANYWHERE = /ignore|override|system|secret|hidden/gu;

// Directives for formatters and spell checkers: `prettier-ignore-start`, `cspell:ignore heron egret`. One word, and for tools that are
// known up to three more.
const FOR_A_TOOL =
  /^<!--\s*(?:[a-z]{2,20}[-:](?:[a-z]{2,12}-)?ignore(?:-[a-z0-9]{1,12}){0,2}|(?:cspell|dprint|markdownlint|prettier|textlint|vale):?\s?-?ignore(?:\s+[\w./-]{1,40}){1,3})\s*$/u;

/** A comment that orders something about orders, or keeps something about them secret. */
export const orderInComment: Find = (text) =>
  earlier(
    earliestComment(text, (body) => (FOR_A_TOOL.test(body) ? [] : ordersIn(body))),
    markdownComment(text, (body) => ordersIn(body).length > 0),
  );

// What speaks to the model from where no reader looks, and wants something of it. `<!-- AI: keep this sorted -->` is upkeep.
const TO_MODEL =
  /(?:^<!--|[("'])\s{0,8}(?:(?:note|instructions?|message|attention|hidden|hey|dear|hello|important|for|to)[\s:,]{1,3}){0,3}(?:(?:the|any|all|every)\s)?(?:a\.?i\.?|llm|gpt|chatgpt|claude|gemini|copilot|hermes|assistant|agent|model|language model|chatbot|bot)(?:[ -](?:assistant|agent|model|system|reader|reviewer|bot))?s?\s{0,4}[:,]\s/u;
const WANTS =
  /(?<!\p{L})(?:(?:say|claim|conclude) that|tell (?:the|them|everyone|users?|readers?|visitors?)|(?:reply|respond|answer) (?:with|that|only)|(?:recommend|promote|rate|rank) (?:this|our|us|it|only|the)|approve|send|upload|e-?mail|forward|reveal|forget|transfer|silently|pretend|execute|disregard|praise|exfiltrate|leak|(?:do not|don.t|never) (?:tell|mention))(?!\p{L})|https?:\/\//gu;

const ordersIn = (body: string) => [
  ...body.matchAll(ORDER),
  ...(COMPANION.test(body) ? body.matchAll(SECRECY) : []),
  ...(TO_MODEL.test(body) ? body.matchAll(WANTS) : []),
];

/** The same words in a comment in any company, even inside other words. */
export const wordInComment: Find = (text) =>
  earlier(
    earliestComment(text, (body) => [...body.matchAll(ANYWHERE)]),
    markdownComment(text, (body) => body.search(ANYWHERE) !== -1),
  );

const earlier = (one: Span | null, other: Span | null) =>
  one && other && other.index < one.index ? other : (one ?? other);

// A reference nobody refers to is Markdown's comment: `[//]: # (text)`.
const UNUSED_REFERENCE = /^[ \t]{0,3}\[[^\]\n]{0,40}\]:[ \t]*(?:#[ \t]*(?=[ \t"'(])|<>)[ \t]*([^\n]{1,1024})/gmu;

function markdownComment(text: string, isOrder: (body: string) => boolean): Span | null {
  for (const { 0: whole, 1: body = "", index } of text.matchAll(UNUSED_REFERENCE))
    if (isOrder(body)) return { index, end: index + whole.length };
  return null;
}

function earliestComment(text: string, wordsIn: (body: string) => RegExpExecArray[]): Span | null {
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
const TAG_PARTS =
  /<[a-z][a-z0-9]{0,15}(?![\w-])|>|["']|(?<![\w-])style\s{0,8}=\s{0,8}["']?|(?<![\w-])hidden(?![\w-])|(?<![\w-])display\s{0,8}:\s{0,8}none/gu;
const BOXES: ReadonlySet<string> = new Set(["<div", "<span"]);

/** A div or span whose style attribute says `display: none`; any element that hides the words in it by other means. */
export const hiddenElement: Find = (text) => {
  let tag: (Span & { readonly name: string }) | null = null;
  let quote: string | null = null; // of the style attribute we are in; empty when it has none
  let style = -1;
  let hides = false;
  for (const { 0: part, index } of text.matchAll(TAG_PARTS)) {
    const end = index + part.length;
    if (part === ">") {
      if (tag && style >= 0) hides ||= isUnseen(text.slice(style, Math.min(index, style + ATTRIBUTES)));
      if (tag && hides && SPEAKS.test(text.slice(end, end + 400))) return { index: tag.index, end };
      tag = null;
    } else if (part.startsWith("<")) {
      tag = { index, end, name: part };
      [quote, style, hides] = [null, -1, false];
    } else if (tag && part.startsWith("style")) {
      const near = index - tag.end <= ATTRIBUTES;
      quote = near ? (/["']$/.exec(part)?.[0] ?? "") : null;
      if (near && style < 0) style = end;
    } else if (part === quote) {
      if (style >= 0) hides ||= isUnseen(text.slice(style, Math.min(index, style + ATTRIBUTES)));
      [quote, style] = [null, -1];
    } else if (tag && quote === null && part === "hidden" && /\s/.test(text.charAt(index - 1))) {
      hides = true;
    } else if (tag && quote !== null && part.startsWith("display") && BOXES.has(tag.name)) {
      return { index: tag.index, end };
    }
  }
  return null;
};

/** Five words or as many characters of a language without blanks: an element without them only holds room. */
const SPEAKS =
  /^[^<>]{0,80}?(?:[\p{L}']{2,}[\s,.:;]{1,4}){4}[\p{L}']|^[^<>]{0,80}?[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{6}/u;

const UNSEEN = [
  /(?<![\w-])display\s{0,8}:\s{0,8}none/,
  /(?<![\w-])visibility\s{0,8}:\s{0,8}(?:hidden|collapse)/,
  /(?<![\w-])opacity\s{0,8}:\s{0,8}(?:0(?:\.0\d{0,2})?%?|\.0\d{0,2})(?![\d.])/,
  /(?<![\w-])font-size\s{0,8}:\s{0,8}[01](?:\.\d{1,3})?(?:px|pt|em|rem|%)?(?![\d.\w%])(?<!1r?em)/,
  /(?<![\w-])(?:left|right|top|bottom|text-indent|margin-left|margin-top)\s{0,8}:\s{0,8}-\d{3,5}(?:\.\d{1,3})?(?:px|em|rem|vw|vh|%)/,
  /(?<![\w-])(?:max-)?(?:height|width)\s{0,8}:\s{0,8}[01](?:px)?(?![\d.\w%])/,
  /(?<![\w-])clip(?:-path)?\s{0,8}:\s{0,8}(?:rect\(0|rect\(1px|inset\((?:50|100)%)/,
  /(?<![\w-])transform\s{0,8}:\s{0,8}scale\(0/,
];
const PALE =
  /(?<![\w-])color\s{0,8}:\s{0,8}(?:#fff(?:fff)?(?![\da-f])|white(?![a-z])|transparent|rgba\([\d\s,.]{5,30},\s{0,8}0(?:\.0\d{0,2})?\s{0,8}\))/;

/** White text on a colour of its own is a badge. */
const isUnseen = (style: string) =>
  UNSEEN.some((way) => way.test(style)) || (PALE.test(style) && !style.includes("background"));

// Where a model learned who speaks: the marks of chat templates, and tags that say they are the system's.

const ROLE = "(?:system|developer)";
/** What ends one message and begins the next, as templates write it, and what ends a result to go on in another voice. */
const NEXT = [
  "<\\|im_end\\|>\\s{0,8}<\\|im_start\\|>",
  "<\\|(?:eot_id|eom_id|end_of_text)\\|>\\s{0,8}<\\|(?:start_header_id|begin_of_text)\\|>",
  "<\\|(?:end|endoftext)\\|>\\s{0,8}<\\|(?:start|system|user|assistant)\\|>",
  "<end_of_turn>\\s{0,8}<start_of_turn>",
  "<\\/s>\\s{0,8}(?:<s>\\s{0,8})?\\[inst\\]",
  "\\[\\/(?:tool_results|available_tools)\\]\\s{0,8}\\[inst\\]",
  "<\\/(?:(?:tool|function)_(?:results?|response|output|calls?)|untrusted_tool_result|search_results?|web_?(?:page|content|results?)|retrieved_[a-z]{1,16}|external_[a-z]{1,16})>\\s{0,8}<\\/?(?:system|developer|user|human|assistant|instructions?|admin|important)(?=[\\s>_-])",
].join("|");
const BEGINS: Readonly<Record<string, string>> = {
  "<|im_end": "<|im_start|>",
  "<|eot_id": "<|start_header_id|>",
  "<|end|>": "<|",
  "<|endoft": "<|",
  "<end_of_": "<start_of_turn>",
  "</s>": "[inst]",
};
const TEMPLATE = new RegExp(
  `<\\|(?:im_start|start_header_id|start)\\|>\\s{0,4}${ROLE}|<\\|${ROLE}\\|>|<<sys>>|<start_of_turn>\\s{0,4}${ROLE}|${NEXT}`,
  "gu",
);

/** Inside quotes or code signs it is talked about, not used. What ends a message that it did not begin breaks out of one. */
export const chatTemplate: Find = (text) => {
  for (const { 0: mark, index } of text.matchAll(TEMPLATE)) {
    const beginning = Object.entries(BEGINS).find(([end]) => mark.startsWith(end))?.[1];
    const begun = beginning !== undefined && text.lastIndexOf(beginning, index - 1) !== -1;
    if (begun || isQuoted(text, index)) continue;
    return { index, end: index + mark.length };
  }
  return null;
};

const isQuoted = (text: string, index: number) => /[`"'“«]/.test(text.charAt(index - 1));

const SYSTEM_TAG =
  /<(?:system|developer)(?:[-_](?:prompt|message|reminder|instructions?|override|note))?(?:\s[^<>\n]{0,80})?>|<(?:ai|llm|assistant|agent|admin|model|hidden|secret)[-_](?:prompt|message|reminder|instructions?|override|note|directive|only)(?:\s[^<>\n]{0,80})?>|^[ \t>*#]{0,8}\[(?:system|developer)(?:[ _-](?:prompt|message|note|override))?\](?!\(|:\s*http)/gmu;
const ADDRESSED =
  /(?<![a-z])(?:you|your|assistant|ignore|disregard|forget|override|instructions?|must|never|always|comply|obey|execute)(?![a-z])/gu;

const ORDERS = 400;

/** A tag of the system with orders in it: two words that speak to the model. A tag of a project's own data has none. */
export const systemTag: Find = (text) => {
  for (const { 0: tag, index } of text.matchAll(SYSTEM_TAG)) {
    if (isQuoted(text, index)) continue;
    const end = index + tag.length;
    const near = text.slice(end, end + ORDERS);
    const close = near.indexOf(tag.startsWith("<") ? "</" : "\n\n");
    const body = close === -1 ? near : near.slice(0, close);
    if (new Set(body.match(ADDRESSED)).size >= 2) return { index, end };
  }
  return null;
};

// A picture is fetched when it is shown, so its address carries out whatever a model writes into it.

const CARRIED =
  "(?:secrets?|conversations?|history|passwords?|prompts?|chats?|api[_ -]?keys?|credentials?|env|environment|memor(?:y|ies)|previous|context|summary|messages?|user[_ -]?(?:data|input|info|messages?|query|question|email)|session|cookies?|file[_ -]?contents?|base64|private[_ -]?keys?|data|transcript|answer|output|stolen|leak|exfil)";
const CARRIER = new RegExp(
  `(?:!?\\[[^\\]\\n]{0,200}\\]\\(|<img[^<>\\n]{0,200}?src\\s{0,4}=\\s{0,4}["']?)<?https?:\\/\\/[^\\s)"'<>{}[\\]$]{1,300}(?:[?&#=/][^\\s)"'<>{}[\\]$]{0,200})?(?:\\$?\\{{1,2}|<|\\[|%7b|\\$|\\()\\s{0,4}(?:[a-z_]{1,24}[ _-]){0,5}${CARRIED}(?:[ _-][a-z_]{1,24}){0,5}\\s{0,4}(?:\\}{1,2}|>|\\]|%7d|(?=[)\\s&"']))`,
  "gu",
);

export const carriesOut: Find = (text) => {
  for (const { 0: mark, index } of text.matchAll(CARRIER))
    if (!isQuoted(text, index)) return { index, end: index + mark.length };
  return null;
};
