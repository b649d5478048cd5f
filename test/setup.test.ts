// How a clone gets what it needs: what npm is asked for, what is left when it fails, and how large it is.
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { downloadsUnwanted } from "./support/engines/require.ts";
import { repository } from "./support/run-hermes.ts";

const NAMES = [
  "package.json",
  "package-lock.json",
  ".npmrc",
  "test/package.json",
  "scripts/setup.mjs",
  "scripts/start.mjs",
  "bin/current-build.cjs",
];

/** Writes down how it was called, then makes what npm would make: packages, and with install scripts a Node. */
const NPM = `#!/bin/sh
echo "$*" >> "$NPM_CALLS"
[ -z "$NPM_FAILS" ] || { echo "npm error no network" >&2; exit 7; }
while [ -n "$NPM_WAITS" ] && [ ! -e "$NPM_WAITS" ]; do sleep 0.05; done
mkdir -p node_modules/node/bin
echo "$*" > node_modules/made
case "$*" in *--ignore-scripts*) ;; *) ln -s "$NPM_NODE" node_modules/node/bin/node ;; esac
`;

/** A clone whose program only says which Node runs it, and an npm that needs no network. */
async function clone(t: TestContext) {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-clone-")));
  t.after(() => rm(root, { recursive: true, force: true }));
  for (const name of NAMES) await cp(join(repository, name), join(root, name));
  await writeFile(join(root, "bin", "hermes.mjs"), "console.log(process.execPath);");
  await writeFile(join(root, "scripts", "develop.mjs"), 'import { setup } from "./setup.mjs"; setup();');
  await writeFile(join(root, "npm"), NPM);
  await chmod(join(root, "npm"), 0o755);
  const env: Record<string, string> = {
    PATH: `${root}${delimiter}${process.env.PATH}`,
    NPM_CALLS: join(root, "calls"),
    NPM_NODE: process.execPath,
  };
  const heard: string[] = [];
  const run = async (script: string, more: Readonly<Record<string, string>> = {}) => {
    const child = spawn(process.execPath, [join(root, "scripts", script)], { cwd: root, env: { ...env, ...more } });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text) => {
      stderr += text;
      heard.push(text);
    });
    const [code] = await once(child, "close");
    return { code, stdout, stderr };
  };
  const lines = async (name: string) =>
    (await readFile(join(root, name), "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
  return {
    root,
    /** What any of them has said on stderr so far. */
    heard: () => heard.join(""),
    start: (more?: Readonly<Record<string, string>>) => run("start.mjs", more),
    develop: (more?: Readonly<Record<string, string>>) => run("develop.mjs", more),
    calls: () => lines("calls"),
    /** How the packages that are there came to be. */
    made: async () => (await lines("node_modules/made"))[0] ?? "",
    /** Names another Node, so that no machine has a newer one. */
    async wantNode(version: string) {
      const file = join(root, "package.json");
      const text = await readFile(file, "utf8");
      await writeFile(file, text.replace(/"node": "\d[^"]*"/, `"node": "${version}"`));
    },
  };
}

test("a first start installs what running needs, says so in one line, and later ones install nothing", async (t) => {
  const { root, start, calls } = await clone(t);
  const first = await start();
  assert.equal(first.code, 0, first.stderr);
  assert.equal(
    first.stderr,
    `hermes: installing what running needs into ${join(root, "node_modules")}, about 45 MB ...\n`,
  );
  assert.equal(first.stdout, `${process.execPath}\n`);
  assert.deepEqual(await start(), { code: 0, stdout: first.stdout, stderr: "" });
  const [call = "", ...more] = await calls();
  assert.deepEqual(more, []);
  for (const option of ["ci ", "--workspaces=false", "--include=dev", "--ignore-scripts"])
    assert.ok(call.includes(option), call);
});

test("a machine with an older Node gets the repository's, also when it had a newer one before", async (t) => {
  const { root, start, calls, wantNode } = await clone(t);
  await start();
  await wantNode("99.1.0");
  const { stdout, stderr } = await start();
  assert.match(stderr, /about 195 MB/);
  assert.equal(stdout, `${process.execPath}\n`, "a link to this one, here");
  assert.ok(!(await calls())[1]?.includes("--ignore-scripts"));
  assert.ok((await readdir(join(root, "node_modules", "node", "bin"))).includes("node"));
});

test("tests bring the rest once; starting takes nothing away, not even after a change of the lock file", async (t) => {
  const { root, start, develop, calls, made } = await clone(t);
  await start();
  assert.match((await develop()).stderr, /installing what running and testing need .*, about 470 MB/);
  assert.ok(!(await made()).includes("--workspaces=false"));
  await start();
  await develop();
  assert.equal((await calls()).length, 2);
  await writeFile(join(root, "package-lock.json"), "{}");
  await start();
  assert.equal((await calls()).length, 3);
  assert.ok(!(await made()).includes("--workspaces=false"));
});

test("of several set-ups at once one installs, and the others wait for it", async (t) => {
  const { root, start, develop, calls, heard } = await clone(t);
  const first = develop({ NPM_WAITS: join(root, "go") });
  while ((await calls()).length === 0) await pause(20);
  const others = [start(), develop()];
  while (heard().split("which is setting up").length < 3) await pause(20);
  await writeFile(join(root, "go"), "");
  for (const { code, stderr } of await Promise.all([first, ...others])) assert.equal(code, 0, stderr);
  assert.equal((await calls()).length, 1);
});

test("a failed installation is told in a sentence, and what was there stays", async (t) => {
  const { root, start, develop, made } = await clone(t);
  await start();
  const before = await made();
  const failed = await develop({ NPM_FAILS: "1" });
  assert.equal(failed.code, 1);
  assert.match(
    failed.stderr,
    /npm error no network\nhermes: set-up of .*: "npm ci" failed \(exit 7\); see the lines above/,
  );
  assert.equal(await made(), before);
  assert.equal((await start()).stderr, "");
  assert.deepEqual(await readdir(join(root, ".cache")), []);
});

test("without npm the user is told where it comes from", async (t) => {
  const { root, start } = await clone(t);
  await rm(join(root, "npm"));
  const { code, stderr } = await start({ PATH: root });
  assert.equal(code, 1);
  assert.match(stderr, /npm is not on the PATH; it comes with Node from https:\/\/nodejs\.org\.\n$/);
});

test("a set-up that was killed keeps nobody waiting, and its leftovers go", async (t) => {
  const { root, start } = await clone(t);
  const dead = spawnSync(process.execPath, ["--version"]).pid;
  await mkdir(join(root, ".cache", `setup-${dead}`), { recursive: true });
  await writeFile(join(root, ".cache", "setup.lock"), `${dead}`);
  const { code, stderr } = await start();
  assert.equal(code, 0, stderr);
  assert.deepEqual(await readdir(join(root, ".cache")), []);
});

test("a broken Node in the old packages does not stand in the way of new ones", async (t) => {
  const { root, develop, calls } = await clone(t);
  await develop();
  const bin = join(root, "node_modules", ".bin");
  await mkdir(bin);
  await writeFile(join(bin, "node"), "#!/bin/sh\nexit 1\n");
  await chmod(join(bin, "node"), 0o755);
  await writeFile(join(root, "package-lock.json"), "{}");
  // As npm does it: programs of the trees above come first for install scripts.
  const npm = await readFile(join(root, "npm"), "utf8");
  await writeFile(join(root, "npm"), npm.replace("\n", `\nPATH="${bin}:$PATH" node --version >&2 || exit 8\n`));
  const { code, stderr } = await develop();
  assert.equal(code, 0, stderr);
  assert.equal((await calls()).length, 2);
});

test("a real clone starts with less than 260 MB", { skip: downloadsUnwanted("all packages") }, async (t) => {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-clone-")));
  t.after(() => rm(root, { recursive: true, force: true }));
  for (const name of [...NAMES, "bin", "src", "skills"])
    await cp(join(repository, name), join(root, name), { recursive: true });
  // npm puts the repository's own Node first on the PATH of its scripts; a user's shell does not.
  const path = process.env.PATH?.split(delimiter).filter((folder) => !folder.includes("node_modules"));
  const env = { ...process.env, PATH: path?.join(delimiter), HERMES_HOME: join(root, "home") };
  const start = (...args: string[]) =>
    promisify(execFile)("npm", ["start", "-s", "--", ...args], { cwd: root, env, timeout: 280_000 });
  const { stdout, stderr } = await start("-z", "hello");
  assert.match(stdout, /built-in demo/);
  const { stdout: measured } = await promisify(execFile)("du", ["-sm", "node_modules"], { cwd: root });
  const size = Number.parseInt(measured, 10);
  assert.ok(size < 260, `${size} MB`);
  const told = Number(/about (\d+) MB/.exec(stderr)?.[1]);
  assert.ok(Math.abs(told - size) < size / 5, `told ${told}, measured ${size} MB`);
});
