// Ways of finding a threat. Each takes folded text (compatibility forms and ASCII capitals undone), gives the first match, and needs
// time in proportion to the text whatever the text is.

import { lazy } from "../../kit/lazy.ts";

export interface Span {
  readonly index: number;
  readonly end: number;
}

export type Find = (text: string) => Span | null;

/** Every expression that was asked for, made or not: the test of linear time measures them all. */
export const expressions: { readonly source: string; readonly flags: string }[] = [];

/** Made with its first use: most texts lack the words that most expressions need. */
function later(source: string, flags: string): () => RegExp {
  expressions.push({ source, flags });
  return lazy(() => new RegExp(source, flags));
}

// Letters, digits and underscores of every script. Matched by what they are not: the property classes of the engine take ten times as
// long to compile, and most starts of the program scan something.
const WORD =
  "[^\\s\\x00-/:-@[-^`{-\\xa9\\xab-\\xb1\\xb4\\xb6-\\xb8\\xbb\\xbf\\xd7\\xf7\\u2000-\\u206f\\u3000-\\u3004\\u3008-\\u3020]+";
// Only ASCII letters and digits end a word: neither an underscore of Markdown nor a neighbouring Chinese character hides one.
const NOT_AFTER_WORD = "(?<![a-z0-9])";
const NOT_BEFORE_WORD = "(?![a-z0-9])";

/**
 * Words in a row with white space between, e.g. `act as if|though ... you have_no limits`.
 *
 * - `a|b`: either; `a_b`: both, as one alternative; `a?`: may be missing; `*`: any word.
 * - `...`: up to eight words more, `..3`: up to three.
 * - A blank at the end of the pattern: white space must follow.
 */
export function words(pattern: string): Find {
  const tokens = pattern.trim().split(" ");
  const last = tokens.length - 1;
  const source = tokens.map((token, at) => {
    const gap = /^\.\.(\.|\d)$/.exec(token);
    if (gap) return `(?:${WORD}\\s+){0,${gap[1] === "." ? 8 : gap[1]}}`;
    if (token === "*") return `["'“‘«]?${WORD}`;
    if (token.endsWith("?")) return `(?:${token.slice(0, -1)}\\s+)?`;
    const either = `(?:${token.replaceAll("_", "\\s+")})`;
    return at === last ? either : `${either}\\s+`;
  });
  return expression(NOT_AFTER_WORD + source.join("") + (pattern.endsWith(" ") ? "\\s" : NOT_BEFORE_WORD));
}

const WINDOW = 65_536;
const OVERLAP = 4_096;

/** A regular expression whose repetitions are all bounded or cannot overlap, tried in overlapping windows. */
export function expression(source: string): Find {
  const pattern = later(source, "gu");
  return (text) => {
    for (let start = 0; ; start += WINDOW - OVERLAP) {
      const end = Math.min(start + WINDOW, text.length);
      const span = firstInside(pattern(), text, start, end);
      if (span || end === text.length) return span;
    }
  };
}

/** What touches a cut edge may be half a word; the neighbouring window sees it whole. */
function firstInside(pattern: RegExp, text: string, start: number, end: number): Span | null {
  const window = text.slice(start, end);
  for (const match of window.matchAll(pattern)) {
    const after = match.index + match[0].length;
    if ((start > 0 && match.index === 0) || (end < text.length && after === window.length)) continue;
    return { index: start + match.index, end: start + after };
  }
  return null;
}

/**
 * Each expression after the one before it on the same line, at most `reach` characters apart.
 * Of all places where a step may begin the latest is as good as any, so one pass per step is enough.
 */
export function chain(reach: number, ...sources: readonly string[]): Find {
  return joined({ reach, joins: (between) => !between.includes("\n") }, sources.map(everyMatch));
}

/** All places where something matches, in order. */
export type Step = (text: string) => readonly Span[];

/** The same within a paragraph; a heading may stand above it. */
export function inParagraph(reach: number, ...steps: readonly Step[]): Find {
  return joined({ reach, joins: isOneParagraph }, steps);
}

/** Two steps within a paragraph, whichever comes first. */
export function together(reach: number, first: Step, second: Step): Find {
  return (text) => {
    const some = first(text);
    const others = some.length > 0 ? second(text) : [];
    const joint = { reach, joins: isOneParagraph };
    return continued(some, others, text, joint)[0] ?? continued(others, some, text, joint)[0] ?? null;
  };
}

const isOneParagraph = (between: string) => !/\n[ \t]{0,8}\n/.test(between.trimStart());

interface Joint {
  readonly reach: number;
  readonly joins: (between: string) => boolean;
}

function joined(joint: Joint, steps: readonly Step[]): Find {
  return (text) => {
    let reached: readonly Span[] | null = null;
    for (const step of steps) {
      reached = reached === null ? step(text) : continued(reached, step(text), text, joint);
      if (reached.length === 0) return null;
    }
    return reached?.[0] ?? null;
  };
}

export function everyMatch(source: string): Step {
  const pattern = later(source, "gu");
  return (text) =>
    Array.from(text.matchAll(pattern()), (match) => ({ index: match.index, end: match.index + match[0].length }));
}

/** How far a look around a match goes. */
const AROUND = 96;

/** The part of a text before a place that an expression ends in, or behind it that one begins: short, so both may be made of anything bounded. */
export function around(before: string | null, after: string | null): (text: string, span: Span) => Span | null {
  const ends = before === null ? null : later(`(?:${before})$`, "u");
  const begins = after === null ? null : later(`^(?:${after})`, "u");
  return (text, { index, end }) => {
    const from = Math.max(0, index - AROUND);
    const head = ends?.().exec(text.slice(from, index));
    if (ends && !head) return null;
    const tail = begins?.().exec(text.slice(end, end + AROUND));
    if (begins && !tail) return null;
    return { index: head ? from + head.index : index, end: end + (tail?.[0].length ?? 0) };
  };
}

function continued(reached: readonly Span[], next: readonly Span[], text: string, { reach, joins }: Joint): Span[] {
  const further: Span[] = [];
  let at = -1;
  for (const { index, end } of next) {
    for (let next = reached[at + 1]; next && next.end <= index; next = reached[at + 1]) at++;
    const from = reached[at];
    if (!from || index - from.end > reach || !joins(text.slice(from.end, index))) continue;
    further.push({ index: from.index, end });
  }
  return further;
}

/** A command word and, anywhere behind it on its line, a target; lines of any length. */
export function onLine(command: string, target: string): Find {
  const words = later(command, "gu");
  const targets = later(target, "u");
  return (text) => {
    const word = words();
    const wanted = targets();
    word.lastIndex = 0;
    for (let match = word.exec(text); match; match = word.exec(text)) {
      const after = match.index + match[0].length;
      const newline = text.indexOf("\n", after);
      const lineEnd = newline === -1 ? text.length : newline;
      const found = wanted.exec(text.slice(after, lineEnd));
      if (found) return { index: match.index, end: after + found.index + found[0].length };
      word.lastIndex = lineEnd; // a later command word of this line sees less, never more
    }
    return null;
  };
}

/** The earliest of what several ways find. */
export function anyOf(...ways: readonly Find[]): Find {
  return (text) =>
    ways
      .map((find) => find(text))
      .reduce((best, span) => (span && (!best || span.index < best.index) ? span : best), null);
}
