// Where a path really leads.

import { lstat, readlink, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, type posix, resolve } from "node:path";
import { realPathNow } from "../home/looks.ts";
import { codeOf, UserError } from "../kit/errors.ts";

/** A part that is exactly `..`; `a/..b` and `...` are fine. */
export function hasTraversalComponent(path: string): boolean {
  return path.split(/[\\/]/).includes("..");
}

/** `~` and relative paths made absolute, by the rules of this machine or of the place they belong to. */
export function expandPath(
  path: string,
  cwd: string,
  home: string,
  rules: PathRules = { isAbsolute, join, resolve },
): string {
  if (path === "~") return home;
  if (path.startsWith("~/")) return rules.join(home, path.slice(2));
  return rules.isAbsolute(path) ? rules.resolve(path) : rules.resolve(cwd, path);
}

type PathRules = Pick<typeof posix, "isAbsolute" | "join" | "resolve">;

/** The path behind all links. What does not exist yet is resolved as far as it does; a dangling link leads to its target. */
export async function resolveLinks(path: string): Promise<string> {
  return (await followLinks(path)).at(-1) ?? resolve(path);
}

const MAX_HOPS = 40;

/** Every path on the way: as written, then each link followed, the last one being the real place. A circle of links is an error. */
export async function followLinks(path: string): Promise<string[]> {
  const hops = [resolve(path)];
  // Most paths have no links in them, and one look at the whole tells.
  if (realPathNow(path) === hops[0]) return hops;
  for (;;) {
    const current = hops.at(-1) ?? path;
    const real = join(await realDirectory(dirname(current)), basename(current));
    if (real !== current) hops.push(real);
    const target = await linkTarget(real);
    if (target === null) return hops;
    if (hops.length > MAX_HOPS) throw linkLoop(path);
    hops.push(resolve(dirname(real), target));
  }
}

const linkLoop = (path: string) => new UserError(`${path}: the symbolic links run in a circle`);

async function realDirectory(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ELOOP") throw linkLoop(path);
    const parent = dirname(path);
    if (parent === path || (code !== "ENOENT" && code !== "ENOTDIR" && code !== "EACCES")) return path;
    const target = await linkTarget(path);
    if (target !== null) return realDirectory(resolve(await realDirectory(parent), target));
    return join(await realDirectory(parent), basename(path));
  }
}

async function linkTarget(path: string): Promise<string | null> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : null;
  } catch {
    // Missing or unreadable: opening it gives the real error.
    return null;
  }
}

/**
 * Shell-style match of a whole text: `*` any run (slashes too), `?` one character, `[abc]`, `[!abc]`. Quadratic at worst, so a
 * hostile pattern costs no more than a long one; picomatch makes regular expressions, which may take for ever.
 */
export function matchGlob(pattern: string, text: string): boolean {
  const pieces = readPieces(pattern);
  let piece = 0;
  let at = 0;
  let starPiece = -1;
  let starAt = 0;
  while (at < text.length) {
    const current = pieces[piece];
    if (current === "*") {
      starPiece = piece++;
      starAt = at;
    } else if (current !== undefined && matchesOne(current, text[at] ?? "")) {
      piece++;
      at++;
    } else if (starPiece >= 0) {
      piece = starPiece + 1;
      at = ++starAt;
    } else return false;
  }
  while (pieces[piece] === "*") piece++;
  return piece === pieces.length;
}

type Piece = "*" | "?" | { readonly literal: string } | { readonly set: string; readonly negated: boolean };

function readPieces(pattern: string): readonly Piece[] {
  return (pattern.match(/\*+|\?|\[[!^]?\]?[^\]]*\]|[\s\S]/g) ?? []).map((part): Piece => {
    if (part.startsWith("*")) return "*";
    if (part === "?") return "?";
    if (part.length === 1) return { literal: part };
    const negated = /^\[[!^]/.test(part);
    return { set: part.slice(negated ? 2 : 1, -1), negated };
  });
}

function matchesOne(piece: Piece, char: string): boolean {
  if (piece === "?") return true;
  if (piece === "*") return false;
  return "literal" in piece ? piece.literal === char : inSet(piece.set, char) !== piece.negated;
}

function inSet(set: string, char: string): boolean {
  for (let at = 0; at < set.length; at++) {
    const from = set[at] ?? "";
    const to = set[at + 2];
    if (set[at + 1] === "-" && to !== undefined) {
      if (from <= char && char <= to) return true;
      at += 2;
    } else if (from === char) return true;
  }
  return false;
}
