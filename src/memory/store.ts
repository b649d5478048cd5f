// One memory of one agent: a frozen text for its prompt, the live entries, and the one way in which files are changed.

import { open, readdir, readFile, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { LockTimeoutError, withLock } from "../home/lock.ts";
import type { Logger } from "../home/log.ts";
import { factsNow, stampNow } from "../home/looks.ts";
import type { HomePaths } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import { codeOf, messageOf } from "../kit/errors.ts";
import { makeDirectories, writeFileAtomic } from "../kit/files.ts";
import { scanForThreats } from "../safety/threats/scan.ts";
import {
  type FailureCode,
  FILE_NAMES,
  fail,
  lengthOf,
  longUsage,
  type MemoryFailure,
  type MemoryResult,
  type MemoryTarget,
  parseEntries,
  renderEntries,
  succeed,
  TARGETS,
  withState,
} from "./entries.ts";
import { type HistoryRecord, type MemoryOrigin, openHistory } from "./history.ts";
import { applyOperations, type MemoryRequest, type Operation, parseRequest, sameEntries } from "./request.ts";

export interface MemorySettings {
  readonly memoryEnabled: boolean;
  readonly userEnabled: boolean;
  /** In code points. */
  readonly memoryLimit: number;
  readonly userLimit: number;
}

interface MemoryStoreOptions {
  readonly paths: HomePaths;
  /** Asked at every use, so that a changed config.yaml counts at once. */
  settings(): MemorySettings;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long a write waits for another process, in milliseconds. */
  readonly lockWaitMs?: number;
}

/** Who changes memory, as the change log names it. */
export interface MemoryAuthor {
  readonly origin: Exclude<MemoryOrigin, "external">;
  readonly sessionId?: string;
  readonly turn?: number;
  readonly platform?: string;
}

export interface MemorySnapshot {
  readonly memoryText: string | null;
  readonly userText: string | null;
}

/** Operations that changed a store and are on disk. */
export interface CommittedWrite {
  readonly target: MemoryTarget;
  readonly operations: readonly Operation[];
  readonly author: MemoryAuthor;
}

/** What a change makes of a store: the new entries, and the exact text when it is not the usual rendering of them. */
export interface Change {
  readonly entries: readonly string[];
  readonly text?: string;
  readonly message: string;
}

interface ChangeFacts {
  readonly target: MemoryTarget;
  readonly op: string;
  readonly author: MemoryAuthor;
  readonly undoes?: string;
}

/**
 * - The snapshot changes in `load` and nowhere else; a write changes the file and the live entries at once.
 * - A write re-reads the file under the lock, so that what others wrote meanwhile is kept.
 * - Results, not exceptions: a write that fails says so and leaves the file as it was.
 */
export class MemoryStore {
  readonly #options: MemoryStoreOptions;
  #snapshot: MemorySnapshot = { memoryText: null, userText: null };
  #live: Record<MemoryTarget, readonly string[]> = { memory: [], user: [] };
  #failures = 0;
  /** Called after every requested write that changed something. Must not throw. */
  onCommitted: ((write: CommittedWrite) => void) | null = null;

  constructor(options: MemoryStoreOptions) {
    this.#options = options;
  }

  get snapshot(): MemorySnapshot {
    return this.#snapshot;
  }

  entries(target: MemoryTarget): readonly string[] {
    return this.#live[target];
  }

  fileOf(target: MemoryTarget): string {
    return join(this.#options.paths.memoriesDir, FILE_NAMES[target]);
  }

  limitOf(target: MemoryTarget): number {
    const { memoryLimit, userLimit } = this.#options.settings();
    return target === "memory" ? memoryLimit : userLimit;
  }

  isEnabled(target: MemoryTarget): boolean {
    const { memoryEnabled, userEnabled } = this.#options.settings();
    return target === "memory" ? memoryEnabled : userEnabled;
  }

  /** Reads both files and freezes the snapshot anew. Never rejects; what cannot be read is left out of the prompt, with a warning. */
  async load(): Promise<void> {
    const { paths, clock, log } = this.#options;
    await prepareMemoryFolder(paths.memoriesDir, clock).catch((error: unknown) => {
      log.warn(`memory folder ${paths.memoriesDir} cannot be prepared; nothing can be remembered`, error);
    });
    for (const target of TARGETS) {
      const reading = await readMemoryFile(this.fileOf(target));
      if (reading.type === "unreadable") {
        log.warn(`${this.fileOf(target)} cannot be read and is left out of the prompt: ${reading.reason}`);
      }
      this.#live[target] = reading.type === "read" ? reading.entries : [];
    }
    const block = (target: MemoryTarget) =>
      this.isEnabled(target) ? renderBlock(target, this.#live[target], this.limitOf(target)) : null;
    this.#snapshot = { memoryText: block("memory"), userText: block("user") };
  }

  /** A fresh look at the file; the live entries follow it when it can be read. */
  async read(target: MemoryTarget): Promise<Reading> {
    const reading = await readMemoryFile(this.fileOf(target));
    if (reading.type === "read") this.#live[target] = reading.entries;
    return reading;
  }

  /** The start of a user turn: the model may try again. */
  resetFailures(): void {
    this.#failures = 0;
  }

  /** Carries out one call of the memory tool, or one command of the user. */
  async write(args: Readonly<Record<string, unknown>>, author: MemoryAuthor): Promise<MemoryResult> {
    const request = await this.accept(args);
    return "code" in request ? request : this.carryOut(request, author);
  }

  /** The arguments as a request that is sound in itself, or what is wrong with them. */
  async accept(args: Readonly<Record<string, unknown>>): Promise<MemoryRequest | MemoryFailure> {
    if (!TARGETS.some((target) => this.isEnabled(target))) {
      return fail("unavailable", "There is no memory here; it may be disabled in the settings.");
    }
    const request = parseRequest(args);
    if ("code" in request) return this.#explain(request, args.target === "user" ? "user" : "memory");
    if (this.isEnabled(request.target)) return request;
    const name = request.target === "user" ? "The user profile" : "The memory of notes";
    return fail("target_disabled", `${name} (target "${request.target}") is switched off in the settings.`);
  }

  /** What a request would do if it were carried out now. Nothing is written. */
  async dryRun(request: MemoryRequest): Promise<"change" | "nothing" | MemoryFailure> {
    const reading = await this.read(request.target);
    if (reading.type === "unreadable") return this.#unreadable(request.target, reading.reason);
    const limit = this.limitOf(request.target);
    const applied = applyOperations(reading.entries, request, limit);
    if (applied.type === "failed") return this.#count(withState(applied.failure, reading.entries, limit));
    if (applied.type === "drifted") return this.#count(await this.#drifted(request.target));
    return sameEntries(applied.entries, reading.entries) ? "nothing" : "change";
  }

  async carryOut(request: MemoryRequest, author: MemoryAuthor): Promise<MemoryResult> {
    const { target } = request;
    const op = request.batch ? "batch" : (request.operations[0]?.action ?? "batch");
    let changed = false;
    const result = await this.change({ target, op, author }, async (entries) => {
      const limit = this.limitOf(target);
      const applied = applyOperations(entries, request, limit);
      changed = applied.type === "changed" && !sameEntries(applied.entries, entries);
      if (applied.type === "changed") return applied;
      if (applied.type === "failed") return withState(applied.failure, entries, limit);
      return this.#drifted(target);
    });
    if (result.success && changed) this.onCommitted?.({ target, operations: request.operations, author });
    return this.#count(result);
  }

  /** The one path of every change: lock, read, decide, log, replace. */
  async change(
    facts: ChangeFacts,
    decide: (entries: readonly string[], text: string) => Promise<Change | MemoryFailure> | Change | MemoryFailure,
  ): Promise<MemoryResult> {
    const { paths, clock, log, lockWaitMs = 10_000 } = this.#options;
    const { target } = facts;
    try {
      return await withLock(
        join(paths.memoriesDir, ".lock.db"),
        async () => {
          const reading = await this.read(target);
          if (reading.type === "unreadable") return this.#unreadable(target, reading.reason);
          const change = await decide(reading.entries, reading.text);
          if ("code" in change) return change;
          const text = change.text ?? renderEntries(change.entries);
          const unchanged = sameEntries(change.entries, reading.entries) && change.text === undefined;
          if (!unchanged) await this.#replace(facts, reading, change.entries, text);
          this.#live[target] = change.entries;
          return succeed(target, change.entries, this.limitOf(target), change.message);
        },
        { waitMs: lockWaitMs, clock },
      );
    } catch (error) {
      log.warn(`memory file ${this.fileOf(target)} was not written`, error);
      await this.read(target);
      const cause = messageOf(error);
      const advice = error instanceof LockTimeoutError ? "" : " The old content is unchanged.";
      return fail("write_failed", `${FILE_NAMES[target]} could not be written: ${cause}${advice}`);
    }
  }

  /** Oldest first. */
  history(): Promise<readonly HistoryRecord[]> {
    return this.#history().read();
  }

  #history() {
    return openHistory(join(this.#options.paths.memoriesDir, ".history.jsonl"));
  }

  async #replace(
    facts: ChangeFacts,
    now: { readonly text: string; readonly entries: readonly string[] },
    entries: readonly string[],
    text: string,
  ): Promise<void> {
    const { target, op, author, undoes } = facts;
    const history = this.#history();
    const last = await history.last(target);
    const known = last?.after ?? [];
    const records: HistoryRecord[] = [];
    if (!sameEntries(known, now.entries)) {
      records.push(this.#record(target, "external", { origin: "external" }, known, now.entries));
    }
    records.push({
      ...this.#record(target, op, author, now.entries, entries),
      before_text: now.text === renderEntries(now.entries) ? undefined : now.text,
      undoes,
    });
    const takeBack = await history.append(records);
    try {
      await writeMemoryFile(this.fileOf(target), text);
    } catch (error) {
      await takeBack().catch((reason: unknown) =>
        this.#options.log.warn("the change log keeps a record of a memory write that failed", reason),
      );
      throw error;
    }
  }

  #record(
    target: MemoryTarget,
    op: string,
    author: Omit<MemoryAuthor, "origin"> & { readonly origin: MemoryOrigin },
    before: readonly string[],
    after: readonly string[],
  ): HistoryRecord {
    const { clock } = this.#options;
    const id = Math.floor(clock.random() * 2 ** 32).toString(16);
    return {
      id: id.padStart(8, "0"),
      ts: clock.now() / 1000,
      target,
      op,
      before,
      after,
      origin: author.origin,
      session_id: author.sessionId ?? null,
      turn: author.turn ?? null,
      platform: author.platform ?? null,
    };
  }

  async #drifted(target: MemoryTarget): Promise<MemoryFailure> {
    const name = FILE_NAMES[target];
    const backup = await backUpMemoryFile(this.fileOf(target), this.#options.clock);
    return fail(
      "drift",
      `The entry you mean in ${name} is longer than the whole store may be, so something other than this tool wrote it. It was left ` +
        `alone; a copy of the file is kept at ${backup}.`,
      {
        drift_backup: backup,
        remediation:
          `Tell the user. ${name} can be edited by hand: shorten that text or split it with lines that hold only §. Other entries can be ` +
          "changed as usual.",
      },
    );
  }

  #unreadable(target: MemoryTarget, reason: string): MemoryFailure {
    return fail(
      "unreadable",
      `${FILE_NAMES[target]} cannot be read (${reason}). Nothing was changed; try again later.`,
    );
  }

  async #explain(failure: MemoryFailure, target: MemoryTarget): Promise<MemoryFailure> {
    await this.read(target);
    return this.#count(withState(failure, this.#live[target], this.limitOf(target)));
  }

  /** After repeated failures the result asks the model to leave memory alone for this turn. */
  #count<R extends MemoryResult>(result: R): R | MemoryFailure {
    if (result.success) this.#failures = 0;
    if (result.success || !COUNTED.has(result.code)) return result;
    this.#failures++;
    if (this.#failures <= MAX_FAILURES) return result;
    return fail(
      "give_up",
      `${this.#failures} memory calls in a row have failed. Stop: leave memory as it is and answer the user.`,
      { done: true },
    );
  }
}

const MAX_FAILURES = 3;
const COUNTED: ReadonlySet<FailureCode> = new Set<FailureCode>([
  ...(["over_limit", "no_match", "ambiguous", "batch_failed", "drift", "missing_old_text"] as const),
]);

// The memory as the system prompt shows it: frozen text, with a line in place of every entry that does not pass the threat scan.

const RULE = "═".repeat(46);
const TITLES: Readonly<Record<MemoryTarget, string>> = {
  memory: "MEMORY (your personal notes)",
  user: "USER PROFILE (who the user is)",
};

/** Null when there is nothing to show. The count is that of the true entries, blocked ones included. */
function renderBlock(target: MemoryTarget, entries: readonly string[], limit: number): string | null {
  if (entries.length === 0) return null;
  const title = `${TITLES[target]} [${longUsage(lengthOf(entries), limit)}]`;
  const shown = entries.map((entry) => presentable(entry, FILE_NAMES[target]));
  return `${RULE}\n${title}\n${RULE}\n${renderEntries(shown)}`;
}

function presentable(entry: string, file: string): string {
  const ids = scanForThreats(entry, "strict").map(({ id }) => id);
  if (ids.length === 0) return entry;
  return (
    `[BLOCKED: ${file} entry contained threat pattern(s): ${ids.join(", ")}. Removed from system prompt; ` +
    "the memory tool's remove action deletes it from the file.]"
  );
}

// Reading and writing one memory file. Unreadable is never taken for empty: what cannot be read is not written over.

export type Reading =
  | { readonly type: "read"; readonly text: string; readonly entries: readonly string[] }
  | { readonly type: "unreadable"; readonly reason: string };

/** Memory is a few thousand characters, all of them looked at with every start. Something else has written a file that is larger. */
const LARGEST_FILE = 1024 * 1024;

/** A file that is not there is an empty one. */
async function readMemoryFile(path: string): Promise<Reading> {
  try {
    const { size } = factsNow(path);
    if (size > LARGEST_FILE) return { type: "unreadable", reason: `it has ${size} bytes, more than ${LARGEST_FILE}` };
    // The BOM is kept in the text: who restores a file restores its very bytes.
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await readFile(path));
    return { type: "read", text, entries: parseEntries(text) };
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return { type: "read", text: "", entries: [] };
    if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return { type: "unreadable", reason: "it is not valid UTF-8" };
    return { type: "unreadable", reason: messageOf(error) };
  }
}

