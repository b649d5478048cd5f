// Where a skill came from: shipped with the program, installed from a hub, or grown in this home.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { installRoot } from "../home/paths.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { mapOf, optional, parseAs, record, type ShapeOf, text } from "../kit/json.ts";
import type { Skill } from "./catalogue.ts";
import { compare } from "./files.ts";
import type { SkillsContext } from "./roots.ts";

type Provenance = "bundled" | "hub" | "external" | "plugin" | "local";

const hubEntryShape = record({ install_path: optional(text), trust_level: optional(text) });
const lockFile = record({ installed: mapOf(hubEntryShape) });
type HubEntry = ShapeOf<typeof hubEntryShape>;

export async function provenanceOf(skill: Skill, context: Pick<SkillsContext, "paths">): Promise<Provenance> {
  if (skill.root.kind !== "local") return skill.root.kind;
  if (await hubEntry(skill, context)) return "hub";
  const { lines } = await readBundledManifest(context);
  return lines.has(skill.name) || lines.has(skill.dirName) ? "bundled" : "local";
}

/** Whether the agent wrote or changed it, whoever asked it to. What cannot be known counts as yes. */
export async function isAgentWritten(skill: Skill, context: SkillsContext): Promise<boolean> {
  const { readUsage } = await import("./usage.ts"); // not needed to start
  const usage = await readUsage(context);
  return usage === null || usage.get(skill.name)?.agent_wrote === true;
}

/** How far a skill from elsewhere is trusted; null for everything that was not installed. */
export async function trustOf(skill: Skill, context: Pick<SkillsContext, "paths">): Promise<string | null> {
  const entry = await hubEntry(skill, context);
  return entry ? (entry.trust_level ?? "community") : null;
}

async function hubEntry(skill: Skill, context: Pick<SkillsContext, "paths">): Promise<HubEntry | null> {
  if (skill.root.kind !== "local") return null;
  const installed = await readHubLock(context);
  return (
    Object.entries(installed).find(
      ([name, entry]) => entry.install_path === skill.path || name === skill.dirName || name === skill.name,
    )?.[1] ?? null
  );
}

async function readHubLock(context: Pick<SkillsContext, "paths">): Promise<Readonly<Record<string, HubEntry>>> {
  try {
    const json = await readFile(join(context.paths.skillsDir, ".hub", "lock.json"), "utf8");
    return parseAs(json, lockFile)?.installed ?? {};
  } catch {
    return {}; // nothing was ever installed
  }
}

// `skills/.bundled_manifest`: what the program put into this home, and how it looked then.

/**
 * One line: the hash of what the program shipped. After `reset` without restoring, `user` is the user's version at that moment, and
 * `origin` what the program shipped then: the next version that differs from it is taken.
 */
export interface ManifestLine {
  /** Null: an old line without a hash. */
  readonly origin: string | null;
  readonly user?: string;
}

const manifestFile = (context: Pick<SkillsContext, "paths">) => join(context.paths.skillsDir, ".bundled_manifest");

export async function readBundledManifest(
  context: Pick<SkillsContext, "paths">,
): Promise<{ readonly present: boolean; readonly lines: Map<string, ManifestLine> }> {
  let text: string;
  try {
    text = await readFile(manifestFile(context), "utf8");
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
  context: Pick<SkillsContext, "paths">,
  lines: ReadonlyMap<string, ManifestLine>,
): Promise<void> {
  const rows = [...lines]
    .sort(([a], [b]) => compare(a, b))
    .map(([name, { origin, user }]) => [name, ...(user ? [user] : []), ...(origin ? [origin] : [])].join(":"));
  await writeFileAtomic(manifestFile(context), rows.map((row) => `${row}\n`).join(""));
}

/** Where the skills lie that come with the program. */
export const bundledDir = (context: Pick<SkillsContext, "env">) =>
  context.env("HERMES_BUNDLED_SKILLS") || join(installRoot(), "skills");
