// Is a batch of tool calls fit to run? Names and arguments are put right where that is safe, otherwise the fault is named.

import { similarity } from "../kit/similarity.ts";
import { uniquifyToolCallIds } from "../llm/call-ids.ts";
import { repairArguments, repairToolCallArguments } from "../llm/json-repair.ts";
import type { HistoryMessage, ToolCall, ToolMessage } from "../llm/messages.ts";
import { fromDoubleUnderscores } from "../mcp/settings.ts";
import { canonicalArguments, stubResult } from "./repair.ts";

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

/** Bad names: each is told what exists; its siblings are told that they were not run. */
export function rejectNames(checked: readonly CheckedCall[], names: ReadonlySet<string>): Rejected {
  const list = [...names].sort().join(", ");
  return reject(checked, (one) => {
    if (one.fault !== "name")
      return "Skipped: another call of this answer named a tool that does not exist. Send it again.";
    if (one.call.function.name.trim() === "") return "Error: the tool name was empty. Name the tool to call.";
    return `Error: there is no tool named "${one.call.function.name}". Available tools: ${list}`;
  });
}

/** Bad JSON: each is told where the parser stopped and what it wrote. */
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
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1_$2")
    .toLowerCase();
}

function withoutToolSuffix(name: string): string {
  return name.replace(/[_-]?tool$/, "");
}
