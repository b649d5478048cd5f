// `skill_manage`: every change the agent makes to skills comes through here.

import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { withLock } from "../../home/lock.ts";
import type { HomePaths } from "../../home/paths.ts";
import { DO_NOT_RETRY, foreignNote } from "../../safety/decision.ts";
import { loadCatalogue, type Skill } from "../catalogue.ts";
import { walkSkills } from "../files.ts";
import { reason } from "../open-skill.ts";
import { diffOf, dropPending, listPending, type PendingWrite, stage } from "../pending.ts";
import { provenanceOf } from "../provenance.ts";
import { pathName, resolveSkill } from "../resolve.ts";
import type { SkillsContext } from "../roots.ts";
import { failure, type SkillResult } from "../run.ts";
import { bumpUsage, readUsage, skillsLock, updateUsage } from "../usage.ts";
import { clearSkillsPromptCache } from "../visible.ts";
import { planCreate, planDelete, planEdit, planPatch, planRemoveFile, planWriteFile } from "./edit.ts";
import { type ManageCall, type Plan, type Planned, writablePath } from "./write.ts";

/** Checks, then stages or writes. Never throws for what the request or the disk did. */
export async function manageSkill(
  call: ManageCall,
  options: { /** The user has already said yes. */ readonly approved?: boolean } = {},
): Promise<SkillResult> {
  try {
    let done: Plan | null = null;
    const answer = options.approved ? "write" : await askAfterForeignText(call);
    if (typeof answer !== "string") return answer;
    const result = await withLock(skillsLock(call.context), async () => {
      const planned = await planChange(call);
      if (planned.type === "refused") return planned.result;
      if (answer === "stage" || (call.context.config().skills.write_approval && !options.approved))
        return stage(call, planned);
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

/** Conversations whose user said yes for the rest of it. */
const trusted = new WeakMap<SkillsContext, Set<string>>();

/** A skill outlives the conversation: what a stranger's text may have asked for is not written without a yes. */
async function askAfterForeignText(call: ManageCall): Promise<"write" | "stage" | SkillResult> {
  const { run, context } = call;
  const source = run.foreignText?.() ?? null;
  const sessions = trusted.get(context) ?? new Set();
  if (source === null || sessions.has(run.sessionId)) return "write";
  if (!run.interactive || !run.ask || run.origin !== "foreground" || context.config().skills.write_approval)
    return "stage";
  const planned = await planChange(call);
  if (planned.type === "refused") return planned.result;
  const { action, name } = call.request;
  const question = {
    kind: "approval",
    command: planned.before === null ? (planned.after ?? "") : await diffOf(planned),
    description: `${action} skill ${name}`,
    patternKey: "skill_write",
    about: "own change",
    allowAlways: false,
    note: foreignNote(source),
  } as const;
  const { choice, timedOut } = await run.ask(question, run.signal);
  if (choice === "session") trusted.set(context, sessions.add(run.sessionId));
  if (choice === "once" || choice === "session") return "write";
  if (choice === "deny" && !timedOut)
    return failure("denied", `The user refused this change of a skill. ${DO_NOT_RETRY}.`);
  return "stage";
}

/** The change with all its checks made, nothing written yet. */
async function planChange(call: ManageCall): Promise<Planned> {
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
  context,
}: ManageCall): Promise<Extract<Planned, { type: "refused" }> | { readonly type: "found"; readonly skill: Skill }> {
  const found = await resolveSkill(request.name, await loadCatalogue(context), context);
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
      const elsewhere = await profilesWith(request.name, context.paths);
      const note =
        elsewhere.length > 0 ? ` Profile ${elsewhere.join(", ")} has one; this profile does not use it.` : "";
      return refuse("not_found", `There is no skill '${request.name}'.${note}`);
    }
  }
}

async function afterwards({ effect, skillName, skill }: Plan, { context, run }: ManageCall): Promise<void> {
  await clearSkillsPromptCache(context, { snapshot: true });
  const now = new Date(context.clock.now()).toISOString();
  if (effect === "patched") {
    bumpUsage(context, skillName, ["patch"]);
    await updateUsage(context, skillName, { agent_wrote: true });
  }
  if (effect === "created")
    await updateUsage(context, skillName, {
      created_at: now,
      created_by: isUnwatched(run.origin) ? "agent" : null,
      agent_wrote: true,
      state: "active",
      archived_at: null,
      archived_from: null,
    });
  if (effect === "archived" && skill) {
    const from = skill.root.kind === "local" ? skill.path : skill.dir;
    await updateUsage(context, skillName, { state: "archived", archived_at: now, archived_from: from });
  }
}

// The user's answer to writes that wait.

type Ground = Pick<ManageCall, "context" | "ports" | "run">;

interface Answered {
  readonly write: PendingWrite;
  /** Null when it went through. */
  readonly error: string | null;
}

/** Makes the change, or all of them, oldest first. What fails stays pending. */
export async function approvePending(which: string, ground: Ground): Promise<readonly Answered[]> {
  const answered: Answered[] = [];
  // It was read when it was staged, and the user has looked at it since.
  const ports = { ...ground.ports, views: { wasRead: () => true } };
  for (const write of await select(which, ground)) {
    const run = { ...ground.run, origin: write.origin };
    const result = await manageSkill({ ...ground, run, request: write.payload, ports }, { approved: true });
    if (result.success) await dropPending(ground.context, write.id);
    answered.push({ write, error: result.success ? null : String(result.error) });
  }
  return answered;
}

export async function rejectPending(which: string, ground: Pick<Ground, "context">): Promise<readonly PendingWrite[]> {
  const writes = await select(which, ground);
  for (const { id } of writes) await dropPending(ground.context, id);
  return writes;
}

/** The waiting change as a unified diff against the disk; a sentence when it no longer applies. */
export async function diffPending(id: string, ground: Ground): Promise<string | null> {
  const [write] = await select(id, ground);
  if (!write) return null;
  const planned = await planChange({ ...ground, request: write.payload, run: { ...ground.run, origin: "foreground" } });
  if (planned.type === "refused") return String(planned.result.error ?? planned.result.message);
  return write.action === "create" ? (planned.after ?? "") : diffOf(planned);
}

async function select(which: string, { context }: Pick<Ground, "context">): Promise<readonly PendingWrite[]> {
  const all = await listPending(context);
  return which === "all" ? all : all.filter(({ id }) => id === which.trim());
}

/** Other profiles that have a skill directory of this name. They are named, never used. */
async function profilesWith(name: string, paths: HomePaths): Promise<readonly string[]> {
  const folder = join(paths.root, "profiles");
  const names = await readdir(folder).catch(() => []);
  const homes = [
    { profile: "default", dir: paths.root },
    ...names.sort().map((profile) => ({ profile, dir: join(folder, profile) })),
  ].filter(({ dir }) => dir !== paths.dir);
  const holds = await Promise.all(
    homes.map(async ({ dir }) => {
      const { skills } = await walkSkills(join(dir, "skills"));
      return skills.some((path) => path === name || path.endsWith(`/${name}`));
    }),
  );
  return homes.filter((_, index) => holds[index]).map(({ profile }) => profile);
}

// Nobody watches a review or the curator: they may only touch what the agent made itself, and only what they have just read.

const PROTECTED = new Set(["hermes-agent", "plan"]);

const isUnwatched = (origin: string) => origin === "background_review" || origin === "curator";

/** Null = the change may go on. */
async function refuseUnwatched(skill: Skill, call: ManageCall): Promise<SkillResult | null> {
  const { request, context, run, ports } = call;
  const refuse = (why: string) => failure("protected", `Skill '${skill.name}' ${why}`);
  if (PROTECTED.has(skill.name) || PROTECTED.has(skill.dirName))
    return refuse("belongs to the program and stays as it is.");
  const provenance = await provenanceOf(skill, context);
  if (provenance !== "local") return refuse(`is ${ORIGINS[provenance]}; a review does not change it.`);
  const usage = await readUsage(context);
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
