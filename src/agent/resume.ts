// Which conversation "go on with that" means, and what has to be known of it to go on.
import { stat } from "node:fs/promises";
import { UserError } from "../kit/errors.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { findLatest, findSession } from "../sessions/resolve.ts";
import type { SessionStore } from "../sessions/store.ts";

export interface ResumedSession {
  readonly id: string;
  readonly title: string | null;
  /** The id that was asked for, when the conversation goes on under another one. */
  readonly continuationOf: string | null;
}

export interface FoundSession {
  readonly id: string;
  readonly resumed: ResumedSession;
  readonly history: readonly HistoryMessage[];
  /** Unix seconds. */
  readonly startedAt: number;
  /** What the session was held with; options of this run override it. */
  readonly recorded: { readonly model?: string; readonly provider?: string; readonly cwd?: string };
  readonly notes: readonly string[];
}

/** Nothing by that name. The message says how to find it. */
export class SessionNotFoundError extends UserError {
  override name = "SessionNotFoundError";
}

/** Null: there is no conversation yet, a new one begins. A name that leads nowhere is an error. */
export async function resumeSession(name: string | null, store: SessionStore): Promise<FoundSession | null> {
  const asked = name === null ? await findLatest(store) : await findSession(store, name);
  if (asked === null && name !== null) {
    throw new SessionNotFoundError(
      `No conversation has the id or title "${name}". "hermes sessions list" shows what there is.`,
    );
  }
  if (asked === null) return null;
  const id = await store.resumeTarget(asked);
  const [session, history] = await Promise.all([store.get(id), store.load(id)]);
  if (!session) throw new SessionNotFoundError(`The conversation ${id} is gone from the store.`);
  const cwdExists = session.cwd !== null && (await isDirectory(session.cwd));
  const provider = session.modelConfig?.provider;
  return {
    id,
    resumed: { id, title: session.title, continuationOf: id === asked ? null : asked },
    history,
    startedAt: session.startedAt,
    recorded: {
      ...(session.model ? { model: session.model } : {}),
      ...(typeof provider === "string" ? { provider } : {}),
      ...(session.cwd !== null && cwdExists ? { cwd: session.cwd } : {}),
    },
    notes: session.cwd !== null && !cwdExists ? [`The folder of this conversation is gone: ${session.cwd}`] : [],
  };
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false; // gone or not ours to see: either way it cannot be used
  }
}
