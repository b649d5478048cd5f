// A new profile: empty, with another one's settings, or a copy of it.
import { access, chmod, copyFile, cp, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { renderPair } from "./config/yaml-render.ts";
import { cloneFilter, copyTree } from "./profile-tree.ts";
import { ProfileError, profileDir, profileExists, profileName } from "./profiles.ts";
import { DEFAULT_IDENTITY } from "./soul.ts";

export interface CreateProfileOptions {
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
      `"${given}" is not a profile name: use a-z, 0-9, - and _, at most 64, and begin with a letter or digit.`,
    );
  }
  if (reserved.has(name)) throw new ProfileError(`"${name}" is reserved; choose another name.`);
  if (profileExists(root, name)) throw new ProfileError(`Profile '${name}' exists already: ${profileDir(root, name)}`);
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
  await writeIfAbsent(join(dir, ".env"), "");
  if (!withSkills) await writeIfAbsent(join(dir, ".no-bundled-skills"), "");
  if (description)
    await writeFile(join(dir, "profile.yaml"), `${renderPair("description", description, "").join("\n")}\n`);
}

async function writeIfAbsent(path: string, text: string): Promise<void> {
  if (!(await exists(path))) await writeFile(path, text, { mode: 0o600, flag: "wx" });
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
