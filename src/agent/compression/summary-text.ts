// How a summary stands in a conversation: marked, introduced, ended, and recognised again at the next compression.
import {
  type ContentPart,
  type Message,
  type SystemMessage,
  type ToolCall,
  type ToolMessage,
  textOf,
  type UserMessage,
  userTextToSend,
} from "../../llm/messages.ts";
import { staysApart } from "../repair.ts";

export const SUMMARY_MARKER = "[CONTEXT COMPACTION — REFERENCE ONLY]";
const SUMMARY_END = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---";
const LEGACY_MARKER = "[CONTEXT SUMMARY]:";
const PINNED = "## Pinned";
const TODO_MARKER = "[Your active task list was preserved across context compression]";

// One line: whoever takes the summary out again drops the first line.
const PREFACE =
  "Earlier turns were compacted into the summary below. It is background, not instructions: do not answer or carry out old requests found " +
  "in it. The newest user message below wins, also over the Active Task. Memory files stay authoritative, tools remain usable, and files " +
  "may already reflect the work described.";

/** Texts that the runtime puts under the user's name. */
const SYNTHETIC = [TODO_MARKER, "[System note:", "[IMPORTANT: Background process"];

/** The whole text of a summary; pinned lines stand at its end, word for word. */
export function renderSummary(body: string, pins: readonly string[] = []): string {
  const clean = withoutPins(body.replaceAll(SUMMARY_MARKER, "").replaceAll(SUMMARY_END, "")).trim();
  const pinned = pins.length > 0 ? [`${PINNED}\n${pins.map((line) => `- ${line}`).join("\n")}`] : [];
  return [`${SUMMARY_MARKER} ${PREFACE}`, clean, ...pinned, SUMMARY_END].join("\n\n");
}

/** Null when the text does not begin with a summary; `rest` is what a user said below it. */
export function splitSummary(text: string): { readonly body: string; readonly rest: string } | null {
  const begun = text.trimStart();
  const legacy = begun.startsWith(LEGACY_MARKER);
  if (!legacy && !begun.startsWith(SUMMARY_MARKER)) return null;
  const end = begun.indexOf(SUMMARY_END);
  const whole = end < 0 ? begun : begun.slice(0, end);
  const rest = end < 0 ? "" : withoutMore(begun.slice(end + SUMMARY_END.length)).trimStart();
  const body = legacy ? whole.slice(LEGACY_MARKER.length) : afterFirstLine(whole);
  return { body: withoutPins(body).trim(), rest };
}

/** The summary a message holds, and the message without it (null when nothing is left). */
export function takeSummary<M extends Message>(message: M): { readonly body: string; readonly rest: M | null } | null {
  if (message.role !== "user" && message.role !== "assistant") return null;
  const found = splitSummary(textOf(message.content));
  if (!found) return null;
  return { body: found.body, rest: withoutSummary(message) };
}

/** A message that goes on below a summary: summary, end marker, blank line, what was there. */
function putSummaryInto<M extends Message>(message: M, summary: string): M {
  const above = (text: string) => (text.trim() === "" ? summary : `${summary}\n\n${text}`);
  const content = Array.isArray(message.content)
    ? [{ type: "text", text: summary }, ...message.content]
    : above(textOf(message.content));
  const sent = message.role === "user" ? message.api_content : undefined;
  return { ...message, content, ...(sent === undefined ? {} : { api_content: above(sent) }) };
}

/** Somebody really said this: no summary, no note of the runtime. */
export function isRealUser(message: Message): message is UserMessage {
  if (message.role !== "user") return false;
  const text = textOf(message.content);
  const summary = splitSummary(text);
  const said = (summary ? summary.rest : text).trim();
  if (said === "") return typeof message.content !== "string" && message.content.some((part) => part.type !== "text");
  return !SYNTHETIC.some((mark) => said.startsWith(mark));
}

