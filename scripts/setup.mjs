// Brings a fresh clone to the point where everything runs: dependencies installed, a new enough Node found.
// Runs on Node 18+, prints progress to stderr, and takes a few milliseconds when there is nothing to do.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const marker = join(root, "node_modules", ".hermes-setup");
const windows = process.platform === "win32";

/** Installs what package-lock.json names, unless exactly that is installed already. */
export function setup() {
  const wanted = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  if (existsSync(marker) && readFileSync(marker, "utf8") === wanted) return;
  process.stderr.write("hermes: installing dependencies (first run or changed package-lock.json) ...\n");
  const npm = spawnSync(windows ? "npm.cmd" : "npm", ["ci", "--loglevel=error", "--no-fund", "--no-audit"], {
    cwd: root,
    stdio: ["ignore", 2, 2],
    shell: windows,
  });
  if (npm.status !== 0) {
    process.stderr.write(
      `hermes: "npm ci" failed in ${root} (exit ${npm.status ?? npm.error?.message}); see the lines above.\n`,
    );
    process.exit(1);
  }
  writeFileSync(marker, wanted);
  process.stderr.write("hermes: dependencies are ready.\n");
}

/** The Node that runs the project: the repository's own if installed, else the one running now. */
export function projectNode() {
  const own = join(root, "node_modules", "node", "bin", windows ? "node.exe" : "node");
  return existsSync(own) ? own : process.execPath;
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
