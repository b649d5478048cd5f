// What is published: packed, installed into an empty prefix, and run by each Node it promises to run on.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { builtinPlatforms } from "../../src/doors/gateway/registry.ts";
import { downloadsUnwanted } from "../support/engines/require.ts";
import { builtProgram, environmentFor, repository } from "../support/run-hermes.ts";
import { tempHome } from "../support/temp-home.ts";

const run = promisify(execFile);
const OLDEST_NODE = "24.21.0";
/** They run or build the program in a clone, and are no part of it. */
const TOOLS = new Set(["node", "esbuild"]);
const MOST_BYTES = 25 * 1024 * 1024;

describe("the published package", () => {
  let place = "";
  let installed = "";
  before(async () => {
    place = await realpath(await mkdtemp(join(tmpdir(), "hermes-package-")));
    const staged = join(place, "staged");
    const { files } = await manifest();
    for (const name of ["package.json", ...files.filter((name) => name !== "dist")])
      await cp(join(repository, name), join(staged, name), { recursive: true });
    if (builtProgram) await cp(join(builtProgram, "dist"), join(staged, "dist"), { recursive: true });
    else await run(process.execPath, [join(repository, "scripts", "build.mjs"), join(staged, "dist")]);
    await run("npm", ["pack", "--ignore-scripts", "--pack-destination", place], { cwd: staged });
    const tarball = (await readdir(place)).find((name) => name.endsWith(".tgz")) ?? "";
    const options = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
    await run("npm", ["install", "-g", "--prefix", join(place, "prefix"), join(place, tarball), ...options], {
      // npm looks at this one for `engines`.
      env: { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` },
    });
    installed = join(place, "prefix", "lib", "node_modules", "hermes-ts");
  });
  after(() => rm(place, { recursive: true, force: true }));

  test("is small, and brings no package that it does not load", async () => {
    const size = await sizeOf(join(place, "prefix"));
    assert.ok(size < MOST_BYTES, `${Math.round(size / 1024 / 1024)} MB`);
    const { optionalDependencies, ...rest } = await manifest();
    assert.equal(rest.dependencies, undefined);
    const chunks = (await readdir(join(installed, "dist"))).filter((name) => name.endsWith("js"));
    const code = (await Promise.all(chunks.map((name) => readFile(join(installed, "dist", name), "utf8")))).join("\n");
    for (const name of Object.keys(optionalDependencies)) assert.ok(code.includes(`import("${name}")`), name);
    const packages = await readdir(join(installed, "node_modules"), { recursive: true }).catch(() => []);
    const families = Object.keys(optionalDependencies).map((name) => name.split("/").slice(0, 2).join("/"));
    for (const name of packages.filter((path) => /^@[^/]+\/[^/]+$/.test(path)))
      assert.ok(
        families.some((family) => name.startsWith(family)),
        name,
      );
  });

  test("brings a manual page", async () => {
    const page = await readFile(join(place, "prefix", "share", "man", "man1", "hermes.1"), "utf8");
    assert.match(page, /^\.TH HERMES 1 /);
  });

  test("names the licence of every package that is inside", async () => {
    const { devDependencies } = await manifest();
    const notices = await readFile(join(installed, "dist", "THIRD-PARTY-NOTICES.txt"), "utf8");
    for (const [name, version] of Object.entries(devDependencies))
      if (!TOOLS.has(name)) assert.ok(notices.includes(`===== ${name}@${version} =====`), name);
  });

  test("has a bill of materials with what is inside and what npm may add, and nothing else", async () => {
    const { devDependencies, optionalDependencies } = await manifest();
    const script = join(repository, "scripts", "sbom.mjs");
    const { stdout } = await run(process.execPath, [script, join(installed, "dist")], { maxBuffer: 1 << 26 });
    const { components } = JSON.parse(stdout) as { components: { name: string; version: string; scope: string }[] };
    const scopes = new Map(components.map(({ name, version, scope }) => [`${name}@${version}`, scope]));
    for (const [name, version] of Object.entries(devDependencies))
      assert.equal(scopes.get(`${name}@${version}`), TOOLS.has(name) ? undefined : "required", name);
    for (const [name, version] of Object.entries(optionalDependencies))
      assert.equal(scopes.get(`${name}@${version}`), "optional", name);
    assert.ok(!components.some(({ name }) => name === "typescript" || name === "playwright-core"));
    const inside = new Set(components.map(({ name }) => name));
    const ofPlatforms = (await builtinPlatforms()).flatMap(({ packages = {} }) => Object.keys(packages));
    assert.ok(ofPlatforms.length > 0, "hermes gateway setup installs them into the home");
    assert.deepEqual(
      ofPlatforms.filter((name) => inside.has(name)),
      [],
    );
  });

  test("asks for the Node that its launcher asks for", async () => {
    const { engines } = await manifest();
    const launcher = await readFile(join(installed, "bin", "hermes.mjs"), "utf8");
    assert.equal(engines.node, `>=${/REQUIRED_MAJOR = (\d+)/.exec(launcher)?.[1]}`);
    assert.ok(OLDEST_NODE.startsWith(engines.node.slice(2)));
  });

  test("runs on the Node of the repository", () => answers(process.execPath));

  test(
    "runs on the oldest Node it promises to run on",
    { skip: downloadsUnwanted(`Node ${OLDEST_NODE} (180 MB)`) },
    async () => answers(await oldestNode()),
  );

  /** As a shell finds it: the link in the prefix, and the Node that comes first on the PATH. */
  async function answers(node: string): Promise<void> {
    await using home = await tempHome();
    await writeFile(join(home.project, "note.txt"), "the secret word is heron\n");
    const env = { ...environmentFor({ home, launcher: "installed" }) };
    env.PATH = [dirname(node), env.PATH].join(delimiter);
    const hermes = (...args: string[]) =>
      run(join(place, "prefix", "bin", "hermes"), args, { env, cwd: home.project, timeout: 120_000 });
    const { stdout: used } = await run("node", ["--version"], { env });
    assert.equal(used, (await run(node, ["--version"])).stdout);
    assert.match((await hermes("--version")).stdout, /^Hermes Agent v\d/);
    const greeting = await hermes("-z", "hello");
    assert.match(greeting.stdout, /built-in demo/);
    assert.doesNotMatch(greeting.stderr, /Warning/);
    assert.match((await hermes("-z", "read note.txt")).stdout, /the secret word is heron/);
    assert.match((await hermes("-z", "run echo $((6 * 7))")).stdout, /42/);
  }
});

async function manifest(): Promise<{
  readonly files: readonly string[];
  readonly engines: { readonly node: string };
  readonly dependencies?: object;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}> {
  return JSON.parse(await readFile(join(repository, "package.json"), "utf8"));
}

/** Kept between runs, beside what else is made here. */
async function oldestNode(): Promise<string> {
  const folder = join(repository, ".cache", `node-${OLDEST_NODE}`);
  const node = join(folder, "node_modules", "node", "bin", "node");
  if (await stat(node).catch(() => null)) return node;
  await mkdir(folder, { recursive: true });
  const dependencies = { node: OLDEST_NODE };
  await writeFile(join(folder, "package.json"), JSON.stringify({ dependencies, allowScripts: { node: true } }));
  await run("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder });
  return node;
}

async function sizeOf(folder: string): Promise<number> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const sizes = files.filter((entry) => entry.isFile()).map((entry) => stat(join(entry.parentPath, entry.name)));
  return (await Promise.all(sizes)).reduce((sum, { size }) => sum + size, 0);
}
