// The `.git` file of a worktree or submodule: where it leads, and whether it may be believed.
import { readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** Where the file of that name leads; null where `.git` is a folder, or nothing that can be read. */
export function gitPointer(folder: string): string | null {
  const path = pointerTarget(smallText(join(folder, ".git")));
  return path === null ? null : resolve(folder, path);
}

/** The path in the text of such a file, read as git reads it: nothing is trimmed but the ends of lines. */
export function pointerTarget(text: string): string | null {
  return /^gitdir: ([^\r\n]+)[\r\n]*$/.exec(text)?.[1] ?? null;
}

export interface LinkedWorktree {
  /** `.git` of the repository that it belongs to. */
  readonly shared: string;
  /** What the repository keeps for this worktree. */
  readonly own: string;
}

/**
 * A worktree keeps its commits in the repository it belongs to. The repository must name this worktree too: anybody can write a `.git`
 * file, also one that is to open another folder. `folder` is a real path.
 */
export function linkedWorktree(folder: string): LinkedWorktree | null {
  const own = gitPointer(folder);
  const shared = own === null ? undefined : /^(\/.+\/\.git)\/worktrees\/[^/\n]+$/.exec(own)?.[1];
  if (own === null || shared === undefined) return null;
  return smallText(join(own, "gitdir")).trim() === join(folder, ".git") ? { shared, own } : null;
}

function smallText(path: string): string {
  try {
    const found = statSync(path);
    return found.isFile() && found.size < 4096 ? readFileSync(path, "utf8") : "";
  } catch {
    return ""; // missing or unreadable: it leads nowhere
  }
}

const COMMIT = /^[0-9a-f]{40,64}$/;

/** The branch that is checked out above or in a folder, read from its files; the beginning of the commit where it is none. */
export function currentBranch(folder: string): string | null {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const head = smallText(join(gitPointer(at) ?? join(at, ".git"), "HEAD")).trim();
    const branch = /^ref: refs\/heads\/(.+)$/.exec(head)?.[1];
    if (branch !== undefined) return branch;
    if (COMMIT.test(head)) return head.slice(0, 7);
    if (dirname(at) === at) return null;
  }
}
