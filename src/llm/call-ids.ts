// Ids of tool calls: never random, because a random id would break the cached prefix of the next request.
import { createHash } from "node:crypto";
import { sanitizeSurrogates } from "../kit/code-points.ts";
import type { Message, ToolCall } from "./messages.ts";

/** The id of a call that came without one: the same call at the same position always gets the same id. */
export function deterministicCallId(name: string, args: string, index: number): string {
  return `call_${createHash("sha256").update(`${name}:${args}:${index}`).digest("hex").slice(0, 12)}`;
}

/** Within one assistant message the second, third ... use of an id becomes `<id>_d2`, `<id>_d3` (the next free number). */
export function uniquifyToolCallIds(calls: readonly ToolCall[]): readonly ToolCall[] {
  const taken = new Set(calls.map(idOnWire).filter((id) => id !== ""));
  const seen = new Set<string>();
  return calls.map((call) => {
    const id = idOnWire(call);
    if (id === "" || !seen.has(id)) {
      seen.add(id);
      return call;
    }
    const fresh = nextFree(id, taken);
    taken.add(fresh);
    const item = call.id.includes("|") ? call.id.slice(call.id.indexOf("|")) : "";
    return { ...call, id: fresh + item, ...(call.call_id ? { call_id: fresh } : {}) };
  });
}

/** What a call is known by on the wire: `call_id` if it has one, else the part of `id` before `|`. */
function effectiveCallId(call: Pick<ToolCall, "id" | "call_id">): string {
  if (call.call_id) return call.call_id;
  return splitResponsesToolId(call.id)[0] ?? call.id;
}

function idOnWire(call: ToolCall): string {
  if (call.id.trim() === "" && !call.call_id) return "";
  return call.call_id || (call.id.split("|")[0] ?? "");
}

/** `call_a|fc_b` → `[call_a, fc_b]`; a lone item id (`fc_z`) → `[null, fc_z]`; a lone call id → `[call_a, null]`. */
export function splitResponsesToolId(id: string): [callId: string | null, itemId: string | null] {
  const [first = "", second = ""] = id.trim().split("|", 2);
  if (second !== "") return [first || null, second];
  if (first.startsWith("fc_")) return [null, first];
  return [first || null, null];
}

/**
 * The ids of one rendered request. A result may name its call by `id`, by `call_id` or by a composite of both, while a request must use
 * one id for both sides and every id once. Fed with the calls and results in order, it answers with the id that is sent.
 */
export class CallIdsOnWire {
  readonly #clean: (id: string) => string;
  readonly #sent = new Set<string>();
  readonly #aliases = new Map<string, string>();

  /** `clean` converts an id to the alphabet of the wire. */
  constructor(clean: (id: string) => string = (id) => id) {
    this.#clean = clean;
  }

  open(call: ToolCall, index: number): string {
    const raw = effectiveCallId(call);
    const clean = this.#clean(raw) || deterministicCallId(call.function.name, call.function.arguments, index);
    const id = nextFree(clean, this.#sent);
    this.#sent.add(id);
    for (const alias of [call.id, call.call_id, raw]) if (alias !== undefined) this.#aliases.set(alias, id);
    return id;
  }

  /** The id of the newest call that a result may mean; null when no call was sent under that name. */
  answered(toolCallId: string): string | null {
    return this.#aliases.get(toolCallId) ?? this.#aliases.get(splitResponsesToolId(toolCallId)[0] ?? "") ?? null;
  }
}

/**
 * Ids for the calls of a fresh answer. Servers that number calls from 0 in every answer, or send no ids at all, would otherwise
 * collide with calls of earlier turns.
 */
export class FreshCallIds {
  readonly #taken: Set<string>;

  constructor(history: readonly Message[] = []) {
    this.#taken = new Set(
      history
        .flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []))
        .map(effectiveCallId),
    );
  }

  claim(id: string, name: string, args: string, index: number): string {
    // The store keeps a result's id as UTF-8: half a surrogate pair would come back as another id than that of its call.
    const given = sanitizeSurrogates(id);
    const fresh = given.trim() === "" ? this.#derive(name, args, index) : nextFree(given, this.#taken);
    this.#taken.add(fresh);
    return fresh;
  }

  #derive(name: string, args: string, index: number): string {
    const id = deterministicCallId(name, args, index);
    return this.#taken.has(id) ? this.#derive(name, args, index + 1) : id;
  }
}

function nextFree(id: string, taken: ReadonlySet<string>): string {
  if (!taken.has(id)) return id;
  let number = 2;
  while (taken.has(`${id}_d${number}`)) number++;
  return `${id}_d${number}`;
}
