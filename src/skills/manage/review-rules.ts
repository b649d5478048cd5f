// Nobody watches a review or the curator: they may only touch what the agent made itself, and only what they have just read.
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { Skill } from "../catalogue.ts";
import { provenanceOf } from "../provenance.ts";
import { failure, type SkillResult } from "../run.ts";
import { readUsage } from "../usage.ts";
import type { ManageCall } from "./request.ts";
import { writablePath } from "./validate.ts";

const PROTECTED = new Set(["hermes-agent", "plan"]);

export const isUnwatched = (origin: string) => origin === "background_review" || origin === "curator";

/** Null = the change may go on. */
export async function refuseUnwatched(skill: Skill, call: ManageCall): Promise<SkillResult | null> {
  const { request, place, run, ports } = call;
  const refuse = (why: string) => failure("protected", `Skill '${skill.name}' ${why}`);
  if (PROTECTED.has(skill.name) || PROTECTED.has(skill.dirName))
    return refuse("belongs to the program and stays as it is.");
  const provenance = await provenanceOf(skill, place);
  if (provenance !== "local") return refuse(`is ${ORIGINS[provenance]}; a review does not change it.`);
  const usage = await readUsage(place);
  if (usage === null) return refuse("cannot be changed: the usage file, which says whose it is, cannot be read.");
  const record = usage.get(skill.name);
  if (record?.pinned) return failure("pinned", `Skill '${skill.name}' is pinned; a review does not change it.`);
  if (record?.created_by !== "agent") return refuse("is the user's own; a review does not change it.");
  if (request.action === "delete") {
    return request.absorbed_into?.trim()
      ? null
      : refuse("may only be deleted with absorbed_into naming the skill that takes over.");
  }
  const path = await writablePath(
    skill,
    request.action === "edit" ? "SKILL.md" : request.file_path?.trim() || "SKILL.md",
  );
  if (path.type === "refused") return null; // refused by the action itself, with its own words
  const isNewFile = request.action === "write_file" && !(await lstat(path.absolute).catch(() => null));
  if (isNewFile || ports.views.wasRead(run.taskId, join(skill.dir, path.path))) return null;
  const argument = path.path === "SKILL.md" ? "" : `, file_path='${path.path}'`;
  return failure("not_read", `Read it first: skill_view(name='${skill.name}'${argument}), then change it.`);
}

const ORIGINS = {
  bundled: "shipped with the program",
  hub: "installed from elsewhere",
  external: "in a folder outside the home",
  plugin: "part of a plugin",
} as const;
