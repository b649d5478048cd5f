// The skills that come with the program, and their copies in a home. What the user changed or deleted stays that way.
import { copyFile, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { withLock } from "../home/lock.ts";
import { makeDirectories, writeFileAtomic } from "../kit/files.ts";
import { unifiedDiff } from "../kit/unified-diff.ts";
import { loadCatalogue, loadRootSkills, type Skill } from "./catalogue.ts";
import { compare, filesBelow, walkSkills } from "./files.ts";
import { removeEmptyUpTo } from "./manage/write.ts";
import { reason } from "./open-skill.ts";
import { bundledDir, type ManifestLine, readBundledManifest, writeBundledManifest } from "./provenance.ts";
import type { SkillsContext } from "./roots.ts";
import {
  archiveSkill,
  type Copying,
  copySkill,
  exists,
  hashSkill,
  moveSkill,
  recoverSkill,
  replaceSkill,
} from "./skill-copy.ts";
import { skillsLock, updateUsage } from "./usage.ts";
import { clearSkillsPromptCache } from "./visible.ts";

export interface SyncResult {
  readonly copied: readonly string[];
  readonly updated: readonly string[];
  /** Nothing to do, deleted by the user, or given by an external folder. */
  readonly skipped: readonly string[];
  readonly user_modified: readonly string[];
  /** No longer shipped; the files stay. */
  readonly cleaned: readonly string[];
  readonly suppressed: readonly string[];
  readonly relocated: readonly string[];
  /** The user has another skill of that name, which stays. */
  readonly conflicts: readonly string[];
  /** `name: why` */
  readonly failed: readonly string[];
  readonly total_bundled: number;
}

type Outcome = Exclude<keyof SyncResult, "total_bundled">;

const optOutFile = (context: Pick<SkillsContext, "paths">) => context.paths.at(".no-bundled-skills");

const stagingDir = (context: Pick<SkillsContext, "paths">, name: string) =>
  join(context.paths.skillsDir, ".hub", "staging", name);

/** The shipped skills, each at the path its copy has below the home's skills. */
export async function bundledSkills(context: SkillsContext): Promise<readonly Skill[]> {
  const { skills } = await loadRootSkills({ dir: bundledDir(context), kind: "external" }, context);
  return [...skills].sort((a, b) => compare(a.name, b.name));
}

export async function syncBundledSkills(context: SkillsContext): Promise<SyncResult> {
  const tally = new Tally();
  if (await exists(optOutFile(context))) return tally.result(0);
  await makeDirectories(context.paths.skillsDir);
  const shipped = await bundledSkills(context);
  await withLock(skillsLock(context), async () => {
    const sync = await Sync.open(context);
    for (const skill of shipped) {
      try {
        tally.add(await sync.one(skill), skill.name);
      } catch (error) {
        tally.add("failed", `${skill.name}: ${reason(error)}`);
      }
    }
    for (const name of sync.clean(new Set(shipped.map(({ name }) => name)))) tally.add("cleaned", name);
    await sync.save();
    await copyDescriptions(context, shipped);
  });
  const result = tally.result(shipped.length);
  if (result.copied.length + result.updated.length + result.relocated.length > 0)
    await clearSkillsPromptCache(context, { snapshot: true });
  return result;
}

class Sync {
  readonly #context: SkillsContext;
  readonly #lines: Map<string, ManifestLine>;
  readonly #suppressed: ReadonlySet<string>;
  readonly #external: ReadonlySet<string>;
  readonly #local: readonly Skill[];

  private constructor(
    context: SkillsContext,
    lines: Map<string, ManifestLine>,
    suppressed: Set<string>,
    all: readonly Skill[],
  ) {
    this.#context = context;
    this.#lines = lines;
    this.#suppressed = suppressed;
    this.#external = new Set(all.filter(({ root }) => root.kind === "external").map(({ name }) => name));
    this.#local = all.filter(({ root }) => root.kind === "local");
  }

  static async open(context: SkillsContext): Promise<Sync> {
    const { lines } = await readBundledManifest(context);
    const { roots } = await loadCatalogue(context);
    return new Sync(
      context,
      lines,
      await suppressedNames(context),
      roots.flatMap(({ skills }) => skills),
    );
  }

  async one(skill: Skill): Promise<Outcome> {
    const { name } = skill;
    const target = join(this.#context.paths.skillsDir, skill.path);
    if (this.#suppressed.has(name)) return "suppressed";
    const copying = { from: skill.dir, to: target, staging: stagingDir(this.#context, name) };
    await recoverSkill(copying);
    const shipped = await hashSkill(skill.dir);
    const line = this.#lines.get(name);
    const mine = (await exists(target)) ? await hashSkill(target) : null;
    if (this.#external.has(name)) return this.#giveWay(name, target, mine, line);
    if (mine === shipped) return this.#record(name, { origin: shipped }, "skipped");
    if (!line) {
      if (mine !== null || this.#local.some((one) => one.name === name)) return "conflicts";
      await copySkill(copying);
      return this.#record(name, { origin: shipped }, "copied");
    }
    if (mine === null) return this.#missing(skill, copying, shipped, line);
    if (line.origin === null) return this.#record(name, { origin: mine }, "skipped");
    if (mine !== (line.user ?? line.origin)) return "user_modified";
    if (line.origin === shipped) return "skipped";
    await replaceSkill(copying);
    return this.#record(name, { origin: shipped }, "updated");
  }

  /** Entries of skills that are no longer shipped. Lines that another edition of the program wrote, with its own digests, are not ours. */
  clean(shipped: ReadonlySet<string>): readonly string[] {
    const gone = [...this.#lines].filter(
      ([name, { origin }]) => !shipped.has(name) && (origin === null || origin.length === SHA256_LENGTH),
    );
    for (const [name] of gone) this.#lines.delete(name);
    return gone.map(([name]) => name);
  }

  save(): Promise<void> {
    return writeBundledManifest(this.#context, this.#lines);
  }

  /** Deleted by the user, unless it is elsewhere, untouched: then it has moved in the program. */
  async #missing(skill: Skill, copying: Copying, shipped: string, line: ManifestLine): Promise<Outcome> {
    const elsewhere = this.#local.find(({ name }) => name === skill.name);
    if (!elsewhere || line.origin === null || (await hashSkill(elsewhere.dir)) !== line.origin) return "skipped";
    await moveSkill(elsewhere.dir, copying.to);
    if (line.origin !== shipped) await replaceSkill(copying);
    return this.#record(skill.name, { origin: shipped }, "relocated");
  }

  async #giveWay(name: string, target: string, mine: string | null, line: ManifestLine | undefined): Promise<Outcome> {
    if (mine !== null && line && mine === line.origin) {
      await rm(target, { recursive: true });
      this.#lines.delete(name);
    }
    return "skipped";
  }

  #record(name: string, line: ManifestLine, outcome: Outcome): Outcome {
    this.#lines.set(name, line);
    return outcome;
  }
}

const SHA256_LENGTH = 64;

class Tally {
  readonly #names: Record<Outcome, string[]> = {
    copied: [],
    updated: [],
    skipped: [],
    user_modified: [],
    cleaned: [],
    suppressed: [],
    relocated: [],
    conflicts: [],
    failed: [],
  };

  add(outcome: Outcome, name: string): void {
    this.#names[outcome].push(name);
  }

  result(total: number): SyncResult {
    return { ...this.#names, total_bundled: total };
  }
}

async function suppressedNames(context: SkillsContext): Promise<Set<string>> {
  const text = await readFile(join(context.paths.skillsDir, ".curator_suppressed"), "utf8").catch(() => "");
  return new Set(text.split(/\r?\n/).map((line) => line.trim()));
}

async function copyDescriptions(context: SkillsContext, shipped: readonly Skill[]): Promise<void> {
  const source = bundledDir(context);
  const used = new Set(shipped.map(({ category }) => category));
  for (const category of (await walkSkills(source)).described.filter((path) => used.has(path))) {
    const target = join(context.paths.skillsDir, category, "DESCRIPTION.md");
    // A category whose skills were all deleted or never copied needs no text.
    if ((await exists(target)) || !(await exists(dirname(target)))) continue;
    await copyFile(join(source, category, "DESCRIPTION.md"), target).catch((error) =>
      context.log.warn(`the text of category ${category} could not be copied`, error),
    );
  }
}

// What the user did to shipped skills: seeing it, accepting it, undoing it, opting out of all of them.

const copyOf = (skill: Skill, context: SkillsContext) => join(context.paths.skillsDir, skill.path);

/** Shipped skills whose copy the user changed. */
export async function modifiedSkills(context: SkillsContext): Promise<readonly Skill[]> {
  const { lines } = await readBundledManifest(context);
  const changed = await Promise.all(
    (await bundledSkills(context)).map(async (skill) => {
      const line = lines.get(skill.name);
      const dir = copyOf(skill, context);
      if (!line?.origin || !(await exists(dir))) return [];
      return (await hashSkill(dir)) === (line.user ?? line.origin) ? [] : [skill];
    }),
  );
  return changed.flat();
}

export async function findBundled(name: string, context: SkillsContext): Promise<Skill | null> {
  return (await bundledSkills(context)).find((skill) => skill.name === name || skill.path === name) ?? null;
}

/** From what the program ships to what the user has, file by file. */
export async function diffBundled(skill: Skill, context: SkillsContext): Promise<string> {
  const mine = copyOf(skill, context);
  const paths = [...new Set([...(await filesBelow(skill.dir)), ...(await filesBelow(mine))])].sort(compare);
  const diffs = await Promise.all(
    paths.map(async (path) => {
      const name = `${skill.path}/${path}`;
      const [before, after] = await Promise.all([side(join(skill.dir, path), name), side(join(mine, path), name)]);
      if (before?.text.includes("\0") || after?.text.includes("\0"))
        return before?.text === after?.text ? "" : `Binary file ${name} differs\n`;
      return unifiedDiff(before, after);
    }),
  );
  return diffs.join("");
}

async function side(file: string, path: string) {
  const text = await readFile(file, "utf8").catch(() => null);
  return text === null ? null : { path, text };
}

/** The user's version becomes the accepted one: the next version of the program that changes this skill replaces it. */
export async function acceptBundled(skill: Skill, context: SkillsContext): Promise<void> {
  await withLock(skillsLock(context), async () => {
    const { lines } = await readBundledManifest(context);
    const shipped = await hashSkill(skill.dir);
    const mine = await hashSkill(copyOf(skill, context));
    lines.set(skill.name, mine === shipped ? { origin: shipped } : { origin: shipped, user: mine });
    await writeBundledManifest(context, lines);
  });
}

/** The shipped version is back; what was there is in the archive. Resolves to where, or null when nothing was there. */
export async function restoreBundled(skill: Skill, context: SkillsContext): Promise<string | null> {
  const archived = await withLock(skillsLock(context), async () => {
    const target = copyOf(skill, context);
    const old = (await exists(target))
      ? await archiveSkill(target, context.paths.skillsDir, context.clock.now())
      : null;
    await copySkill({ from: skill.dir, to: target, staging: stagingDir(context, skill.name) });
    const { lines } = await readBundledManifest(context);
    lines.set(skill.name, { origin: await hashSkill(skill.dir) });
    await writeBundledManifest(context, lines);
    return old;
  });
  await clearSkillsPromptCache(context, { snapshot: true });
  await updateUsage(context, skill.name, { agent_wrote: false });
  return archived;
}

/** From now on nothing is copied into this home. With `remove`, copies the user did not change go, too. */
export async function optOut(
  context: SkillsContext,
  { remove }: { readonly remove: boolean },
): Promise<readonly string[]> {
  await writeFileAtomic(optOutFile(context), "");
  if (!remove) return [];
  const removed = await withLock(skillsLock(context), async () => {
    const { lines } = await readBundledManifest(context);
    const names: string[] = [];
    for (const skill of await bundledSkills(context)) {
      const dir = copyOf(skill, context);
      const origin = lines.get(skill.name)?.origin;
      if (!origin || !(await exists(dir)) || (await hashSkill(dir)) !== origin) continue;
      await rm(dir, { recursive: true });
      await removeEmptyCategory(skill, context);
      lines.delete(skill.name);
      names.push(skill.name);
    }
    await writeBundledManifest(context, lines);
    return names;
  });
  await clearSkillsPromptCache(context, { snapshot: true });
  return removed;
}

/** A category that only has its description left is empty. */
async function removeEmptyCategory(skill: Skill, context: SkillsContext): Promise<void> {
  if (skill.category === null) return;
  const category = join(context.paths.skillsDir, skill.category);
  const left = await filesBelow(category);
  if (left.some((path) => path !== "DESCRIPTION.md")) return;
  await rm(join(category, "DESCRIPTION.md"), { force: true });
  await removeEmptyUpTo(category, context.paths.skillsDir);
}

export async function optIn(context: SkillsContext): Promise<void> {
  await rm(optOutFile(context), { force: true });
}