const TEMPORARY_PREFIX = ".mem_";

async function writeMemoryFile(path: string, text: string): Promise<void> {
  await writeFileAtomic(path, text, { newMode: 0o600, temporaryPrefix: TEMPORARY_PREFIX });
}

/** Keeps a copy of the file as `<file>.bak.<seconds>`; the newest copy serves again when it holds the same bytes. */
export async function backUpMemoryFile(path: string, clock: Clock): Promise<string> {
  const bytes = await readFile(path);
  const newest = await newestBackup(path);
  if (newest !== null && bytes.equals(await readFile(newest))) return newest;
  for (let seconds = Math.floor(clock.now() / 1000); ; seconds++) {
    const backup = `${path}.bak.${seconds}`;
    try {
      const file = await open(backup, "wx", 0o600);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      return backup;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
  }
}

async function newestBackup(path: string): Promise<string | null> {
  const start = `${basename(path)}.bak.`;
  const times = (await readdir(dirname(path)))
    .filter((name) => name.startsWith(start) && /^\d+$/.test(name.slice(start.length)))
    .map((name) => Number(name.slice(start.length)));
  return times.length === 0 ? null : `${path}.bak.${Math.max(...times)}`;
}

const HOUR = 3_600_000;

/** Folders in which nothing was left, as they were then: only when a name came in since is there anything to look for. */
const clean = new Map<string, string>();

/** Makes the folder, and removes what killed writers left in it. */
async function prepareMemoryFolder(dir: string, clock: Clock): Promise<void> {
  const known = clean.get(dir);
  if (known !== undefined && stampNow([dir], clock.now()) === known) return;
  clean.delete(dir);
  await makeDirectories(dir, 0o700);
  const stamp = stampNow([dir], clock.now());
  let isClean = true;
  for (const name of await readdir(dir)) {
    if (!name.startsWith(TEMPORARY_PREFIX) || !name.endsWith(".tmp")) continue;
    const path = join(dir, name);
    const found = await stat(path).catch(() => null); // its writer may just have finished
    if (found && clock.now() - found.mtimeMs > HOUR) await rm(path, { force: true });
    isClean = false; // it may still be there later on
  }
  if (stamp !== null && isClean) clean.set(dir, stamp);
}
