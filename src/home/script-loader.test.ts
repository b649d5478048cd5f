import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, readFile, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { cachedDataVersionTag, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type TempTree, tempTree } from "../../test/support/temp-tree.ts";
import { restAwhile } from "../kit/memory.ts";
import { keptCodeFile, scriptLoader } from "./script-loader.ts";

const asFunction = (text: string) => `(function(exports,require,module,__filename,__dirname){${text}\n})`;

/** A build of three files; `said` is what ran, in order. */
async function build(t: TestContext): Promise<TempTree & { said: string[]; kept: string }> {
  const said: string[] = [];
  Object.assign(globalThis, { saidByScripts: said });
  t.after(() => Reflect.deleteProperty(globalThis, "saidByScripts"));
  const tree = await tempTree(t, {
    "main.cjs":
      asFunction(`"use strict"; saidByScripts.push("main"); exports.early = 1; const part = require("./part.cjs");
      module.exports = { twice: (n) => part.twice(n), name: __filename, folder: __dirname, of: require("node:path").sep,
      later: () => import("./late.mjs") };`),
    "part.cjs": asFunction(`saidByScripts.push("part, main has " + Object.keys(require("./main.cjs")));
      exports.twice = (n) => { saidByScripts.push("twice"); return 2 * n; };`),
    "late.mjs": "export const late = true;",
  });
  return Object.assign(tree, { said, kept: tree.at("kept", "code") });
}

test("files of the build run once, as Node would run them", async (t) => {
  const tree = await build(t);
  const loader = scriptLoader(tree.root, null);
  const main = loader.load("main.cjs") as Record<string, unknown> & { twice(n: number): number };
  assert.equal(loader.load("main.cjs"), main);
  assert.equal(main.twice(4), 8);
  assert.deepEqual(tree.said, ["main", "part, main has early", "twice"]);
  assert.equal(main.name, tree.at("main.cjs"));
  assert.equal(main.folder, tree.root);
  assert.deepEqual(
    { ...(await (main.later as () => Promise<object>)()) },
    { late: true },
    "a module is loaded as a module",
  );
  loader.keep();
  assert.equal((await readdir(tree.root)).includes("kept"), false, "nothing is kept where nobody said where");
});

test("code is kept once, for its owner alone, and used by the next run", async (t) => {
  const tree = await build(t);
  const run = () => {
    const loader = scriptLoader(tree.root, tree.kept);
    (loader.load("main.cjs") as { twice(n: number): number }).twice(1);
    loader.keep();
  };
  run();
  const first = await stat(tree.kept);
  assert.equal(first.mode & 0o777, 0o600);
  assert.deepEqual(await readdir(tree.at("kept")), ["code"]);
  run();
  assert.equal((await stat(tree.kept)).ino, first.ino, "what was accepted is not written again");
  // The code of a function that no longer stands in the file: it can only come from what was kept.
  const part = await readFile(tree.at("part.cjs"), "utf8");
  await writeFile(tree.at("part.cjs"), part.replace("2 * n", "3 * n"));
  assert.equal((scriptLoader(tree.root, tree.kept).load("main.cjs") as { twice(n: number): number }).twice(1), 2);
});

test("a file that joins later is kept with the others", async (t) => {
  const tree = await build(t);
  await writeFile(tree.at("other.cjs"), asFunction("exports.other = () => 1;"));
  const first = scriptLoader(tree.root, tree.kept);
  first.load("main.cjs");
  first.keep();
  const second = scriptLoader(tree.root, tree.kept);
  second.load("other.cjs");
  second.keep();
  const names = JSON.parse((await readFile(tree.kept, "latin1")).slice(0, 4096)).map(
    ({ name }: { name: string }) => name,
  );
  assert.deepEqual(names.sort(), ["main.cjs", "other.cjs", "part.cjs"]);
});

test("code that another run has kept meanwhile is found, and stays", async (t) => {
  const tree = await build(t);
  for (const name of ["one.cjs", "two.cjs"]) await writeFile(tree.at(name), asFunction("exports.it = () => 1;"));
  const before = scriptLoader(tree.root, tree.kept);
  before.load("main.cjs");
  before.keep();
  const [first, second] = [scriptLoader(tree.root, tree.kept), scriptLoader(tree.root, tree.kept)];
  first.load("main.cjs");
  second.load("main.cjs");
  first.load("one.cjs");
  first.keep();
  second.load("two.cjs");
  second.keep();
  const { ino } = await stat(tree.kept);
  const third = scriptLoader(tree.root, tree.kept);
  for (const name of ["main.cjs", "one.cjs", "two.cjs"]) third.load(name);
  third.keep();
  assert.equal((await stat(tree.kept)).ino, ino, "all of it was accepted");
});

