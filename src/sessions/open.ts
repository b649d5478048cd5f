// Opens the session store of a home.
import { closeSync, openSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Logger } from "../home/log.ts";
import { makeDirectory } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import { type Connection, connect, type JournalMode, settleJournal, storeError } from "./connection.ts";
import { StoreCore } from "./core.ts";
import { createSqliteStore } from "./sqlite-store.ts";
import { type SessionStore, StoreError } from "./store.ts";
import { planUpgrade, upgrade } from "./upgrade.ts";
import { transaction, waitWhileBusy } from "./write-queue.ts";

export interface OpenStoreOptions {
  readonly path: string;
  /** `database.journal_mode` of the settings. */
  readonly journalMode: JournalMode;
  readonly log: Logger;
  readonly clock: Clock;
  /** For homes that cannot be written: nothing is written, created or changed. A file that is not there counts as an empty one. */
  readonly readOnly?: boolean;
  /** What the file holds is copied into memory, and all that is new stays there. Without a file, or with one too large, it begins empty. */
  readonly inMemory?: boolean;
  /** Where transcripts and dumps of single sessions lie; they go with their session. */
  readonly sessionsDir?: string;
  /** Searches slower than this are logged. */
  readonly slowSearchMs?: number;
  /** Called when the store holds no conversation, and a copy of it beside it or in `backups/` does. */
  readonly onLost?: (copy: string) => void;
  /** Called when a write has been waiting for another process for three seconds. */
  readonly onBusy?: () => void;
}

const OPEN_TIMEOUT_MS = 20_000;
const SLOW_SEARCH_MS = 500;

export async function openSessionStore(options: OpenStoreOptions): Promise<SessionStore> {
  const { path, log, clock, readOnly = false } = options;
  const inMemory = options.inMemory || (readOnly && !statSync(path, { throwIfNoEntry: false }));
  if (!readOnly && !inMemory) makeFile(path);
  const db = connect({ path, readOnly, inMemory });
  const onBusy = options.onBusy ? { onBusy: options.onBusy } : {};
  const wait = { db, clock, timeoutMs: OPEN_TIMEOUT_MS, ...onBusy };
  try {
    if (!readOnly || inMemory) {
      if (!inMemory)
        await waitWhileBusy(wait, () => settleJournal(db, options.journalMode, process.versions.sqlite ?? "0", log));
      await waitWhileBusy(wait, () => {
        if (planUpgrade(db, log).length > 0) transaction(db, () => upgrade(db, log));
        // A copy of its own: who holds the conversations of the file does not matter in it.
        if (inMemory) db.run("DELETE FROM lanes");
      });
    }
    // Without a write-ahead log even the first look has to wait for a writer.
    const core = await waitWhileBusy(wait, () => new StoreCore({ db, clock, log, ...onBusy }));
    const copy = options.onLost && isEmpty(db) ? findCopy(path) : undefined;
    if (copy !== undefined) options.onLost?.(copy);
    return createSqliteStore(core, {
      sessionsDir: (inMemory ? null : options.sessionsDir) ?? null,
      slowSearchMs: options.slowSearchMs ?? SLOW_SEARCH_MS,
    });
  } catch (error) {
    db.close();
    throw storeError(error, path);
  }
}

/** A file that is only read may have no tables. */
function isEmpty(db: Connection): boolean {
  const hasTable = db.get("SELECT 1 FROM sqlite_master WHERE name = 'sessions'") !== undefined;
  return !hasTable || db.get("SELECT 1 FROM sessions LIMIT 1") === undefined;
}

/** The newest copy that holds a conversation. */
function findCopy(path: string): string | undefined {
  return [...copiesIn(dirname(path), basename(path)), ...copiesIn(join(dirname(path), "backups"), null)]
    .sort((one, other) => other.changed - one.changed)
    .find(({ file }) => holdsConversations(file))?.file;
}

function holdsConversations(path: string): boolean {
  try {
    const db = connect({ path, readOnly: true });
    try {
      return !isEmpty(db);
    } finally {
      db.close();
    }
  } catch {
    return false; // not a database, or not to be read now
  }
}

/** Files named after the store (`state.db.old`), or all databases. */
function copiesIn(folder: string, store: string | null): { readonly file: string; readonly changed: number }[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return []; // there is no such folder, or it is not ours to read
  }
  const isCopy = (name: string) => (store === null ? name.endsWith(".db") : name.startsWith(`${store}.`));
  return names.filter(isCopy).flatMap((name) => {
    const file = join(folder, name);
    const facts = statSync(file, { throwIfNoEntry: false });
    return facts?.isFile() && facts.size > 0 ? [{ file, changed: facts.mtimeMs }] : [];
  });
}

/** Conversations are nobody else's business: SQLite would make the file readable for all, and its log files take over the file's rights. */
function makeFile(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })) return;
  try {
    if (!statSync(dirname(path), { throwIfNoEntry: false })) makeDirectory(dirname(path), 0o700);
  } catch (error) {
    throw new StoreError("unavailable", `the folder of ${path} cannot be created; check its permissions`, {
      cause: error,
    });
  }
  try {
    closeSync(openSync(path, "a", 0o600));
  } catch {
    return; // SQLite meets the same obstacle and says what it is
  }
}
