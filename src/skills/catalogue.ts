// All skills of a home, as one list that every surface works from.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { stampNow } from "../home/looks.ts";
import { type SkillTree, walkSkills } from "./files.ts";
import { type SkillRoot, type SkillsContext, skillRoots } from "./roots.ts";
import {
  readSnapshot,
  type SkillEntry,
  type Snapshot,
  type SnapshotContent,
  sameManifest,
  writeSnapshot,
} from "./snapshot.ts";

export interface Skill extends SkillEntry {
  readonly root: SkillRoot;
  /** Absolute. */
  readonly dir: string;
}

export interface RootSkills {
  readonly root: SkillRoot;
  readonly skills: readonly Skill[];
  readonly categories: Readonly<Record<string, string>>;
}

export interface Catalogue {
  readonly roots: readonly RootSkills[];
  /** Changes whenever a SKILL.md or DESCRIPTION.md does. */
  readonly digest: string;
}

export async function loadCatalogue(context: SkillsContext): Promise<Catalogue> {
  const roots = await skillRoots(context);
  const loaded = await Promise.all(roots.map((root) => loadRoot(root, context)));
  const digest = createHash("sha256").update(JSON.stringify(loaded.map(({ tree }) => tree.manifest)));
  return { roots: loaded.map(({ content }) => content), digest: digest.digest("hex") };
}

/** One root by itself, e.g. a plugin's. */
export async function loadRootSkills(root: SkillRoot, context: SkillsContext): Promise<RootSkills> {
  return (await loadRoot(root, context)).content;
}

/** Every skill that is not shadowed: of one name, the first root has it. */
export function unshadowed(catalogue: Catalogue): readonly Skill[] {
  const taken = new Set<string>();
  return catalogue.roots.flatMap(({ skills }) => {
    const free = skills.filter(({ name }) => !taken.has(name));
    for (const { name } of skills) taken.add(name);
    return free;
  });
}

/** Texts of the categories; earlier roots have the say. */
export function categoryTexts(catalogue: Catalogue): Readonly<Record<string, string>> {
  return Object.assign({}, ...catalogue.roots.map(({ categories }) => categories).reverse());
}

interface Loaded {
  readonly tree: SkillTree;
  readonly content: RootSkills;
}

/** What a root held, and the paths whose state says whether it still does: a server asks with every call. */
const kept = new Map<string, { readonly looked: readonly string[]; readonly stamp: string; readonly loaded: Loaded }>();
const MOST_KEPT = 16;

async function loadRoot(root: SkillRoot, context: SkillsContext): Promise<Loaded> {
  const now = context.clock.now();
  const key = JSON.stringify([context.paths.dir, root]);
  const known = kept.get(key);
  if (known && stampNow(known.looked, now) === known.stamp) return known.loaded;
  kept.delete(key);
  const looked: string[] = [];
  const loaded = await readRoot(root, context, looked);
  const stamp = stampNow(looked, now);
  if (stamp !== null) kept.set(key, { looked, stamp, loaded });
  const [oldest] = kept.keys();
  if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
  return loaded;
}

async function readRoot(root: SkillRoot, context: SkillsContext, looked: string[]): Promise<Loaded> {
  const tree = await walkSkills(root.dir, looked);
  const { entries, categories } =
    root.kind === "local" ? await cached(tree, root, context) : await readFiles(tree, root);
  const skills = entries.map((entry) => ({ ...entry, root, dir: join(root.dir, entry.path) }));
  return { tree, content: { root, skills, categories } };
}

async function cached(tree: SkillTree, root: SkillRoot, context: SkillsContext): Promise<SnapshotContent> {
  const known = await readSnapshot(context.paths);
  if (known && sameManifest(known.manifest, tree.manifest)) return known;
  const content = await readFiles(tree, root, known);
  const failure = await writeSnapshot(context.paths, tree.manifest, content);
  if (failure !== null) context.log.debug("the skill index snapshot could not be written", failure);
  return content;
}

/** The readers are loaded when something has changed. */
async function readFiles(tree: SkillTree, root: SkillRoot, known?: Snapshot | null): Promise<SnapshotContent> {
  const { readTree } = await import("./read-entry.ts");
  return readTree(tree, root, known);
}
