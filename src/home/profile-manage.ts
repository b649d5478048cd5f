// Looking at profiles, and moving or removing them.

import {
  access,
  chmod,
  constants,
  copyFile,
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { basename, delimiter, join } from "node:path";
import { messageOf } from "../kit/errors.ts";
import { exists, writeFileAtomic } from "../kit/files.ts";
import { isMapping, normalise } from "./config/decode.ts";
import { NEW_CONFIG } from "./config/schema.ts";
import { loadYaml, parseText, renderBlock, renderPair, type Tree } from "./config/yaml-text.ts";
import { DEFAULT_IDENTITY } from "./paths.ts";
import { ProfileError, profileDir, profileExists, profileName, runningGateway, stickyProfile } from "./profiles.ts";

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
  throw new ProfileError(`Profile '${given}' does not exist. "hermes profile list" shows the profiles.`);
}

export async function listProfileNames(root: string): Promise<string[]> {
  const entries = await readdir(join(root, "profiles"), { withFileTypes: true }).catch(() => []);
  const names = entries.filter((entry) => entry.isDirectory() && profileName(entry.name) === entry.name);
  return ["default", ...names.map((entry) => entry.name).sort()];
}

/** What each profile is for, as its owner wrote it down; empty where nobody did. */
export async function describedProfiles(
  root: string,
): Promise<readonly { readonly name: string; readonly description: string }[]> {
  const names = await listProfileNames(root);
  return Promise.all(
    names.map(async (name) => {
      const { description } = await readYaml(join(profileDir(root, name), "profile.yaml"));
      return { name, description: textOr(description, "") };
    }),
  );
}

/** Other facts in the file stay. */
export async function describeProfile(root: string, name: string, description: string): Promise<void> {
  const path = join(profileDir(root, name), "profile.yaml");
  const facts = { ...(await readYaml(path)), description };
  await writeFileAtomic(path, `${renderBlock(facts, "").join("\n")}\n`, { mode: 0o600 });
}

export async function profileFacts(root: string, name: string, context: WrapperContext): Promise<ProfileFacts> {
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
    aliases: await wrappersOf(name, context),
    distribution: textOr((await readYaml(join(path, "distribution.yaml"))).name, ""),
  };
}

/** Chooses the profile that commands without `-p` use. */
export async function useProfile(root: string, name: string): Promise<void> {
  if (name === "default") await rm(join(root, "active_profile"), { force: true });
  else await writeFileAtomic(join(root, "active_profile"), `${name}\n`);
}

/** Moves a profile with its wrappers and the sticky pointer. Its gateway must not be running. */
export async function renameProfile(
  root: string,
  from: string,
  given: string,
  context: WrapperContext,
): Promise<string> {
  refuseDefault(from, "renamed");
  const to = newProfileName(root, given);
  await refuseRunning(root, from);
  const aliases = await wrappersOf(from, context);
  await rename(profileDir(root, from), profileDir(root, to));
  if (stickyProfile(root) === from) await useProfile(root, to);
  for (const alias of aliases) {
    await removeWrapper(from, alias, context);
    await writeWrapper(to, alias === from ? to : alias, context);
  }
  return to;
}

