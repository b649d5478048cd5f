// Profiles: names, where they live, and which one a command line means.

import { existsSync, readFileSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { UserError } from "../kit/errors.ts";
import { isRecord, parseJson } from "../kit/json.ts";
import { isSameProcess } from "../kit/pid.ts";
import { type HomeLocation, type HomePaths, homePaths, profileOf, resolveHomeDir, rootOf } from "./paths.ts";

/** A profile that cannot be used as asked, in words for the user. */
export class ProfileError extends UserError {
  override name = "ProfileError";
}

/** The name as it is stored, or null when it is not one. */
export function profileName(given: string): string | null {
  const name = given.trim().toLowerCase();
  return /^[a-z0-9][a-z0-9_-]{0,63}$/.test(name) ? name : null;
}

export function profileDir(root: string, name: string): string {
  return name === "default" ? root : join(root, "profiles", name);
}

export function profileExists(root: string, name: string): boolean {
  return name === "default" || (statSync(profileDir(root, name), { throwIfNoEntry: false })?.isDirectory() ?? false);
}

/** The profile used when a command names none, or null. */
export function stickyProfile(root: string): string | null {
  const path = join(root, "active_profile");
  if (!existsSync(path)) return null;
  const name = profileName(readFileSync(path, "utf8").replace(/^\ufeff/, ""));
  return name === "default" ? null : name;
}

interface ProfileSelection {
  readonly paths: HomePaths;
  /** The arguments without the profile. */
  readonly argv: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Which home these arguments mean. Nothing else has been read yet: no settings, no log.
 * Throws `ProfileError` when a named profile does not exist.
 */
export function selectProfile(start: HomeLocation & { readonly argv: readonly string[] }): ProfileSelection {
  const given = resolveHomeDir(start);
  const root = rootOf(given, start);
  const { name, argv } = takeProfileOption(start.argv);
  const at = (dir: string, warnings: readonly string[] = []): ProfileSelection => ({
    paths: homePaths(dir, root, profileOf(dir, root)),
    argv,
    warnings,
  });

  if (name !== null) {
    if (profileExists(root, name)) return at(profileDir(root, name));
    throw new ProfileError(`Profile '${name}' does not exist. Create it with: hermes profile create ${name}`);
  }
  if (start.env.HERMES_HOME?.trim() && basename(dirname(given)) === "profiles") return at(given);
  const sticky = stickyProfile(root);
  if (sticky === null) return at(given === root ? root : given);
  if (profileExists(root, sticky)) return at(profileDir(root, sticky));
  return at(root, [
    `The active profile '${sticky}' no longer exists; using the default one. Choose another with: hermes profile use NAME`,
  ]);
}

// Options that take the next word, unless that is the option for the profile itself.
const takesValue = new Set(
  `-z --oneshot -q --query -m --model --provider -t --toolsets -s --skills -r --resume --image --max-turns --source --reasoning
  --usage-file --name --description --clone-from --title`.split(/\s+/),
);

/** Finds and removes `-p NAME`, `--profile NAME` and `--profile=NAME`; the first one counts. */
function takeProfileOption(argv: readonly string[]): { name: string | null; argv: string[] } {
  let name: string | null = null;
  const rest: string[] = [];
  const words: string[] = [];
  const isTwo = (...commands: string[]) => commands.includes(words.slice(0, 2).join(" "));
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? "";
    const foreign = word.startsWith("-")
      ? word === "--args" && isTwo("mcp add")
      : isTwo("safety check", "approvals test");
    if (word === "--" || foreign) {
      rest.push(...argv.slice(index));
      break;
    }
    const joined = word.startsWith("--profile=");
    const value = joined
      ? word.slice("--profile=".length)
      : word === "-p" || word === "--profile"
        ? argv[index + 1]
        : undefined;
    const found = value === undefined ? null : profileName(value);
    if (found !== null) {
      name ??= found;
      if (!joined) index++;
      continue;
    }
    rest.push(word);
    if (!word.startsWith("-")) words.push(word);
    const next = argv[index + 1];
    if (takesValue.has(word) && next !== undefined && !/^(?:-p|--profile(?:=.*)?)$/s.test(next)) {
      rest.push(next);
      index++;
    }
  }
  return { name, argv: rest };
}

/** The process id of the gateway of a home; null when none is running. */
export async function runningGateway(dir: string): Promise<number | null> {
  return (await gatewayProcess(dir))?.pid ?? null;
}

/** The process that `gateway.pid` names, if it still is that one. Older files hold nothing but the number. */
export async function gatewayProcess(
  dir: string,
): Promise<{ readonly pid: number; readonly startTime: number | null } | null> {
  const text = await readFile(join(dir, "gateway.pid"), "utf8").catch(() => "");
  const record = parseJson(text);
  const facts = isRecord(record) ? record : { pid: record };
  const pid = Number(facts.pid);
  const startTime = typeof facts.start_time === "number" ? facts.start_time : null;
  if (!Number.isInteger(pid) || pid <= 0) return null;
  return (await isSameProcess(pid, startTime)) ? { pid, startTime } : null;
}
