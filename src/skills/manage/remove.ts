// Taking things away: one file of a skill, or the skill itself, which goes to the archive and not into nothing.
import { lstat, readFile, realpath, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isWithin } from "../../safety/paths.ts";
import { loadCatalogue, type Skill } from "../catalogue.ts";
import { skillFiles } from "../files.ts";
import { reason } from "../open-skill.ts";
import { resolveSkill } from "../resolve.ts";
import { failure } from "../run.ts";
import { archiveSkill } from "../skill-copy.ts";
import { readUsage, usageFile } from "../usage.ts";
import type { ManageCall, Planned } from "./request.ts";
import { writablePath } from "./validate.ts";
import { removeEmptyUpTo } from "./write.ts";

function refuse(code: string, error: string, extra: Readonly<Record<string, unknown>> = {}): Planned {
  return { type: "refused", result: failure(code, error, extra) };
}

export async function planRemoveFile(skill: Skill, { request }: ManageCall): Promise<Planned> {
  if (!request.file_path) return refuse("missing_argument", "remove_file needs file_path.");
  const target = await writablePath(skill, request.file_path);
  if (target.type === "refused") return refuse("traversal", `${target.reason}.`);
  const { path, absolute } = target;
  if (path === "SKILL.md") return refuse("protected", "SKILL.md is the skill itself: use action='delete'.");
  const facts = await lstat(absolute).catch(() => null);
  if (!facts || facts.isDirectory())
    return refuse("file_not_found", `Skill '${skill.name}' has no file '${path}'.`, {
      available_files: await skillFiles(skill.dir),
    });
  return {
    type: "ready",
    file: path,
    before: await readFile(absolute, "utf8").catch(() => ""),
    after: null,
    effect: "patched",
    skillName: skill.name,
    skill,
    async commit() {
      await rm(absolute);
      await removeEmptyUpTo(dirname(absolute), skill.dir);
      return { success: true, message: `File '${path}' removed from skill '${skill.name}'.` };
    },
  };
}

export async function planDelete(skill: Skill, { request, place }: ManageCall): Promise<Planned> {
  const usage = await readUsage(place);
  if (usage?.get(skill.name)?.pinned)
    return refuse(
      "pinned",
      `Skill '${skill.name}' is pinned: it can be improved, but not deleted. Its user can release it with "pinned": false in ${usageFile(place)}.`,
    );
  const absorbed = request.absorbed_into?.trim() ?? "";
  if (absorbed !== "") {
    const heir = await resolveSkill(absorbed, await loadCatalogue(place), place);
    if (heir.type !== "found") return refuse("bad_argument", `absorbed_into: there is no skill '${absorbed}'.`);
    if (heir.skill.dir === skill.dir) return refuse("bad_argument", "absorbed_into names the skill itself.");
  }
  const outside = await whyNotRemovable(skill);
  if (outside !== null) return refuse("protected", outside);
  return {
    type: "ready",
    file: "SKILL.md",
    before: await readFile(join(skill.dir, "SKILL.md"), "utf8").catch(() => ""),
    after: null,
    effect: "archived",
    skillName: skill.name,
    skill,
    async commit() {
      let archived: string;
      try {
        archived = await archiveSkill(skill.dir, place.paths.skillsDir, place.clock.now());
      } catch (error) {
        return failure("write_failed", `Skill '${skill.name}' could not be moved to the archive: ${reason(error)}`);
      }
      await removeEmptyUpTo(dirname(skill.dir), skill.root.dir);
      return {
        success: true,
        message: `Skill '${skill.name}' archived.`,
        path: archived,
        ...(absorbed !== "" && { absorbed_into: absorbed }),
      };
    },
  };
}

/** Only a real directory strictly inside its root may be moved away. */
async function whyNotRemovable(skill: Skill): Promise<string | null> {
  const [dir, root] = await Promise.all([realpath(skill.dir), realpath(skill.root.dir)]);
  const linked = (await lstat(skill.dir)).isSymbolicLink() || dir !== join(root, skill.path);
  if (linked) return `Skill '${skill.name}' is reached through a link: remove the link by hand.`;
  return dir !== root && isWithin(dir, root) ? null : `Skill '${skill.name}' lies outside the skills folders.`;
}
