// Shortening without a model: old tool results are sent in one line each. What is stored of them stays, and it can be taken back.

import type { ContextEngine } from "../../plugins/engine.ts";
import type { Conversation } from "../conversation.ts";
import type { SentBefore } from "../transcript.ts";
import { messagesCost } from "./cost.ts";
import { pruneOldToolResults } from "./prune.ts";

/** In the session's keys: which rows are sent shorter, and what was said last when that was decided. */
const KEY = "pruned";
const LEAST_GAIN = 0.2;
const TARGET = 0.8;

/** Only if it is enough by itself. Resolves to the new size of a request, about; null when nothing was done. */
export async function pruneResults(
  { transcript, options }: Conversation,
  engine: ContextEngine,
  tokens: number,
): Promise<number | null> {
  if (!("tailTokenBudget" in engine) || typeof engine.tailTokenBudget !== "number") return null;
  const before = transcript.messages;
  const { messages, pruned } = pruneOldToolResults(before, {
    protectTailCount: engine.protectLastN,
    protectTailTokens: engine.tailTokenBudget,
    mode: "beside",
  });
  const saved = messagesCost(before) - messagesCost(messages);
  const after = tokens - saved;
  if (pruned === 0 || saved < LEAST_GAIN * tokens || after >= TARGET * engine.thresholdTokens) return null;
  const { sessionId } = transcript;
  try {
    const rows = await transcript.sendShorter(messages);
    await options.session.store?.setValue(sessionId, KEY, { rows, last: await transcript.lastRowId() });
  } catch (error) {
    options.ports.log.warn("old tool results could not be shortened; they are sent as before", error);
    return null;
  }
  options.ports.gate.expectNewPrefix(sessionId, "prune");
  return after;
}

/** False when there is none to take back, or something was said since. */
export async function undoPrune({ transcript, options }: Conversation): Promise<boolean> {
  const { store } = options.session;
  const { sessionId } = transcript;
  const record = store ? await store.getValue(sessionId, KEY) : null;
  if (!store || !isRecord(record) || record.last !== (await transcript.lastRowId())) return false;
  await transcript.sendAsBefore(record.rows);
  await store.setValue(sessionId, KEY, null);
  options.ports.gate.expectNewPrefix(sessionId, "rewind");
  return true;
}

function isRecord(value: unknown): value is { readonly rows: readonly SentBefore[]; readonly last: number | null } {
  return typeof value === "object" && value !== null && "rows" in value && Array.isArray(value.rows) && "last" in value;
}
