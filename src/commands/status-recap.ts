// The last lines of `/status`: what this conversation has been about.
import { type HistoryMessage, textOf } from "../llm/messages.ts";

const FILE_TOOLS = new Set(["write_file", "patch", "read_file"]);
const MOST_FILES = 6;
const CHARS = 120;

export function statusRecap(messages: readonly HistoryMessage[], name: string): string[] {
  if (messages.length === 0) return ["Nothing to recap yet."];
  const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
  const answers = messages.filter((message) => message.role === "assistant" && textOf(message.content).trim() !== "");
  const users = messages.filter((message) => message.role === "user");
  const results = messages.filter((message) => message.role === "tool");
  const tools = counted(calls.map((call) => call.function.name));
  const files = [...new Set(calls.flatMap((call) => fileOf(call.function.name, call.function.arguments)))];
  const more = files.length > MOST_FILES ? `, ${files.length - MOST_FILES} more` : "";
  return [
    `Session recap — ${name}`,
    `Recent: ${users.length} user turn(s) / ${answers.length} assistant replies, ${results.length} tool result(s)`,
    ...(tools.length > 0 ? [`Tools used: ${tools.join(", ")}`] : []),
    ...(files.length > 0 ? [`Files touched: ${files.slice(0, MOST_FILES).join(", ")}${more}`] : []),
    `Last ask: ${oneLine(users.at(-1))}`,
    ...(answers.length > 0 ? [`Last reply: ${oneLine(answers.at(-1))}`] : []),
  ];
}

function counted(names: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `${name}×${count}`);
}

function fileOf(tool: string, args: string): string[] {
  if (!FILE_TOOLS.has(tool)) return [];
  const path = /"path"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(args)?.[1];
  return path === undefined ? [] : [String(JSON.parse(path))];
}

function oneLine(message: HistoryMessage | undefined): string {
  const points = [
    ...textOf(message?.content ?? null)
      .replace(/\s+/g, " ")
      .trim(),
  ];
  return points.length > CHARS ? `${points.slice(0, CHARS).join("")}...` : points.join("");
}
