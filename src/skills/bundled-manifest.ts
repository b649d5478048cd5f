// `skills/.bundled_manifest`: what the program put into this home, and how it looked then.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeFileAtomic } from "../kit/files.ts";
import type { SkillsPlace } from "./roots.ts";
import { compare } from "./tree.ts";

/**
 * One line: the hash of what the program shipped. After `reset` without restoring, `user` is the user's version at that moment, and
 * `origin` what the program shipped then: the next version that differs from it is taken.
 */
export interface ManifestLine {
  /** Null: an old line without a hash. */
  readonly origin: string | null;
  readonly user?: string;
}

const manifestFile = (place: Pick<SkillsPlace, "paths">) => join(place.paths.skillsDir, ".bundled_manifest");

export async function readBundledManifest(
  place: Pick<SkillsPlace, "paths">,
): Promise<{ readonly present: boolean; readonly lines: Map<string, ManifestLine> }> {
  let text: string;
  try {
    text = await readFile(manifestFile(place), "utf8");
  } catch {
    return { present: false, lines: new Map() };
  }
  const lines = new Map<string, ManifestLine>();
  for (const line of text.split(/\r?\n/)) {
    const [name = "", first, second] = line.trim().split(":");
    if (name === "") continue;
    if (!first) lines.set(name, { origin: null });
    else lines.set(name, second ? { origin: second, user: first } : { origin: first });
  }
  return { present: true, lines };
}

export async function writeBundledManifest(
  place: Pick<SkillsPlace, "paths">,
  lines: ReadonlyMap<string, ManifestLine>,
): Promise<void> {
  const rows = [...lines]
    .sort(([a], [b]) => compare(a, b))
    .map(([name, { origin, user }]) => [name, ...(user ? [user] : []), ...(origin ? [origin] : [])].join(":"));
  await writeFileAtomic(manifestFile(place), rows.map((row) => `${row}\n`).join(""));
}
