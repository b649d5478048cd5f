// One file of a skill, replaced, looked at, and put back if the look says no.
import { mkdir, readFile, rm, rmdir } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { countCodePoints } from "../../kit/code-points.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { parseFrontMatter } from "../../kit/front-matter.ts";
import { unquote } from "../../kit/front-matter-plain.ts";
import type { Skill } from "../catalogue.ts";
import { NEVER_ENTERED, type SafePath, SUPPORT_DIRS, safePath } from "../files.ts";
import { reason } from "../open-skill.ts";
import { MAX_NAME, textField } from "../read-entry.ts";
import type { SkillsContext } from "../roots.ts";
import { failure, type SkillResult, type SkillRun } from "../run.ts";

/** Null when the file was written; else the refusal, and everything is as before. */
export async function writeGuarded(
  skillDir: string,
  path: string,
  text: string,
  call: Pick<ManageCall, "context" | "ports">,
): Promise<SkillResult | null> {
  const file = join(skillDir, path);
  // What is there and cannot be read could not be put back: then nothing is written.
  const before = await readFile(file).catch((error: NodeJS.ErrnoException) => (error.code === "ENOENT" ? null : error));
  if (before instanceof Error) return failure("write_failed", `${path} cannot be read: ${reason(before)}`);
  const made = await mkdir(dirname(file), { recursive: true });
  const undo = async () => {
    if (before !== null) await writeFileAtomic(file, before);
    else await rm(file, { force: true });
    if (made !== undefined) await removeEmptyUpTo(dirname(file), dirname(made));
  };
  try {
    await writeFileAtomic(file, text);
  } catch (error) {
    await undo();
    return failure("write_failed", reason(error));
  }
  const blocked = await scanWritten(skillDir, call);
  if (blocked) await undo();
  return blocked;
}

async function scanWritten(
  skillDir: string,
  { context, ports }: Pick<ManageCall, "context" | "ports">,
): Promise<SkillResult | null> {
  if (!context.config().skills.guard_agent_created || !ports.scan) return null;
  const verdict = await judge(ports.scan, skillDir);
  if (verdict.allowed) return null;
  return failure("blocked", `Security scan blocked this skill (${verdict.reason}):\n${verdict.report}`);
}

/** A scanner that fails has allowed nothing. */
async function judge(scan: GuardScan, skillDir: string): Promise<Awaited<ReturnType<GuardScan>>> {
  try {
    return await scan(skillDir);
  } catch (error) {
    return { allowed: false, reason: "the scan itself failed", report: reason(error) };
  }
}

/** Removes a directory and its parents as long as they are empty, stopping at `stop`. */
export async function removeEmptyUpTo(dir: string, stop: string): Promise<void> {
  for (
    let at = dir;
    at !== stop && !relative(stop, at).startsWith(`..${sep}`) && at !== dirname(at);
    at = dirname(at)
  ) {
    try {
      await rmdir(at);
    } catch {
      return; // not empty
    }
  }
}

// What a skill must look like before it is written.

const MAX_CHARS = 100_000;
const MAX_BYTES = 1024 * 1024;
const MAX_DESCRIPTION = 1024;
const MAX_NEW_DESCRIPTION = 60;
const NAME = /^[a-z0-9][a-z0-9._-]*$/;

/** Why a name cannot be a skill's; null = it can. `what` is "name" or "category". */
export function checkName(name: string, what = "name"): string | null {
  if (name === "") return `${what} is empty.`;
  if (countCodePoints(name) > MAX_NAME) return `${what} is longer than ${MAX_NAME} characters.`;
  if (!NAME.test(name))
    return `${what} '${name}' must be lower case: letters, digits, hyphens, underscores and dots, beginning with a letter or digit.`;
  if (NEVER_ENTERED.has(name)) return `${what} '${name}' is a folder that is never searched for skills.`;
  return null;
}

interface ContentRules {
  /** What the front matter must say. */
  readonly name: string;
  /** A new skill's description must fit the index. */
  readonly isNew: boolean;
}

