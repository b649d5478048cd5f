// A session store in a temporary folder, with a clock that only moves when told and a log that can be read.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Logger } from "../../src/home/log.ts";
import type { Clock } from "../../src/kit/clock.ts";
import { type OpenStoreOptions, openSessionStore } from "../../src/sessions/open.ts";
import type { SessionStore } from "../../src/sessions/store.ts";

export interface ManualClock extends Clock {
  /** Milliseconds since the epoch; set it to move time. */
  ms: number;
}

/** Sleeps return at once and move the time on. */
export function manualClock(ms = Date.UTC(2026, 0, 2, 12)): ManualClock {
  let seed = 1;
  const clock: ManualClock = {
    ms,
    now: () => clock.ms,
    random: () => {
      seed = (seed * 48271) % 2147483647;
      return seed / 2147483647;
    },
    sleep: async (duration) => {
      clock.ms += duration;
    },
  };
  return clock;
}

export interface RecordedLog extends Logger {
  readonly lines: string[];
}

export function recordedLog(): RecordedLog {
  const lines: string[] = [];
  const at = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const log: RecordedLog = {
    lines,
    debug: at("DEBUG"),
    info: at("INFO"),
    warn: at("WARNING"),
    error: at("ERROR"),
    child: () => log,
  };
  return log;
}

export async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "hermes-store-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export interface TemporaryStore {
  readonly store: SessionStore;
  readonly path: string;
  readonly folder: string;
  readonly clock: ManualClock;
  readonly log: RecordedLog;
}

export async function temporaryStore(t: TestContext, options: Partial<OpenStoreOptions> = {}): Promise<TemporaryStore> {
  const folder = await temporaryFolder(t);
  const clock = manualClock();
  const log = recordedLog();
  const path = join(folder, "state.db");
  const store = await openSessionStore({ path, journalMode: "auto", log, clock, ...options });
  t.after(() => store.close());
  return { store, path, folder, clock, log };
}

/** One that is nowhere but in memory. */
export async function memoryStore(t: TestContext, clock: Clock): Promise<SessionStore> {
  const options = { path: ":memory:", inMemory: true, journalMode: "auto", log: recordedLog(), clock } as const;
  const store = await openSessionStore(options);
  t.after(() => store.close());
  return store;
}
