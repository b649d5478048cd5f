// Looking at profiles, and moving or removing them.
import { access, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { writeFileAtomic } from "../kit/files.ts";
import { isMapping } from "./config/decode.ts";
import { normalise } from "./config/normalise.ts";
import { loadYaml, parseText, type Tree } from "./config/yaml-text.ts";
import { newProfileName } from "./profile-create.ts";
import { removeWrapper, type WrapperPlace, wrappersOf, writeWrapper } from "./profile-wrapper.ts";
import { ProfileError, profileDir, profileExists, profileName, stickyProfile } from "./profiles.ts";

export interface ProfileFacts {
  readonly name: string;
  readonly path: string;
  readonly model: string;
  readonly provider: string;
  /** Process id of its running gateway. */
  readonly gatewayPid: number | null;
  readonly skills: number;
  readonly hasEnv: boolean;
  readonly hasSoul: boolean;
  readonly aliases: readonly string[];
  readonly distribution: string;
}

/** An existing profile by the name the user typed, or a `ProfileError`. */
export function existingProfile(root: string, given: string): string {
  const name = profileName(given);
  if (name !== null && profileExists(root, name)) return name;
  throw new ProfileError(`Profile '${given}' does not exist. "hermes profile list" shows those that do.`);
}

export async function listProfileNames(root: string): Promise<string[]> {
  const entries = await readdir(join(root, "profiles"), { withFileTypes: true }).catch(() => []);
  const names = entries.filter((entry) => entry.isDirectory() && profileName(entry.name) === entry.name);
  return ["default", ...names.map((entry) => entry.name).sort()];
}

export async function profileFacts(root: string, name: string, place: WrapperPlace): Promise<ProfileFacts> {
  const path = profileDir(root, name);
  const { model } = normalise(await readYaml(join(path, "config.yaml")));
  const section = isMapping(model) ? model : {};
  return {
    name,
    path,
    model: textOr(section.default, ""),
    provider: textOr(section.provider, ""),
    gatewayPid: await runningGateway(path),
    skills: await countSkills(join(path, "skills")),
    hasEnv: await exists(join(path, ".env")),
    hasSoul: await exists(join(path, "SOUL.md")),
    aliases: await wrappersOf(name, place),
    distribution: textOr((await readYaml(join(path, "distribution.yaml"))).name, ""),
  };
}

/** Chooses the profile that commands without `-p` use. */
export async function useProfile(root: string, name: string): Promise<void> {
  if (name === "default") await rm(join(root, "active_profile"), { force: true });
  else await writeFileAtomic(join(root, "active_profile"), `${name}\n`);
}

/** Moves a profile with its wrappers and the sticky pointer. Its gateway must not be running. */
export async function renameProfile(root: string, from: string, given: string, place: WrapperPlace): Promise<string> {
  refuseDefault(from, "renamed");
  const to = newProfileName(root, given);
  await refuseRunning(root, from);
  const aliases = await wrappersOf(from, place);
  await rename(profileDir(root, from), profileDir(root, to));
  if (stickyProfile(root) === from) await useProfile(root, to);
  for (const alias of aliases) {
    await removeWrapper(from, alias, place);
    await writeWrapper(to, alias === from ? to : alias, place);
  }
  return to;
}

/** Removes a profile with everything in it, its wrappers and the sticky pointer to it. Its gateway must not be running. */
export async function deleteProfile(root: string, name: string, place: WrapperPlace): Promise<void> {
  refuseDefault(name, "deleted");
  await refuseRunning(root, name);
  for (const alias of await wrappersOf(name, place)) await removeWrapper(name, alias, place);
  if (stickyProfile(root) === name) await useProfile(root, "default");
  await rm(profileDir(root, name), { recursive: true });
}

function refuseDefault(name: string, done: string): void {
  if (name === "default") throw new ProfileError(`The default profile cannot be ${done}.`);
}

async function refuseRunning(root: string, name: string): Promise<void> {
  const pid = await runningGateway(profileDir(root, name));
  if (pid === null) return;
  throw new ProfileError(`The gateway of profile '${name}' is running (process ${pid}). Stop it first.`);
}

export async function runningGateway(dir: string): Promise<number | null> {
  const text = await readFile(join(dir, "gateway.pid"), "utf8").catch(() => "");
  const pid = Number(/"pid"\s*:\s*(\d+)/.exec(text)?.[1] ?? text.trim());
  if (!Number.isInteger(pid) || pid <= 0) return null;
  try {
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM" ? pid : null;
  }
}

async function readYaml(path: string): Promise<Tree> {
  const text = await readFile(path, "utf8").catch(() => null);
  if (text === null) return {};
  const parsed = parseText(await loadYaml(), text);
  return parsed.ok ? parsed.tree : {};
}

async function countSkills(dir: string): Promise<number> {
  const files = await readdir(dir, { recursive: true }).catch(() => []);
  return files.filter((file) => basename(file) === "SKILL.md").length;
}

function textOr(value: unknown, fallback: string): string {
  return typeof value === "string" ? value : fallback;
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
