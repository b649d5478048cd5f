// One file of a skill, replaced, looked at, and put back if the look says no.
import { mkdir, readFile, rm, rmdir } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { writeFileAtomic } from "../../kit/files.ts";
import { reason } from "../open-skill.ts";
import { failure, type SkillResult } from "../run.ts";
import type { GuardScan, ManageCall } from "./request.ts";

/** Null when the file is as wished; else the refusal, and everything is as before. */
export async function writeGuarded(
  skillDir: string,
  path: string,
  text: string,
  call: Pick<ManageCall, "place" | "ports">,
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
  { place, ports }: Pick<ManageCall, "place" | "ports">,
): Promise<SkillResult | null> {
  if (!place.config().skills.guard_agent_created || !ports.scan) return null;
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
