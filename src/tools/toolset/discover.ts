// Finds the tool files and imports them. The bundler puts a generated module with the same `loadTools` in this one's place.
import { readdir } from "node:fs/promises";
import type { Logger } from "../../home/log.ts";
import { registry } from "./registry.ts";

/** Imports every tool file. One that fails costs a warning; the others go on. */
export async function loadTools(log: Logger, folder = new URL("../", import.meta.url)): Promise<void> {
  registry.useLog(log);
  await Promise.all(
    (await toolFiles(folder)).map(async (file) => {
      try {
        await import(new URL(file, folder).href);
      } catch (error) {
        log.warn(`tool file ${file} could not be loaded; its tools are missing`, error);
      }
    }),
  );
}

/** The tool files of a folder, sorted: every source file that lies directly in it is one. */
export async function toolFiles(folder: URL): Promise<string[]> {
  return (await readdir(folder)).filter((file) => /\.[jt]s$/.test(file) && !/\.(test|d)\.[jt]s$/.test(file)).sort();
}
