// Libraries that platforms talk through. They are not part of the program: `hermes gateway setup` installs those of a platform into the
// home, next to an entry of ours that imports them from there. All profiles share them.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { installByHand, npmInstall } from "../../home/npm-install.ts";
import type { OpenHome } from "../../home/open.ts";
import { installRoot, profileCommand } from "../../home/paths.ts";
import { codeOf, messageOf, UserError } from "../../kit/errors.ts";
import { asRecord, parseJson } from "../../kit/json.ts";
import { type PlatformEntry, PlatformError } from "./contract.ts";

type Platform = Pick<PlatformEntry, "name" | "label" | "packages">;
type Home = Pick<OpenHome, "paths">;

/** Names are resolved from where this file is. */
const ENTRY = { "entry.mjs": "export const load = (name) => import(name);\n" };

const folderOf = ({ paths }: Home, { name }: Platform) => join(paths.root, "packages", name);

/** `AdapterHost.package`: from beside the program, else from the home; a `PlatformError` that says how to install it otherwise. */
export async function loadPackage<T>(platform: Platform, name: string, load: () => Promise<T>, home: Home): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (codeOf(error) !== "ERR_MODULE_NOT_FOUND") throw error;
  }
  const wanted = platform.packages?.[name];
  const found = await installedVersion(home, platform, name);
  const install = `install it with: ${profileCommand(home.paths, `gateway setup ${platform.name}`)}`;
  const missing = (what: string, cause?: unknown) =>
    new PlatformError("package_missing", `${what}; ${install}`, { retryable: false, cause });
  if (found === null) throw missing(`the package ${name} is not installed`);
  if (found !== wanted)
    throw missing(`the package ${name} is installed as ${found}, and ${wanted ?? "none"} is needed`);
  try {
    return (await fromHome(home, platform, name)) as T; // the package that `load` imports, from another place
  } catch (error) {
    throw missing(`the package ${name} cannot be loaded (${messageOf(error)})`, error);
  }
}

async function fromHome(home: Home, platform: Platform, name: string): Promise<unknown> {
  return (await import(pathToFileURL(join(folderOf(home, platform), "entry.mjs")).href)).load(name);
}

/** Packages that `loadPackage` would not find, or could not load. */
export async function missingPackages(platform: Platform, home: Home): Promise<readonly string[]> {
  const found = await Promise.all(
    Object.entries(platform.packages ?? {}).map(async ([name, version]) =>
      isBesideProgram(name) || (await isUsable(home, platform, name, version)) ? [] : [name],
    ),
  );
  return found.flat();
}

/** Installs what is missing; nothing to do is fine. Throws a `UserError` that says how to do it by hand. */
export async function installPackages(
  platform: Platform,
  home: Pick<OpenHome, "paths" | "env">,
  notify: (text: string) => void,
): Promise<void> {
  const { packages = {} } = platform;
  const missing = await missingPackages(platform, home);
  if (missing.length === 0) return;
  const folder = folderOf(home, platform);
  notify(`installing ${missing.join(", ")} into ${folder}`);
  const outcome = await npmInstall({ folder, packages, files: ENTRY, env: home.env });
  if (outcome.type === "installed") return;
  const why =
    outcome.type === "no npm" ? "npm, which installs them, is not on the PATH" : `npm failed: ${outcome.reason}`;
  throw new UserError(
    `The packages of ${platform.label} were not installed: ${why}. Install npm or fix its network, then run "${profileCommand(home.paths, `gateway setup ${platform.name}`)}" again; or next to the program: ${installByHand(installRoot(), packages)}`,
  );
}

async function isUsable(home: Home, platform: Platform, name: string, version: string): Promise<boolean> {
  if ((await installedVersion(home, platform, name)) !== version) return false;
  return fromHome(home, platform, name).then(
    () => true,
    () => false,
  );
}

async function installedVersion(home: Home, platform: Platform, name: string): Promise<string | null> {
  const file = join(folderOf(home, platform), "node_modules", name, "package.json");
  const text = await readFile(file, "utf8").catch(() => null);
  const { version } = asRecord(text === null ? null : parseJson(text));
  return typeof version === "string" ? version : null;
}

/** A clone for development has them, or the user installed them next to Hermes. */
function isBesideProgram(name: string): boolean {
  try {
    createRequire(join(installRoot(), "package.json")).resolve(name);
    return true;
  } catch (error) {
    return codeOf(error) !== "MODULE_NOT_FOUND"; // one that can only be imported is there too
  }
}
