// Brings a clone to the point where everything runs: packages installed, a new enough Node found.
// Runs on Node 18+, prints to stderr, and takes a few milliseconds when there is nothing to do.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, "node_modules");
const marker = join(modules, ".hermes-setup");
const cache = join(root, ".cache");
const lock = join(cache, "setup.lock");
const windows = process.platform === "win32";
const ownNode = join(modules, "node", "bin", windows ? "node.exe" : "node");

/** Megabytes on disk, for the line that says what is being installed. */
const SIZE = { run: 45, node: 150, develop: 320 };
/** A set-up that takes longer has died, and its process id belongs to somebody else. */
const LONGEST_MS = 15 * 60_000;

/**
 * Installs what package-lock.json names, unless that is there already.
 *
 * - Level `run` is what the program needs: the packages of package.json, and Node unless this one is as new.
 * - Level `develop` adds test/package.json: linters, compilers, whatever tests talk to. It serves for `run` too and is never taken back.
 * - A new tree is made beside the old one and takes its place when it is whole: a failure changes nothing.
 */
export function setup(level = "develop") {
  if (isReady(level)) return;
  takeLock();
  try {
    if (!isReady(level)) install(installed().level === "develop" ? "develop" : level);
  } catch (error) {
    process.stderr.write(`hermes: set-up of ${root}: ${error.message}\n`);
    process.exitCode = 1;
  } finally {
    rmSync(lock, { force: true });
  }
  if (process.exitCode === 1) process.exit();
}

/** The Node that runs the project: the repository's own if installed, else the one running now. */
export function projectNode() {
  return existsSync(ownNode) ? ownNode : process.execPath;
}

/** Runs a child to its end with our own terminal; resolves to its exit code. Signals reach the child, never only us. */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: "inherit", ...options });
    const forward = (signal) => child.kill(signal);
    process.on("SIGINT", forward).on("SIGTERM", forward);
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      process.off("SIGINT", forward).off("SIGTERM", forward);
      resolve(signal ? 128 + (signal === "SIGINT" ? 2 : 15) : (code ?? 1));
    });
  });
}

function isReady(level) {
  const there = installed();
  if (there.packages !== wanted() || (level === "develop" && there.level !== "develop")) return false;
  return existsSync(ownNode) || !needsNode(level);
}

/** What the marker says; a tree without one counts as nothing. */
function installed() {
  const [packages = "", level = ""] = existsSync(marker) ? readFileSync(marker, "utf8").trim().split(" ") : [];
  return { packages, level };
}

function wanted() {
  return createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
}

/** Tests always run on the Node the repository names; the program runs on any that is as new. */
function needsNode(level) {
  const named = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).devDependencies.node;
  return level === "develop" || Number.parseInt(process.versions.node, 10) < Number.parseInt(named, 10);
}

function install(level) {
  const size = level === "develop" ? SIZE.node + SIZE.develop : SIZE.run + (needsNode(level) ? SIZE.node : 0);
  const what = level === "develop" ? "what running and testing need" : "what running needs";
  process.stderr.write(`hermes: installing ${what} into ${modules}, about ${size} MB ...\n`);
  const staging = join(cache, `setup-${process.pid}`);
  try {
    mkdirSync(join(staging, "test"), { recursive: true });
    for (const file of ["package.json", "package-lock.json", ".npmrc", join("test", "package.json")])
      copyFileSync(join(root, file), join(staging, file));
    // npm runs install scripts with the programs of the tree above first; a Node there that is broken must not be one of them.
    const above = join(modules, ".bin", "node");
    if (existsSync(above) && spawnSync(above, ["--version"]).status !== 0) rmSync(above);
    // Named though they are npm's defaults: NODE_ENV=production or a setting of the user's would leave them out.
    const args = ["ci", "--include=dev", "--include=optional", "--loglevel=error", "--no-fund", "--no-audit"];
    if (level === "run") args.push("--workspaces=false");
    if (!needsNode(level)) args.push("--ignore-scripts");
    const npm = spawnSync(windows ? "npm.cmd" : "npm", args, { cwd: staging, stdio: ["ignore", 2, 2], shell: windows });
    if (npm.error?.code === "ENOENT")
      throw new Error("npm is not on the PATH; it comes with Node from https://nodejs.org.");
    if (npm.status !== 0)
      throw new Error(`"npm ci" failed (exit ${npm.status ?? npm.signal}); see the lines above, then run this again.`);
    const made = join(staging, "node_modules");
    dropHeaders(made);
    writeFileSync(join(made, ".hermes-setup"), `${wanted()} ${level}\n`);
    replace(made, join(staging, "old"), level);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  if (needsNode(level) && !existsSync(ownNode))
    throw new Error(
      "the Node that the repository names was not installed: npm must be allowed to run install scripts (ignore-scripts).",
    );
}

/** Node's own package brings 68 MB of C headers, for native modules that nobody builds here. */
function dropHeaders(made) {
  const parts = join(made, "node", "node_modules");
  if (!existsSync(parts)) return;
  for (const entry of readdirSync(parts, { withFileTypes: true }))
    if (entry.isDirectory()) rmSync(join(parts, entry.name, "include"), { recursive: true, force: true });
}

function replace(made, old, level) {
  try {
    if (existsSync(modules)) renameSync(modules, old);
    renameSync(made, modules);
  } catch (error) {
    if (existsSync(old) && !existsSync(modules)) renameSync(old, modules);
    if (isReady(level)) return;
    throw new Error(
      `${modules} cannot be replaced (${error.message}); end programs that run from it, then run this again.`,
    );
  }
}

function takeLock() {
  mkdirSync(cache, { recursive: true });
  for (let told = false; ; ) {
    try {
      writeFileSync(lock, `${process.pid}`, { flag: "wx" });
      for (const name of readdirSync(cache))
        if (/^setup-\d+$/.test(name)) rmSync(join(cache, name), { recursive: true, force: true });
      return;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    const owner = lockOwner();
    if (owner === null) rmSync(lock, { force: true });
    else if (!told) {
      process.stderr.write(`hermes: waiting for process ${owner}, which is setting up (${lock}) ...\n`);
      told = true;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  }
}

/** The process that is setting up; null when it died. */
function lockOwner() {
  let owner = "?";
  try {
    if (Date.now() - statSync(lock).mtimeMs > LONGEST_MS) return null;
    owner = readFileSync(lock, "utf8");
    if (owner !== "") process.kill(Number(owner), 0);
  } catch (error) {
    if (error.code === "ESRCH") return null;
  }
  return owner;
}
