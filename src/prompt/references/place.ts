// Where a reference leads, if it may lead there.
import { expandPath, isWithin } from "../../safety/paths.ts";
import type { FileLook } from "../ports.ts";
import type { ReferenceOptions } from "./ports.ts";

const OUTSIDE = "path is outside the allowed workspace";
const SENSITIVE = "path is a sensitive credential or internal Hermes path and cannot be attached";

export type Place =
  | { readonly type: "found"; readonly path: string; readonly look: FileLook }
  | { readonly type: "missing" }
  | { readonly type: "refused"; readonly reason: string };

/** Real paths are compared: a link does not lead out of the workspace. Outside of it nothing is said about what exists. */
export async function findPlace(value: string, options: ReferenceOptions): Promise<Place> {
  const { cwd, userHome, files, denyList } = options;
  if (value.includes("\0")) return { type: "missing" };
  const written = expandPath(value, cwd, userHome);
  const root = (await files.real(cwd)) ?? cwd;
  const real = await files.real(written);
  if (real === null) return isWithin(written, cwd) || isWithin(written, root) ? { type: "missing" } : refused(OUTSIDE);
  if (!isWithin(real, root)) return refused(OUTSIDE);
  try {
    if ((await denyList.isDenied(written)) || (await denyList.isDenied(real))) return refused(SENSITIVE);
  } catch {
    return refused(SENSITIVE); // a list that cannot be consulted allows nothing
  }
  const look = await files.look(real);
  return look ? { type: "found", path: real, look } : { type: "missing" };
}

const refused = (reason: string): Place => ({ type: "refused", reason });
