import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { loadCatalogue } from "../catalogue.ts";
import { failure } from "../run.ts";
import { exists } from "../skill-copy.ts";
import type { ManageCall, Planned } from "./request.ts";
import { checkContent, checkName } from "./validate.ts";
import { writeGuarded } from "./write.ts";

export async function planCreate(call: ManageCall): Promise<Planned> {
  const { request, place } = call;
  const refuse = (code: string, error: string) => ({ type: "refused", result: failure(code, error) }) as const;
  const { name, content = "" } = request;
  const category = request.category?.trim() || null;
  const badName = checkName(name);
  if (badName !== null) return refuse("bad_name", badName);
  const badCategory = category === null ? null : checkName(category, "category");
  if (badCategory !== null) return refuse("bad_category", badCategory);
  const badContent = checkContent(content, { name, isNew: true });
  if (badContent !== null) return refuse("bad_content", badContent);

  const skills = (await loadCatalogue(place)).roots.flatMap((root) => root.skills);
  const taken = skills.find((skill) => skill.name === name || skill.dirName === name);
  if (taken)
    return refuse(
      "exists",
      `A skill '${name}' exists already (${taken.dir}). Patch or edit it, or choose another name.`,
    );
  const root = place.paths.skillsDir;
  const dir = category === null ? join(root, name) : join(root, category, name);
  if (category !== null && (await isLink(join(root, category))))
    return refuse("traversal", `The category '${category}' is a link; choose another.`);
  if (await exists(dir)) return refuse("exists", `${dir} exists already and is no skill. Choose another name.`);

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
