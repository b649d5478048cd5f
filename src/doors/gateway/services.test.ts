import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { tempTree } from "../../../test/support/temp-tree.ts";
import { openHome } from "../../home/open.ts";
import { findProgram } from "../../sandbox/child-env.ts";
import { installService, serviceName, serviceState, startService, uninstallService } from "./services.ts";

/** A user with a service manager that writes down what it is asked for and answers as `answers` says. */
async function rig(t: TestContext, { profile = "", manager = "systemctl" as "systemctl" | "launchctl" } = {}) {
  const tree = await tempTree(t, { "bin/.keep": "", "run/.keep": "", "ann/.hermes/profiles/work/.keep": "" });
  const program = tree.at("bin", manager);
  const answers = async (script: string) => {
    await writeFile(program, `#!/bin/sh\nprintf '%s\\n' "$*" >> ${tree.at("asked")}\n${script}\n`);
    await chmod(program, 0o755);
  };
  await answers("exit 0");
  const osHome = tree.at("ann");
  const home = await openHome({
    argv: profile === "" ? [] : ["-p", profile],
    env: { PATH: `${tree.at("bin")}:/usr/bin:/bin`, HOME: osHome },
    ...{ osHome, cwd: osHome },
  });
  t.after(() => home.close());
  const places = {
    platform: manager === "systemctl" ? ("linux" as const) : ("darwin" as const),
    systemUnits: tree.at("etc"),
    booted: tree.at("run"),
  };
  const asked = async () => (await readFile(tree.at("asked"), "utf8").catch(() => "")).split("\n").slice(0, -1);
  return { home, places, asked, answers, tree, osHome };
}

const isThere = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

test("install writes a user unit and enables it; uninstall stops it and removes everything", async (t) => {
  const { home, places, asked, osHome } = await rig(t);
  assert.deepEqual(await serviceState(home, places), { manager: "systemd", installed: false, active: false });
  const path = join(osHome, ".config", "systemd", "user", "hermes-gateway.service");
  assert.deepEqual(await installService(home, {}, places), { path, enabled: true });
  assert.deepEqual(await asked(), ["--user daemon-reload", "--user enable hermes-gateway.service"]);
  assert.deepEqual(await serviceState(home, places), { manager: "systemd", installed: true, active: true });
  assert.equal(await startService(home, places), true);
  assert.equal((await asked()).at(-1), "--user start hermes-gateway.service");
  assert.equal(await uninstallService(home, {}, places), path);
  assert.deepEqual((await asked()).slice(-2), ["--user disable --now hermes-gateway.service", "--user daemon-reload"]);
  assert.ok(!(await isThere(path)));
  assert.equal(await uninstallService(home, {}, places), null);
  assert.equal(await startService(home, places), false);
});

test("each profile has a service of its own, and so has a home in another place", async (t) => {
  const { home: usual } = await rig(t);
  const { home: work } = await rig(t, { profile: "work" });
  const { tree, osHome } = await rig(t);
  const elsewhere = await openHome({ argv: [], env: { HERMES_HOME: tree.at("srv") }, osHome, cwd: osHome });
  t.after(() => elsewhere.close());
  assert.equal(serviceName(usual), "hermes-gateway");
  assert.equal(serviceName(work), "hermes-gateway-work");
  assert.match(serviceName(elsewhere), /^hermes-gateway-[0-9a-f]{8}$/);
});

test("the unit runs this program for this profile, restarts it after 75 and gives turns their time", async (t) => {
  const { home, places } = await rig(t, { profile: "work" });
  const { path } = await installService(home, {}, places);
  const unit = await readFile(path, "utf8");
  assert.match(
    unit,
    /^ExecStart="[^"]*node" "--optimize-for-size" "--max-semi-space-size=4" "[^"]*hermes\.mjs" "-p" "work" "gateway" "run" "--replace"$/m,
  );
  assert.match(unit, /^ExecStop=.*"gateway" "stop"$/m);
  assert.match(unit, /^ExecReload=\/bin\/kill -USR2 \$MAINPID$/m);
  assert.match(unit, /^RestartForceExitStatus=75$/m);
  assert.match(unit, /^TimeoutStopSec=210$/m);
  assert.match(unit, new RegExp(`^Environment="HERMES_HOME=${home.paths.dir}"$`, "m"));
});

