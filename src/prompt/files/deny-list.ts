// Files that are never put into a prompt or a message: what the file tools may not read, and the user's personal set-up besides.
import { join } from "node:path";
import type { FileGuard } from "../../safety/file-guard.ts";
import { followLinks, isWithin, resolveLinks } from "../../safety/paths.ts";

const DIRECTORIES = [".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".config/gh"];
const FILES = [
  ...[".bashrc", ".zshrc", ".profile", ".bash_profile", ".zprofile"],
  ...[".netrc", ".pgpass", ".npmrc", ".pypirc"],
];

export interface DenyList {
  /** Follows links: neither the path nor anything on its way may be on the list. */
  isDenied(path: string): Promise<boolean>;
  /** For listings: a path whose directory is real already. */
  isHidden(path: string): boolean;
}

export async function createDenyList(
  guard: Pick<FileGuard, "canRead" | "isUnreadable">,
  userHome: string,
): Promise<DenyList> {
  const homes = [...new Set([userHome, await resolveLinks(userHome)])];
  const isPersonal = (path: string) =>
    homes.some(
      (home) =>
        FILES.some((name) => path === join(home, name)) || DIRECTORIES.some((name) => isWithin(path, join(home, name))),
    );
  return {
    isHidden: (path) => isPersonal(path) || guard.isUnreadable(path),
    async isDenied(path) {
      if ((await followLinks(path)).some(isPersonal)) return true;
      return (await guard.canRead(path)).type !== "allow";
    },
  };
}
