// Which hard facts of the dropped part a summary lost: paths, addresses, identifiers, numbers, decisions.
import { type Message, textOf } from "../../llm/messages.ts";
import { sentContent } from "./cost.ts";
import { wordsOf } from "./summary-text.ts";

const MOST_REPORTED = 50;
const LONGEST = 300;

const URL = /https?:\/\/[^\s<>"'`()[\]{}]+/g;
const PATHS: readonly RegExp[] = [
  /(?<![\w/:.])(?:~|\.{1,2})?(?:\/[\w.@+-]+)+\/?/g,
  /(?<![\w/:.@+-])[\w@+-][\w.@+-]*(?:\/[\w.@+-]+)+\.\w{1,8}\b/g,
  /\b[A-Za-z]:\\[\w.\\@+ -]+/g,
];
const IDENTIFIERS: readonly RegExp[] = [
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi,
  /(?<![\w-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}(?![\w-])/g,
  /\b[A-Z][A-Z0-9]+-\d+\b/g,
];
const QUOTED = /`([^`\n]{2,80})`/g;
const NUMBERS: readonly RegExp[] = [
  /(?<![\w.,/-])\d{1,3}(?:[,_]\d{3})+(?:\.\d+)?(?![\w])/g,
  /(?<![\w.,/-])\d{3,}(?:\.\d+)?(?![\w-])/g,
  /(?<![\w.,/-])\d+(?:\.\d+)?\s?(?:%|ms|µs|s|sec|seconds?|min|minutes?|h|hours?|days?|weeks?|[kKMGT]i?B|bytes?|px|tokens?|€|USD|EUR|°C)(?!\w)/g,
  /[$€£]\s?\d+(?:\.\d+)?/g,
];
const DECISION = /\b(?:decided|decisions?)\b|决定/i;
const TRAILING = /[.,;:!?)\]}'"]+$/;

/** Facts of the dropped messages that stand neither in the summary nor in what is kept; most frequent first. */
export function missingFacts(
  dropped: readonly Message[],
  summary: string,
  kept: readonly Message[],
): readonly string[] {
  const counts = new Map<string, number>();
  for (const text of dropped.flatMap(spokenTexts)) {
    for (const fact of factsIn(text)) counts.set(fact, (counts.get(fact) ?? 0) + 1);
  }
  const known = [summary, ...kept.map((message) => textOf(sentContent(message)) + callsIn(message))].join("\n");
  const missing: string[] = [];
  // Looking for each one costs; most conversations have far more facts than are reported.
  for (const [fact] of [...counts].sort(([, one], [, other]) => other - one)) {
    if (missing.length === MOST_REPORTED) break;
    if (!known.includes(fact)) missing.push(fact);
  }
  return missing;
}

export function factsIn(text: string): readonly string[] {
  const urls = matches(text, URL);
  // What belongs to an address is not a path of its own.
  const rest = text.replace(URL, " ");
  const quoted = [...rest.matchAll(QUOTED)].map((match) => (match[1] ?? "").trim());
  const found = [...PATHS, ...IDENTIFIERS, ...NUMBERS].flatMap((pattern) => matches(rest, pattern));
  return [...urls, ...found, ...quoted, ...decisionLines(text)].filter(
    (fact) => fact.length > 1 && fact.length <= LONGEST,
  );
}

/** The words of user and assistant and what calls were made with; what tools printed is not ours to keep. */
function spokenTexts(message: Message): readonly string[] {
  if (message.role === "user") return [wordsOf(message)];
  if (message.role !== "assistant") return [];
  return [textOf(message.content), ...(message.tool_calls ?? []).flatMap((call) => leaves(call.function.arguments))];
}

function leaves(json: string): readonly string[] {
  try {
    return textsIn(JSON.parse(json));
  } catch {
    return [json]; // not JSON: its text may still name things
  }
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** Lines that say that something was decided, and the list below a heading that says so. */
function decisionLines(text: string): readonly string[] {
  let listed = false;
  return text.split("\n").flatMap((line) => {
    const said = line.replace(/^[\s>*#-]+|^\s*\d+[.)]\s+/g, "").trim();
    const isItem = /^\s*(?:[-*•]|\d+[.)])\s+/.test(line);
    const says = DECISION.test(said);
    const isHeading = says && /^\s*#|:\s*$/.test(line);
    const isFact = (says && !isHeading) || (listed && isItem);
    listed = isHeading || (listed && (isItem || said === ""));
    return isFact ? [said] : [];
  });
}

function callsIn(message: Message): string {
  return message.role === "assistant"
    ? (message.tool_calls ?? []).map((call) => `\n${call.function.arguments}`).join("")
    : "";
}

function matches(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map((match) => match[0].trim().replace(TRAILING, ""));
}
