import { lstat, readFile, realpath, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { countCodePoints, sliceCodePoints } from "../../kit/code-points.ts";
import { isWithin } from "../../kit/files.ts";
import { parseFrontMatter } from "../../kit/front-matter.ts";
import { unquote } from "../../kit/front-matter-plain.ts";
import { fuzzyReplace, isAlreadyApplied } from "../../kit/fuzzy/replace.ts";
import { loadCatalogue, type Skill } from "../catalogue.ts";
import { skillFiles } from "../files.ts";
import { reason } from "../open-skill.ts";
import { readText, textField } from "../read-entry.ts";
import { resolveSkill } from "../resolve.ts";
import { failure, type SkillResult } from "../run.ts";
import { archiveSkill, exists } from "../skill-copy.ts";
import { readUsage, usageFile } from "../usage.ts";
import { indexDescription } from "../visible.ts";
import {
  checkContent,
  checkName,
  checkSize,
  type ManageCall,
  type Planned,
  removeEmptyUpTo,
  writablePath,
  writeGuarded,
} from "./write.ts";

export async function planCreate(call: ManageCall): Promise<Planned> {
  const { request, context } = call;
  const refuse = (code: string, error: string) => ({ type: "refused", result: failure(code, error) }) as const;
  const { name, content = "" } = request;
  const category = request.category?.trim() || null;
  const badName = checkName(name);
  if (badName !== null) return refuse("bad_name", badName);
  const badCategory = category === null ? null : checkName(category, "category");
  if (badCategory !== null) return refuse("bad_category", badCategory);
  const badContent = checkContent(content, { name, isNew: true });
  if (badContent !== null) return refuse("bad_content", badContent);

  const skills = (await loadCatalogue(context)).roots.flatMap((root) => root.skills);
  const taken = skills.find((skill) => skill.name === name || skill.dirName === name);
  if (taken)
    return refuse(
      "exists",
      `A skill '${name}' exists already (${taken.dir}). Patch or edit it, or choose another name.`,
    );
  const root = context.paths.skillsDir;
  const dir = category === null ? join(root, name) : join(root, category, name);
  if (category !== null && (await isLink(join(root, category))))
    return refuse("traversal", `The category '${category}' is a link; choose another.`);
  if (await exists(dir)) return refuse("exists", `${dir} exists already and is not a skill. Choose another name.`);

  const path = category === null ? name : `${category}/${name}`;
  return {
    type: "ready",
    file: "SKILL.md",
    before: null,
    after: content,
    effect: "created",
    skillName: name,
    async commit() {
      // The folders are made with the file and go with it if it is refused.
      const refused = await writeGuarded(dir, "SKILL.md", content, call);
      if (refused) return refused;
      return {
        success: true,
        message: `Skill '${name}' created.`,
        path,
        skill_md: join(dir, "SKILL.md"),
        ...(category !== null && { category }),
        hint: `Add files with skill_manage(action='write_file', name='${name}', file_path='references/...', file_content=...). New conversations list it.`,
      };
    },
  };
}

async function isLink(path: string): Promise<boolean> {
  return lstat(path).then(
    (facts) => facts.isSymbolicLink(),
    () => false,
  );
}

// Changing the text of a skill that exists: whole, in part, or one of its files.

type Refused = Extract<Planned, { type: "refused" }>;

function refuse(code: string, error: string, extra: Readonly<Record<string, unknown>> = {}): Refused {
  return { type: "refused", result: failure(code, error, extra) };
}

export async function planEdit(skill: Skill, content: string, call: ManageCall): Promise<Planned> {
  const bad = checkContent(content, { name: skill.name, isNew: false });
  if (bad !== null) return refuse("bad_content", bad);
  const result = { message: `Skill '${skill.name}' updated (full rewrite).` };
  return planText(skill, "SKILL.md", await readText(join(skill.dir, "SKILL.md")), content, call, result);
}

export async function planWriteFile(skill: Skill, call: ManageCall): Promise<Planned> {
  const { file_path, file_content } = call.request;
  if (file_path === undefined) return refuse("missing_argument", "write_file needs file_path.");
  if (file_content === undefined) return refuse("missing_argument", "write_file needs file_content.");
  const target = await writablePath(skill, file_path);
  if (target.type === "refused") return refuse("traversal", `${target.reason}.`);
  if (target.path === "SKILL.md") return planEdit(skill, file_content, call);
  const bad = checkSize(file_content);
  if (bad !== null) return refuse("too_large", bad);
  const result = { message: `File '${target.path}' written to skill '${skill.name}'.` };
  return planText(skill, target.path, await readText(target.absolute), file_content, call, result);
}

export async function planPatch(skill: Skill, call: ManageCall): Promise<Planned> {
  const { old_string, new_string, replace_all = false, file_path } = call.request;
  if (!old_string) return refuse("missing_argument", "patch needs old_string: the text to replace.");
  if (new_string === undefined) return refuse("missing_argument", 'patch needs new_string; "" deletes the text.');
  const target = await writablePath(skill, file_path?.trim() || "SKILL.md");
  if (target.type === "refused") return refuse("traversal", `${target.reason}.`);
  const { path } = target;
  const before = await readFile(target.absolute, "utf8").catch(() => null);
  if (before === null)
    return refuse("file_not_found", `Skill '${skill.name}' has no file '${path}'.`, {
      available_files: await skillFiles(skill.dir),
    });
  if (isAlreadyApplied(before, old_string, new_string)) return alreadyThere(skill, path);
  const replaced = fuzzyReplace(before, old_string, new_string, { replaceAll: replace_all });
  if (!replaced.ok)
    return refuse(replaced.code, replaced.message, {
      hint: `Load the file with skill_view(name='${skill.name}'${path === "SKILL.md" ? "" : `, file_path='${path}'`}) and copy the text exactly.`,
      file_preview: sliceCodePoints(before, 0, 500),
    });
  const bad =
    path === "SKILL.md" ? checkContent(replaced.text, { name: skill.name, isNew: false }) : checkSize(replaced.text);
  if (bad !== null) return refuse("bad_content", `The patch was not applied, because of its result: ${bad}`);
  const result = {
    message: `Patched ${path} in skill '${skill.name}' (${replaced.count} replacement${replaced.count === 1 ? "" : "s"}).`,
    strategy: replaced.strategy,
    warning: replaced.warning,
  };
  return planText(skill, path, before, replaced.text, call, result);
}

function alreadyThere(skill: Skill, path: string): Refused {
  const result: SkillResult = {
    success: true,
    no_change: true,
    message: `${path} of skill '${skill.name}' already has this change.`,
  };
  return { type: "refused", result };
}

function planText(
  skill: Skill,
  path: string,
  before: string | null,
  after: string,
  call: ManageCall,
  result: Readonly<Record<string, unknown>>,
): Planned {
  return {
    type: "ready",
    file: path,
    before,
    after,
    effect: "patched",
    skillName: skill.name,
    skill,
    async commit() {
      const refused = await writeGuarded(skill.dir, path, after, call);
      return refused ?? { success: true, ...result, path: join(skill.dir, path), ...previewPart(path, after) };
    },
  };
}

/** A description that the list of skills cuts is shown as it will be seen there. */
function previewPart(path: string, text: string): Readonly<Record<string, unknown>> {
  if (path !== "SKILL.md") return {};
  const description = unquote(textField(parseFrontMatter(text).fields.description));
  const shown = indexDescription(description);
  return countCodePoints(description) > countCodePoints(shown) ? { system_prompt_preview: shown } : {};
}

// Taking things away: one file of a skill, or the skill itself, which goes to the archive and not into nothing.

function refuseRemoval(code: string, error: string, extra: Readonly<Record<string, unknown>> = {}): Planned {
  return { type: "refused", result: failure(code, error, extra) };
}

export async function planRemoveFile(skill: Skill, { request }: ManageCall): Promise<Planned> {
  if (!request.file_path) return refuseRemoval("missing_argument", "remove_file needs file_path.");
  const target = await writablePath(skill, request.file_path);
  if (target.type === "refused") return refuseRemoval("traversal", `${target.reason}.`);
  const { path, absolute } = target;
  if (path === "SKILL.md") return refuseRemoval("protected", "SKILL.md is the skill itself: use action='delete'.");
  const facts = await lstat(absolute).catch(() => null);
  if (!facts || facts.isDirectory())
    return refuseRemoval("file_not_found", `Skill '${skill.name}' has no file '${path}'.`, {
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

export async function planDelete(skill: Skill, { request, context }: ManageCall): Promise<Planned> {
  const usage = await readUsage(context);
  if (usage?.get(skill.name)?.pinned)
    return refuseRemoval(
      "pinned",
      `Skill '${skill.name}' is pinned: it can be improved, but not deleted. Its user can release it with "pinned": false in ${usageFile(context)}.`,
    );
  const absorbed = request.absorbed_into?.trim() ?? "";
  if (absorbed !== "") {
    const heir = await resolveSkill(absorbed, await loadCatalogue(context), context);
    if (heir.type !== "found") return refuseRemoval("bad_argument", `absorbed_into: there is no skill '${absorbed}'.`);
    if (heir.skill.dir === skill.dir) return refuseRemoval("bad_argument", "absorbed_into names the skill itself.");
  }
  const outside = await whyNotRemovable(skill);
  if (outside !== null) return refuseRemoval("protected", outside);
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
        archived = await archiveSkill(skill.dir, context.paths.skillsDir, context.clock.now());
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
