// Repositories that commands in a sandbox made or changed. Their settings and hooks would run with the user's next look at them from outside:
// what runs something is taken out, and nothing else.

import { lstat, mkdir, readdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { pointerTarget } from "../home/git-pointer.ts";
import { ownKindNow } from "../home/looks.ts";
import { isWithin } from "../kit/files.ts";
import { reduceSettings } from "./git-settings.ts";
import { type FoundRepository, RepositoryWalk } from "./repository-walk.ts";
import { HeldFolder } from "./set-aside.ts";

const MAX_SETTINGS = 1024 * 1024;
const MAX_POINTER = 4096;
const TODO = ["rebase-merge/git-rebase-todo", "rebase-merge/git-rebase-todo.backup", "sequencer/todo"];
const LOOKED_AT = ["", "config", "config.worktree", "commondir", "hooks"];
/** Of the time, at most one part in so many goes into looking. */
const SHARE = 12;

interface PlantedFacts {
  /** The project, and repositories outside of it that commands can write to. No command can exchange one. */
  readonly roots: readonly string[];
  /** Whether commands cannot write what runs of a git folder, or a pointer: see `protectProject`. */
  isHeld(repository: FoundRepository): boolean;
  /** What changed before is not from the sandbox. In nanoseconds, by the clock of the file system. */
  readonly since: bigint;
  /** What changed after is not from the sandbox either. */
  readonly before?: bigint;
  /** Told which rule files there are, each time. */
  onRules?(paths: readonly string[]): Promise<void>;
}

export class PlantedRepositories {
  readonly #facts: PlantedFacts;
  readonly #walks: ReadonlyMap<string, RepositoryWalk>;
  /** What a git folder looked like when there was nothing to take out. */
  readonly #clean = new Map<string, string>();
  /** Lines of a rebase that were there before. */
  readonly #todo = new Map<string, ReadonlySet<string>>();
  #running: Promise<readonly string[]> = Promise.resolve([]);
  readonly #notBefore = { near: 0, whole: 0 };

  constructor(facts: PlantedFacts, walks = new Map(facts.roots.map((root) => [root, new RepositoryWalk(root)]))) {
    this.#facts = facts;
    this.#walks = walks;
  }

  /** To be called before the first command: a rebase under way may have lines that run something, and they are the user's. */
  async keepRebases(found: readonly FoundRepository[]): Promise<void> {
    for (const { path } of found.filter(({ type }) => type === "git"))
      for (const name of TODO) {
        const lines = await HeldFolder.within(this.#rootOf(path), dirname(join(path, name)), (folder) =>
          folder.read(basename(name), MAX_SETTINGS),
        );
        if (lines !== null) this.#todo.set(join(path, name), new Set(lines.split("\n")));
      }
  }

  /** Resolves to the paths of what was taken out. One at a time. */
  clean(how: { readonly near: boolean; readonly until?: number }): Promise<readonly string[]> {
    const work = () => this.#cleanNow(how);
    this.#running = this.#running.then(work, work);
    return this.#running;
  }

  /** The same for a time when nobody waits: not at all when the last time was long and just now. */
  async cleanSometimes(how: { readonly near: boolean }): Promise<readonly string[]> {
    const which = how.near ? "near" : "whole";
    if (Date.now() < this.#notBefore[which]) return [];
    this.#notBefore[which] = Number.POSITIVE_INFINITY;
    const began = Date.now();
    try {
      return await this.clean(how);
    } finally {
      this.#notBefore[which] = Date.now() + (Date.now() - began) * SHARE;
    }
  }

  async #cleanNow(how: { readonly near: boolean; readonly until?: number }): Promise<readonly string[]> {
    const told: string[] = [];
    for (const walk of this.#walks.values()) {
      const { found, rules } = await walk.find(how);
      await this.#facts.onRules?.(rules);
      // Somebody inside may change it under our hands; the next look finds it again.
      for (const one of found) told.push(...(await this.#cleanOne(one).catch(() => [])));
    }
    return told;
  }

  async #cleanOne(found: FoundRepository): Promise<readonly string[]> {
    const { type, path } = found;
    const root = this.#rootOf(path);
    if (this.#facts.isHeld(found)) return type === "git" ? this.#cleanTodo(root, path) : [];
    if (type === "git") return this.#cleanFolder(root, path);
    if (!(await this.#isNew(path))) return [];
    const isFine = type === "pointer" && (await this.#leadsHome(root, path));
    if (isFine) return [];
    await HeldFolder.within(root, dirname(path), (folder) => folder.setAside(basename(path)));
    return [path];
  }

  /** Whether the file leads to a repository that is looked at as well; one that is not a worktree's or submodule's own may be anybody's. */
  async #leadsHome(root: string, path: string): Promise<boolean> {
    const text = await HeldFolder.within(root, dirname(path), (folder) => folder.read(basename(path), MAX_POINTER));
    const target = pointerTarget(text ?? "");
    if (target === null) return text === "";
    // Behind a link, `..` is not the folder above.
    const parts = target.split("/");
    const named = parts.findIndex((part) => !/^\.{0,2}$/.test(part));
    if (named !== -1 && parts.includes("..", named)) return false;
    const at = resolve(dirname(path), target);
    if (!/\/(?:\.git|modules|worktrees)(?:\/|$)/.test(at) || /\/(?:objects|refs|logs|lfs)\//.test(at)) return false;
    const keeper = this.#facts.roots.find((one) => isWithin(at, one));
    if (keeper === undefined) return false;
    // A link on the way would lead past the look at it.
    return (await HeldFolder.within(keeper, at, async () => true)) === true;
  }

  async #cleanFolder(root: string, path: string): Promise<readonly string[]> {
    const state = await stateOf(path);
    if (state === null || (!this.#isFromInside(state.newest) && !this.#clean.has(path))) return [];
    const told = [...(await this.#cleanTodo(root, path))];
    if (this.#clean.get(path) === state.print) return told;
    for (const name of ["config", "config.worktree"])
      if (await cleanSettings(root, path, name)) told.push(join(path, name));
    if (await cleanHooks(root, path)) told.push(join(path, "hooks"));
    if (await cleanCommonDir(root, path)) told.push(join(path, "commondir"));
    // Only a state that was there before we looked is known to be clean.
    if (told.length === 0) this.#clean.set(path, state.print);
    return told;
  }

  async #cleanTodo(root: string, path: string): Promise<readonly string[]> {
    const told: string[] = [];
    for (const name of TODO) {
      const at = join(path, name);
      if (ownKindNow(at) === null) continue;
      const before = this.#todo.get(at);
      const changed = await HeldFolder.within(root, dirname(at), async (folder) => {
        const text = await folder.read(basename(at), MAX_SETTINGS);
        if (text === null) return false;
        const lines = text.split("\n");
        const kept = lines.filter((line) => !/^\s*(?:x|exec)(?:\s|$)/.test(line) || before?.has(line));
        if (kept.length === lines.length) return false;
        await folder.replace(basename(at), kept.join("\n"));
        return true;
      });
      if (changed) told.push(at);
    }
    return told;
  }

  async #isNew(path: string): Promise<boolean> {
    const facts = await lstat(path, { bigint: true }).catch(() => null);
    return facts !== null && this.#isFromInside(facts.ctimeNs);
  }

  #isFromInside(time: bigint): boolean {
    const { since, before } = this.#facts;
    return time >= since && (before === undefined || time <= before);
  }

  #rootOf(path: string): string {
    return this.#facts.roots.findLast((root) => isWithin(path, root)) ?? "/nowhere";
  }
}

/** When the parts that run something were last changed; null when nothing is there. */
async function stateOf(path: string): Promise<{ readonly print: string; readonly newest: bigint } | null> {
  const facts = await Promise.all(LOOKED_AT.map((name) => lstat(join(path, name), { bigint: true }).catch(() => null)));
  if (!facts[0]) return null;
  const times = facts.map((one) => one?.ctimeNs ?? 0n);
  return {
    // The folder itself changes with every commit.
    print: facts
      .slice(1)
      .map((one) => (one ? `${one.ino} ${one.ctimeNs}` : ""))
      .join(),
    newest: times.reduce((a, b) => (a > b ? a : b)),
  };
}

async function cleanSettings(root: string, path: string, name: string): Promise<boolean> {
  const kind = ownKindNow(join(path, name));
  if (kind === null) return false;
  return (
    (await HeldFolder.within(root, path, async (folder) => {
      const text = kind === "file" ? await folder.read(name, MAX_SETTINGS) : null;
      if (text === null) {
        await folder.setAside(name);
        return true;
      }
      const reduced = reduceSettings(text);
      if (!reduced) return false;
      await folder.replace(name, reduced.text);
      return true;
    })) === true
  );
}

/** The examples that git brings end in `.sample` and do not run. */
async function cleanHooks(root: string, path: string): Promise<boolean> {
  const kind = ownKindNow(join(path, "hooks"));
  if (kind === null) return false;
  return (
    (await HeldFolder.within(root, path, async (folder) => {
      const names = kind === "directory" ? await readdir(folder.at("hooks")).catch(() => [""]) : [""];
      if (names.every((name) => name.endsWith(".sample"))) return false;
      await folder.setAside("hooks");
      await mkdir(folder.at("hooks")).catch(() => undefined); // somebody was faster
      return true;
    })) === true
  );
}

/** A worktree's own folder leads to the repository two above it, and to nothing else. */
async function cleanCommonDir(root: string, path: string): Promise<boolean> {
  if (ownKindNow(join(path, "commondir")) === null) return false;
  const isWorktree = basename(dirname(path)) === "worktrees";
  return (
    (await HeldFolder.within(root, path, async (folder) => {
      const text = await folder.read("commondir", MAX_POINTER);
      if (isWorktree && text?.replace(/(?<![\r\n])[\r\n]+$/, "") === "../..") return false;
      if (isWorktree) await folder.replace("commondir", "../..\n");
      else await folder.setAside("commondir");
      return true;
    })) === true
  );
}
