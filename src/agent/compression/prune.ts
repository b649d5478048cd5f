// The cheap half of shortening, without a model: old tool results become one line each, repeated ones are kept once.
import { countCodePoints, sliceCodePoints, truncateCodePoints } from "../../kit/code-points.ts";
import { type AssistantMessage, type ContentPart, type Message, type ToolMessage, textOf } from "../../llm/messages.ts";
import type { ContextEngine } from "../../plugins/context-engines.ts";
import { STEER_CLOSE, STEER_OPEN } from "../../prompt/blocks.ts";
import { withoutFence } from "../../prompt/fence.ts";
import type { Conversation } from "../conversation.ts";
import type { SentBefore } from "../transcript.ts";
import { messageCost, messagesCost, sentContent } from "./boundaries.ts";

interface PruneOptions {
  /** Newest messages that stay as they are. */
  readonly protectTailCount: number;
  /** Tokens of newest messages that stay too. */
  readonly protectTailTokens?: number;
  /**
   * `replace`: the shortened text takes the place of the content. `api_copy`: the content stays and the shortened text is what is sent
   * (`api_content`); arguments of calls are left alone. Default `replace`.
   */
  readonly mode?: "replace" | "api_copy";
}

interface Pruned<M extends Message = Message> {
  readonly messages: readonly M[];
  /** How many tool results were shortened. */
  readonly pruned: number;
}

const SHORT = 200;
const LONG_ARGUMENTS = 500;
const DUPLICATE = "[Duplicate tool output — same content as a more recent call]";
const SCREENSHOT = "[screenshot removed to save context]";
const PRUNED_LINE = /^(?:\[SKILL_PRUNED\] )?\[[\w.-]+\] [^\n]{0,2000}(?:\)|lines output|matches)$/;

/** Pure. Messages that need nothing come back as the same objects. */
export function pruneOldToolResults<M extends Message>(messages: readonly M[], options: PruneOptions): Pruned<M> {
  const boundary = pruneBoundary(messages, options);
  const calls = callsById(messages);
  const newest = newestResults(messages);
  let pruned = 0;
  const kept = messages.map((message, index): M => {
    if (message.role === "assistant" && index < boundary && options.mode !== "api_copy")
      return shortenCalls(message) as M; // same role
    if (message.role !== "tool") return message;
    const duplicate = (newest.get(resultKey(message) ?? "") ?? index) !== index;
    const facts = { duplicate, old: index < boundary, call: calls.get(message.tool_call_id) };
    const shorter = shortenResult(message, facts);
    if (shorter === null) return message;
    pruned++;
    return replaceContent(message, shorter, options.mode) as M; // still a tool message
  });
  return { messages: kept, pruned };
}

/** The first index that is protected. */
function pruneBoundary(messages: readonly Message[], { protectTailCount, protectTailTokens }: PruneOptions): number {
  const byCount = messages.length - protectTailCount;
  if (protectTailTokens === undefined) return Math.max(0, byCount);
  let left = protectTailTokens;
  let index = messages.length;
  while (index > 0) {
    left -= messageCost(messages[index - 1] as Message); // inside the list
    if (left < 0) break;
    index--;
  }
  return Math.max(0, Math.min(byCount, index));
}

interface ResultFacts {
  readonly duplicate: boolean;
  readonly old: boolean;
  readonly call: { readonly name: string; readonly arguments: string } | undefined;
}

/** The shorter form, or null when there is none to gain. */
function shortenResult(
  message: ToolMessage,
  { duplicate, old, call }: ResultFacts,
): string | readonly ContentPart[] | null {
  if (duplicate) return DUPLICATE;
  if (!old) return null;
  const content = sentContent(message) ?? "";
  const line = (text: string) => pruneLine(message, text, call);
  if (typeof content === "string") return isLong(content) && !isPruned(content) ? line(content) : null;
  const hasImage = content.some((part) => part.type === "image_url");
  const text = textOf(content);
  if (!hasImage) return isLong(text) ? line(text) : null;
  if (isLong(text)) return `${line(text)}\n${SCREENSHOT}`;
  return content.map((part) => (part.type === "text" ? part : { type: "text", text: SCREENSHOT }));
}

/** What the user said in mid-turn rides on results; it outlives them. */
function pruneLine(message: ToolMessage, text: string, call: ResultFacts["call"]): string {
  const name = call?.name ?? message.name ?? message.tool_name ?? "tool";
  const mark = name === "skill_view" ? "[SKILL_PRUNED] " : "";
  return mark + summarizeToolResult(name, call?.arguments ?? "", text) + steeringIn(text);
}

function isPruned(text: string): boolean {
  const steering = text.indexOf(STEER_OPEN);
  return PRUNED_LINE.test(steering < 0 ? text : text.slice(0, steering).trimEnd());
}

function steeringIn(text: string): string {
  const start = text.indexOf(STEER_OPEN);
  const end = text.lastIndexOf(STEER_CLOSE);
  return start < 0 || end < start ? "" : `\n\n${text.slice(start, end + STEER_CLOSE.length)}`;
}

