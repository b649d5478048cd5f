import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** Where each path really leads. A file that does not exist yet is placed by the nearest directory that does. */
export async function followLinks(paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const unique = [...new Set(paths)];
  const real = await Promise.all(unique.map(follow));
  return new Map(unique.map((path, index) => [path, real[index] ?? path]));
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
