// Which hard facts of the dropped part a summary lost: paths, addresses, identifiers, numbers, decisions.

import { headUnits, truncateCodePoints } from "../../kit/code-points.ts";
import { type Message, textOf } from "../../llm/messages.ts";
import { isFailedResult } from "../tool-runner.ts";
import { sentContent } from "./boundaries.ts";
import { summarizeToolResult } from "./prune.ts";
import { wordsOf } from "./summary-text.ts";

const MAX_REPORTED = 50;
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
const TRAILING = /(?<![.,;:!?)\]}'"])[.,;:!?)\]}'"]+$/;

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
    if (missing.length === MAX_REPORTED) break;
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

// A summary without a model, for when none answers: what was asked, what was done, which files, which errors, how it ended.

const MAX_CHARS = 8000;
const EARLIER_CHARS = 2500;
const ASK_CHARS = 300;
const LAST_CHARS = 800;

interface Section {
  readonly title: string;
  readonly lines: readonly string[];
  /** Room for it; what does not fit is dropped from the oldest end. */
  readonly chars: number;
}

/** Deterministic, at most 8,000 characters. */
export function localSummary(turns: readonly Message[], previousSummary: string | null): string {
  const sections: readonly Section[] = [
    { title: "What the user asked", lines: asks(turns), chars: 1500 },
    { title: "Completed Actions", lines: actions(turns), chars: 2000 },
    { title: "Relevant Files", lines: files(turns), chars: 700 },
    { title: "Errors seen", lines: errors(turns), chars: 600 },
    { title: "Last exchange", lines: lastExchange(turns), chars: 900 },
  ];
  const intro =
    "(Put together without a model, because no summary could be made. Details are in the session's history.)";
  const earlier = previousSummary ? [`## Earlier summary\n${clip(previousSummary, EARLIER_CHARS)}`] : [];
  const written = sections.flatMap((section) => render(section) ?? []);
  return headUnits([intro, ...earlier, ...written].join("\n\n"), MAX_CHARS);
}

function render({ title, lines, chars }: Section): string | null {
  if (lines.length === 0) return null;
  const kept: string[] = [];
  let left = chars;
  for (const line of lines.toReversed()) {
    left -= line.length + 1;
    if (left < 0 && kept.length > 0) break;
    kept.unshift(line);
  }
  const dropped = lines.length - kept.length;
  return [`## ${title}`, ...(dropped > 0 ? [`(${dropped} older left out)`] : []), ...kept].join("\n");
}

function asks(turns: readonly Message[]): string[] {
  return turns.flatMap((message) => {
    const words = message.role === "user" ? oneLine(wordsOf(message)) : "";
    return words === "" ? [] : [`- ${clip(words, ASK_CHARS)}`];
  });
}

function actions(turns: readonly Message[]): string[] {
  const results = resultsById(turns);
  return callsOf(turns).map(({ id, name, args }, index) => {
    return `${index + 1}. ${clip(oneLine(summarizeToolResult(name, args, results.get(id) ?? "")), ASK_CHARS)}`;
  });
}

function files(turns: readonly Message[]): string[] {
  const paths = new Set<string>();
  for (const { args } of callsOf(turns)) {
    for (const [, path] of args.matchAll(/"(?:path|file_path|workdir)"\s*:\s*"((?:[^"\\]|\\.)+)"/g))
      if (path) paths.add(path);
  }
  return [...paths].map((path) => `- ${path}`);
}

function errors(turns: readonly Message[]): string[] {
  const calls = new Map(callsOf(turns).map((call) => [call.id, call]));
  return turns.flatMap((message) => {
    if (message.role !== "tool") return [];
    const text = textOf(message.content);
    const name = calls.get(message.tool_call_id)?.name ?? message.name ?? "tool";
    return isFailedResult(name, text) ? [`- ${name}: ${clip(oneLine(text), 200)}`] : [];
  });
}

function lastExchange(turns: readonly Message[]): string[] {
  const user = turns.findLast((message) => message.role === "user" && wordsOf(message).trim() !== "");
  const answer = turns.findLast((message) => message.role === "assistant" && textOf(message.content).trim() !== "");
  return [
    ...(user ? [`User: ${clip(oneLine(wordsOf(user)), LAST_CHARS / 2)}`] : []),
    ...(answer ? [`Assistant: ${clip(oneLine(textOf(answer.content)), LAST_CHARS / 2)}`] : []),
  ];
}

function callsOf(turns: readonly Message[]): { id: string; name: string; args: string }[] {
  return turns.flatMap((message) =>
    message.role === "assistant"
      ? (message.tool_calls ?? []).map(({ id, call_id, function: called }) => ({
          id: call_id ?? id,
          name: called.name,
          args: called.arguments,
        }))
      : [],
  );
}

function resultsById(turns: readonly Message[]): ReadonlyMap<string, string> {
  return new Map(
    turns.flatMap((one) => (one.role === "tool" ? [[one.tool_call_id, textOf(one.content)] as const] : [])),
  );
}

const oneLine = (text: string) => text.replace(/\s+/g, " ").trim();
const clip = (text: string, max: number) => truncateCodePoints(text, max, "...");
