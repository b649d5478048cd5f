import type { Clock } from "../kit/clock.ts";
import type { SessionStore } from "./store.ts";

type SessionIdKind = "session" | "gateway" | "background";

/** `YYYYMMDD_HHMMSS_<6 hex>` in local time; 8 hex for a chat, `bg_HHMMSS_<6 hex>` for a background task. */
export function newSessionId(clock: Pick<Clock, "now" | "random">, kind: SessionIdKind = "session"): string {
  const at = new Date(clock.now());
  const two = (part: number) => String(part).padStart(2, "0");
  const date = `${at.getFullYear()}${two(at.getMonth() + 1)}${two(at.getDate())}`;
  const time = `${two(at.getHours())}${two(at.getMinutes())}${two(at.getSeconds())}`;
  if (kind === "background") return `bg_${time}_${hex(clock, 6)}`;
  return `${date}_${time}_${hex(clock, kind === "gateway" ? 8 : 6)}`;
}

function hex(clock: Pick<Clock, "random">, digits: number): string {
  return Math.floor(clock.random() * 16 ** digits)
    .toString(16)
    .padStart(digits, "0");
}

// From what a user types after `--resume` to a session.

/** Exact id, then title (the newest of its lineage), then the only id that begins so; null when nothing fits. */
export async function findSession(
  store: Pick<SessionStore, "get" | "resolveTitle" | "resolveId">,
  text: string,
): Promise<string | null> {
  const wanted = text.trim();
  if (wanted === "") return null;
  if (await store.get(wanted)) return wanted;
  return (await store.resolveTitle(wanted)) ?? (await store.resolveId(wanted));
}

/** The conversation that was active last, of the terminal or of these doors. */
export async function findLatest(
  store: Pick<SessionStore, "list">,
  sources: readonly string[] = ["cli", "tui"],
): Promise<string | null> {
  // A prompt that ran in the background is not the conversation.
  const latest = await store.list({ sources, orderByLastActive: true, limit: 50 });
  return latest.find(({ id }) => !id.startsWith("bg_"))?.id ?? null;
}

/** Whether it is the id of a conversation that a client of the API keeps itself: made from what it said first. */
export const isDerivedId = (id: string) => /^api-[0-9a-f]{16}(?:-[0-9a-f]{4})?$/.test(id);

/** In `session_kv`: what a program laid over the prompt of a session when it made it. */
export const INSTRUCTIONS_KEY = "api_instructions";
