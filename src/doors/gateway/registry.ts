// Finds the platforms. The bundler puts a generated module with the same `builtinPlatforms` in this one's place.
import { readdir } from "node:fs/promises";
import type { PlatformEntry } from "./contract.ts";

/** The entries of a folder of platforms, by name. A folder without an entry.ts is none. */
export async function builtinPlatforms(folder = new URL("./platforms/", import.meta.url)): Promise<PlatformEntry[]> {
  const names = (await readdir(folder, { withFileTypes: true }))
    .filter((one) => one.isDirectory())
    .map(({ name }) => name);
  const entries = names.sort().map(async (name) => (await import(new URL(`${name}/entry.ts`, folder).href)).entry);
  return Promise.all(entries);
}
