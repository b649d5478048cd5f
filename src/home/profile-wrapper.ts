// Small commands in ~/.local/bin that start a profile by its name.
import { access, chmod, constants, lstat, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { writeFileAtomic } from "../kit/files.ts";

export interface WrapperPlace {
  /** The user's own home directory. */
  readonly osHome: string;
  /** The PATH variable. */
  readonly path: string;
  readonly platform?: NodeJS.Platform;
}

export function wrapperDir({ osHome }: WrapperPlace): string {
  return join(osHome, ".local", "bin");
}

export function wrapperDirOnPath(place: WrapperPlace): boolean {
  return place.path.split(delimiter).includes(wrapperDir(place));
}

const fileName = (alias: string, { platform = process.platform }: WrapperPlace) =>
  platform === "win32" ? `${alias}.cmd` : alias;

function wrapperText(profile: string, { platform = process.platform }: WrapperPlace): string {
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
  place: WrapperPlace,
): Promise<{ readonly path: string } | { readonly refused: string }> {
  if (ownWords.has(alias)) return { refused: `"${alias}" is a word of hermes itself` };
  const path = join(wrapperDir(place), fileName(alias, place));
  if ((await profileOf(path)) === null) {
    if (await isThere(path)) return { refused: `${path} is another program` };
    const other = await findOnPath(alias, place);
    if (other !== null) return { refused: `${other} is another program of that name` };
  }
  await mkdir(wrapperDir(place), { recursive: true });
  await writeFileAtomic(path, wrapperText(profile, place), { mode: 0o755 });
  await chmod(path, 0o755);
  return { path };
}

/** Every wrapper of a profile, by alias. */
export async function wrappersOf(profile: string, place: WrapperPlace): Promise<string[]> {
  const names = await readdir(wrapperDir(place)).catch(() => []);
  const found: string[] = [];
  for (const name of names.sort()) {
    if ((await profileOf(join(wrapperDir(place), name))) === profile) found.push(name.replace(/\.cmd$/, ""));
  }
  return found;
}

/** Removes a wrapper if it is one of that profile; resolves to whether it did. */
export async function removeWrapper(profile: string, alias: string, place: WrapperPlace): Promise<boolean> {
  const path = join(wrapperDir(place), fileName(alias, place));
  if ((await profileOf(path)) !== profile) return false;
  await rm(path);
  return true;
}

/** The profile a file starts, or null when it is no wrapper of ours. */
async function profileOf(path: string): Promise<string | null> {
  const stat = await lstat(path).catch(() => null);
  if (!stat?.isFile() || stat.size > 300) return null;
  const text = await readFile(path, "utf8");
  return /^(?:exec )?hermes -p ([a-z0-9_-]+) (?:"\$@"|%\*)\s*$/m.exec(text)?.[1] ?? null;
}

async function findOnPath(name: string, { path }: WrapperPlace): Promise<string | null> {
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
