// Finds the platforms. The bundler puts a generated module with the same `builtinPlatforms` in this one's place.
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { exists } from "../../kit/files.ts";
import type { PlatformEntry } from "./contract.ts";

/** The entries of a folder of platforms, by name. A folder without an entry.ts is none. */
export async function builtinPlatforms(folder = new URL("./platforms/", import.meta.url)): Promise<PlatformEntry[]> {
  const found = await readdir(folder, { withFileTypes: true });
  const files = found
    .filter((one) => one.isDirectory())
    .map(({ name }) => new URL(`${name}/entry.ts`, folder))
    .sort();
  const present = await Promise.all(files.map((file) => exists(fileURLToPath(file))));
  return Promise.all(files.filter((_, at) => present[at]).map(async (file) => (await import(file.href)).entry));
}