test("what a process has kept after it rested is accepted by one that has just begun", async (t) => {
  const tree = await build(t);
  const loader = scriptLoader(tree.root, tree.kept);
  loader.load("main.cjs");
  await restAwhile();
  loader.keep();
  // V8 compares this number before it takes code.
  const fresh = execFileSync(process.execPath, ["-p", "v8.cachedDataVersionTag()"], { encoding: "utf8" });
  assert.equal(cachedDataVersionTag(), Number(fresh));
  await stat(tree.kept);
});

for (const [run, before] of [
  ["the first run", 0],
  ["a later run", 1],
] as const)
  test(`the code of a start stays as it was kept when another file joins, though V8 has let go of it: ${run}`, async (t) => {
    const tree = await build(t);
    await writeFile(tree.at("other.cjs"), asFunction("exports.other = () => 1;"));
    const started = () => {
      const loader = scriptLoader(tree.root, tree.kept);
      (loader.load("main.cjs") as { twice(n: number): number }).twice(1);
      loader.keep();
      return loader;
    };
    for (let earlier = 0; earlier < before; earlier++) started();
    const loader = started();
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as (options: object) => void;
    setFlagsFromString("--no-expose-gc"); // code of a process with other flags is not accepted
    for (let round = 0; round < 10; round++) collect({ type: "major", execution: "sync", flavor: "last-resort" });
    loader.load("other.cjs");
    loader.keep();
    const part = await readFile(tree.at("part.cjs"), "utf8");
    await writeFile(tree.at("part.cjs"), part.replace("2 * n", "3 * n"));
    const next = scriptLoader(tree.root, tree.kept);
    assert.equal((next.load("main.cjs") as { twice(n: number): number }).twice(1), 2);
    assert.equal((next.load("other.cjs") as { other(): number }).other(), 1);
  });

const unusable: Record<string, (file: string) => Promise<void>> = {
  "a file that others may write": (file) => chmod(file, 0o666),
  "half a file": (file) => truncate(file, 5000),
  "an empty file": (file) => truncate(file, 0),
  "something else": (file) => writeFile(file, "not code at all"),
  blanks: (file) => writeFile(file, " ".repeat(8192)),
};
for (const [what, spoil] of Object.entries(unusable))
  test(`${what} in the place of kept code is not used, and replaced`, async (t) => {
    const tree = await build(t);
    const first = scriptLoader(tree.root, tree.kept);
    first.load("main.cjs");
    first.keep();
    const { ino, size } = await stat(tree.kept);
    await spoil(tree.kept);
    const part = await readFile(tree.at("part.cjs"), "utf8");
    await writeFile(tree.at("part.cjs"), part.replace("2 * n", "3 * n"));
    const second = scriptLoader(tree.root, tree.kept);
    assert.equal((second.load("main.cjs") as { twice(n: number): number }).twice(1), 3);
    second.keep();
    const after = await stat(tree.kept);
    assert.notEqual(after.ino, ino);
    assert.equal(after.mode & 0o777, 0o600);
    assert.ok(after.size >= size);
  });

test("a place that cannot be written costs nothing but time", async (t) => {
  const tree = await build(t);
  await writeFile(tree.at("kept"), "a file where the folder should be");
  const loader = scriptLoader(tree.root, tree.kept);
  loader.load("main.cjs");
  assert.doesNotThrow(() => loader.keep());
});

test("the code of old builds is removed, the newest eight files stay", async (t) => {
  const tree = await build(t);
  await mkdir(tree.at("kept"));
  for (let age = 1; age <= 12; age++) {
    await writeFile(tree.at("kept", `old-${age}`), "");
    await utimes(tree.at("kept", `old-${age}`), 1e9 - age, 1e9 - age);
  }
  const loader = scriptLoader(tree.root, tree.kept);
  loader.load("main.cjs");
  loader.keep();
  const left = await readdir(tree.at("kept"));
  assert.deepEqual(left.sort(), ["code", ...[1, 2, 3, 4, 5, 6, 7].map((age) => `old-${age}`)]);
});

test("kept code lies in the home, or where Node keeps its own, or nowhere", async (t) => {
  const { root: dir } = await tempTree(t);
  const name = `b1-ask-${process.version}-${process.arch}`;
  assert.equal(keptCodeFile("b1-ask", dir, {}), join(dir, "cache", "code", name));
  assert.equal(keptCodeFile("b1-ask", join(dir, "none"), {}), null, "no home is made for it");
  assert.equal(keptCodeFile("b1-ask", dir, { NODE_COMPILE_CACHE: "/c" }), join("/c", "hermes", name));
  assert.equal(keptCodeFile("b1-ask", dir, { NODE_DISABLE_COMPILE_CACHE: "1" }), null);
});
