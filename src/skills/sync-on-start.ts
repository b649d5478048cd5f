// One look at a stamp is what a start costs; the sync itself is loaded when this version has not yet run in this home.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { VERSION } from "../home/product.ts";
import type { SyncResult } from "./bundled.ts";
import { bundledDir } from "./bundled-place.ts";
import type { SkillsPlace } from "./roots.ts";

/** Runs the sync when this version of the program has not yet done so in this home. */
export async function syncOnStart(place: SkillsPlace): Promise<SyncResult | null> {
  const stamp = join(place.paths.skillsDir, ".bundled_version");
  const wanted = `${VERSION} ${bundledDir(place)}\n`;
  if ((await readFile(stamp, "utf8").catch(() => "")) === wanted) return null;
  const { syncBundledSkills } = await import("./bundled.ts");
  const result = await syncBundledSkills(place);
  if (result.failed.length > 0) return result;
  const { writeFileAtomic } = await import("../kit/files.ts");
  await writeFileAtomic(stamp, wanted);
  return result;
}
