// Profiles as .tar.gz files, to carry elsewhere or hand on.

import { chmod, lstat, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { messageOf } from "../kit/errors.ts";
import { FileWriteError, writeFileAtomic } from "../kit/files.ts";
import { editYaml } from "./config/yaml-edit.ts";
import { loadYaml, parseText } from "./config/yaml-text.ts";
import { copyTree, exportFilter, newProfileName } from "./profile-manage.ts";
import { ProfileError, profileDir } from "./profiles.ts";
import { secretPaths } from "./secrets.ts";

/** Writes one profile, without its secrets, as one top directory of its name. Resolves to the settings that were left out as secrets. */
export async function exportProfile(root: string, name: string, file: string): Promise<readonly string[]> {
  const { create } = await import("tar");
  const source = profileDir(root, name);
  const staging = await mkdtemp(join(tmpdir(), "hermes-export-"));
  try {
    await copyTree(source, join(staging, name), exportFilter({ isDefault: source === root }), "skip");
    const leftOut = await removeSecretSettings(join(staging, name, "config.yaml"));
    const archive = create({ gzip: true, cwd: staging, portable: true }, [name]);
    await writeFileAtomic(file, archive, { newMode: 0o600 });
    return leftOut;
  } catch (error) {
    throw error instanceof FileWriteError ? new ProfileError(error.message) : error;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** A key may stand in config.yaml too. What cannot be read cannot be cleaned, so it stays at home. */
async function removeSecretSettings(path: string): Promise<readonly string[]> {
  const text = await readFile(path, "utf8").catch(() => null);
  if (text === null) return [];
  const yaml = await loadYaml();
  const parsed = parseText(yaml, text);
  if (!parsed.ok) {
    await rm(path);
    return ["config.yaml, because it is broken"];
  }
  const secrets = [...secretPaths(parsed.tree)];
  // From the back, so that the numbers of list items before stay what they are.
  const clean = secrets.reduceRight((left, secret) => editYaml(yaml, left, { type: "remove", path: secret }), text);
  if (secrets.length > 0) await writeFile(path, clean);
  return secrets.map((secret) => secret.join("."));
}

/** Makes a profile of an archive; resolves to its name. Nothing of a dubious archive reaches the disk. */
export async function importProfile(root: string, file: string, givenName?: string): Promise<string> {
  const top = await inspect(resolve(file));
  const name = newProfileName(root, givenName ?? top);
  const { extract } = await import("tar");
  const profiles = dirname(profileDir(root, name));
  await mkdir(profiles, { recursive: true, mode: 0o700 });
  const draft = await mkdtemp(join(profiles, ".import-"));
  try {
    await extract({ file: resolve(file), cwd: draft, strict: true, preserveOwner: false, umask: 0o077 });
    await rename(join(draft, top), profileDir(root, name));
    await chmod(profileDir(root, name), 0o700);
    return name;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Reads the whole listing first. Resolves to the one top directory. */
async function inspect(file: string): Promise<string> {
  if (!(await lstat(file).catch(() => null))) throw new ProfileError(`${file} does not exist.`);
  const { list } = await import("tar");
  const tops = new Set<string>();
  let refused: string | null = null;
  try {
    await list({
      file,
      strict: true,
      onReadEntry(entry) {
        refused ??= dubious(entry.path, entry.type);
        const [top = "", ...rest] = entry.path.split("/");
        if (rest.length === 0) refused ??= `${entry.path} is not inside a directory`;
        tops.add(top);
      },
    });
  } catch (error) {
    throw new ProfileError(`${file} cannot be read as a .tar.gz file: ${messageOf(error)}`);
  }
  if (refused !== null) throw new ProfileError(`${file} was rejected: ${refused}.`);
  const [top, ...more] = tops;
  if (top === undefined) throw new ProfileError(`${file} is empty.`);
  if (more.length > 0)
    throw new ProfileError(
      `${file} was rejected: it has more than one top-level directory (${[...tops].slice(0, 3).join(", ")}).`,
    );
  return top;
}

function dubious(path: string, type: string): string | null {
  if (path.startsWith("/") || /^[A-Za-z]:/.test(path) || path.includes("\\")) return `${path} is an absolute path`;
  if (path.split("/").some((part) => part === ".." || part === ".")) return `${path} points outside its directory`;
  if (type === "File" || type === "OldFile" || type === "Directory") return null;
  return `${path} is a ${type}, not a file or directory`;
}
