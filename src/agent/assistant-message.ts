// A model's answer as it enters the history.
import { sanitizeSurrogates } from "../kit/code-points.ts";
import { similarity } from "../kit/similarity.ts";
import { uniquifyToolCallIds } from "../llm/call-ids.ts";
import { repairArguments, repairToolCallArguments } from "../llm/json-repair.ts";
import type { AssistantMessage, FinishReason, HistoryMessage, ToolCall, ToolMessage } from "../llm/messages.ts";
import { stripThinkBlocks } from "../llm/scrub.ts";
import { fromDoubleUnderscores } from "../mcp/settings.ts";
import { canonicalArguments, canonicalJson, hasReasoning, stubResult } from "./repair.ts";

const INLINE_THINKING = /<(think|thinking|reasoning|thought|reasoning_scratchpad)>([\s\S]*?)(?:<\/\1>|$)/gi;
const THINK_TAG = /<\/?(?:think|thinking|reasoning|thought|reasoning_scratchpad)>/i;

/** What a person would read of an answer. */
export function visibleText(message: AssistantMessage): string {
  return stripThinkBlocks(message.content ?? "");
}

export function hasInlineThinking(message: AssistantMessage): boolean {
  return THINK_TAG.test(message.content ?? "");
}

export function hasOpenScratchpad(message: AssistantMessage): boolean {
  const text = (message.content ?? "").toLowerCase();
  return text.lastIndexOf("<reasoning_scratchpad>") > text.lastIndexOf("</reasoning_scratchpad>");
}

/** There was thinking in it, in a field of its own or inside the text. */
export function hasThought(message: AssistantMessage): boolean {
  return hasReasoning(message) || hasInlineThinking(message);
}

/** A thought without words, in the shape in which it can be handed back. */
export function thoughtOf(message: AssistantMessage): AssistantMessage {
  const reasoning = message.reasoning ?? inlineThinking(message.content ?? "");
  return { ...message, content: "", reasoning, reasoning_content: message.reasoning_content ?? reasoning };
}

/** An interim answer of the Responses wire and what came after it: their replay state in order. */
export function joinReplayItems(after: AssistantMessage, interim: AssistantMessage): AssistantMessage {
  const reasoning = [...(interim.codex_reasoning_items ?? []), ...(after.codex_reasoning_items ?? [])];
  const items = [...(interim.codex_message_items ?? []), ...(after.codex_message_items ?? [])];
  return {
    ...after,
    ...(reasoning.length > 0 ? { codex_reasoning_items: reasoning } : {}),
    ...(items.length > 0 ? { codex_message_items: items } : {}),
  };
}

interface Intake {
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly finishReason: FinishReason;
  readonly redact: (text: string) => string;
}

/** Secrets are masked before the message enters the history, so that every later request carries the same bytes. */
export function takeIn(message: AssistantMessage, { text, calls, finishReason, redact }: Intake): AssistantMessage {
  const { tool_calls: given = [], anthropic_content_blocks: blocks, ...rest } = message;
  const content = redact(sanitizeSurrogates(text).trim());
  const reasoning = message.reasoning ?? inlineThinking(message.content ?? "");
  // The verbatim blocks name calls and repeat the text; they are kept only while they still say the same.
  const verbatim = blocks && content === message.content?.trim() && sameCalls(given, calls);
  return {
    ...rest,
    content: content === "" && calls.length > 0 ? null : content,
    ...(calls.length > 0 ? { tool_calls: calls.map((call) => redactCall(call, redact)) } : {}),
    ...(reasoning ? { reasoning: redact(sanitizeSurrogates(reasoning)) } : {}),
    ...(message.reasoning_content === undefined ? {} : { reasoning_content: redact(message.reasoning_content) }),
    ...(verbatim ? { anthropic_content_blocks: blocks } : {}),
    finish_reason: finishReason,
  };
}

function inlineThinking(text: string): string {
  return [...text.matchAll(INLINE_THINKING)].flatMap((match) => match[2]?.trim() || []).join("\n\n");
}

