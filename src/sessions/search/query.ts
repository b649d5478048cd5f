import { countCodePoints, sliceCodePoints } from "../../kit/code-points.ts";

/** Whether somebody commands rather than asks: `"…"`, `OR`, `NOT`, `AND` or `*`. Such a query means exactly what it says. */
export function hasOperators(query: string): boolean {
  return /"[^"]+"|\S\*(?=\s|$)|(?:^|\s)(?:OR|NOT|AND)(?=\s|$)/.test(query);
}

// A sanitised query as terms and operators, and as a tree with FTS5's precedence: words side by side bind first, then NOT, AND, OR.

export type QueryPart =
  | { readonly type: "term"; readonly text: string; readonly prefix: boolean }
  | { readonly type: "operator"; readonly name: "AND" | "OR" | "NOT" };

export type Expression =
  | { readonly type: "term"; readonly text: string; readonly prefix?: boolean }
  | { readonly type: "and" | "or" | "not"; readonly left: Expression; readonly right: Expression };

export function splitQuery(sanitised: string): readonly QueryPart[] {
  return [...sanitised.matchAll(/"([^"]*)"\s*(\*?)|([^\s"]+)/g)].flatMap((match): QueryPart[] => {
    const [, phrase, star, word] = match;
    if (word === "AND" || word === "OR" || word === "NOT") return [{ type: "operator", name: word }];
    const prefix = star === "*" || (word?.endsWith("*") ?? false);
    const text = (phrase ?? word ?? "").replace(/(?<!\*)\*+$/, "");
    return text.trim() === "" ? [] : [{ type: "term", text, prefix }];
  });
}

const termsOf = (parts: readonly QueryPart[]) => parts.flatMap((part) => (part.type === "term" ? [part.text] : []));

/** The terms whose presence makes a hit (not those behind a NOT): what a snippet marks. */
export function wantedTerms(parts: readonly QueryPart[]): readonly string[] {
  let negated = false;
  return parts.flatMap((part) => {
    if (part.type === "operator") negated = part.name === "NOT";
    return part.type === "term" && !negated ? [part.text] : [];
  });
}

/** Null when there is no term. Operators without two sides are passed over. */
export function parseQuery(parts: readonly QueryPart[]): Expression | null {
  let at = 0;
  const peekOperator = (name: string) => {
    const part = parts[at];
    return part?.type === "operator" && part.name === name;
  };

  function parseRun(): Expression | null {
    let run: Expression | null = null;
    for (let part = parts[at]; part?.type === "term"; part = parts[++at]) {
      run = join("and", run, { type: "term", text: part.text, prefix: part.prefix });
    }
    return run;
  }

  function parseLevel(name: "NOT" | "AND" | "OR", below: () => Expression | null): Expression | null {
    let left = below();
    while (peekOperator(name)) {
      at++;
      const right = below();
      if (left === null && name === "NOT") continue;
      left = join(name === "NOT" ? "not" : name === "AND" ? "and" : "or", left, right);
    }
    return left;
  }

  const parseNot = () => parseLevel("NOT", parseRun);
  const parseAnd = () => parseLevel("AND", parseNot);
  return parseLevel("OR", parseAnd);
}

function join(type: "and" | "or" | "not", left: Expression | null, right: Expression | null): Expression | null {
  if (left === null) return right;
  return right === null ? left : { type, left, right };
}

/** The same query for the trigram index: every term quoted, so that it matches anywhere inside a text. */
export function quoteAll(parts: readonly QueryPart[]): string {
  return parts.map((part) => (part.type === "operator" ? part.name : `"${part.text}"`)).join(" ");
}

// Which index answers a query. Words go to the main index; scripts without blanks and parts of words to the trigram index, which knows
// no term under three characters; the rest is looked for row by row.

/** What the main index has words of. */
const INDEXED = /[\p{L}\p{N}]/u;

export type Route = "words" | "trigram" | "scan";

interface RouteFacts {
  readonly trigram: boolean;
  readonly roleFilter?: readonly string[];
}

export function chooseRoute(parts: readonly QueryPart[], facts: RouteFacts): Route {
  const terms = termsOf(parts);
  if (terms.some((term) => !INDEXED.test(term))) return "scan";
  if (!terms.some((term) => countCjk(term) > 0)) return "words";
  const fits = terms.every((term) => countCodePoints(term) >= 3 && (countCjk(term) === 0 || countCjk(term) >= 3));
  return facts.trigram && fits && !facts.roleFilter?.includes("tool") ? "trigram" : "scan";
}

/** Words that found nothing may stand inside other text (`youer` in `修改youer服务端`). */
export function mayRetryOnTrigram(parts: readonly QueryPart[], facts: RouteFacts): boolean {
  return facts.trigram && termsOf(parts).every((term) => countCodePoints(term) >= 3);
}

// From what a person or a model types to an expression FTS5 accepts. Word characters are Unicode's, not JavaScript's `\w`.

const MAX_QUERY = 2048;
const WORD = String.raw`[\p{L}\p{N}\p{M}_]`;
const PHRASE = /"[^"]*"/g;
const HELD = /\ue000(\d+)\ue001/g;
/** A phrase that is set aside, with what may cling to it. */
const HELD_TOKEN = /^\ue000\d+\ue001\*?$/;
const JOINED = new RegExp(`^(?=.+[._-].)${WORD}+(?:[.-]${WORD}+)*$`, "u");
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

// Which characters are written without blanks between words. Half-width kana, full-width Latin and Thai do not count here.
const CJK = /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u3000-\u303f\u3040-\u309f\u30a0-\u30ff\uac00-\ud7af]/gu;

const countCjk = (text: string) => text.match(CJK)?.length ?? 0;