function replaceContent(
  message: ToolMessage,
  content: string | readonly ContentPart[],
  mode: PruneOptions["mode"],
): ToolMessage {
  if (mode === "api_copy") return { ...message, api_content: typeof content === "string" ? content : textOf(content) };
  const { api_content: _, ...rest } = message;
  return { ...rest, content };
}

function shortenCalls(message: AssistantMessage): AssistantMessage {
  if (!message.tool_calls?.some((call) => call.function.arguments.length > LONG_ARGUMENTS)) return message;
  const calls = message.tool_calls.map((call) => {
    if (call.function.arguments.length <= LONG_ARGUMENTS) return call;
    const args = truncateToolCallArgsJson(call.function.arguments);
    return args === call.function.arguments ? call : { ...call, function: { ...call.function, arguments: args } };
  });
  return calls.every((call, index) => call === message.tool_calls?.[index])
    ? message
    : { ...message, tool_calls: calls };
}

function callsById(messages: readonly Message[]): ReadonlyMap<string, { name: string; arguments: string }> {
  const calls = new Map<string, { name: string; arguments: string }>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const call of message.tool_calls ?? []) {
      calls.set(call.id, call.function);
      if (call.call_id !== undefined) calls.set(call.call_id, call.function);
    }
  }
  return calls;
}

/** Result text -> where it stands last. */
function newestResults(messages: readonly Message[]): ReadonlyMap<string, number> {
  const newest = new Map<string, number>();
  messages.forEach((message, index) => {
    const key = message.role === "tool" ? resultKey(message) : null;
    if (key !== null) newest.set(key, index);
  });
  return newest;
}

function resultKey(message: ToolMessage): string | null {
  const content = sentContent(message);
  return typeof content === "string" && countCodePoints(content) >= SHORT ? content : null;
}

function isLong(text: string): boolean {
  return text.length > SHORT && countCodePoints(text) > SHORT;
}

const LONGEST_LEAF = 200;
const MARK = "...[truncated]";

/** Long texts inside the arguments of a call are cut; what comes out is JSON of the same shape. What is no JSON stays as it is. */
export function truncateToolCallArgsJson(args: string): string {
  const value = parse(args);
  if (value === undefined) return args;
  const cut = shorten(value);
  return cut === value ? args : JSON.stringify(cut);
}

/** The same value when nothing in it was too long. */
function shorten(value: unknown): unknown {
  if (typeof value === "string") {
    return countCodePoints(value) > LONGEST_LEAF ? sliceCodePoints(value, 0, LONGEST_LEAF) + MARK : value;
  }
  if (Array.isArray(value)) {
    const items = value.map(shorten);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, shorten(inner), inner] as const);
  if (entries.every(([, after, before]) => after === before)) return value;
  return Object.fromEntries(entries.map(([key, after]) => [key, after]));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // not ours to mend here
  }
}

// One line that stands for a tool result which is no longer worth its room.

type Arguments = Readonly<Record<string, unknown>>;

interface Call {
  readonly name: string;
  readonly args: Arguments;
  readonly content: string;
}

type Line = (call: Call) => string;

const skill: Line = (call) => `name=${arg(call, "name")} (${chars(call)} chars)`;

const LINES: Readonly<Record<string, Line>> = {
  terminal: (call) =>
    `ran \`${truncateCodePoints(arg(call, "command"), 80, "...")}\` -> exit ${found(call, /"exit_code"\s*:\s*(-?\d+)/)}, ${outputLines(call)} lines output`,
  read_file: (call) => `read ${arg(call, "path")} from line ${arg(call, "offset", "1")} (${chars(call)} chars)`,
  write_file: (call) => `wrote to ${arg(call, "path")} (${writtenLines(call)} lines)`,
  patch: (call) => `${arg(call, "mode", "replace")} in ${arg(call, "path")} (${chars(call)} chars result)`,
  search_files: (call) =>
    `${arg(call, "target", "content")} search for '${arg(call, "pattern")}' in ${arg(call, "path", ".")} -> ${found(call, /"total_count"\s*:\s*(\d+)/)} matches`,
  web_search: (call) => `query='${arg(call, "query")}' (${chars(call)} chars result)`,
  web_extract: (call) => `${addresses(call)} (${chars(call)} chars)`,
  delegate_task: (call) => `'${truncateCodePoints(arg(call, "goal"), 60, "...")}' (${chars(call)} chars result)`,
  execute_code: (call) => `\`${codeStart(call)}\` (${outputLines(call)} lines output)`,
  skill_view: skill,
  skills_list: skill,
  skill_manage: skill,
  vision_analyze: (call) => `'${sliceCodePoints(arg(call, "question"), 0, 50)}' (${chars(call)} chars)`,
  memory: (call) => `${arg(call, "action")} on ${arg(call, "target")}`,
  process: (call) => `${arg(call, "action")} session=${arg(call, "session_id")}`,
  cronjob: (call) => arg(call, "action"),
  todo: () => "updated task list",
  clarify: () => "asked user a question",
};