function sameCalls(given: readonly ToolCall[], kept: readonly ToolCall[]): boolean {
  return (
    given.length === kept.length &&
    given.every((call, index) => call.id === kept[index]?.id && call.function.name === kept[index].function.name)
  );
}

function redactCall(call: ToolCall, redact: (text: string) => string): ToolCall {
  const { name, arguments: text } = call.function;
  if (redact(name) !== name) return redactCall({ ...call, function: { name: redact(name), arguments: text } }, redact);
  // Most arguments hold no secret; only those that do are taken apart, string by string, so that they stay JSON.
  if (redact(text) === text) return call;
  const masked = canonicalJson(redactStrings(JSON.parse(text), redact));
  return { ...call, function: { ...call.function, arguments: masked } };
}

function redactStrings(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((inner) => redactStrings(inner, redact));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redactField(key, inner, redact)]));
}

/** `{"password": "x"}` is only recognisable together with its key. */
function redactField(key: string, value: unknown, redact: (text: string) => string): unknown {
  if (typeof value !== "string") return redactStrings(value, redact);
  const alone = redact(value);
  if (alone !== value) return alone;
  const field = JSON.stringify({ [key]: value });
  const masked = redact(field);
  if (masked === field) return value;
  try {
    return (JSON.parse(masked) as Record<string, unknown>)[key] ?? "***"; // written by stringify just above
  } catch {
    return "***";
  }
}

// Is a batch of tool calls fit to run? Names and arguments are put right where that is safe, otherwise the fault is named.

export type CheckedCall =
  | { readonly fault: null; readonly call: ToolCall }
  | { readonly fault: "name"; readonly call: ToolCall }
  /** The arguments end in the middle: the call was never finished. */
  | { readonly fault: "cut"; readonly call: ToolCall }
  | { readonly fault: "json"; readonly call: ToolCall; readonly problem: string };

export function checkCall(
  call: ToolCall,
  { names, truncated }: { readonly names: ReadonlySet<string>; readonly truncated: boolean },
): CheckedCall {
  const { json, outcome, problem = "not a JSON object" } = repairArguments(call.function.arguments, { truncated });
  if (outcome === "cut") return { fault: "cut", call };
  const name = names.has(call.function.name) ? call.function.name : repairToolName(call.function.name, [...names]);
  if (name === null) return { fault: "name", call };
  const args = outcome === "invalid" ? null : objectText(json);
  if (args === null) return { fault: "json", call, problem };
  return { fault: null, call: { ...call, function: { name, arguments: args } } };
}

/** The JSON text of an object; some models wrap it in a string once more. */
function objectText(json: string): string | null {
  const value: unknown = JSON.parse(json);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return json;
  if (typeof value !== "string" || !value.trimStart().startsWith("{")) return null;
  const { json: inner, outcome } = repairArguments(value);
  return outcome === "cut" || outcome === "invalid" ? null : inner;
}

export interface Rejected {
  readonly calls: readonly ToolCall[];
  readonly results: readonly ToolMessage[];
}

/** Bad names: the result of each lists what exists; those of its siblings say that they were not run. */
export function rejectNames(checked: readonly CheckedCall[], names: ReadonlySet<string>): Rejected {
  const list = [...names].sort().join(", ");
  return reject(checked, (one) => {
    if (one.fault !== "name")
      return "Skipped: another call of this answer named a tool that does not exist. Send it again.";
    if (one.call.function.name.trim() === "") return "Error: the tool name was empty. Name the tool to call.";
    return `Error: there is no tool named "${one.call.function.name}". Available tools: ${list}`;
  });
}

/** Bad JSON: the result of each says where the parser stopped and quotes the text. */
export function rejectArguments(checked: readonly CheckedCall[]): Rejected {
  return reject(checked, (one) => {
    if (one.fault !== "json") return "Skipped: another call of this answer had invalid arguments. Send it again.";
    const start = [...one.call.function.arguments].slice(0, 200).join("");
    return `Error: the arguments are not valid JSON (${one.problem}). They began: ${start}\nSend one JSON object; {} when there are no parameters.`;
  });
}