/** Removes a profile with everything in it, its wrappers and the sticky pointer to it. Its gateway must not be running. */
export async function deleteProfile(root: string, name: string, context: WrapperContext): Promise<void> {
  refuseDefault(name, "deleted");
  await refuseRunning(root, name);
  for (const alias of await wrappersOf(name, context)) await removeWrapper(name, alias, context);
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

// A new profile: empty, with another one's settings, or a copy of it.

interface CreateProfileOptions {
  readonly root: string;
  readonly name: string;
  /** Nothing, settings and knowledge, or everything but history. */
  readonly copy: "nothing" | "settings" | "everything";
  /** The profile copied from. */
  readonly from: string;
  readonly withSkills: boolean;
  readonly description?: string;
}

const reserved = new Set(["hermes", "default", "test", "tmp", "root", "sudo"]);
const directories = [
  "memories",
  "sessions",
  "skills",
  "plugins",
  "skins",
  "logs",
  "plans",
  "workspace",
  "cron",
  "home",
];

/** The name of a profile that is about to be made, or a `ProfileError` that says why not. */
export function newProfileName(root: string, given: string): string {
  const name = profileName(given);
  if (name === null) {
    throw new ProfileError(
      `"${given}" is not a profile name: use a-z, 0-9, - and _, at most 64 characters, starting with a letter or digit.`,
    );
  }
  if (reserved.has(name)) throw new ProfileError(`"${name}" is reserved; choose another name.`);
  if (profileExists(root, name)) throw new ProfileError(`Profile '${name}' already exists: ${profileDir(root, name)}`);
  return name;
}

/** Makes the profile and resolves to its directory. It appears whole or not at all. */
export async function createProfile(options: CreateProfileOptions): Promise<string> {
  const { root, copy } = options;
  const name = newProfileName(root, options.name);
  if (copy !== "nothing" && !profileExists(root, options.from)) {
    throw new ProfileError(`Profile '${options.from}' does not exist; there is nothing to clone.`);
  }
  if (copy !== "nothing" && !options.withSkills) throw new ProfileError("--no-skills cannot be combined with cloning.");

  const target = profileDir(root, name);
  const draft = join(root, "profiles", `.${name}.${process.pid}.tmp`);
  try {
    await rm(draft, { recursive: true, force: true });
    await mkdir(draft, { recursive: true, mode: 0o700 });
    const source = profileDir(root, options.from);
    if (copy === "everything") await copyTree(source, draft, cloneFilter({ isDefault: source === root }), "keep");
    if (copy === "settings") await copySettings(source, draft);
    await fillIn(draft, options);
    await rename(draft, target);
    return target;
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
}

async function copySettings(source: string, target: string): Promise<void> {
  await mkdir(join(target, "memories"), { mode: 0o700 });
  for (const name of ["config.yaml", ".env", "SOUL.md", "memories/MEMORY.md", "memories/USER.md"]) {
    if (!(await exists(join(source, name)))) continue;
    await copyFile(join(source, name), join(target, name));
    await chmod(join(target, name), 0o600);
  }
  if (await exists(join(source, "skills"))) {
    await cp(join(source, "skills"), join(target, "skills"), { recursive: true, verbatimSymlinks: true });
  }
}

async function fillIn(dir: string, { withSkills, description }: CreateProfileOptions): Promise<void> {
  for (const name of directories) await mkdir(join(dir, name), { recursive: true, mode: 0o700 });
  await writeIfAbsent(join(dir, "SOUL.md"), `${DEFAULT_IDENTITY}\n`);
  await writeIfAbsent(join(dir, "config.yaml"), NEW_CONFIG);
  await writeIfAbsent(join(dir, ".env"), "");
  if (!withSkills) await writeIfAbsent(join(dir, ".no-bundled-skills"), "");
  if (description)
    await writeFile(join(dir, "profile.yaml"), `${renderPair("description", description, "").join("\n")}\n`);
}

async function writeIfAbsent(path: string, text: string): Promise<void> {
  if (!(await exists(path))) await writeFile(path, text, { mode: 0o600, flag: "wx" });
}

// Small commands in ~/.local/bin that start a profile by its name.

export interface WrapperContext {
  /** The user's own home directory. */
  readonly osHome: string;
  /** The PATH variable. */
  readonly path: string;
  readonly platform?: NodeJS.Platform;
}

export function wrapperDir({ osHome }: WrapperContext): string {
  return join(osHome, ".local", "bin");
}

export function wrapperDirOnPath(context: WrapperContext): boolean {
  return context.path.split(delimiter).includes(wrapperDir(context));
}

const fileName = (alias: string, { platform = process.platform }: WrapperContext) =>
  platform === "win32" ? `${alias}.cmd` : alias;

function wrapperText(profile: string, { platform = process.platform }: WrapperContext): string {
  if (platform === "win32") return `@echo off\r\nhermes -p ${profile} %*\r\n`;
  return `#!/bin/sh\nexec hermes -p ${profile} "$@"\n`;
}

// A wrapper with the name of a command would be mistaken for it; the list has all commands, also those to come.
const ownWords = new Set(
  `hermes default test tmp root sudo acp approvals auth backup batch bundles chat checkpoints completion config cron curator dashboard
  doctor dump fallback gateway hooks import insights kanban login logout logs mcp memory model pairing plugins profile prompt
  prompt-size safety send sessions setup skills status tools uninstall update usage version webhook`.split(/\s+/),
);

/** Writes the wrapper; resolves to its path, or to why it was not written. */
export async function writeWrapper(
  profile: string,
  alias: string,
  context: WrapperContext,
): Promise<{ readonly path: string } | { readonly refused: string }> {
  if (ownWords.has(alias)) return { refused: `"${alias}" is a hermes command` };
  const path = join(wrapperDir(context), fileName(alias, context));
  if ((await profileOf(path)) === null) {
    if (await isThere(path)) return { refused: `${path} is another program` };
    const other = await findOnPath(alias, context);
    if (other !== null) return { refused: `${other} is another program with that name` };
  }
  await mkdir(wrapperDir(context), { recursive: true });
  await writeFileAtomic(path, wrapperText(profile, context), { mode: 0o755 });
  await chmod(path, 0o755);
  return { path };
}

/** Every wrapper of a profile, by alias. */
export async function wrappersOf(profile: string, context: WrapperContext): Promise<string[]> {
  const names = await readdir(wrapperDir(context)).catch(() => []);
  const found: string[] = [];
  for (const name of names.sort()) {
    if ((await profileOf(join(wrapperDir(context), name))) === profile) found.push(name.replace(/\.cmd$/, ""));
  }
  return found;
}

/** Wrappers that start a profile of this root which is not there any more. */
export async function orphanWrappers(
  root: string,
  context: WrapperContext,
): Promise<{ readonly alias: string; readonly profile: string; readonly path: string }[]> {
  const names = await readdir(wrapperDir(context)).catch(() => []);
  const found = await Promise.all(
    names.sort().map(async (name) => {
      const path = join(wrapperDir(context), name);
      const profile = await profileOf(path);
      const isOrphan = profile !== null && profile !== "default" && !profileExists(root, profile);
      return isOrphan ? [{ alias: name.replace(/\.cmd$/, ""), profile, path }] : [];
    }),
  );
  return found.flat();
}

/** Removes a wrapper if it is one of that profile; resolves to whether it did. */
export async function removeWrapper(profile: string, alias: string, context: WrapperContext): Promise<boolean> {
  const path = join(wrapperDir(context), fileName(alias, context));
  if ((await profileOf(path)) !== profile) return false;
  await rm(path);
  return true;
}

/** The profile a file starts, or null when it is not a wrapper of ours. */
async function profileOf(path: string): Promise<string | null> {
  const stat = await lstat(path).catch(() => null);
  if (!stat?.isFile() || stat.size > 300) return null;
  const text = await readFile(path, "utf8");
  return /^(?:exec )?hermes -p ([a-z0-9_-]+) (?:"\$@"|%\*)\s*$/m.exec(text)?.[1] ?? null;
}

async function findOnPath(name: string, { path }: WrapperContext): Promise<string | null> {
  for (const dir of path.split(delimiter)) {
    if (
      dir !== "" &&
      (await access(join(dir, name), constants.X_OK).then(
        () => true,
        () => false,
      ))
    )
      return join(dir, name);
  }
  return null;
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) !== null;
}

// Copying homes: which parts go along, and how.

/** Decides about one entry; `path` is relative to the home, with forward slashes. */
type TreeFilter = (path: string) => boolean;

const history = new Set(["sessions", "backups", "state-snapshots", "checkpoints"]);
const caches = new Set(
  `cache image_cache audio_cache video_cache document_cache browser_screenshots temp_vision_images models_dev_cache.json
  provider_models_cache.json context_length_cache.yaml .update_check .skills_prompt_snapshot.json`.split(/\s+/),
);
const runtime = new Set(["gateway.pid", "gateway.lock", "gateway_state.json", "processes.json", "auth.lock"]);
const program = new Set(["hermes-agent", ".worktrees", "profiles", "bin", "node_modules", "active_profile"]);

/** What belongs to a running process or is a leftover: never copied. */
function isTransient(path: string): boolean {
  return (
    runtime.has(path) || /(?:\.sock|\.tmp|\.lock\.db|-wal|-shm|-journal)$/.test(path) || basename(path) === ".lock.db"
  );
}

const top = (path: string) => path.split("/", 1)[0] ?? path;

/** A full copy for a new profile: everything but history, caches and what only the default home has. */
function cloneFilter(source: { readonly isDefault: boolean }): TreeFilter {
  return (path) => {
    const name = top(path);
    if (isTransient(path) || history.has(name) || caches.has(name) || name.startsWith("state.db")) return false;
    return !(source.isDefault && program.has(name));
  };
}

/** An export: no secrets; of the default home also no databases, logs, caches, history or other profiles. */
export function exportFilter(source: { readonly isDefault: boolean }): TreeFilter {
  return (path) => {
    const name = top(path);
    if (isTransient(path) || /^(?:\.env|auth\.json|config\.yaml\.)/.test(name) || name === "mcp-tokens") return false;
    if (!source.isDefault) return true;
    return !(
      program.has(name) ||
      history.has(name) ||
      caches.has(name) ||
      name === "logs" ||
      name === ".hermes_history" ||
      /\.db$/.test(path)
    );
  };
}

const secretFiles = new Set([".env", "auth.json"]);

/** Copies a tree. Databases go through SQLite, so that one in use arrives whole; secrets arrive private whatever they were. */
export async function copyTree(
  from: string,
  to: string,
  filter: TreeFilter,
  links: "keep" | "skip",
  below = "",
): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (!filter(path)) continue;
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) await copyTree(source, target, filter, links, path);
    else if (entry.isSymbolicLink()) {
      if (links === "keep") await symlink(await readlink(source), target);
    } else if (entry.isFile()) {
      await copyOne(source, target);
      if (secretFiles.has(path)) await chmod(target, 0o600);
    }
  }
}

async function copyOne(source: string, target: string): Promise<void> {
  if (source.endsWith(".db") && (await lstat(source)).size > 0) {
    const { DatabaseSync, backup } = await import("node:sqlite");
    const database = new DatabaseSync(source, { readOnly: true, timeout: 10_000 });
    try {
      await backup(database, target);
    } catch (error) {
      throw new ProfileError(`Cannot copy ${source}: ${messageOf(error)}`);
    } finally {
      database.close();
    }
    return;
  }
  await copyFile(source, target);
}
