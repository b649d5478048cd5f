// What the rest of the program gets of memory.
import type { Config } from "../home/config/schema.ts";
import type { Logger } from "../home/log.ts";
import type { HomePaths } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import { createApproval, dropPendingWrite, listPendingWrites, type MemoryRun, type PendingWrite } from "./approval.ts";
import { FILE_NAMES, fail, type MemoryResult, type MemoryTarget } from "./entries.ts";
import { type HistoryRecord, undoRecord } from "./history.ts";
import {
  backUpMemoryFile,
  type CommittedWrite,
  type MemoryAuthor,
  type MemorySettings,
  type MemorySnapshot,
  MemoryStore,
  type Reading,
} from "./store.ts";

interface MemoryOptions {
  readonly paths: HomePaths;
  config(): Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly lockWaitMs?: number;
}

/** The memory of one agent; a review of its conversation shares it. */
export interface Memory {
  /** One of the two stores is switched on. Off: no tool, no guidance, no text. */
  readonly enabled: boolean;
  /** The texts for the system prompt, frozen since the last `reload`. */
  snapshot(): MemorySnapshot;
  /** Reads the files again and freezes a new snapshot: only for a prompt that is built anew. */
  reload(): Promise<void>;
  /**
   * What the memory tool calls: checks the arguments as the model wrote them, asks the user where the settings want that or a stranger's
   * text is in the conversation, writes.
   * It never rejects for what a model or a disk did: the result says so.
   */
  apply(args: Readonly<Record<string, unknown>>, run: MemoryRun): Promise<MemoryResult>;
  /** The start of a user turn. `apply` notices a new turn by itself; this is for callers without one. */
  resetFailures(): void;

  /** Called after every write that changed something and is on disk: an external memory follows the built-in one by it. */
  onCommitted(listener: (write: CommittedWrite) => void): void;

  /** A write without approval. */
  write(args: Readonly<Record<string, unknown>>, author: MemoryAuthor): Promise<MemoryResult>;
  /** A fresh look at a file. */
  read(target: MemoryTarget): Promise<Reading>;
  fileOf(target: MemoryTarget): string;
  limitOf(target: MemoryTarget): number;
  isEnabled(target: MemoryTarget): boolean;
  /** Every change on record, oldest first. */
  history(): Promise<readonly HistoryRecord[]>;
  undo(record: HistoryRecord, author: MemoryAuthor): Promise<MemoryResult>;
  /** Empties a store; the file as it was is kept at `backup`. */
  clear(target: MemoryTarget, author: MemoryAuthor): Promise<{ result: MemoryResult; backup: string | null }>;

  /** Writes that wait for approval, oldest first. */
  pending(): Promise<readonly PendingWrite[]>;
  /** Carries out a pending write; it stays pending unless that succeeds. */
  approve(write: PendingWrite): Promise<MemoryResult>;
  reject(write: PendingWrite): Promise<void>;
}

/** Opens and loads. Never rejects: a memory that cannot be read is one without text, and its writes say what is wrong. */
export async function openMemory(options: MemoryOptions): Promise<Memory> {
  const { paths, clock, log } = options;
  const settings = () => settingsOf(options.config());
  const store = new MemoryStore({ ...options, settings });
  const pendingDir = paths.at("pending", "memory");
  const approval = createApproval({ store, pendingDir, clock, log });
  let turn = "";

  await store.load();
  return {
    get enabled() {
      return store.isEnabled("memory") || store.isEnabled("user");
    },
    snapshot: () => store.snapshot,
    reload: () => store.load(),
    apply(args, run) {
      const current = `${run.origin} ${run.sessionId} ${run.turn}`;
      if (current !== turn) store.resetFailures();
      turn = current;
      const author = authorOf(run);
      const asked = options.config().memory.write_approval || (run.foreignText?.() ?? null) !== null;
      return asked ? approval.write(args, author, run) : store.write(args, author);
    },
    resetFailures: () => store.resetFailures(),
    onCommitted(listener) {
      store.onCommitted = listener;
    },
    write: (args, author) => store.write(args, author),
    read: (target) => store.read(target),
    fileOf: (target) => store.fileOf(target),
    limitOf: (target) => store.limitOf(target),
    isEnabled: (target) => store.isEnabled(target),
    history: () => store.history(),
    undo: (record, author) => undoRecord(store, record, author),
    clear: (target, author) => clear(store, target, author, clock),
    pending: () => listPendingWrites(pendingDir),
    async approve(write) {
      const result = await store.write(write.payload, { origin: "approval" });
      if (result.success) await dropPendingWrite(pendingDir, write.id);
      return result;
    },
    reject: (write) => dropPendingWrite(pendingDir, write.id),
  };
}

async function clear(store: MemoryStore, target: MemoryTarget, author: MemoryAuthor, clock: Clock) {
  let backup: string | null = null;
  const result = await store.change({ target, op: "reset", author }, async (_entries, text) => {
    if (text === "") return fail("no_match", `${FILE_NAMES[target]} is already empty.`);
    backup = await backUpMemoryFile(store.fileOf(target), clock);
    return { entries: [], text: "", message: "All entries removed." };
  });
  return { result, backup };
}

function settingsOf({ memory }: Config): MemorySettings {
  return {
    memoryEnabled: memory.memory_enabled,
    userEnabled: memory.user_profile_enabled,
    memoryLimit: memory.memory_char_limit,
    userLimit: memory.user_char_limit,
  };
}

/** Only the review and the flush are distinguished; every other run counts as the agent at work. */
function authorOf({ origin, sessionId, turn, platform }: MemoryRun): MemoryAuthor {
  const known = origin === "background_review" || origin === "flush" ? origin : "foreground";
  return { origin: known, sessionId, turn, platform };
}