function reject(checked: readonly CheckedCall[], say: (one: CheckedCall) => string): Rejected {
  // Ids are made unique first: the results must name the calls as they are stored.
  const stored = uniquifyToolCallIds(checked.map((one) => presentable(one.call)));
  return { calls: stored, results: stored.map((call, index) => stubResult(call, say(checked[index] as CheckedCall))) }; // same length
}

/** A call as servers take it back: a name of legal characters, arguments that parse. */
function presentable(call: ToolCall): ToolCall {
  const name =
    call.function.name
      .trim()
      .replace(/[^A-Za-z0-9_-]+/g, "_")
      .slice(0, 64) || "invalid_tool_call";
  return { ...call, function: { name, arguments: repairToolCallArguments(call.function.arguments) } };
}

interface AcceptedBatch {
  readonly calls: readonly ToolCall[];
  /** What was left out, in words for the user. */
  readonly notes: readonly string[];
}

/** A valid batch without its doubles, with ids that no earlier call of the conversation used. */
export function acceptBatch(
  calls: readonly ToolCall[],
  { history, maxChildren }: { readonly history: readonly HistoryMessage[]; readonly maxChildren: number },
): AcceptedBatch {
  const seen = new Set<string>();
  const once = calls.filter((call) => {
    const key = `${call.function.name}\n${canonicalArguments(call.function.arguments)}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
  let children = 0;
  const kept = once.filter((call) => call.function.name !== "delegate_task" || ++children <= maxChildren);
  const notes =
    kept.length < once.length
      ? [`${once.length - kept.length} delegate_task call(s) left out: at most ${maxChildren} run at once.`]
      : [];
  return { calls: freshIds(uniquifyToolCallIds(kept), history), notes };
}

/** Some servers count calls anew in every answer; a result file and a strict server need each id once. */
function freshIds(calls: readonly ToolCall[], history: readonly HistoryMessage[]): readonly ToolCall[] {
  const wanted = new Set(calls.map((call) => call.id));
  const used = new Set<string>();
  for (const message of history) {
    if (message.role !== "assistant") continue;
    for (const call of message.tool_calls ?? [])
      if (wanted.has(baseOf(call.id)) || wanted.has(call.id)) used.add(call.id);
  }
  if (used.size === 0) return calls;
  return calls.map((call) => {
    if (!used.has(call.id) || call.id.includes("|")) return call;
    let number = 2;
    while (used.has(`${call.id}_d${number}`) || wanted.has(`${call.id}_d${number}`)) number++;
    const id = `${call.id}_d${number}`;
    return { ...call, id, ...(call.call_id === undefined ? {} : { call_id: id }) };
  });
}

function baseOf(id: string): string {
  return id.replace(/_d\d+$/, "");
}

const CLOSE_ENOUGH = 0.7;

/** The tool a model most likely meant by a name that does not exist, or null. */
export function repairToolName(name: string, validNames: readonly string[]): string | null {
  const byLowerName = new Map(validNames.map((valid) => [valid.toLowerCase(), valid]));
  for (const candidate of candidates(name)) {
    const found = byLowerName.get(candidate);
    if (found !== undefined) return found;
  }
  const wanted = name.trim().toLowerCase();
  if (wanted === "") return null;
  let best: { readonly name: string; readonly score: number } | null = null;
  for (const [lower, valid] of byLowerName) {
    const score = similarity(wanted, lower);
    if (score >= CLOSE_ENOUGH && score > (best?.score ?? 0)) best = { name: valid, score };
  }
  return best?.name ?? null;
}

function* candidates(name: string): Generator<string> {
  const trimmed = name.trim();
  const plain = [underscored(trimmed.toLowerCase()), underscored(snakeCase(trimmed))];
  yield trimmed.toLowerCase();
  const elsewhere = fromDoubleUnderscores(trimmed);
  if (elsewhere !== null) yield elsewhere.toLowerCase();
  yield* plain;
  for (const spelling of plain) {
    const once = withoutToolSuffix(spelling);
    yield once;
    yield withoutToolSuffix(once);
  }
}

function underscored(name: string): string {
  return name.replace(/[-\s]+/g, "_");
}

function snakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1_$2")
    .toLowerCase();
}

function withoutToolSuffix(name: string): string {
  return name.replace(/[_-]?tool$/, "");
}
