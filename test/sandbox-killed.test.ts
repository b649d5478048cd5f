// A sandbox whose program was killed leaves nothing that runs: the next one in the project takes it out before anything else.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { exists } from "../src/kit/files.ts";
import { missingBubblewrap, openSandbox } from "./support/engines/bubblewrap.ts";
import { withEngine } from "./support/engines/require.ts";

const run = promisify(execFile);

/** Plants, says so, and is killed before it can look. */
const PROGRAM = `
const [cwd, home, command] = process.argv.slice(1);
const { openSandbox } = await import(${JSON.stringify(join(import.meta.dirname, "support/engines/bubblewrap.ts"))});
const dirs = { dir: home + "/.hermes", root: home + "/.hermes" };
const box = await openSandbox({ cwd, userHome: home, hermesHome: dirs, environment: { HOME: home } }, home);
await box.run(command);
`;

await withEngine("bubblewrap", missingBubblewrap, () => {
  test("what a killed sandbox left is taken out at the next start", async (t) => {
    const home = await realpath(await mkdtemp("/var/tmp/hermes-killed-"));
    t.after(() => rm(home, { recursive: true, force: true, maxRetries: 3 }));
    const project = join(home, "project");
    await mkdir(join(home, ".hermes"));
    await run("git", ["init", "-q", project]);
    const marker = join(home, "escaped");
    const settings = `printf '[core]\\n\\tfsmonitor = touch ${marker}; false\\n' >> sub/.git/config`;
    const command = `git init -q sub; ${settings}; printf 'touch ${marker}\\n' > .envrc; touch planted; sleep 60`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM, project, home, command], {
      stdio: "ignore",
    });
    const ended = new Promise((resolve) => child.on("exit", resolve));
    while (child.exitCode === null && !(await exists(join(project, "planted")))) await pause(5);
    child.kill("SIGKILL");
    await ended;
    assert.match(await readFile(join(project, "sub/.git/config"), "utf8"), /fsmonitor/, "it was killed in time");

    const again = await openSandbox(
      { cwd: project, userHome: home, hermesHome: { dir: join(home, ".hermes"), root: join(home, ".hermes") } },
      home,
    );
    t.after(again.release);
    assert.doesNotMatch(await readFile(join(project, "sub/.git/config"), "utf8"), /fsmonitor/);
    assert.match(await readFile(join(project, "sub/.git/config.from-sandbox"), "utf8"), /fsmonitor/);
    assert.equal(await exists(join(project, ".envrc")), false);
    await run("git", ["status"], { cwd: join(project, "sub"), env: { PATH: process.env.PATH ?? "", HOME: home } });
    assert.equal(await exists(marker), false);
  });

  test("settings that run nothing stay as they are, byte for byte, and work inside goes on", async (t) => {
    const box = await openSandbox({}, "/var/tmp");
    t.after(box.release);
    const git = "git -c user.name=a -c user.email=a@b -c protocol.file.allow=always";
    const made = await box.run(`set -e
git init -q up && cd up && echo a > a && git add a && ${git} commit -qm one && cd ..
git clone -q up app && cd app && git config user.name me && git remote add other ../up && git checkout -qb b --track origin/HEAD
${git} submodule --quiet add "$PWD/../up" lib && ${git} commit -qm sub && git worktree add -q ../wt -b wt && git init -q --bare ../bare.git
cp .git/config ../before`);
    assert.deepEqual([made.exitCode, made.note], [0, undefined], made.output);
    const work = await box.run(`set -e
cd "${box.directory}"; cmp before app/.git/config; cd wt; echo b > b; git add b; ${git} commit -qm two; ${git} rebase -q b; cd ../app/lib && git status -s; git -C .. status -s`);
    assert.deepEqual([work.exitCode, work.output, work.note], [0, "", undefined]);
    const taken = await box.run("cd .. && git config alias.x '!true' && git config core.hooksPath h");
    assert.match(taken.note ?? "", /set aside as \*\.from-sandbox.*app\/\.git\/config/);
    const config = await readFile(join(box.directory, "app/.git/config"), "utf8");
    assert.match(config, /\[remote "other"\]/);
    assert.doesNotMatch(config, /alias|hookspath/i);
  });
});
