// From what a user types after `--resume` to a session.
import type { SessionStore } from "./store.ts";

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

/** The conversation of the terminal that was active last. */
export async function findLatest(
  store: Pick<SessionStore, "list">,
  sources: readonly string[] = ["cli", "tui"],
): Promise<string | null> {
  // A prompt that ran beside a conversation is not the conversation.
  const latest = await store.list({ sources, orderByLastActive: true, limit: 50 });
  return latest.find(({ id }) => !id.startsWith("bg_"))?.id ?? null;
}
