// Which directory a change belongs to.
import { access, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isWithin } from "../safety/paths.ts";

const MARKS = [
  ".git",
  "package.json",
  "pyproject.toml",
  "Cargo.toml",
  "go.mod",
  "Makefile",
  "pom.xml",
  ".hg",
  "Gemfile",
] as const;

/**
 * The nearest directory from here upwards that looks like a project, else the folder the conversation stands in if this is part of it,
 * else this directory itself (or the nearest one that exists). Null for what is no project: the root of the file system, the user's home
 * and what lies above it.
 */
export async function projectRootOf(directory: string, at: Standing): Promise<string | null> {
  const [start, cwd] = [await nearestDirectory(directory), await nearestDirectory(at.cwd)];
  const home = await realpath(at.osHome).catch(() => at.osHome);
  if (isTooWide(start, home)) return null;
  for (let above = start; !isTooWide(above, home); above = dirname(above))
    if (await looksLikeProject(above)) return above;
  return isWithin(start, cwd) && !isTooWide(cwd, home) ? cwd : start;
}

export interface Standing {
  readonly osHome: string;
  readonly cwd: string;
}

function isTooWide(directory: string, home: string): boolean {
  return dirname(directory) === directory || isWithin(home, directory);
}

async function looksLikeProject(directory: string): Promise<boolean> {
  const found = await Promise.all(
    MARKS.map((mark) =>
      access(join(directory, mark)).then(
        () => true,
        () => false,
      ),
    ),
  );
  return found.includes(true);
}

/** Links followed, so that one project has one name. */
async function nearestDirectory(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    const real = await realpath(at).catch(() => null);
    if (real !== null && (await stat(real)).isDirectory()) return real;
    if (dirname(at) === at) return at;
  }
}
