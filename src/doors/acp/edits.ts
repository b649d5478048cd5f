// Edits in an editor: who is shown them first. Each mode says what is written without a question; some files never are.
import { tmpdir } from "node:os";
import { basename, sep } from "node:path";
import type { SessionModeState } from "@agentclientprotocol/sdk";
import { t } from "../../home/language/words.ts";
import { isWithin } from "../../kit/files.ts";
import { followLinks, resolveLinks } from "../../safety/paths.ts";
import type { FileEdit } from "../../tools/toolset/context.ts";

export const EDIT_MODES = ["default", "accept_edits", "dont_ask"] as const;
export type EditMode = (typeof EDIT_MODES)[number];

export const isEditMode = (name: string): name is EditMode => EDIT_MODES.some((mode) => mode === name);

export function modeWords(mode: EditMode): { readonly name: string; readonly description: string } {
  switch (mode) {
    case "default":
      return { name: t("Default"), description: t("Ask before each edit") };
    case "accept_edits":
      return {
        name: t("Accept edits"),
        description: t("Edit files of this folder and temporary files without asking"),
      };
    case "dont_ask":
      return { name: t("Don't ask"), description: t("Edit files without asking, except keys and git's own files") };
  }
}

export const modeState = (mode: EditMode): SessionModeState => ({
  currentModeId: mode,
  availableModes: EDIT_MODES.map((id) => ({ id, ...modeWords(id) })),
});

/** Keys, and what git and ssh run or trust: these are shown first in every mode. */
const NAMES = /^(?:\.env.*|id_rsa|id_ed25519)$/i;
const FOLDERS = /^(?:\.git|\.ssh)$/i;

const isProtected = (path: string) =>
  NAMES.test(basename(path)) || path.split(/[\\/]/).some((part) => FOLDERS.test(part));

/** Whether the mode lets all of these be written unseen. Paths are judged as written and by where their links lead. */
export async function mayWriteUnasked(mode: EditMode, edits: readonly FileEdit[], cwd: string): Promise<boolean> {
  if (mode === "default") return false;
  const paths = await Promise.all(edits.map(({ path }) => followLinks(path)));
  if (edits.some(({ path }) => isProtected(path)) || paths.flat().some(isProtected)) return false;
  if (mode === "dont_ask") return true;
  const folders = await Promise.all([cwd, tmpdir()].map(resolveLinks));
  return paths.every((hops, at) => {
    const path = hops.at(-1) ?? edits[at]?.path ?? "";
    return folders.some((folder) => folder !== sep && isWithin(path, folder));
  });
}
