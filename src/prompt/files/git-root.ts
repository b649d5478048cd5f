import { dirname, join } from "node:path";
import type { FileAccess } from "../ports.ts";

/** The nearest directory at or above with an entry `.git`: a directory, or a file in worktrees and submodules. */
export async function findGitRoot(directory: string, files: Pick<FileAccess, "look">): Promise<string | null> {
  for (let at = directory; ; at = dirname(at)) {
    if (await files.look(join(at, ".git"))) return at;
    if (dirname(at) === at) return null;
  }
}