test("systemd itself finds nothing wrong with the units, whatever letters a path has", async (t) => {
  const program = await findProgram("systemd-analyze", process.env.PATH ?? "");
  if (program === null) return t.skip("no systemd-analyze here");
  const tree = await tempTree(t, { '50% of "my" $HOME/work/.keep': "", "run/.keep": "" });
  const osHome = tree.at('50% of "my" $HOME');
  const home = await openHome({ argv: [], env: { PATH: "/usr/bin:/bin" }, osHome, cwd: osHome });
  t.after(() => home.close());
  const places = { platform: "linux" as const, systemUnits: tree.at("etc"), booted: tree.at("none") };
  const { path } = await installService(home, { system: true }, places);
  const checked = await promisify(execFile)(program, ["verify", "--man=no", path]).catch((error) => error);
  assert.doesNotMatch(
    `${checked.stdout}${checked.stderr}`,
    /hermes-gateway[^\n]*(?:Unknown|Invalid|Failed to parse|not executable)/i,
  );
  const folder = '50%% of \\"my\\" $HOME/.hermes';
  assert.ok((await readFile(path, "utf8")).includes(`Environment="HERMES_HOME=${tree.at(folder)}"`));
});

test("--system writes a unit of the machine for this user", async (t) => {
  const { home, places, asked, tree } = await rig(t);
  const { path, enabled } = await installService(home, { system: true }, places);
  assert.deepEqual([path, enabled], [tree.at("etc", "hermes-gateway.service"), true]);
  assert.match(await readFile(path, "utf8"), /^User=.+\n[\s\S]*WantedBy=multi-user\.target$/m);
  assert.deepEqual(await asked(), ["daemon-reload", "enable hermes-gateway.service"]);
  assert.equal((await serviceState(home, places)).installed, true);
});

test("what the manager refuses is told, and the unit stays", async (t) => {
  const { home, places, answers } = await rig(t);
  await answers('echo "Failed to connect to bus" >&2; exit 1');
  const { path, enabled, problem } = await installService(home, {}, places);
  assert.deepEqual([enabled, problem, await isThere(path)], [false, "Failed to connect to bus", true]);
  await assert.rejects(startService(home, places), /The service did not start: Failed to connect to bus/);
  assert.deepEqual(await serviceState(home, places), { manager: "systemd", installed: true, active: false });
});

test("without systemd the unit is written and nothing is asked; elsewhere the way without a service is named", async (t) => {
  const { home, places, asked, tree } = await rig(t);
  const without = { ...places, booted: tree.at("none") };
  const { enabled, problem } = await installService(home, {}, without);
  assert.deepEqual([enabled, problem], [false, "systemd is not running on this machine"]);
  assert.deepEqual(await serviceState(home, without), { manager: null, installed: true, active: false });
  assert.equal(await startService(home, without), false);
  assert.deepEqual(await asked(), []);
  await assert.rejects(installService(home, {}, { ...without, platform: "win32" }), /hermes gateway start/);
});

test("launchd gets a plist that keeps the gateway running unless it ended well", async (t) => {
  const { home, places, asked, answers, osHome } = await rig(t, { profile: "work", manager: "launchctl" });
  const path = join(osHome, "Library", "LaunchAgents", "ai.hermes.gateway-work.plist");
  assert.deepEqual(await installService(home, {}, places), { path, enabled: true });
  const plist = await readFile(path, "utf8");
  assert.match(plist, /<key>Label<\/key><string>ai\.hermes\.gateway-work<\/string>/);
  assert.match(plist, /<key>SuccessfulExit<\/key><false\/>/);
  await answers("echo '  state = running'");
  assert.equal((await serviceState(home, places)).active, true);
  assert.equal(await startService(home, places), true);
  const target = `gui/${process.getuid?.()}`;
  assert.deepEqual((await asked()).slice(-2), [
    `bootstrap ${target} ${path}`,
    `kickstart ${target}/ai.hermes.gateway-work`,
  ]);
  await assert.rejects(installService(home, { system: true }, places), /--system is for systemd/);
  await uninstallService(home, {}, places);
  assert.equal((await asked()).at(-1), `bootout ${target}/ai.hermes.gateway-work`);
});
