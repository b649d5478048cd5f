// What is made or loaded with its first use.
import { stat } from "node:fs/promises";
import { pathToFileURL } from "node:url";

/** Made by the first call, the same for every later one. */
export function lazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

export const INDEX_FILES: readonly string[] = ["index.mjs", "index.js", "index.ts"];

/**
 * The function that the first of these folders exports by default from its index file; null when none has one. Rejects when it is there
 * and broken, or exports something else; `what` names in the message what the function should make.
 */
export async function importDefault(
  folders: readonly string[],
  what: string,
  /** Asked before code of a folder runs; rejects when it may not. */
  verify?: (folder: string) => Promise<void>,
): Promise<((...args: never[]) => unknown) | null> {
  for (const folder of folders) {
    for (const entry of INDEX_FILES) {
      const made = await defaultOf(`${folder}/${entry}`, what, async () => verify?.(folder));
      if (made) return made;
    }
  }
  return null;
}

async function defaultOf(
  path: string,
  what: string,
  verify: () => Promise<void>,
): Promise<((...args: never[]) => unknown) | null> {
  if (!(await stat(path).catch(() => null))?.isFile()) return null;
  await verify();
  const module: { readonly default?: unknown } = await import(pathToFileURL(path).href);
  if (typeof module.default !== "function")
    throw new Error(`the default export of ${path} must be a function that makes ${what}`);
  return module.default as (...args: never[]) => unknown; // what it makes is checked by whoever calls it
}
