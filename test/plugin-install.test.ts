// Bringing plugins into a home: what is refused, and what is never lost.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { findPlugins } from "../src/plugins/find.ts";
import { installPlugin } from "../src/plugins/install.ts";

async function place(t: TestContext, files: Readonly<Record<string, string>> = {}) {
  const dir = await mkdtemp(join(tmpdir(), "hermes-install-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), text);
  }
  const folder = join(dir, "home", "plugins");
  const ports = { folder, cwd: dir, osHome: dir, env: { PATH: process.env.PATH ?? "" }, now: () => 0 };
  return {
    dir,
    folder,
    install: (source: string, replace = false) => installPlugin(source, { replace }, ports),
    found: () => findPlugins({ bundled: null, home: folder, project: null, packages: [] }),
  };
}

const plugin = (at: string, manifest: string) => ({
  [`${at}/plugin.yaml`]: manifest,
  [`${at}/index.mjs`]: "export default () => undefined;",
});

const REFUSED: readonly (readonly [what: string, files: Readonly<Record<string, string>>, said: RegExp])[] = [
  ["no folder", {}, /"src" is not a folder or a git URL.*npm install --prefix .*home src$/],
  ["an empty folder", { "src/readme": "" }, /contains no plugin: plugin\.yaml is missing/],
  ["code without a manifest", { "src/index.mjs": "" }, /it has no plugin\.yaml/],
  ["a manifest that is no YAML", plugin("src", "name: [a\n b: {"), /plugin\.yaml, line 1/],
  ["an unknown kind", plugin("src", "name: a\nkind: banana\n"), /kind "banana" is unknown; there are standalone/],
  ["a name that leads elsewhere", plugin("src", "name: ../../a\n"), /"\.\.\/\.\.\/a" is not a valid name/],
  ["a hidden name", plugin("src", "name: .a\n"), /"\.a" is not a valid name/],
  ["a name with three parts", plugin("src", "name: a/b/c\n"), /"a\/b\/c" is not a valid name/],
  ["a name with spaces", plugin("src", "name: a b\n"), /"a b" is not a valid name/],
  ["the name of a category", plugin("src", "name: memory\n"), /cannot be named "memory" here/],
  ["code outside the folder", { "src/plugin.yaml": "name: a\nmain: ../x.mjs\n", "x.mjs": "" }, /x\.mjs does not exist/],
  ["a manifest alone", { "src/plugin.yaml": "name: a\n" }, /it has no code file \(index\.js/],
  ["Python", { "src/plugin.yaml": "name: a\n", "src/__init__.py": "" }, /it is written in Python/],
];
for (const [what, files, said] of REFUSED) {
  test(`${what} is not installed, and nothing is left of the attempt`, async (t) => {
    const { install, folder } = await place(t, files);
    await assert.rejects(install("src"), said);
    assert.deepEqual(await readdir(folder).catch(() => []), []);
  });
}

test("what is no address and no name of a package gets no advice about packages", async (t) => {
  const { install } = await place(t);
  for (const source of ["/nowhere", "./nowhere", "~/nowhere", "ext::sh -c true", "https://", "ssh:///x"])
    await assert.rejects(install(source), /not a folder or a git URL\.$/);
});

test("a repository that is not there is named with git's reason", async (t) => {
  const { install, dir } = await place(t);
  await assert.rejects(install(`file://${dir}/gone`), /gone could not be cloned: fatal: .*gone/);
});

test("a folder of other plugins is never replaced, not even by force", async (t) => {
  const { install, folder, found } = await place(t, {
    ...plugin("src", "name: tools\n"),
    ...plugin("home/plugins/tools/inner", "name: inner\n"),
  });
  await assert.rejects(install("src", true), /cannot be named "tools" here/);
  assert.deepEqual(
    (await found()).map(({ key }) => key),
    ["tools/inner"],
  );
  assert.deepEqual(await readdir(folder), ["tools"]);
});

test("an installed plugin is replaced by force alone, and stays when its successor is broken", async (t) => {
  const { install, folder, dir, found } = await place(t, plugin("src", "name: a\nversion: 1\n"));
  await install("src");
  await assert.rejects(install("src"), /a 1 is already installed.*hermes plugins update a.*--force/);
  await writeFile(join(dir, "src", "plugin.yaml"), "name: a\nversion: 2\nkind: banana\n");
  await assert.rejects(install("src", true), /kind "banana"/);
  assert.equal((await found())[0]?.manifest.version, "1");
  await writeFile(join(dir, "src", "plugin.yaml"), "name: a\nversion: 2\n");
  assert.equal((await install("src", true)).replaced, "1");
  assert.match(await readFile(join(folder, "a", "plugin.yaml"), "utf8"), /version: 2/);
  assert.deepEqual(await readdir(folder), ["a"]);
});
