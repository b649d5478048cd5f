// How plugins come into the home and leave it: copied from a folder, or cloned. Nothing of their code runs here.

import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { messageOf, UserError } from "../kit/errors.ts";
import { isRecord } from "../kit/json.ts";
import { describe, type FoundPlugin, SINGLE_CATEGORIES } from "./find.ts";

interface InstallPorts {
  /** `plugins` of the home. */
  readonly folder: string;
  /** Where relative paths begin. */
  readonly cwd: string;
  readonly osHome: string;
  readonly env: Readonly<Record<string, string>>;
  now(): number;
}

interface Installed {
  readonly plugin: FoundPlugin;
  readonly source: string;
  /** The version that was there before. */
  readonly replaced: string | null;
}

const PACKAGE = /^(?:@[\w.-]+\/)?\w[\w.-]*(?:@[\w.^~-]+)?$/;

/** Kept next to the plugin, so that it can be updated from where it came. */
const ORIGIN_FILE = ".hermes-origin.json";

export async function installPlugin(
  source: string,
  { replace }: { readonly replace: boolean },
  ports: InstallPorts,
): Promise<Installed> {
  const address = gitAddress(source);
  const local = address === null ? resolve(ports.cwd, source.replace(/^~(?=\/|$)/, ports.osHome)) : null;
  if (local !== null && !(await isFolder(local))) {
    const npm = PACKAGE.test(source)
      ? ` For an npm package run: npm install --prefix ${resolve(ports.folder, "..")} ${source}`
      : "";
    throw new UserError(`"${source}" is not a folder or a git URL.${npm}`);
  }
  await mkdir(ports.folder, { recursive: true });
  // Next to its final place: moving it there is one step, and half a copy is never taken for a plugin.
  const staged = await mkdtemp(join(ports.folder, ".incoming-"));
  try {
    const repository = local === null ? (address ?? source) : (await isBareRepository(local)) ? local : null;
    const copy = join(staged, repository === null ? basename(local ?? source) : nameOf(repository));
    if (repository !== null) await clone(repository, copy, ports);
    else
      await cp(local ?? source, copy, {
        recursive: true,
        verbatimSymlinks: true,
        filter: (path) => basename(path) !== ".git",
      });
    const plugin = await describe(copy, { source: "home", category: null });
    if (!plugin) throw new UserError(`"${source}" contains no plugin: plugin.yaml is missing.`);
    if (plugin.problem !== null) throw new UserError(`"${source}" cannot be installed: ${plugin.problem}.`);
    const origin = { source: local ?? source, installed_at: new Date(ports.now()).toISOString() };
    await writeFile(join(copy, ORIGIN_FILE), `${JSON.stringify(origin, null, 2)}\n`);
    return { ...(await moveIn(plugin, copy, replace, ports)), source: local ?? source };
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() === true; // nothing there is no folder
}

/** A repository without files of its own, as `git init --bare` and `git clone --bare` make them. */
async function isBareRepository(folder: string): Promise<boolean> {
  const isHead = (await stat(join(folder, "HEAD")).catch(() => null))?.isFile() === true; // not there: no repository
  return isHead && (await isFolder(join(folder, "objects"))) && (await isFolder(join(folder, "refs")));
}

async function moveIn(plugin: FoundPlugin, copy: string, replace: boolean, ports: InstallPorts) {
  const target = join(ports.folder, plugin.manifest.name.replaceAll(/[^\w.-]/g, "-"));
  const before = await describe(target, { source: "home", category: null });
  const taken = (await stat(target).catch(() => null)) !== null;
  // A category with plugins of its own looks like this; it must not go with one that takes its name.
  if (basename(target) in SINGLE_CATEGORIES || (taken && !before)) {
    throw new UserError(
      `A plugin cannot be named "${plugin.manifest.name}" here: ${target} is for other plugins. Change the name in its plugin.yaml.`,
    );
  }
  if (taken && !replace) {
    throw new UserError(
      `${plugin.manifest.name} ${before?.manifest.version ?? ""} is already installed. "hermes plugins update ${plugin.manifest.name}" updates it; --force replaces it.`,
    );
  }
  const old = join(copy, "..", ".before");
  if (taken) await rename(target, old);
  try {
    await rename(copy, target);
  } catch (error) {
    if (taken) await rename(old, target);
    throw error;
  }
  const placed = await describe(target, { source: "home", category: null });
  return { plugin: placed ?? plugin, replaced: taken ? (before?.manifest.version ?? "") : null };
}

/** Where an installed plugin came from; null when it was put there by hand. */
export async function originOf(folder: string): Promise<string | null> {
  try {
    const origin: unknown = JSON.parse(await readFile(join(folder, ORIGIN_FILE), "utf8"));
    return isRecord(origin) && typeof origin.source === "string" ? origin.source : null;
  } catch {
    return null; // nothing was written down
  }
}

export async function removePlugin(plugin: FoundPlugin): Promise<void> {
  await rm(plugin.folder, { recursive: true, force: true });
}

async function clone(address: string, target: string, { folder, env }: InstallPorts): Promise<void> {
  try {
    await git(["clone", "--quiet", "--depth", "1", "--", address, target], { cwd: folder, env });
    await rm(join(target, ".git"), { recursive: true, force: true });
  } catch (error) {
    throw new UserError(`${address} could not be cloned: ${messageOf(error)}`);
  }
}

/** The address git is given; null when the text is not an address. `github:owner/name` is short for one. */
function gitAddress(source: string): string | null {
  if (/^(?:(?:https?|ssh|git):\/\/[^/]|file:\/\/)/.test(source) || /^[\w.-]+@[\w.-]+:/.test(source)) return source;
  if (/^github:[\w.-]+\/[\w.-]+$/.test(source)) return `https://github.com/${source.slice("github:".length)}.git`;
  return null;
}

function nameOf(address: string): string {
  const last =
    address
      .replace(/(?<!\/)\/+$/, "")
      .replace(/\.git$/, "")
      .split(/[/:]/)
      .at(-1) ?? "";
  return /^[\w.-]+$/.test(last) && !last.startsWith(".") ? last : "plugin";
}

/** Runs git without a shell and without ever asking for a password. Rejects with what it said. */
function git(
  args: readonly string[],
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<string> {
  return new Promise((resolve, reject) => {
    // `ext::` and the like are programs in the shape of an address.
    const safe = ["-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", ...args];
    const env = { ...options.env, GIT_TERMINAL_PROMPT: "0" };
    const child = spawn("git", safe, { cwd: options.cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    child.on("error", (error) => reject(new Error(`git could not be started: ${error.message}`)));
    child.on("close", (code) => {
      if (code === 0) resolve(out);
      else reject(new Error(reasonIn(said) ?? `git ended with code ${code}`));
    });
  });
}

/** What git calls fatal; advice for people at a terminal follows it. */
function reasonIn(said: string): string | null {
  const lines = said.split("\n").filter((line) => line.trim() !== "");
  return lines.find((line) => /^(?:fatal|error):/.test(line)) ?? lines.at(-1) ?? null;
}
