// Where a skill came from: shipped with the program, installed from a hub, or grown in this home.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { mapOf, optional, parseAs, record, type ShapeOf, text } from "../kit/json.ts";
import { readBundledManifest } from "./bundled-manifest.ts";
import type { Skill } from "./catalogue.ts";
import type { SkillsPlace } from "./roots.ts";

export type Provenance = "bundled" | "hub" | "external" | "plugin" | "local";

const hubEntryShape = record({ install_path: optional(text), trust_level: optional(text) });
const lockFile = record({ installed: mapOf(hubEntryShape) });
type HubEntry = ShapeOf<typeof hubEntryShape>;

export async function provenanceOf(skill: Skill, place: Pick<SkillsPlace, "paths">): Promise<Provenance> {
  if (skill.root.kind !== "local") return skill.root.kind;
  if (await hubEntry(skill, place)) return "hub";
  const { lines } = await readBundledManifest(place);
  return lines.has(skill.name) || lines.has(skill.dirName) ? "bundled" : "local";
}

/** How far a skill from elsewhere is trusted; null for everything that was not installed. */
export async function trustOf(skill: Skill, place: Pick<SkillsPlace, "paths">): Promise<string | null> {
  const entry = await hubEntry(skill, place);
  return entry ? (entry.trust_level ?? "community") : null;
}

async function hubEntry(skill: Skill, place: Pick<SkillsPlace, "paths">): Promise<HubEntry | null> {
  if (skill.root.kind !== "local") return null;
  const installed = await readHubLock(place);
  return (
    Object.entries(installed).find(
      ([name, entry]) => entry.install_path === skill.path || name === skill.dirName || name === skill.name,
    )?.[1] ?? null
  );
}

async function readHubLock(place: Pick<SkillsPlace, "paths">): Promise<Readonly<Record<string, HubEntry>>> {
  try {
    const json = await readFile(join(place.paths.skillsDir, ".hub", "lock.json"), "utf8");
    return parseAs(json, lockFile)?.installed ?? {};
  } catch {
    return {}; // nothing was ever installed
  }
}
