// Finds the tool files and imports them. The bundler puts a generated module with the same `loadTools` in this one's place.
import { readdir, readFile } from "node:fs/promises";
import type { Logger } from "../../home/log.ts";
import { registry } from "./registry.ts";

// At column 0: a call inside a function or a block is indented, and does not make a file a tool.
const TOP_LEVEL_REGISTRATION = /^register(<[^>\n]*>)?\(/m;

/** Imports every tool file. One that fails costs a warning; the others go on. */
export async function loadTools(log: Logger): Promise<void> {
  registry.useLog(log);
  const here = new URL(".", import.meta.url);
  await importTools(
    (await toolFiles(here)).map((file) => ({ file, load: () => import(new URL(file, here).href) })),
    log,
  );
}

/** Names of the files in a directory that register a tool at their top level, sorted. */
export async function toolFiles(directory: URL): Promise<string[]> {
  const files = (await readdir(directory)).filter(
    (file) => /\.[jt]s$/.test(file) && !/\.(test|d)\.[jt]s$/.test(file) && !/^registry\./.test(file),
  );
  const registers = await Promise.all(
    files.map(async (file) => TOP_LEVEL_REGISTRATION.test(await readFile(new URL(file, directory), "utf8"))),
  );
  return files.filter((_, index) => registers[index]).sort();
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
