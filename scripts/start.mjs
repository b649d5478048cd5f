// npm start [-- arguments]: sets a clone up if need be, builds the program if its source has changed, and runs it where the user stands.
import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import current from "../bin/current-build.cjs";
import { projectNode, root, run, setup } from "./setup.mjs";

/** A program that runs loads parts of its build later on, so the builds before this one stay for a while. */
const KEPT_MS = 3 * 24 * 3_600_000;

setup("run");
if (process.env.HERMES_FROM_SOURCE !== "1" && current.currentBuild(root) === null) await build();
// npm changes into the package folder; INIT_CWD is where the user typed the command.
process.exitCode = await run(projectNode(), [join(root, "bin", "hermes.mjs"), ...process.argv.slice(2)], {
  cwd: process.env.INIT_CWD ?? process.cwd(),
});

/** Beside dist/, which is for `npm run build`. Where it fails, in a clone that cannot be written say, the source runs and tells what is wrong. */
async function build() {
  const builds = join(root, ".cache", "build");
  const making = join(builds, `making-${process.pid}`);
  try {
    mkdirSync(making, { recursive: true }); // first: where nothing can be written, nothing is built in vain
    const started = Date.now();
    const args = [join(root, "scripts", "build.mjs"), making, "--to-run"];
    if ((await run(projectNode(), args, { stdio: "ignore" })) !== 0 || !existsSync(join(making, "main.js"))) return;
    renameSync(making, join(builds, String(started)));
    for (const name of readdirSync(builds).filter((one) => /^\d+$/.test(one)))
      if (Number(name) < started - KEPT_MS) rmSync(join(builds, name), { recursive: true, force: true });
  } catch {
    // as above
  } finally {
    rmSync(making, { recursive: true, force: true });
    if (existsSync(builds) && readdirSync(builds).length === 0) rmdirSync(builds);
  }
}
