// The skills that come with the program, and their copies in a home. What the user changed or deleted stays that way.
import { copyFile, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { withLock } from "../home/lock.ts";
import { makeDirectories } from "../kit/make-directories.ts";
import { type ManifestLine, readBundledManifest, writeBundledManifest } from "./bundled-manifest.ts";
import { bundledDir } from "./bundled-place.ts";
import { loadCatalogue, loadRootSkills, type Skill } from "./catalogue.ts";
import { reason } from "./open-skill.ts";
import type { SkillsPlace } from "./roots.ts";
import { type Copying, copySkill, exists, hashSkill, moveSkill, recoverSkill, replaceSkill } from "./skill-copy.ts";
import { compare, walkSkills } from "./tree.ts";
import { skillsLock } from "./usage.ts";
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

export const optOutFile = (place: Pick<SkillsPlace, "paths">) => place.paths.at(".no-bundled-skills");

export const stagingDir = (place: Pick<SkillsPlace, "paths">, name: string) =>
  join(place.paths.skillsDir, ".hub", "staging", name);

/** The shipped skills, each at the place its copy has below the home's skills. */
export async function bundledSkills(place: SkillsPlace): Promise<readonly Skill[]> {
  const { skills } = await loadRootSkills({ dir: bundledDir(place), kind: "external" }, place);
  return [...skills].sort((a, b) => compare(a.name, b.name));
}

export async function syncBundledSkills(place: SkillsPlace): Promise<SyncResult> {
  const tally = new Tally();
  if (await exists(optOutFile(place))) return tally.result(0);
  await makeDirectories(place.paths.skillsDir);
  const shipped = await bundledSkills(place);
  await withLock(skillsLock(place), async () => {
    const sync = await Sync.open(place);
    for (const skill of shipped) {
      try {
        tally.add(await sync.one(skill), skill.name);
      } catch (error) {
        tally.add("failed", `${skill.name}: ${reason(error)}`);
      }
    }
    for (const name of sync.clean(new Set(shipped.map(({ name }) => name)))) tally.add("cleaned", name);
    await sync.save();
    await copyDescriptions(place, shipped);
  });
  const result = tally.result(shipped.length);
  if (result.copied.length + result.updated.length + result.relocated.length > 0)
    await clearSkillsPromptCache(place, { snapshot: true });
  return result;
}

class Sync {
  readonly #place: SkillsPlace;
  readonly #lines: Map<string, ManifestLine>;
  readonly #suppressed: ReadonlySet<string>;
  readonly #external: ReadonlySet<string>;
  readonly #local: readonly Skill[];

  private constructor(
    place: SkillsPlace,
    lines: Map<string, ManifestLine>,
    suppressed: Set<string>,
    all: readonly Skill[],
  ) {
    this.#place = place;
    this.#lines = lines;
    this.#suppressed = suppressed;
    this.#external = new Set(all.filter(({ root }) => root.kind === "external").map(({ name }) => name));
    this.#local = all.filter(({ root }) => root.kind === "local");
  }

  static async open(place: SkillsPlace): Promise<Sync> {
    const { lines } = await readBundledManifest(place);
    const { roots } = await loadCatalogue(place);
    return new Sync(
      place,
      lines,
      await suppressedNames(place),
      roots.flatMap(({ skills }) => skills),
    );
  }

  async one(skill: Skill): Promise<Outcome> {
    const { name } = skill;
    const target = join(this.#place.paths.skillsDir, skill.path);
    if (this.#suppressed.has(name)) return "suppressed";
    const copying = { from: skill.dir, to: target, staging: stagingDir(this.#place, name) };
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
    return writeBundledManifest(this.#place, this.#lines);
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

async function suppressedNames(place: SkillsPlace): Promise<Set<string>> {
  const text = await readFile(join(place.paths.skillsDir, ".curator_suppressed"), "utf8").catch(() => "");
  return new Set(text.split(/\r?\n/).map((line) => line.trim()));
}

async function copyDescriptions(place: SkillsPlace, shipped: readonly Skill[]): Promise<void> {
  const source = bundledDir(place);
  const used = new Set(shipped.map(({ category }) => category));
  for (const category of (await walkSkills(source)).described.filter((path) => used.has(path))) {
    const target = join(place.paths.skillsDir, category, "DESCRIPTION.md");
    // A category whose skills were all deleted or never copied needs no text.
    if ((await exists(target)) || !(await exists(dirname(target)))) continue;
    await copyFile(join(source, category, "DESCRIPTION.md"), target).catch((error) =>
      place.log.warn(`the text of category ${category} could not be copied`, error),
    );
  }
}
