// What the summarising model reads of a conversation: labelled, cut to size, without pictures.
import { headUnits, tailUnits } from "../../kit/code-points.ts";
import { type ContentPart, type Message, type ToolCall, textOf } from "../../llm/messages.ts";

const LONGEST = 6000;
const HEAD = 4000;
const TAIL = 1500;
const LONG_ARGUMENTS = 1500;
const CUT_ARGUMENTS = 1200;

/** One labelled text per message; blank ones are left out. */
export function renderTurns(turns: readonly Message[]): readonly string[] {
  return turns.flatMap((message) => renderTurn(message) ?? []);
}

function renderTurn(message: Message): string | null {
  const text = cut(shown(message.content));
  switch (message.role) {
    case "system":
      return null;
    case "user":
      return text === "" ? null : `[USER]: ${text}`;
    case "tool":
      return `[TOOL RESULT ${message.tool_call_id}]: ${text}`;
    case "assistant": {
      const calls = (message.tool_calls ?? []).map(renderCall);
      if (text === "" && calls.length === 0) return null;
      const called = calls.length > 0 ? `\n[Tool calls:\n${calls.join("\n")}\n]` : "";
      return `[ASSISTANT]: ${text}${called}`;
    }
  }
}

function renderCall({ function: { name, arguments: args } }: ToolCall): string {
  const shownArgs = args.length > LONG_ARGUMENTS ? `${headUnits(args, CUT_ARGUMENTS)}...` : args;
  return `  ${name}(${shownArgs})`;
}

function shown(content: string | readonly ContentPart[] | null): string {
  if (content === null || typeof content === "string") return textOf(content).trim();
  return content
    .map((part) => (part.type === "text" ? part.text : "[image]"))
    .join("\n")
    .trim();
}

function cut(text: string): string {
  if (text.length <= LONGEST) return text;
  return `${headUnits(text, HEAD)}\n...[cut]...\n${tailUnits(text, TAIL)}`;
}
