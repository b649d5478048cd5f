// Head, summary and tail become one legal conversation again.
import {
  type Message,
  type SystemMessage,
  type ToolCall,
  type ToolMessage,
  textOf,
  type UserMessage,
} from "../../llm/messages.ts";
import { staysApart } from "../hygiene/merge.ts";
import { putSummaryInto, withoutTodos } from "./summary-text.ts";

const NO_RESULT = "[Result from earlier conversation — see context summary above]";
const SYSTEM_NOTE =
  "[Note: earlier turns of this conversation were compacted into a summary further down. Memory stays authoritative.]";

export interface Parts {
  readonly head: readonly Message[];
  /** The whole text, markers included. */
  readonly summary: string;
  /** What the user said last, when it does not stand in the tail. */
  readonly carried: UserMessage | null;
  readonly tail: readonly Message[];
}

/** Roles alternate, the summary is read as what it is, and a user message with text remains. */
export function assemble({ head, summary, carried, tail }: Parts): readonly Message[] {
  const noted = head.map((message) => (message.role === "system" ? noteOnce(message) : message));
  const [first, ...rest] = tail;
  if (carried) return [...noted, ...summaryAndWords(head.at(-1)?.role, summary, carried), ...tail];
  const needsUser = ![...head, ...tail].some((one) => one.role === "user" && textOf(one.content).trim() !== "");
  const before = noted.at(-1);
  // A picture without a word is no request: the summary joins it.
  if (needsUser && before?.role === "user") return [...noted.slice(0, -1), putSummaryInto(before, summary), ...tail];
  const role = summaryRole(before?.role, first?.role, needsUser);
  if (role !== null) return [...noted, { role, content: summary }, ...tail];
  return first ? [...noted, putSummaryInto(first, summary), ...rest] : noted;
}

/** Null: neither role fits between its neighbours, the summary goes into the first message of the tail. */
function summaryRole(
  before: Message["role"] | undefined,
  after: Message["role"] | undefined,
  needsUser: boolean,
): "user" | "assistant" | null {
  const wanted = before === "user" ? "assistant" : "user";
  if (wanted !== after) return wanted;
  const other = wanted === "user" ? "assistant" : "user";
  if (other === before || (needsUser && other === "assistant")) return null;
  return other;
}

function summaryAndWords(
  before: Message["role"] | undefined,
  summary: string,
  carried: UserMessage,
): readonly Message[] {
  const words = withoutTodos(carried);
  if (before === "user" || before === "tool") return [{ role: "assistant", content: summary }, words];
  return [putSummaryInto(words, summary)];
}

function noteOnce(message: SystemMessage): SystemMessage {
  const text = textOf(message.content);
  if (text.includes(SYSTEM_NOTE)) return message;
  if (typeof message.content === "string") return { ...message, content: `${message.content}\n\n${SYSTEM_NOTE}` };
  return { ...message, content: [...message.content, { type: "text", text: SYSTEM_NOTE }] };
}

export interface PairedTools {
  readonly messages: readonly Message[];
  readonly removed: number;
  readonly stubbed: number;
}

/** Results without their call go, calls without a result get one that says where to look. */
export function pairTools(messages: readonly Message[]): PairedTools {
  const paired: Message[] = [];
  let open: ToolCall[] = [];
  let removed = 0;
  let stubbed = 0;
  const close = () => {
    stubbed += open.length;
    paired.push(...open.map(stub));
    open = [];
  };
  for (const message of messages) {
    if (message.role !== "tool") {
      close();
      if (message.role === "assistant") open = [...(message.tool_calls ?? [])];
      paired.push(message);
      continue;
    }
    const at = open.findIndex((call) => call.id === message.tool_call_id || call.call_id === message.tool_call_id);
    if (at < 0) removed++;
    else {
      open.splice(at, 1);
      paired.push(message);
    }
  }
  close();
  return removed + stubbed === 0 ? { messages, removed, stubbed } : { messages: paired, removed, stubbed };
}

function stub(call: ToolCall): ToolMessage {
  const { name } = call.function;
  return { role: "tool", name, tool_name: name, content: NO_RESULT, tool_call_id: call.call_id ?? call.id };
}

/** Never two users nor two answers in a row; results stand behind the answer that asked for them. */
export function alternates(messages: readonly Message[]): boolean {
  let open: ToolCall[] = [];
  for (const [index, message] of messages.entries()) {
    const before = messages[index - 1];
    if (message.role === "tool") {
      const at = open.findIndex((call) => call.id === message.tool_call_id || call.call_id === message.tool_call_id);
      if (at < 0) return false;
      open.splice(at, 1);
      continue;
    }
    if (message.role === "user" && before?.role === "user") return false;
    if (message.role === "assistant" && before?.role === "assistant" && !staysApart(message) && !staysApart(before))
      return false;
    open = message.role === "assistant" ? [...(message.tool_calls ?? [])] : [];
  }
  return true;
}
