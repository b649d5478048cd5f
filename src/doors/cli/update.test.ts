import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { runSubCommand } from "../../../test/support/sub-command.ts";
import { type TempHome, tempHome } from "../../../test/support/temp-home.ts";
import { openHome } from "../../home/open.ts";
import { systemClock } from "../../kit/clock.ts";
import { installation, isNewer, updateAtStart } from "../update-check.ts";
import { define, updateSteps } from "./update.ts";

const versions: readonly (readonly [string, string, boolean])[] = [
  ["0.2.0", "0.1.9", true],
  ["0.10.0", "0.9.0", true],
  ["1.0.0", "1.0.0", false],
  ["1.0.0", "1.0.1", false],
  ["1.0.0", "1.0.0-beta", true],
  ["1.0.0-beta", "1.0.0", false],
];

test("versions are compared number by number", () => {
  for (const [one, other, newer] of versions) assert.equal(isNewer(one, other), newer, `${one} and ${other}`);
});

/** A registry on this machine, and no other way out. */
async function registry(t: TestContext, latest: string): Promise<string> {
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo; // it listens
    const version = { name: "hermes-ts", version: latest, dist: { tarball: `http://127.0.0.1:${port}/x.tgz` } };
    const known = request.url === "/hermes-ts";
    response.writeHead(known ? 200 : 404, { "content-type": "application/json" });
    response.end(
      known ? JSON.stringify({ name: "hermes-ts", "dist-tags": { latest }, versions: { [latest]: version } }) : "{}",
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const homeOf = (temp: TempHome, env: Readonly<Record<string, string>> = {}) =>
  openHome({
    ...{ argv: [], osHome: temp.osHome, cwd: temp.project },
    env: { PATH: process.env.PATH, HOME: temp.osHome, HERMES_HOME: temp.dir, ...env },
  });

async function run(temp: TempHome, root: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const home = await homeOf(temp, env);
  return runSubCommand((command, ctx) => define(command, ctx, root), args, { home, cwd: temp.project });
}

test("a package asks the registry that npm is set up with: 0 up to date, 1 behind, 2 unknown", async (t) => {
  const temp = await tempHome();
  t.after(() => temp[Symbol.asyncDispose]());
  const root = join(temp.osHome, "prefix", "lib", "node_modules", "hermes-ts");
  await mkdir(root, { recursive: true });
  const at = async (latest: string) => ({ npm_config_registry: await registry(t, latest) });
  assert.equal((await run(temp, root, ["--check"], await at("0.0.1"))).code, 0);
  const behind = await run(temp, root, ["--check"], await at("99.0.0"));
  assert.deepEqual([behind.code, behind.out], [1, "Update available: 99.0.0 (installed: 0.1.0).\n"]);
  assert.equal(JSON.parse(await readFile(temp.at(".update_check"), "utf8")).available, "99.0.0");
  assert.equal(
    (await run(temp, root, ["--check"], { npm_config_registry: "http://127.0.0.1:9/", npm_config_fetch_retries: "0" }))
      .code,
    2,
  );
  // Nobody is there to say yes: it is only told what would be run.
  const asked = await run(temp, root, [], await at("99.0.0"));
  assert.equal(asked.code, 1);
  assert.match(asked.out, /npm install -g --prefix \S+\/prefix hermes-ts@latest/);
  assert.match(asked.err, /-y/);
});

test("a package of a project is updated there, and what is neither package nor clone is left alone", async (t) => {
  const temp = await tempHome();
  t.after(() => temp[Symbol.asyncDispose]());
  const project = join(temp.osHome, "app");
  const root = join(project, "node_modules", "hermes-ts");
  await mkdir(root, { recursive: true });
  await writeFile(join(project, "package.json"), "{}");
  assert.deepEqual(updateSteps(await installation(root))[0]?.slice(0, 3), ["npm", "install", "hermes-ts@latest"]);
  const other = await run(temp, project, ["--check"]);
  assert.equal(other.code, 2);
  assert.match(other.err, /not an npm package or a git clone/);
  const managed = await run(temp, root, ["--check"], { HERMES_MANAGED: "brew" }).catch((error: Error) => error);
  assert.match(managed instanceof Error ? managed.message : managed.err, /managed by/i);
});

test("a clone is brought up to date with git, with a backup if wanted, and never over changes of one's own", async (t) => {
  const temp = await tempHome({ "config.yaml": "updates:\n  pre_update_backup: true\n  backup_keep: 1\n" });
  t.after(() => temp[Symbol.asyncDispose]());
  const [origin, clone] = [join(temp.osHome, "origin"), join(temp.osHome, "clone")];
  const git = (cwd: string, ...args: string[]) =>
    promisify(execFile)("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...args], { cwd });
  await mkdir(origin);
  await git(origin, "init", "-q");
  await writeFile(join(origin, "a"), "1\n");
  await git(origin, "add", ".");
  await git(origin, "commit", "-qm", "one");
  await git(temp.osHome, "clone", "-q", origin, clone);
  assert.equal((await run(temp, clone, ["--check"])).code, 0);
  await writeFile(join(origin, "a"), "2\n");
  await git(origin, "commit", "-qam", "two");
  assert.equal((await run(temp, clone, ["--check"])).code, 1);
  await writeFile(join(clone, "a"), "mine\n");
  assert.match((await run(temp, clone, ["--yes"])).err, /not committed/);
  assert.equal(await readFile(join(clone, "a"), "utf8"), "mine\n");
  await git(clone, "checkout", "-q", "a");
  await mkdir(temp.at("backups"));
  await writeFile(temp.at("backups", "pre-update-20200101-000000.zip"), "an old one");
  await writeFile(temp.at("backups", "mine.zip"), "not ours");
  const done = await run(temp, clone, ["--yes"]);
  assert.equal(done.code, 0, done.err);
  assert.match(done.out, / {2}hermes backup\n {2}git pull --ff-only\n/);
  assert.equal(await readFile(join(clone, "a"), "utf8"), "2\n");
  const [kept, ...others] = (await readdir(temp.at("backups"))).sort().reverse();
  assert.match(kept ?? "", /^pre-update-20(?!200101)\d{6}-\d{6}\.zip$/);
  assert.deepEqual(others, ["mine.zip"]);
});

test("a start tells what an earlier look found; it looks itself only if updates.check says so, once a day", async (t) => {
  const temp = await tempHome({ "config.yaml": "updates:\n  check: true\n" });
  t.after(() => temp[Symbol.asyncDispose]());
  const [origin, clone] = [join(temp.osHome, "origin"), join(temp.osHome, "clone")];
  const git = (cwd: string, ...args: string[]) =>
    promisify(execFile)("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...args], { cwd });
  await mkdir(origin);
  await git(origin, "init", "-q");
  await git(origin, "commit", "-q", "--allow-empty", "-m", "one");
  await git(temp.osHome, "clone", "-q", origin, clone);
  let now = Date.UTC(2026, 0, 1);
  const start = async () =>
    updateAtStart({ home: await homeOf(temp), clock: { ...systemClock, now: () => now } }, clone);
  assert.equal(await start(), null);
  await git(origin, "commit", "-q", "--allow-empty", "-m", "two");
  now += 60_000;
  assert.equal(await start(), null, "it has looked a minute ago");
  now += 25 * 60 * 60_000;
  assert.equal(await start(), "1 new commit");
  await temp.write("config.yaml", "updates:\n  check: false\n");
  await git(origin, "commit", "-q", "--allow-empty", "-m", "three");
  now += 25 * 60 * 60_000;
  assert.equal(await start(), "1 new commit", "what is known");
  await temp.write("config.yaml", "updates:\n  check: true\n");
  await rm(origin, { recursive: true });
  assert.equal(await start(), "1 new commit", "a look that fails says nothing");
});
