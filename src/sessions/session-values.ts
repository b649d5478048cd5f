// What is kept with a session besides messages: its prompt, its keys, the tool lists it was offered.
import { createHash } from "node:crypto";
import { sliceCodePoints } from "../kit/code-points.ts";
import { decodeText, parseJson } from "./content.ts";
import type { StoreCore } from "./core.ts";
import type { HandoffState, PromptRecord } from "./store.ts";

/** The newer original keeps prompts once, under their hash; where both stand the hash wins. */
export function promptExpression(core: StoreCore): string {
  const { shape } = core;
  return shape.sessionColumns.has("system_prompt_hash") && shape.tables.has("system_prompts")
    ? "COALESCE((SELECT p.prompt FROM system_prompts p WHERE p.hash = s.system_prompt_hash), s.system_prompt)"
    : "s.system_prompt";
}

export function readPrompt(core: StoreCore, sessionId: string): PromptRecord | null {
  const column = (name: string) => (core.shape.sessionColumns.has(name) ? `s.${name}` : "NULL");
  const row = core.db.get<{ prompt: Uint8Array | null; stable: number | null; fingerprint: string | null }>(
    `SELECT CAST(${promptExpression(core)} AS BLOB) AS prompt, ${column("system_prompt_stable_chars")} AS stable,
       ${column("prompt_fingerprint")} AS fingerprint
     FROM sessions s WHERE s.id = ?`,
    sessionId,
  );
  const prompt = decodeText(row?.prompt);
  if (!row || prompt === null) return null;
  return {
    prompt,
    stableChars: row.stable,
    fingerprint: row.fingerprint === null ? null : (parseJson(row.fingerprint) ?? null),
  };
}

export function writePrompt(core: StoreCore, sessionId: string, record: PromptRecord): void {
  const clearHash = core.shape.sessionColumns.has("system_prompt_hash") ? ", system_prompt_hash = NULL" : "";
  core.db.run(
    `UPDATE sessions SET system_prompt = ?, system_prompt_stable_chars = ?, prompt_fingerprint = ?${clearHash} WHERE id = ?`,
    record.prompt,
    record.stableChars,
    record.fingerprint === null || record.fingerprint === undefined ? null : JSON.stringify(record.fingerprint),
    sessionId,
  );
}

export function storeToolList(core: StoreCore, tools: unknown): string {
  const text = JSON.stringify(tools);
  const hash = createHash("sha256").update(text).digest("hex");
  core.db.run("INSERT OR IGNORE INTO tool_lists (hash, tools) VALUES (?, ?)", hash, text);
  return hash;
}

export function readToolList(core: StoreCore, hash: string): unknown {
  const row = core.db.get<{ tools: string }>("SELECT tools FROM tool_lists WHERE hash = ?", hash);
  return row ? (parseJson(row.tools) ?? null) : null;
}

export function readValue(core: StoreCore, sessionId: string, key: string): unknown {
  if (!core.shape.tables.has("session_kv")) return null;
  const row = core.db.get<{ value: string | null }>(
    "SELECT value FROM session_kv WHERE session_id = ? AND key = ?",
    sessionId,
    key,
  );
  return row?.value ? (parseJson(row.value) ?? null) : null;
}

/** `undefined` and `null` remove the key. */
export function writeValue(core: StoreCore, sessionId: string, key: string, value: unknown): void {
  if (value === undefined || value === null) {
    core.db.run("DELETE FROM session_kv WHERE session_id = ? AND key = ?", sessionId, key);
    return;
  }
  core.db.run(
    `INSERT INTO session_kv (session_id, key, value) VALUES (?, ?, ?)
     ON CONFLICT(session_id, key) DO UPDATE SET value = excluded.value`,
    sessionId,
    key,
    JSON.stringify(value),
  );
}

export function copyValues(core: StoreCore, from: string, to: string): void {
  core.db.run(
    "INSERT OR REPLACE INTO session_kv (session_id, key, value) SELECT ?, key, value FROM session_kv WHERE session_id = ?",
    to,
    from,
  );
}

const MAX_HANDOFF_ERROR = 500;

/** Compare and set: of two processes that want the same step one gets it. */
export function stepHandoff(
  core: StoreCore,
  id: string,
  step: { from: HandoffState | null; to: HandoffState; platform?: string; error?: string },
): boolean {
  const { changes } = core.db.run(
    `UPDATE sessions SET handoff_state = ?, handoff_platform = COALESCE(?, handoff_platform), handoff_error = ?
     WHERE id = ? AND handoff_state IS ?`,
    step.to,
    step.platform ?? null,
    step.error === undefined ? null : sliceCodePoints(step.error, 0, MAX_HANDOFF_ERROR),
    id,
    step.from,
  );
  return changes === 1;
}
