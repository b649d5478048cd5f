// Walks one root and finds every SKILL.md and DESCRIPTION.md in it.
import type { Dirent } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";

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

/** A root that is missing or unreadable is empty. */
export async function walkSkills(root: string): Promise<SkillTree> {
  const found = new Finds();
  // Linked directories come last, so that a folder is known by its own path and not by a link's.
  const links: Place[] = [];
  const seen = new Set<string>();
  await visit({ dir: root, path: "", real: await realpath(root).catch(() => root) });
  for (let link = links.shift(); link; link = links.shift()) {
    const real = await realDirectory(link.dir);
    if (real !== null) await visit({ ...link, real });
  }
  return found.tree();

  async function visit(place: Place): Promise<void> {
    if (seen.has(place.real)) return;
    seen.add(place.real);
    const items = await readdir(place.dir, { withFileTypes: true }).catch((): Dirent[] => []);
    const isSkill = (await found.add(place, "SKILL.md", items)) && place.path !== "";
    await found.add(place, "DESCRIPTION.md", items);
    const below = items.filter(
      ({ name }) => !NEVER_ENTERED.has(name) && !(isSkill && (SUPPORT_DIRS as readonly string[]).includes(name)),
    );
    const at = ({ name }: Dirent): Place => ({
      dir: join(place.dir, name),
      path: place.path === "" ? name : `${place.path}/${name}`,
      real: join(place.real, name),
    });
    links.push(...below.filter((item) => item.isSymbolicLink()).map(at));
    await Promise.all(below.filter((item) => item.isDirectory()).map((item) => visit(at(item))));
  }
}

interface Place {
  readonly dir: string;
  readonly path: string;
  readonly real: string;
}

class Finds {
  #manifest: Record<string, readonly [string, number]> = {};
  #dirs = { "SKILL.md": [] as string[], "DESCRIPTION.md": [] as string[] };

  async add({ dir, path }: Place, file: "SKILL.md" | "DESCRIPTION.md", items: readonly Dirent[]): Promise<boolean> {
    const item = items.find(({ name }) => name === file);
    if (!item || item.isDirectory()) return false;
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
