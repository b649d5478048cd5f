// Which files a hook's command runs, and what is in them: consent is for these bytes.
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";

export interface ScriptFacts {
  readonly files: readonly string[];
  /** Of all of them together; null when the command names no file of the user's. */
  readonly sha256: string | null;
  /** The newest change, in milliseconds since the epoch. */
  readonly mtimeMs: number | null;
}

/** Programs of the system change with its updates; nobody is asked again because of them. */
const SYSTEM = /^\/(?:bin|sbin|usr\/(?!local\/)|lib|nix|opt\/homebrew)/;
const LARGEST = 50 * 1024 * 1024;

/** A word of the command line as a path, with the user's home in place of `~`. */
export function expandHome(word: string, osHome: string): string {
  return word === "~" || word.startsWith("~/") ? join(osHome, word.slice(1)) : word;
}

export async function scriptFacts(
  argv: readonly string[],
  place: { readonly cwd: string; readonly osHome: string },
): Promise<ScriptFacts> {
  const hash = createHash("sha256");
  const files: string[] = [];
  let mtimeMs: number | null = null;
  for (const [index, word] of argv.entries()) {
    const expanded = expandHome(word, place.osHome);
    // A bare program name is looked up in PATH, never here.
    if (index === 0 && !expanded.includes("/")) continue;
    const path = isAbsolute(expanded) ? expanded : resolve(place.cwd, expanded);
    if (SYSTEM.test(path)) continue;
    const facts = await stat(path).catch(() => null); // an argument that is no file
    if (!facts?.isFile() || facts.size > LARGEST) continue;
    files.push(path);
    hash.update(`${path}\n`).update(await readFile(path));
    mtimeMs = Math.max(mtimeMs ?? 0, facts.mtimeMs);
  }
  return { files, sha256: files.length === 0 ? null : hash.digest("hex"), mtimeMs };
}
