// The files of one skill: which there are, and which paths may be touched.
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isWithin, resolveLinks } from "../safety/paths.ts";
import { compare, SUPPORT_DIRS } from "./tree.ts";

export type FileGroups = Readonly<Record<string, readonly string[]>>;

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
    return refuse(error instanceof Error ? error.message : String(error));
  }
  return { type: "safe", path, absolute };
}
