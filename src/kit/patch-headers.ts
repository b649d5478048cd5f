// The marker lines of a patch over several files (V4A): `*** Update File: path` and its kin.

export type PatchVerb = "Update" | "Add" | "Delete" | "Move";

export type PatchMarker =
  | { readonly type: "begin" | "end" | "end_of_file" }
  /** `Move File` has `old -> new` for a path. */
  | { readonly type: "header"; readonly verb: PatchVerb; readonly path: string }
  | { readonly type: "move_to"; readonly path: string };

const HEADER = /^\*\*\*[ \t]*(Update|Add|Delete|Move)[ \t]+File[ \t]*:(.*)$/s;
const MOVE_TO = /^\*\*\*[ \t]*Move[ \t]+to[ \t]*:(.*)$/is;
const PLAIN = { "Begin Patch": "begin", "End Patch": "end", "End of File": "end_of_file" } as const;

/** Blanks around a marker do not matter. Null for any other line. */
export function readPatchMarker(line: string): PatchMarker | null {
  const text = line.trim();
  if (!text.startsWith("***")) return null;
  const header = HEADER.exec(text);
  if (header) return { type: "header", verb: header[1] as PatchVerb, path: header[2]?.trim() ?? "" }; // one of the four
  const moved = MOVE_TO.exec(text);
  if (moved) return { type: "move_to", path: moved[1]?.trim() ?? "" };
  const words = text.slice(3).trim().replace(/\s+/g, " ");
  return Object.hasOwn(PLAIN, words) ? { type: PLAIN[words as keyof typeof PLAIN] } : null; // has it
}

/** `old -> new`. */
export function splitMove(path: string): readonly [from: string, to: string] {
  const arrow = /\s->\s/.exec(path);
  if (!arrow) return [path.trim(), ""];
  return [path.slice(0, arrow.index).trim(), path.slice(arrow.index + arrow[0].length).trim()];
}

/** Every path a patch names, in its order; rather one too many than one too few. */
export function pathsInPatch(patch: string): readonly string[] {
  const paths = patch.split("\n").flatMap((line) => {
    const marker = readPatchMarker(line);
    if (marker?.type === "move_to") return [marker.path];
    if (marker?.type !== "header") return [];
    return marker.verb === "Move" ? splitMove(marker.path) : [marker.path];
  });
  return paths.filter((path) => path !== "");
}
