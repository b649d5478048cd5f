// Which directories below the working directory may bring rules of their own into a conversation.
import { dirname, join, relative, sep } from "node:path";
import { isWithin } from "../../safety/paths.ts";
import type { FileAccess } from "../ports.ts";

const FOREIGN = new Set([
  ...["node_modules", "venv", "__pycache__", "site-packages", "dist-packages", "backups", "backup"],
  ...["vendor", "third_party"],
]);

export interface Territory {
  /** Real paths all. */
  readonly cwd: string;
  readonly hermesHome: string;
  /** The working directory is somebody's home or a whole file system: only repositories below it count. */
  readonly repositoriesOnly: boolean;
}

export async function isEligible(directory: string, territory: Territory, files: FileAccess): Promise<boolean> {
  const { cwd, hermesHome, repositoriesOnly } = territory;
  if (directory === cwd || !isWithin(directory, cwd) || isWithin(directory, hermesHome)) return false;
  const segments = relative(cwd, directory).split(sep);
  if (segments.some((segment) => segment.startsWith(".") || FOREIGN.has(segment))) return false;
  if (!repositoriesOnly) return true;
  for (let at = directory; at !== cwd; at = dirname(at)) if (await files.look(join(at, ".git"))) return true;
  return false;
}
