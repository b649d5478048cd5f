// A summary without a model, for when none answers: what was asked, what was done, which files, which errors, how it ended.
import { headUnits, truncateCodePoints } from "../../kit/code-points.ts";
import { type Message, textOf } from "../../llm/messages.ts";
import { isFailedResult } from "../tool-failure.ts";
import { wordsOf } from "./summary-text.ts";
import { summarizeToolResult } from "./tool-lines.ts";

const MOST_CHARS = 8000;
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
  return headUnits([intro, ...earlier, ...written].join("\n\n"), MOST_CHARS);
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