/** Why a text cannot be this skill's SKILL.md; null = it can. */
export function checkContent(text: string, { name, isNew }: ContentRules): string | null {
  if (text.trim() === "") return "content is empty: give the whole SKILL.md, front matter and body.";
  const { fields, body, present, problem } = parseFrontMatter(text);
  if (problem !== null) return `The front matter cannot be read: ${problem}.`;
  if (!present) return "content must begin with front matter: a line ---, `name:` and `description:`, a line ---.";
  const given = textField(fields.name);
  if (given === "") return "The front matter has no `name`.";
  if (given !== name)
    return `The front matter's name is '${given}', but this skill is '${name}'. They must be the same.`;
  const description = unquote(textField(fields.description));
  const length = countCodePoints(description);
  if (length === 0) return "The front matter has no `description`.";
  if (length > MAX_DESCRIPTION) return `The description has ${length} characters; ${MAX_DESCRIPTION} is the limit.`;
  if (isNew && length > MAX_NEW_DESCRIPTION)
    return `The description of a new skill has at most ${MAX_NEW_DESCRIPTION} characters (it has ${length}): the list of skills shows no more. Say in them when to use the skill; the rest belongs into the body.`;
  if (body.trim() === "") return "The body is empty: write the steps below the front matter.";
  return checkSize(text);
}

export function checkSize(text: string): string | null {
  const length = countCodePoints(text);
  if (length > MAX_CHARS)
    return `The file would have ${length} characters; ${MAX_CHARS} is the limit. Move detail into files below references/.`;
  const bytes = Buffer.byteLength(text);
  return bytes > MAX_BYTES ? `The file would have ${bytes} bytes; ${MAX_BYTES} is the limit.` : null;
}

/** A path that may be written: `SKILL.md`, or a file below one of the support folders. */
export async function writablePath(
  skill: { readonly dir: string; readonly dirName: string },
  given: string,
): Promise<SafePath> {
  const safe = await safePath(skill.dir, given);
  if (safe.type === "refused") return safe;
  if (safe.path === "SKILL.md") return safe;
  if (safe.path === `${skill.dirName}/SKILL.md`) return safePath(skill.dir, "SKILL.md");
  const [first = "", ...rest] = safe.path.split("/");
  if ((SUPPORT_DIRS as readonly string[]).includes(first) && rest.length > 0) return safe;
  return {
    type: "refused",
    reason: `file_path '${given}' must be SKILL.md or a file below ${SUPPORT_DIRS.map((dir) => `${dir}/`).join(", ")}`,
  };
}

export const ACTIONS = ["create", "patch", "edit", "delete", "write_file", "remove_file"] as const;
type Action = (typeof ACTIONS)[number];

export interface ManageRequest {
  readonly action: Action;
  readonly name: string;
  readonly content?: string | undefined;
  readonly old_string?: string | undefined;
  readonly new_string?: string | undefined;
  readonly replace_all?: boolean | undefined;
  readonly category?: string | undefined;
  readonly file_path?: string | undefined;
  readonly file_content?: string | undefined;
  readonly absorbed_into?: string | undefined;
}

interface ManagePorts {
  /** What a run has read itself. */
  readonly views: { wasRead(taskId: string, file: string): boolean };
  /** Looks at a skill that was just written. Absent: nothing is looked at. */
  readonly scan?: GuardScan | undefined;
}

export type GuardScan = (
  skillDir: string,
) => Promise<
  { readonly allowed: true } | { readonly allowed: false; readonly reason: string; readonly report: string }
>;

export interface ManageCall {
  readonly request: ManageRequest;
  readonly context: SkillsContext;
  readonly run: Pick<SkillRun, "origin" | "taskId" | "sessionId"> &
    Partial<Pick<SkillRun, "interactive" | "ask" | "signal" | "foreignText">>;
  readonly ports: ManagePorts;
}

/**
 * A change that passed every check and only has to be made.
 *
 * - `before` and `after` are the text of the file it changes, for showing a diff; null = no such file.
 * - `commit` is all or nothing.
 */
export interface Plan {
  readonly type: "ready";
  readonly file: string;
  readonly before: string | null;
  readonly after: string | null;
  commit(): Promise<SkillResult>;
  /** What the usage file records afterwards. */
  readonly effect: "created" | "patched" | "archived";
  readonly skillName: string;
  readonly skill?: Skill;
}

export type Planned = Plan | { readonly type: "refused"; readonly result: SkillResult };
