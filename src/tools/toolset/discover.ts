// Finds the tool files and imports them. The bundler puts a generated module with the same `loadTools` in this one's place.
import { readdir } from "node:fs/promises";
import type { Logger } from "../../home/log.ts";
import { registry } from "./registry.ts";

/** Imports every tool file. One that fails costs a warning; the others go on. */
export async function loadTools(log: Logger): Promise<void> {
  registry.useLog(log);
  const folder = new URL("../", import.meta.url);
  await importTools(
    (await toolFiles(folder)).map((file) => ({ file, load: () => import(new URL(file, folder).href) })),
    log,
  );
}

/** The tool files of a folder, sorted: every source file that lies directly in it is one. */
export async function toolFiles(folder: URL): Promise<string[]> {
  return (await readdir(folder)).filter((file) => /\.[jt]s$/.test(file) && !/\.(test|d)\.[jt]s$/.test(file)).sort();
}

/** Imports the given modules, all at once; each failure is one warning. */
export async function importTools(
  modules: readonly { readonly file: string; load(): Promise<unknown> }[],
  log: Logger,
): Promise<void> {
  await Promise.all(
    modules.map(async ({ file, load }) => {
      try {
        await load();
      } catch (error) {
        log.warn(`tool file ${file} could not be loaded; its tools are missing`, error);
      }
    }),
  );
}
