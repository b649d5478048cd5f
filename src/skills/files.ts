// The files of one skill: which there are, and which paths may be touched.

import type { Dirent } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../kit/errors.ts";
import { isWithin } from "../kit/files.ts";
import { resolveLinks } from "../safety/paths.ts";

type FileGroups = Readonly<Record<string, readonly string[]>>;

const SKIPPED = new Set([".git", "__pycache__", "node_modules", ".venv", "venv"]);

/** Support files by folder, relative with `/`, sorted; null when there are none. */
export async function linkedFiles(dir: string): Promise<FileGroups | null> {
  const { other: _, ...groups } = await skillFiles(dir);
  return Object.keys(groups).length > 0 ? groups : null;
}

/** Every file by folder; what lies elsewhere is `other`. Empty groups are left out. */
export async function skillFiles(dir: string): Promise<FileGroups> {
  const all = await filesBelow(dir);
  const group = (path: string) => SUPPORT_DIRS.find((name) => path.startsWith(`${name}/`)) ?? "other";
  const groups = [...SUPPORT_DIRS, "other"].map((name) => [name, all.filter((path) => group(path) === name)] as const);
  return Object.fromEntries(groups.filter(([, files]) => files.length > 0));
}

/** Every regular file below a directory; links count when they lead to a file inside it. */
export async function filesBelow(dir: string): Promise<string[]> {
  const root = await resolveLinks(dir);
  const found: string[] = [];
  await visit("");
  return found.sort(compare);

  async function visit(path: string): Promise<void> {
    const items = await readdir(join(dir, path), { withFileTypes: true }).catch(() => []);
    await Promise.all(
      items.map(async (item) => {
        const below = path === "" ? item.name : `${path}/${item.name}`;
        if (item.isDirectory()) return SKIPPED.has(item.name) ? undefined : visit(below);
        if (item.isFile() || (item.isSymbolicLink() && (await isFileInside(join(dir, below), root)))) found.push(below);
      }),
    );
  }
}

async function isFileInside(path: string, root: string): Promise<boolean> {
  try {
    return isWithin(await resolveLinks(path), root) && (await stat(path)).isFile();
  } catch {
    return false; // leads nowhere or in a circle
  }
}

export type SafePath =
  | { readonly type: "safe"; readonly path: string; readonly absolute: string }
  | { readonly type: "refused"; readonly reason: string };

/** A path below a skill's directory, links followed. Nothing outside is ever looked at. */
export async function safePath(dir: string, filePath: string): Promise<SafePath> {
  const given = filePath.trim();
  const refuse = (reason: string): SafePath => ({ type: "refused", reason });
  if (given === "") return refuse("file_path is empty");
  if (/^[/\\~]/.test(given) || /^[A-Za-z]:/.test(given))
    return refuse(`'${given}' is not relative to the skill's directory`);
  if (/\p{Cc}/u.test(given)) return refuse("file_path has control characters in it");
  const parts = given.split(/[/\\]+/).filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) return refuse(`'${given}' has '..' in it`);
  const path = parts.join("/");
  const absolute = join(dir, path);
  try {
    const [real, root] = await Promise.all([resolveLinks(absolute), resolveLinks(dir)]);
    if (!isWithin(real, root)) return refuse(`'${given}' leads out of the skill's directory through a link`);
  } catch (error) {
    return refuse(messageOf(error));
  }
  return { type: "safe", path, absolute };
}

// Walks one root and finds every SKILL.md and DESCRIPTION.md in it.

export const SUPPORT_DIRS = ["references", "templates", "assets", "scripts"] as const;

export const NEVER_ENTERED = new Set(
  (
    ".git .github .hub .archive .curator_backups .venv venv node_modules site-packages __pycache__ .tox .nox .pytest_cache .mypy_cache " +
    ".ruff_cache"
  ).split(" "),
);

export interface SkillTree {
  /** Directories that hold a SKILL.md, relative with `/`, sorted; never the root itself. */
  readonly skills: readonly string[];
  /** Directories that hold a DESCRIPTION.md. */
  readonly described: readonly string[];
  /** File -> modification time in nanoseconds, size. Equal manifests, equal trees. */
  readonly manifest: Manifest;
}

export type Manifest = Readonly<Record<string, readonly [mtimeNs: string, size: number]>>;

/** A root that is missing or unreadable is empty. `looked`: every path that was looked at is put there; as long as none changed, nor does the tree. */
export async function walkSkills(root: string, looked: string[] = []): Promise<SkillTree> {
  const found = new Finds(looked);
  // Linked directories come last, so that a folder is known by its own path and not by a link's.
  const links: Folder[] = [];
  const seen = new Set<string>();
  await visit({ dir: root, path: "", real: await realpath(root).catch(() => root) });
  for (let link = links.shift(); link; link = links.shift()) {
    looked.push(link.dir);
    const real = await realDirectory(link.dir);
    if (real !== null) await visit({ ...link, real });
  }
  return found.tree();

  async function visit(folder: Folder): Promise<void> {
    if (seen.has(folder.real)) return;
    seen.add(folder.real);
    looked.push(folder.dir);
    const items = await readdir(folder.dir, { withFileTypes: true }).catch((): Dirent[] => []);
    const isSkill = (await found.add(folder, "SKILL.md", items)) && folder.path !== "";
    await found.add(folder, "DESCRIPTION.md", items);
    const below = items.filter(
      ({ name }) => !NEVER_ENTERED.has(name) && !(isSkill && (SUPPORT_DIRS as readonly string[]).includes(name)),
    );
    const at = ({ name }: Dirent): Folder => ({
      dir: join(folder.dir, name),
      path: folder.path === "" ? name : `${folder.path}/${name}`,
      real: join(folder.real, name),
    });
    links.push(...below.filter((item) => item.isSymbolicLink()).map(at));
    await Promise.all(below.filter((item) => item.isDirectory()).map((item) => visit(at(item))));
  }
}

interface Folder {
  readonly dir: string;
  readonly path: string;
  readonly real: string;
}

class Finds {
  #manifest: Record<string, readonly [string, number]> = {};
  #dirs = { "SKILL.md": [] as string[], "DESCRIPTION.md": [] as string[] };
  readonly #looked: string[];

  constructor(looked: string[]) {
    this.#looked = looked;
  }

  async add({ dir, path }: Folder, file: "SKILL.md" | "DESCRIPTION.md", items: readonly Dirent[]): Promise<boolean> {
    const item = items.find(({ name }) => name === file);
    if (!item || item.isDirectory()) return false;
    this.#looked.push(join(dir, file));
    const facts = await stat(join(dir, file), { bigint: true }).catch(() => null);
    if (!facts?.isFile()) return false;
    if (path === "") return file === "SKILL.md";
    this.#manifest[`${path}/${file}`] = [String(facts.mtimeNs), Number(facts.size)];
    this.#dirs[file].push(path);
    return true;
  }

  tree(): SkillTree {
    const entries = Object.entries(this.#manifest).sort(([a], [b]) => compare(a, b));
    return {
      skills: this.#dirs["SKILL.md"].sort(compare),
      described: this.#dirs["DESCRIPTION.md"].sort(compare),
      manifest: Object.fromEntries(entries),
    };
  }
}

async function realDirectory(path: string): Promise<string | null> {
  try {
    return (await stat(path)).isDirectory() ? await realpath(path) : null;
  } catch {
    return null; // a link that leads nowhere
  }
}

/** By code point, the same on every machine. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
