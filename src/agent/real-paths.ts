import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { EnvironmentFiles } from "../sandbox/environment.ts";

/** Where each path really leads, in `place` if the files are not this machine's own. A file that does not exist yet is placed by the nearest directory that does. */
export async function followLinks(
  paths: readonly string[],
  place?: Pick<EnvironmentFiles, "resolve">,
): Promise<ReadonlyMap<string, string>> {
  const unique = [...new Set(paths)];
  const real = await Promise.all(unique.map((path) => (place ? followIn(place, path) : follow(path))));
  return new Map(unique.map((path, index) => [path, real[index] ?? path]));
}

async function followIn(place: Pick<EnvironmentFiles, "resolve">, path: string): Promise<string> {
  try {
    return await place.resolve(path);
  } catch {
    return path; // the tool itself will say what is wrong with it
  }
}

async function follow(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    // Not there (yet), or not ours to look at.
    const parent = dirname(path);
    return parent === path ? path : join(await follow(parent), basename(path));
  }
}