export function summarizeToolResult(name: string, argsJson: string, content: string): string {
  const call: Call = { name, args: parseArguments(argsJson), content: withoutFence(content) };
  const line = Object.hasOwn(LINES, name) ? LINES[name] : name.startsWith("browser_") ? browser : other;
  return `[${name}] ${(line ?? other)(call)}`;
}

const browser: Line = (call) => {
  const { url, ref } = call.args;
  const place = url ? `${show(url)} ` : ref ? `ref=${show(ref)} ` : "";
  return `${place}(${chars(call)} chars)`;
};

const other: Line = (call) => {
  const pairs = Object.entries(call.args).slice(0, 2);
  const shown = pairs.map(([key, value]) => `${key}=${sliceCodePoints(show(value), 0, 40)} `);
  return `${shown.join("")}(${chars(call)} chars result)`;
};

function arg({ args }: Call, key: string, missing = "?"): string {
  const value = args[key];
  return value === undefined || value === null || value === "" ? missing : show(value);
}

/** On one line, whatever it is. */
function show(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "?");
  return text.replace(/(?<!\s)\s*\n\s*/g, " ");
}

function chars({ content }: Call): string {
  return countCodePoints(content).toLocaleString("en-US");
}

function found({ content }: Call, pattern: RegExp): string {
  return pattern.exec(content)?.[1] ?? "?";
}

/** Of what the program printed, when the result is the usual JSON around it. */
function outputLines({ content }: Call): number {
  const output = parseArguments(content).output;
  return countLines(typeof output === "string" ? output : content);
}

function writtenLines({ args }: Call): number | "?" {
  return typeof args.content === "string" && args.content !== "" ? countLines(args.content) : "?";
}

function countLines(text: string): number {
  const shown = text.trimEnd();
  return shown === "" ? 0 : shown.split("\n").length;
}

function addresses({ args }: Call): string {
  const urls = Array.isArray(args.urls) ? args.urls : args.url === undefined ? [] : [args.url];
  const more = urls.length > 1 ? ` (+${urls.length - 1} more)` : "";
  return `${urls.length === 0 ? "?" : show(urls[0])}${more}`;
}

function codeStart({ args }: Call): string {
  const code = typeof args.code === "string" && args.code !== "" ? args.code : "?";
  const line = sliceCodePoints(code, 0, 60).replaceAll("\n", " ");
  return countCodePoints(code) > 60 ? `${line}...` : line;
}

function parseArguments(json: string): Arguments {
  if (!json.trimStart().startsWith("{")) return {};
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? (value as Arguments) : {}; // a parsed object
  } catch {
    return {}; // cut off or never JSON: the line says what it can without
  }
}

// Shortening without a model: old tool results are sent in one line each. What is stored of them stays, and it can be taken back.

/** In the session's keys: which rows are sent shorter, and what was said last when that was decided. */
const KEY = "pruned";
const LEAST_GAIN = 0.2;
const TARGET = 0.8;

/** Only if it is enough by itself. Resolves to the new size of a request, about; null when nothing was done. */
export async function pruneResults(
  { transcript, assembly }: Conversation,
  engine: ContextEngine,
  tokens: number,
): Promise<number | null> {
  if (!("tailTokenBudget" in engine) || typeof engine.tailTokenBudget !== "number") return null;
  const before = transcript.messages;
  const { messages, pruned } = pruneOldToolResults(before, {
    protectTailCount: engine.protectLastN,
    protectTailTokens: engine.tailTokenBudget,
    mode: "api_copy",
  });
  const saved = messagesCost(before) - messagesCost(messages);
  const after = tokens - saved;
  if (pruned === 0 || saved < LEAST_GAIN * tokens || after >= TARGET * engine.thresholdTokens) return null;
  const { sessionId } = transcript;
  try {
    const rows = await transcript.sendShorter(messages);
    await assembly.session.store?.setValue(sessionId, KEY, { rows, last: await transcript.lastRowId() });
  } catch (error) {
    assembly.log.warn("old tool results could not be shortened; they are sent as before", error);
    return null;
  }
  assembly.gate.expectNewPrefix(sessionId, "prune");
  return after;
}

/** False when there is none to take back, or something was said since. */
export async function undoPrune({ transcript, assembly }: Conversation): Promise<boolean> {
  const { store } = assembly.session;
  const { sessionId } = transcript;
  const record = store ? await store.getValue(sessionId, KEY) : null;
  if (!store || !isPruneRecord(record) || record.last !== (await transcript.lastRowId())) return false;
  await transcript.sendAsBefore(record.rows);
  await store.setValue(sessionId, KEY, null);
  assembly.gate.expectNewPrefix(sessionId, "rewind");
  return true;
}

function isPruneRecord(
  value: unknown,
): value is { readonly rows: readonly SentBefore[]; readonly last: number | null } {
  return typeof value === "object" && value !== null && "rows" in value && Array.isArray(value.rows) && "last" in value;
}
