// Which program the launcher of a clone runs: what is in src/, or what was built from it.
import assert from "node:assert/strict";
import { cp, mkdir, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { repository, runHermes, sourceLauncher } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { tempHome } from "../support/temp-home.ts";
import { type TempTree, tempTree } from "../support/temp-tree.ts";

const BUILT_AT = 2_000_000_000;

/** A clone whose source and build only say which of them runs; everything in it is a little older than its build. */
async function clone(t: TestContext): Promise<TempTree> {
  const tree = await tempTree(t, {
    "package.json": '{"type":"module"}',
    "package-lock.json": "{}",
    "src/main.ts": 'process.stdout.write("source")',
    "src/room/deep.ts": "",
    "src/room/deep.test.ts": "",
    "dist/main.js": 'process.stdout.write("build")',
  });
  await cp(join(repository, "bin"), tree.at("bin"), { recursive: true });
  const source = ["package-lock.json", "src/main.ts", "src/room/deep.ts", "src/room/deep.test.ts", "src/room", "src"];
  for (const name of source) await touch(tree, name, BUILT_AT - 10);
  await touch(tree, "dist/main.js", BUILT_AT);
  return tree;
}

const touch = (tree: TempTree, name: string, time: number) => utimes(tree.at(name), time, time);

async function whatRuns(tree: TempTree, fromSource = ""): Promise<string> {
  await using home = await tempHome();
  const launcher = tree.at("bin", "hermes.mjs");
  const { stdout, stderr } = await runHermes([], { home, launcher, env: { HERMES_FROM_SOURCE: fromSource } });
  assert.equal(stderr, "");
  return stdout;
}

test("a build that is newer than all of its source runs", async (t) => {
  const tree = await clone(t);
  assert.equal(await whatRuns(tree), "build");
  await touch(tree, "src/room/deep.test.ts", BUILT_AT + 10);
  assert.equal(await whatRuns(tree), "build", "tests are in no build");
});

test("the source runs once anything in it is newer than the build", async (t) => {
  const tree = await clone(t);
  for (const name of oneOf(["src/room/deep.ts", "src/main.ts", "package-lock.json"], "what is newer than the build")) {
    await touch(tree, name, BUILT_AT + 10);
    assert.equal(await whatRuns(tree), "source", name);
    await touch(tree, name, BUILT_AT - 10);
  }
  await rm(tree.at("src/room/deep.ts"));
  await touch(tree, "src/room", BUILT_AT + 10); // as its removal alone does today
  assert.equal(await whatRuns(tree), "source", "a file that is gone");
});

test("of what npm start and npm run build have made the newest runs, and none that is older than the source", async (t) => {
  const tree = await clone(t);
  const older = { "main.js": 'process.stdout.write("older start")' };
  const newer = { "main.js": 'process.stdout.write("start")' };
  for (const [name, files] of Object.entries({ 1: older, 2: newer, "making-3": older })) {
    await mkdir(tree.at(".cache", "build", name), { recursive: true });
    await writeFile(tree.at(".cache", "build", name, "main.js"), files["main.js"]);
  }
  await touch(tree, ".cache/build/1/main.js", BUILT_AT - 5);
  await touch(tree, ".cache/build/2/main.js", BUILT_AT + 5);
  await touch(tree, ".cache/build/making-3/main.js", BUILT_AT + 8);
  assert.equal(await whatRuns(tree), "start");
  await touch(tree, "dist/main.js", BUILT_AT + 7);
  assert.equal(await whatRuns(tree), "build");
  await touch(tree, "src/main.ts", BUILT_AT + 10);
  assert.equal(await whatRuns(tree), "source");
});

test("an editor's lock file, which leads nowhere, stops nothing", async (t) => {
  const tree = await clone(t);
  await symlink("someone@somewhere.1", tree.at("src", ".#main.ts"));
  await touch(tree, "src", BUILT_AT - 10);
  assert.equal(await whatRuns(tree), "build");
});

test("HERMES_FROM_SOURCE decides where both are there", async (t) => {
  const tree = await clone(t);
  assert.equal(await whatRuns(tree, "1"), "source");
  await touch(tree, "src/main.ts", BUILT_AT + 10);
  assert.equal(await whatRuns(tree, "0"), "build");
});

test("what is there runs when the other is missing", async (t) => {
  const tree = await clone(t);
  await rm(tree.at("src"), { recursive: true });
  assert.equal(await whatRuns(tree, "1"), "build", "an installed package has no source");
  const fresh = await clone(t);
  await rm(fresh.at("dist"), { recursive: true });
  assert.equal(await whatRuns(fresh, "0"), "source");
});

test("hermes version says that the source runs, and that a build beside it is older", async (t) => {
  await using home = await tempHome();
  const plain = await runHermes(["version"], { home, launcher: sourceLauncher });
  assert.match(plain.stdout, /^Runs: the source in src\/$/m);
  const tree = await tempTree(t, { "dist/main.js": "" });
  await touch(tree, "dist/main.js", 1);
  for (const name of ["bin", "src", "package.json"])
    await cp(join(repository, name), tree.at(name), { recursive: true });
  await symlink(join(repository, "node_modules"), tree.at("node_modules"));
  const how = { home, launcher: tree.at("bin", "hermes.mjs"), env: { HERMES_FROM_SOURCE: "" } };
  const stale = await runHermes(["version"], how);
  assert.match(stale.stdout, /^Runs: the source in src\/; the build in dist\/ is older \(npm run build updates it\)$/m);
  const json = await runHermes(["version", "--json"], how);
  assert.equal(JSON.parse(json.stdout).program, "source");
});
