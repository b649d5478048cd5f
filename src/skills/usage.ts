// How often and when each skill was used, and which ones are pinned: `skills/.usage.json`. Fields nobody here knows are kept.

import { readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { withLock } from "../home/lock.ts";
import { codeOf } from "../kit/errors.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { type SkillsContext, waitingUsage } from "./roots.ts";

interface UsageRecord {
  readonly created_by: "agent" | null;
  /** It wrote or changed the skill, also with its user watching: what the skill declares is then no word of the user's. */
  readonly agent_wrote: boolean;
  readonly use_count: number;
  readonly view_count: number;
  readonly patch_count: number;
  readonly last_used_at: string | null;
  readonly last_viewed_at: string | null;
  readonly last_patched_at: string | null;
  readonly created_at: string | null;
  readonly state: "active" | "stale" | "archived";
  readonly pinned: boolean;
  readonly archived_at: string | null;
  readonly archived_from: string | null;
}

type UsageKind = "use" | "view" | "patch";
type Tree = Record<string, Record<string, unknown>>;
type Where = Pick<SkillsContext, "paths" | "clock" | "log">;

const PAUSE_MS = 1000;
export const usageFile = (where: Pick<SkillsContext, "paths">) => join(where.paths.skillsDir, ".usage.json");

/** The one lock of a home's skills. Not re-entrant. */
export const skillsLock = (where: Pick<SkillsContext, "paths">) => join(where.paths.skillsDir, ".lock.db");

/** Null: the file is there and cannot be read. Whoever protects something by it must then refuse. */
export async function readUsage(where: Where): Promise<ReadonlyMap<string, UsageRecord> | null> {
  const read = await readTree(usageFile(where));
  return read.type === "broken" ? null : new Map(Object.entries(read.tree).map(([name, row]) => [name, complete(row)]));
}

/** Counts. Returns at once; the file is written at most once a second, and what waits is written by `flushUsage`. */
export function bumpUsage(where: Where, name: string, kinds: readonly UsageKind[]): void {
  logOf(where).bump(name, kinds);
}

/** Changes other fields of a record, made if it is missing. */
export async function updateUsage(where: Where, name: string, change: Partial<UsageRecord>): Promise<void> {
  const log = logOf(where);
  log.change(name, change);
  await log.flush();
}

const logs = new Map<string, UsageLog>();

function logOf(where: Where): UsageLog {
  const path = usageFile(where);
  const log = logs.get(path) ?? new UsageLog(where);
  logs.set(path, log);
  waitingUsage.set(where.paths.skillsDir, () => log.flush());
  return log;
}

class UsageLog {
  readonly #where: Where;
  #changes: ((tree: Tree) => void)[] = [];
  #writing: Promise<void> = Promise.resolve();
  #waiting: AbortController | null = null;
  #lastWrite = Number.NEGATIVE_INFINITY;

  constructor(where: Where) {
    this.#where = where;
  }

  bump(name: string, kinds: readonly UsageKind[]): void {
    const now = this.#now();
    this.#changes.push((tree) => {
      const record = recordOf(tree, name, now);
      for (const kind of kinds) {
        const count = record[`${kind}_count`];
        record[`${kind}_count`] = (typeof count === "number" ? count : 0) + 1;
        record[STAMPS[kind]] = now;
      }
    });
    void this.#soon();
  }

  change(name: string, change: Partial<UsageRecord>): void {
    const now = this.#now();
    this.#changes.push((tree) => void Object.assign(recordOf(tree, name, now), change));
  }

  flush(): Promise<void> {
    this.#waiting?.abort();
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #soon(): Promise<void> {
    if (this.#waiting) return;
    const stop = new AbortController();
    this.#waiting = stop;
    const { clock } = this.#where;
    const pause = this.#lastWrite + PAUSE_MS - clock.now();
    // An early end is a flush by another caller; whatever came in meanwhile is still to be written.
    if (pause > 0) await clock.sleep(pause, stop.signal).catch(() => undefined);
    this.#waiting = null;
    await this.flush();
  }

  async #write(): Promise<void> {
    const changes = this.#changes.splice(0);
    if (changes.length === 0) return;
    this.#lastWrite = this.#where.clock.now();
    const path = usageFile(this.#where);
    try {
      await withLock(skillsLock(this.#where), async () => {
        const read = await readTree(path);
        // Pins are precious: a file that cannot be read is renamed, not overwritten.
        if (read.type === "broken") await rename(path, `${path}.corrupt-${Math.floor(this.#lastWrite / 1000)}`);
        const tree = read.type === "broken" ? {} : read.tree;
        for (const change of changes) change(tree);
        await writeFileAtomic(path, `${JSON.stringify(sorted(tree), null, 2)}\n`);
      });
    } catch (error) {
      this.#where.log.warn("the use of skills could not be recorded", error);
    }
  }

  #now(): string {
    return new Date(this.#where.clock.now()).toISOString();
  }
}

const STAMPS = { use: "last_used_at", view: "last_viewed_at", patch: "last_patched_at" } as const;

function recordOf(tree: Tree, name: string, now: string): Record<string, unknown> {
  const present = Object.hasOwn(tree, name) ? tree[name] : undefined;
  const record = present ?? { ...complete({}), created_at: now };
  Object.defineProperty(tree, name, { value: record, enumerable: true, writable: true, configurable: true });
  return record;
}

type Read = { readonly type: "read"; readonly tree: Tree } | { readonly type: "broken" };

async function readTree(path: string): Promise<Read> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const missing = codeOf(error) === "ENOENT";
    return missing ? { type: "read", tree: {} } : { type: "broken" };
  }
  try {
    const value: unknown = JSON.parse(text);
    return isTree(value) ? { type: "read", tree: value } : { type: "broken" };
  } catch {
    return { type: "broken" };
  }
}

function isTree(value: unknown): value is Tree {
  return isObject(value) && Object.values(value).every(isObject);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function complete(row: Readonly<Record<string, unknown>>): UsageRecord {
  const count = (value: unknown) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
  const text = (value: unknown) => (typeof value === "string" ? value : null);
  return {
    created_by: row.created_by === "agent" ? "agent" : null,
    // Records from before this was kept tell it by other marks.
    agent_wrote:
      typeof row.agent_wrote === "boolean" ? row.agent_wrote : row.created_by === "agent" || count(row.patch_count) > 0,
    use_count: count(row.use_count),
    view_count: count(row.view_count),
    patch_count: count(row.patch_count),
    last_used_at: text(row.last_used_at),
    last_viewed_at: text(row.last_viewed_at),
    last_patched_at: text(row.last_patched_at),
    created_at: text(row.created_at),
    state: row.state === "stale" || row.state === "archived" ? row.state : "active",
    pinned: row.pinned === true,
    archived_at: text(row.archived_at),
    archived_from: text(row.archived_from),
  };
}

function sorted(tree: Tree): Tree {
  const rows = Object.entries(tree).map(([name, row]) => [name, Object.fromEntries(byKey(row))] as const);
  return Object.fromEntries(byKey(Object.fromEntries(rows)));
}

const byKey = <T>(record: Readonly<Record<string, T>>): [string, T][] =>
  Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
