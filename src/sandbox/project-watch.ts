// Looks after a project while commands run in its sandbox: what no mount can hold is put away when a command has ended, every second
// while one runs, when the sandbox is closed, and at the next start if there was no end.

import { randomBytes } from "node:crypto";
import { type FSWatcher, watch } from "node:fs";
import { lstat, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { noteWrittenRules } from "../home/sandbox-rules.ts";
import { PlantedRepositories } from "./planted-repositories.ts";
import { isReadOnly, type Mount, type ProjectProtection } from "./protected-files.ts";
import type { FoundRepository } from "./repository-walk.ts";
import { KeptFree, type KeptPlace } from "./set-aside.ts";

const TICK_MS = 1000;
/** Somebody waits for the end of a command; the rest of a look goes on without them. */
const WAIT_MS = 400;
const LAST_MS = 3000;
/** A program that puts it there again and again tries to be faster than we are. */
const MAX_AGAIN = 5;

interface ProjectWatchFacts {
  readonly protection: ProjectProtection;
  readonly mounts: readonly Mount[];
  /** A file made before anything ran inside: its time is the clock of what commands write. */
  readonly beginning: string;
  /** Where to note that a sandbox is open; null: nowhere. */
  readonly records: string | null;
  /** Whether anything runs inside that no command waits for. */
  isBusy(): Promise<boolean>;
  /** Ends everything that runs inside. */
  endAll(): Promise<void>;
}

export class ProjectWatch {
  readonly kept: KeptFree;
  readonly #facts: ProjectWatchFacts;
  readonly #planted: PlantedRepositories;
  readonly #rules: WrittenByPrograms;
  readonly #record: string | null;
  readonly #watchers: FSWatcher[];
  #timer: NodeJS.Timeout | null = null;
  #running = 0;
  #again = 0;
  #outside = 0;
  #isBusy = false;
  #told: string[] = [];

  private constructor(
    facts: ProjectWatchFacts,
    planted: PlantedRepositories,
    rules: WrittenByPrograms,
    record: string | null,
  ) {
    this.#rules = rules;
    this.#facts = facts;
    this.#planted = planted;
    this.#record = record;
    this.kept = new KeptFree(facts.protection.kept);
    this.#watchers = this.#watchPlaces();
  }

  static async open(facts: ProjectWatchFacts): Promise<ProjectWatch> {
    const { protection, mounts, beginning, records } = facts;
    const since = (await lstat(beginning, { bigint: true })).ctimeNs;
    const { roots, walks, found, kept } = protection;
    // A link is put back as a place of its own.
    const links = new Set(kept.flatMap(({ path, link }) => (link === null ? [] : [path])));
    const isHeld = (one: FoundRepository) => isReadOnly(mounts, one) || links.has(one.path);
    const rules = new WrittenByPrograms(records === null ? null : homeOf(records));
    const onRules = (paths: readonly string[]) => rules.look(paths);
    const planted = new PlantedRepositories({ roots, since, isHeld, onRules }, walks);
    await planted.keepRebases(found);
    const held = found.filter(isHeld).map(({ path }) => path);
    const record = await writeRecord(records, { since: String(since), roots, held, kept });
    return new ProjectWatch(facts, planted, rules, record);
  }

  begun(): void {
    if (this.#running === 0 && !this.#isBusy) this.#rules.begun();
    this.#running++;
    void this.#beat();
    this.#tickLater();
  }

  /** A command has ended. Resolves to what there is to say about what was put away since the last time. */
  async ended(): Promise<readonly string[]> {
    this.#running--;
    this.#isBusy = await this.#facts.isBusy();
    const near = this.#planted.clean({ near: true, until: Date.now() + WAIT_MS });
    this.#told.push(...(await this.#clear()), ...(await near));
    if (this.#running === 0 && !this.#isBusy) this.#rules.ended();
    void this.#lookSometimes({ near: false });
    const aside = [...new Set(this.#told.splice(0))];
    const rules = this.#rules.take();
    return [
      ...(aside.length > 0 ? [`${ASIDE}: ${aside.join(", ")}`] : []),
      ...(rules.length > 0 ? [`${FOREIGN}: ${rules.join(", ")}`] : []),
    ];
  }

  /** Somebody said yes to a change outside: what appears now is theirs. */
  changingOutside(): void {
    this.#outside++;
  }

  async changedOutside(): Promise<void> {
    await this.kept.accept();
    this.#outside = Math.max(0, this.#outside - 1);
  }

  /** When nothing runs any more. */
  async close(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    for (const watcher of this.#watchers) watcher.close();
    await this.kept.clear();
    await this.#planted.clean({ near: false, until: Date.now() + LAST_MS });
    if (this.#record !== null) await rm(this.#record, { force: true });
  }

  #tickLater(): void {
    if (this.#timer) return;
    this.#timer = setTimeout(() => void this.#tick(), TICK_MS);
    this.#timer.unref();
  }

  async #tick(): Promise<void> {
    await this.#beat();
    this.#told.push(...(await this.#clear()));
    await this.#lookSometimes({ near: true });
    await this.#lookSometimes({ near: false });
    this.#isBusy = await this.#facts.isBusy();
    if (this.#timer === null) return; // closed meanwhile
    this.#timer = null;
    if (this.#running > 0 || this.#isBusy) this.#tickLater();
  }

  async #lookSometimes(how: { readonly near: boolean }): Promise<void> {
    this.#told.push(...(await this.#planted.cleanSometimes(how)));
  }

  /** Until when commands may have written something, should nobody be there to close the sandbox. */
  async #beat(): Promise<void> {
    const now = new Date();
    if (this.#record !== null) await utimes(this.#record, now, now).catch(() => undefined); // removed by hand
  }

  /** The kernel tells at once what appears there; everything else waits for the next look. */
  #watchPlaces(): FSWatcher[] {
    return this.kept.folders.flatMap((folder) => {
      try {
        const watcher = watch(folder, { persistent: false }, (_, name) => {
          if (name !== null && this.kept.names.has(name)) void this.#appeared();
        });
        watcher.on("error", () => watcher.close());
        return [watcher];
      } catch {
        return []; // not there yet, or no more watches to be had
      }
    });
  }

  async #clear(): Promise<readonly string[]> {
    return this.#outside > 0 ? [] : this.kept.clear();
  }

  /** While nothing runs inside, it is the user who works there. */
  async #appeared(): Promise<void> {
    const found = this.#running === 0 && !this.#isBusy ? [] : await this.#clear();
    if (found.length === 0) return;
    this.#told.push(...found);
    // No program makes a `commondir` there but one that wants out.
    const isAttack = found.some((path) => basename(path) === "commondir");
    if (++this.#again % MAX_AGAIN === 0 || isAttack) await this.#facts.endAll();
  }
}

const ASIDE = "set aside as *.from-sandbox, because it would run automatically outside the sandbox";
const FOREIGN =
  "written by a program and not by write_file, so later conversations read it as text from outside until the user runs hermes prompt trust";

/** Rule files that changed while something ran inside; the file tools write while nothing does. */
class WrittenByPrograms {
  readonly #home: string | null;
  #from = Number.POSITIVE_INFINITY;
  #until = Number.POSITIVE_INFINITY;
  #noted: string[] = [];

  constructor(home: string | null) {
    this.#home = home;
  }

  begun(): void {
    // The clock of the file system goes in steps and may be behind.
    this.#from = Date.now() - CLOCK_STEP_MS;
    this.#until = Number.POSITIVE_INFINITY;
  }

  ended(): void {
    this.#until = Date.now();
  }

  async look(paths: readonly string[]): Promise<void> {
    if (this.#home === null || paths.length === 0) return;
    const times = await Promise.all(paths.map((path) => Promise.all([stat(path), lstat(path)]).catch(() => [])));
    const changed = paths.filter((_, index) =>
      times[index]?.some(({ ctimeMs }) => ctimeMs >= this.#from && ctimeMs <= this.#until),
    );
    this.#noted.push(...(await noteWrittenRules(this.#home, changed).catch(() => []))); // a home that is only read
  }

  take(): string[] {
    return this.#noted.splice(0);
  }
}

const CLOCK_STEP_MS = 10;
const homeOf = (records: string) => dirname(dirname(dirname(records)));

// A sandbox that was killed had no chance to look.

interface OpenRecord {
  readonly since: string;
  readonly roots: readonly string[];
  readonly held: readonly string[];
  readonly kept: readonly KeptPlace[];
}

async function writeRecord(records: string | null, record: OpenRecord): Promise<string | null> {
  if (records === null) return null;
  const path = `${records}.${process.pid}-${randomBytes(4).toString("hex")}.json`;
  return writeFile(path, JSON.stringify(record), { mode: 0o600, flag: "wx" }).then(
    () => path,
    () => null, // a home that is only read
  );
}

/** To be called before a sandbox is made for the project. */
export async function cleanAfterKilled(records: string): Promise<void> {
  const names = await readdir(dirname(records)).catch(() => []);
  for (const name of names) {
    const pid = name.startsWith(`${basename(records)}.`) ? /\.(\d+)-\w+\.json$/.exec(name)?.[1] : undefined;
    if (pid === undefined || isAlive(Number(pid))) continue;
    const path = join(dirname(records), name);
    await cleanAfter(path).catch(() => undefined); // half written, or another start was faster
    await rm(path, { force: true });
  }
}

const GRACE_NS = 3_000_000_000n;

async function cleanAfter(path: string): Promise<void> {
  const before = (await lstat(path, { bigint: true })).mtimeNs + GRACE_NS;
  const { since, roots, held, kept }: OpenRecord = JSON.parse(await readFile(path, "utf8"));
  const holds = new Set(held);
  const planted = new PlantedRepositories({
    ...{ roots, since: BigInt(since), before },
    async onRules(rules) {
      const times = await Promise.all(rules.map((rule) => lstat(rule, { bigint: true }).catch(() => null)));
      const isFromThen = (time = 0n) => time >= BigInt(since) && time <= before;
      await noteWrittenRules(
        homeOf(path),
        rules.filter((_, index) => isFromThen(times[index]?.ctimeNs)),
      );
    },
    isHeld: ({ path }) => holds.has(path),
  });
  await new KeptFree(kept).clear({ before });
  await planted.clean({ near: false, until: Date.now() + LAST_MS });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
