import type { AssistantMessage, HistoryMessage, ToolCall, ToolMessage } from "../../llm/messages.ts";
import type { RepairedSequence } from "./repair-sequence.ts";

const MARKER =
  "[hermes-agent: tool call arguments were corrupted in the stored history and replaced by {}; what the tool really got is not known]";

/** Arguments that no server would take back: empty ones and unparseable ones become `{}`, and the latter's result says so. */
export function repairCorruptArguments(messages: readonly HistoryMessage[]): RepairedSequence {
  let repairs = 0;
  const repaired: HistoryMessage[] = [];
  let corrupt = new Set<string>();
  // Results stand right behind their call; whoever has none by the end of the run gets one that holds the marker alone.
  const closeRun = () => {
    for (const id of corrupt) repaired.push({ role: "tool", tool_call_id: id, content: MARKER });
    corrupt = new Set();
  };
  for (const message of messages) {
    if (message.role === "tool" && corrupt.delete(message.tool_call_id)) {
      repaired.push(mark(message));
      continue;
    }
    if (message.role === "tool") {
      repaired.push(message);
      continue;
    }
    closeRun();
    if (message.role === "user" || !message.tool_calls) {
      repaired.push(message);
      continue;
    }
    const fixed = message.tool_calls.map(fixArguments);
    const changed = fixed.filter((fix) => fix.state !== "fine");
    repairs += changed.length;
    for (const fix of changed) if (fix.state === "corrupt") corrupt.add(fix.call.id);
    repaired.push(changed.length === 0 ? message : withCalls(message, fixed));
  }
  closeRun();
  return repairs === 0 ? { messages, repairs } : { messages: repaired, repairs };
}

interface FixedCall {
  readonly call: ToolCall;
  readonly state: "fine" | "mended" | "corrupt";
}

function fixArguments(call: ToolCall): FixedCall {
  const raw: unknown = call.function.arguments;
  const put = (text: string): ToolCall => ({ ...call, function: { ...call.function, arguments: text } });
  if (typeof raw === "object" && raw !== null) return { call: put(JSON.stringify(raw)), state: "mended" };
  if (typeof raw !== "string" || raw.trim() === "") return { call: put("{}"), state: "mended" };
  try {
    JSON.parse(raw);
    return { call, state: "fine" };
  } catch {
    return { call: put("{}"), state: "corrupt" };
  }
}

function withCalls(message: AssistantMessage, fixed: readonly FixedCall[]): AssistantMessage {
  return { ...message, tool_calls: fixed.map((fix) => fix.call) };
}

function mark(message: ToolMessage): ToolMessage {
  const { api_content: _, ...rest } = message;
  const content =
    typeof message.content === "string"
      ? `${MARKER}\n${message.content}`
      : [{ type: "text", text: MARKER } as const, ...message.content];
  return { ...rest, content };
}
