// Which conversation "go on with that" means, and what has to be known of it to go on.

import { stat } from "node:fs/promises";
import type { OpenHome } from "../home/open.ts";
import { UserError } from "../kit/errors.ts";
import { isDirectory } from "../kit/files.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { expandPath } from "../safety/paths.ts";
import { findLatest, findSession } from "../sessions/session-id.ts";
import type { SessionStore } from "../sessions/store.ts";

export interface ResumedSession {
  readonly id: string;
  readonly title: string | null;
  /** The id that was asked for, when the conversation goes on under another one. */
  readonly continuationOf: string | null;
}

interface FoundSession {
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
class SessionNotFoundError extends UserError {
  override name = "SessionNotFoundError";
}

/** Null: there is no conversation yet, a new one begins. A name that leads nowhere is an error. */
export async function resumeSession(
  name: string | null,
  store: SessionStore,
  source: string,
): Promise<FoundSession | null> {
  // The screen goes by two names; whoever else asks means a conversation of its own kind.
  const latest = () => findLatest(store, source === "cli" ? undefined : [source]);
  const asked = name === null ? await latest() : await requireSession(name, store);
  if (asked === null) return null;
  const id = await store.resumeTarget(asked);
  const [session, history] = await Promise.all([store.get(id), store.load(id)]);
  if (!session) throw new SessionNotFoundError(`The conversation ${id} no longer exists.`);
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
    notes:
      session.cwd !== null && !cwdExists ? [`The folder of this conversation no longer exists: ${session.cwd}`] : [],
  };
}

/** The id behind a name; throws when there is none, or more than one. */
export async function requireSession(name: string, store: SessionStore): Promise<string> {
  const id = await findSession(store, name);
  if (id !== null) return id;
  throw new SessionNotFoundError(`No conversation has the id or title "${name}". "hermes sessions list" shows them.`);
}

// The folder a conversation works in: the configured one, else where the program was started.

interface SessionCwd {
  readonly cwd: string;
  /** Nobody chose it: it is where the program happened to be started. */
  readonly isFallback: boolean;
  readonly warning: string | null;
}

export async function sessionCwd(home: OpenHome, launch: string): Promise<SessionCwd> {
  const { cwd: configured, backend } = home.config().terminal;
  const started = { cwd: launch, isFallback: true, warning: null };
  // On another machine it names a folder there.
  if (["", "."].includes(configured.trim()) || backend === "ssh") return started;
  const path = expandPath(configured.trim(), launch, home.environment().HOME ?? home.osHome);
  const facts = await stat(path).catch(() => null); // reported below
  if (facts?.isDirectory()) return { cwd: path, isFallback: false, warning: null };
  return { ...started, warning: `terminal.cwd is ${configured}, but there is no such folder; working in ${launch}.` };
}
