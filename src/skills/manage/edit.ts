// Changing the text of a skill that exists: whole, in part, or one of its files.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { countCodePoints, sliceCodePoints } from "../../kit/code-points.ts";
import { parseFrontMatter } from "../../kit/front-matter.ts";
import { fuzzyReplace, isAlreadyApplied } from "../../kit/fuzzy/replace.ts";
import { unquote } from "../../kit/quotes.ts";
import type { Skill } from "../catalogue.ts";
import { textField } from "../fields.ts";
import { skillFiles } from "../files.ts";
import { readText } from "../read-tree.ts";
import { failure, type SkillResult } from "../run.ts";
import { indexDescription } from "../visible.ts";
import type { ManageCall, Planned } from "./request.ts";
import { checkContent, checkSize, writablePath } from "./validate.ts";
import { writeGuarded } from "./write.ts";

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
    ...(replaced.warning !== undefined && { warning: replaced.warning }),
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
