// `skill_manage`: every change the agent makes to skills comes through here.
import { withLock } from "../../home/lock.ts";
import { loadCatalogue, type Skill } from "../catalogue.ts";
import { reason } from "../open-skill.ts";
import { stage } from "../pending.ts";
import { pathName, resolveSkill } from "../resolve.ts";
import { failure, type SkillResult } from "../run.ts";
import { bumpUsage, skillsLock, updateUsage } from "../usage.ts";
import { clearSkillsPromptCache } from "../visible.ts";
import { planCreate } from "./create.ts";
import { planEdit, planPatch, planWriteFile } from "./edit.ts";
import { profilesWith } from "./other-profiles.ts";
import { planDelete, planRemoveFile } from "./remove.ts";
import type { ManageCall, Plan, Planned } from "./request.ts";
import { isUnwatched, refuseUnwatched } from "./review-rules.ts";

/** Checks, then stages or writes. Never throws for what the request or the disk did. */
export async function manageSkill(
  call: ManageCall,
  options: { /** The user has already said yes. */ readonly approved?: boolean } = {},
): Promise<SkillResult> {
  try {
    let done: Plan | null = null;
    const result = await withLock(skillsLock(call.place), async () => {
      const planned = await planChange(call);
      if (planned.type === "refused") return planned.result;
      if (call.place.config().skills.write_approval && !options.approved) return stage(call, planned);
      const result = await planned.commit();
      if (result.success) done = planned;
      return result;
    });
    if (done) await afterwards(done, call); // the usage file has the same lock
    return result;
  } catch (error) {
    return failure("write_failed", `${call.request.action} of skill '${call.request.name}' failed: ${reason(error)}`);
  }
}

/** The change with all its checks made, nothing written yet. */
export async function planChange(call: ManageCall): Promise<Planned> {
  const { request } = call;
  if (request.action === "create") return planCreate(call);
  const found = await findSkill(call);
  if (found.type === "refused") return found;
  const { skill } = found;
  const refused = isUnwatched(call.run.origin) ? await refuseUnwatched(skill, call) : null;
  if (refused) return { type: "refused", result: refused };
  switch (request.action) {
    case "edit":
      return planEdit(skill, request.content ?? "", call);
    case "patch":
      return planPatch(skill, call);
    case "write_file":
      return planWriteFile(skill, call);
    case "remove_file":
      return planRemoveFile(skill, call);
    case "delete":
      return planDelete(skill, call);
  }
}

async function findSkill({
  request,
  place,
}: ManageCall): Promise<Extract<Planned, { type: "refused" }> | { readonly type: "found"; readonly skill: Skill }> {
  const found = await resolveSkill(request.name, await loadCatalogue(place), place);
  const refuse = (...args: Parameters<typeof failure>) => ({ type: "refused", result: failure(...args) }) as const;
  switch (found.type) {
    case "found":
      return found;
    case "bad_name":
      return refuse("bad_name", `'${request.name}': ${found.reason}.`);
    case "ambiguous":
      return refuse("ambiguous", `Several skills are called '${request.name}'. Use the category path.`, {
        matches: found.matches.map(pathName),
      });
    case "not_found": {
      const elsewhere = await profilesWith(request.name, place.paths);
      const note =
        elsewhere.length > 0 ? ` Profile ${elsewhere.join(", ")} has one; this profile does not use it.` : "";
      return refuse("not_found", `There is no skill '${request.name}'.${note}`);
    }
  }
}

async function afterwards({ effect, skillName, skill }: Plan, { place, run }: ManageCall): Promise<void> {
  await clearSkillsPromptCache(place, { snapshot: true });
  const now = new Date(place.clock.now()).toISOString();
  if (effect === "patched") bumpUsage(place, skillName, ["patch"]);
  if (effect === "created")
    await updateUsage(place, skillName, {
      created_at: now,
      created_by: isUnwatched(run.origin) ? "agent" : null,
      state: "active",
      archived_at: null,
      archived_from: null,
    });
  if (effect === "archived" && skill) {
    const from = skill.root.kind === "local" ? skill.path : skill.dir;
    await updateUsage(place, skillName, { state: "archived", archived_at: now, archived_from: from });
  }
}
