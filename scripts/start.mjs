// npm start [-- arguments]: sets a clone up if need be, builds the program if its source has changed, and runs it where the user stands.
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import current from "../bin/current-build.cjs";
import { projectNode, root, run, setup } from "./setup.mjs";

/** A program that runs loads parts of its build later on, so the builds before this one stay for a while. */
const KEPT_BUILDS = 3;

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
    const started = Date.now();
    const args = [join(root, "scripts", "build.mjs"), making, "--to-run"];
    if ((await run(projectNode(), args, { stdio: "ignore" })) !== 0 || !existsSync(making)) return;
    renameSync(making, join(builds, String(started)));
    const numbers = readdirSync(builds).filter((name) => /^\d+$/.test(name));
    for (const name of numbers.sort((a, b) => Number(b) - Number(a)).slice(KEPT_BUILDS))
      rmSync(join(builds, name), { recursive: true, force: true });
  } catch {
    // as above
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
}
