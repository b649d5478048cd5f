// A conversation made short for a model that has not seen it: the end word for word, the rest in one line per message.
import { sliceCodePoints, truncateCodePoints } from "../../kit/code-points.ts";
import { type HistoryMessage, textOf } from "../../llm/messages.ts";

const VERBATIM = 24;
const USER_CHARS = 300;
const ASSISTANT_CHARS = 200;

export function digestOf(messages: readonly HistoryMessage[]): readonly HistoryMessage[] {
  let start = Math.max(0, messages.length - VERBATIM);
  // Results without their calls are no legal beginning.
  while (messages[start]?.role === "tool") start++;
  const older = messages.slice(0, start).flatMap(lineOf);
  if (older.length === 0) return messages.slice(start);
  const digest: HistoryMessage = { role: "user", content: `[Earlier in this conversation]\n${older.join("\n")}` };
  return [digest, ...messages.slice(start)];
}

function lineOf(message: HistoryMessage): readonly string[] {
  if (message.role === "user") return [`USER: ${cut(textOf(message.content), USER_CHARS)}`];
  if (message.role !== "assistant") return [];
  const said = message.content?.trim() ? [`ASSISTANT: ${cut(message.content, ASSISTANT_CHARS)}`] : [];
  const names = (message.tool_calls ?? []).map((call) => call.function.name);
  return names.length > 0 ? [...said, `ASSISTANT[tools: ${names.join(", ")}]`] : said;
}

function cut(text: string, max: number): string {
  // Long texts are not walked to their end for the sake of one line.
  return truncateCodePoints(sliceCodePoints(text.trim(), 0, max + 1).replace(/\s+/g, " "), max, "…");
}