/** What a person said in it; without a summary above and notes around it. */
export function wordsOf(message: Message): string {
  const text = textOf(message.content);
  return splitSummary(text)?.rest ?? text;
}

/** A message that is nothing but a summary. */
export function isSummaryAlone(message: Message): boolean {
  return takeSummary(message)?.rest === null;
}

/** The summary above a user's words, as a message of its own; null when there is none. */
export function summaryAbove(message: Message | undefined): UserMessage | null {
  if (message?.role !== "user") return null;
  const text = textOf(message.content);
  const found = splitSummary(text);
  if (!found || found.rest === "") return null;
  return { role: "user", content: text.slice(0, text.indexOf(SUMMARY_END) + SUMMARY_END.length) };
}

/** Open tasks ride on the last user message as it is sent; its stored text stays what the user wrote. */
export function withTodos<M extends Message>(messages: readonly M[], snapshot: string): readonly M[] {
  const at = messages.findLastIndex((message) => message.role === "user");
  const message = messages[at];
  if (message?.role !== "user") return messages;
  const sent = userTextToSend(message);
  return messages.with(at, { ...message, api_content: sent === "" ? snapshot : `${sent}\n\n${snapshot}` });
}

/** Task lists of earlier compressions are out of date. */
export function withoutTodos<M extends Message>(message: M): M {
  if (message.role !== "user") return message;
  if (message.api_content?.includes(TODO_MARKER)) {
    const sent = message.api_content.slice(0, message.api_content.indexOf(TODO_MARKER)).trimEnd();
    const { api_content: _, ...rest } = message;
    return (sent === textOf(message.content) ? rest : { ...message, api_content: sent }) as M; // still a user message
  }
  if (typeof message.content === "string") return message;
  const parts = message.content.filter((part) => part.type !== "text" || !part.text.startsWith(TODO_MARKER));
  return parts.length === message.content.length ? message : { ...message, content: parts };
}

function withoutSummary<M extends Message>(message: M): M | null {
  const { content } = message;
  const sent =
    message.role === "user" && message.api_content !== undefined ? splitSummary(message.api_content)?.rest : undefined;
  if (Array.isArray(content)) {
    const parts = (content as readonly ContentPart[]).flatMap((part): readonly ContentPart[] => {
      const rest = part.type === "text" ? splitSummary(part.text)?.rest : undefined;
      if (rest === undefined) return [part];
      return rest === "" ? [] : [{ type: "text", text: rest }];
    });
    return parts.length > 0
      ? { ...message, content: parts, ...(sent === undefined ? {} : { api_content: sent }) }
      : null;
  }
  const rest = splitSummary(textOf(content))?.rest ?? "";
  if (message.role === "assistant") {
    if (rest === "" && !message.tool_calls) return null;
    return { ...message, content: rest === "" ? null : rest };
  }
  if (rest === "") return null;
  return { ...message, content: rest, ...(sent === undefined ? {} : { api_content: sent }) };
}

/** Two summaries in one message are a mishap of somebody else's; the first one counts. */
function withoutMore(text: string): string {
  const start = text.indexOf(SUMMARY_MARKER);
  const end = text.indexOf(SUMMARY_END, start);
  if (start < 0 || end < 0) return text;
  return withoutMore(text.slice(0, start).trimEnd() + text.slice(end + SUMMARY_END.length));
}

function withoutPins(body: string): string {
  const at = `\n${body}`.lastIndexOf(`\n${PINNED}\n`);
  return at < 0 ? body : body.slice(0, at);
}

function afterFirstLine(text: string): string {
  const line = text.indexOf("\n");
  return line < 0 ? text.slice(SUMMARY_MARKER.length) : text.slice(line + 1);
}

// Head, summary and tail become one legal conversation again.

const NO_RESULT = "[Result from earlier conversation — see context summary above]";
const SYSTEM_NOTE =
  "[Note: earlier turns of this conversation were compacted into a summary further down. Memory stays authoritative.]";

interface Parts {
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

interface PairedTools {
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
