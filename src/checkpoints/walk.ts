// The files of a project that a checkpoint is about.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type IgnoreRules, rulesAbove } from "../tools/file-ignore.ts";
import { isRepositoryName, isSecretFile, isSkippedFolder } from "./left-out.ts";

export const MOST_FILES = 50_000;

/** More than a checkpoint is meant for. */
export class TooManyFilesError extends Error {
  override name = "TooManyFilesError";
  constructor(root: string) {
    super(`${root} holds more than ${MOST_FILES} files; no checkpoint is made of it`);
  }
}

/** Paths below `root`, with slashes; files and links. What a .gitignore names is left out, and so is everything below `except`. */
export async function walkProject(root: string, except: readonly string[], signal: AbortSignal): Promise<string[]> {
  const found: string[] = [];
  const enter = async (directory: string, prefix: string, above: IgnoreRules): Promise<void> => {
    signal.throwIfAborted();
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => null);
    if (entries === null) return; // gone meanwhile, or not ours to look into
    const names = entries.map(({ name }) => name);
    const rules = await above.enter(directory, names);
    const below: string[] = [];
    for (const entry of entries) {
      const { name } = entry;
      const path = join(directory, name);
      if (entry.isDirectory()) {
        if (!isSkippedFolder(name) && !except.includes(path) && !rules.ignores(path, true)) below.push(name);
      } else if (entry.isFile() || entry.isSymbolicLink()) {
        if (isRepositoryName(name) || isSecretFile(name) || rules.ignores(path, false)) continue;
        if (found.push(prefix + name) > MOST_FILES) throw new TooManyFilesError(root);
      }
    }
    for (const name of below) await enter(join(directory, name), `${prefix}${name}/`, rules);
  };
  await enter(root, "", await rulesAbove(root));
  return found;
}
