import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { findPlugins } from "./find.ts";
import { type PluginSettings, standingOf } from "./outlines.ts";

const CODE = "export default () => undefined;";
const plugin = (at: string, version: string, more = "") => ({
  [`${at}/plugin.yaml`]: `name: ${at.split("/").at(-1)}\nversion: "${version}"\n${more}`,
  [`${at}/index.mjs`]: CODE,
});
const packaged = (at: string, facts: object) => ({
  [`${at}/package.json`]: JSON.stringify({ version: "9", ...facts }),
  [`${at}/index.js`]: CODE,
});

async function rig(t: TestContext, files: Readonly<Record<string, string>>) {
  const dir = await mkdtemp(join(tmpdir(), "hermes-find-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), text);
  }
  return {
    dir,
    find: () =>
      findPlugins({
        bundled: join(dir, "bundled"),
        home: join(dir, "home"),
        project: join(dir, "project"),
        packages: [join(dir, "near"), join(dir, "node_modules")],
      }),
  };
}

test("every place is searched, and a later one wins by key: bundled, home, project, packages", async (t) => {
  const { find } = await rig(t, {
    ...plugin("bundled/all", "1"),
    ...plugin("home/all", "2"),
    ...plugin("project/all", "3"),
    ...packaged("node_modules/all", { keywords: ["hermes-agent-plugin"] }),
    ...plugin("bundled/some", "1"),
    ...plugin("home/some", "2"),
    ...plugin("project/mine", "3"),
    ...plugin("home/web/searcher", "2"),
    ...plugin("home/memory/first", "2"),
    ...plugin("home/memory/second", "2"),
  });
  const found = (await find()).map(({ key, source, manifest, hides }) => [key, source, manifest.version, hides]);
  assert.deepEqual(found, [
    ["memory/first", "home", "2", null],
    ["memory/second", "home", "2", null],
    ["some", "home", "2", "bundled"],
    ["web/searcher", "home", "2", null],
    ["mine", "project", "3", null],
    ["all", "package", "9", "project"],
  ]);
});

const PACKAGES: readonly (readonly [what: string, facts: object, entry: string | RegExp | null])[] = [
  ["the keyword alone", { keywords: ["hermes-agent-plugin"] }, "index.js"],
  ["the field as a flag", { "hermes-agent-plugin": true }, "index.js"],
  ["the field as a manifest", { "hermes-agent-plugin": { kind: "backend", main: "more.mjs" } }, "more.mjs"],
  ["main of the package", { keywords: ["hermes-agent-plugin"], main: "./more.mjs" }, "more.mjs"],
  ["exports as a text", { keywords: ["hermes-agent-plugin"], exports: "./more.mjs" }, "more.mjs"],
  [
    "exports with conditions",
    { keywords: ["hermes-agent-plugin"], exports: { ".": { types: "./x.d.ts", import: "./more.mjs" } } },
    "more.mjs",
  ],
  ["code that is not there", { keywords: ["hermes-agent-plugin"], main: "gone.js" }, /gone\.js does not exist/],
  ["a wrong kind", { "hermes-agent-plugin": { kind: "banana" } }, /kind "banana" is unknown/],
  ["another keyword", { keywords: ["plugin"] }, null],
  ["none of it", {}, null],
];
for (const [what, facts, entry] of PACKAGES) {
  test(`a package with ${what}: ${entry ?? "no plugin"}`, async (t) => {
    const { find, dir } = await rig(t, {
      ...packaged("node_modules/@me/pack", facts),
      "node_modules/@me/pack/more.mjs": CODE,
    });
    const [found] = await find();
    if (entry === null) return assert.equal(found, undefined);
    if (typeof entry === "string") assert.equal(found?.entry, join(dir, "node_modules", "@me", "pack", entry));
    else assert.match(found?.problem ?? "", entry);
  });
}

test("what cannot be used is listed with its reason, and what is no plugin is not listed", async (t) => {
  const { find, dir } = await rig(t, {
    "home/python/plugin.yaml": "name: python\n",
    "home/python/__init__.py": "",
    "home/empty/plugin.yaml": "name: empty\n",
    "home/bare/index.mjs": CODE,
    "home/notes/readme.md": "",
    "home/.hidden/plugin.yaml": "name: hidden\n",
    "home/node_modules/x/plugin.yaml": "name: x\n",
    "home/file": "",
    "elsewhere/code.mjs": CODE,
    "home/sly/plugin.yaml": "name: sly\nmain: link.mjs\n",
    ...plugin("linked", "1"),
  });
  await symlink(join(dir, "elsewhere", "code.mjs"), join(dir, "home", "sly", "link.mjs"));
  await symlink(join(dir, "linked"), join(dir, "home", "linked"));
  await symlink(join(dir, "nowhere"), join(dir, "home", "dangling"));
  const found = Object.fromEntries((await find()).map(({ key, problem }) => [key, problem]));
  assert.deepEqual(Object.keys(found), ["bare", "empty", "linked", "python", "sly"]);
  assert.match(found.python ?? "", /written in Python/);
  assert.match(found.empty ?? "", /it has no code file/);
  assert.match(found.bare ?? "", /it has no plugin\.yaml/);
  assert.match(found.sly ?? "", /is outside its folder/);
  assert.equal(found.linked, null);
});

const STANDINGS: readonly (readonly [at: string, more: string, settings: PluginSettings, standing: string])[] = [
  ["home/a", "", { disabled: [] }, "off"],
  ["home/a", "", { enabled: ["a"], disabled: [] }, "on"],
  ["home/a", "", { enabled: ["a"], disabled: ["a"] }, "off"],
  ["home/a", "kind: backend\n", { disabled: [] }, "off"],
  ["bundled/a", "", { disabled: [] }, "off"],
  ["bundled/a", "kind: backend\n", { disabled: [] }, "on"],
  ["bundled/a", "kind: platform\n", { disabled: [] }, "on"],
  ["bundled/a", "kind: platform\n", { disabled: ["a"] }, "off"],
  ["project/a", "kind: backend\n", { disabled: [] }, "off"],
  ["home/web/a", "", { enabled: ["web/a"], disabled: [] }, "on"],
  ["home/memory/a", "", { enabled: ["memory/a"], disabled: [] }, "single: memory.provider"],
  ["home/context_engine/a", "", { disabled: [] }, "single: context.engine"],
  ["home/context_engine/a", "", { disabled: ["context_engine/a"] }, "off"],
  ["home/a", "kind: exclusive\n", { enabled: ["a"], disabled: [] }, "single: memory.provider"],
  ["home/a", "kind: exclusive\nprovides_context_engine: [x]\n", { disabled: [] }, "single: context.engine"],
];
for (const [at, more, settings, wanted] of STANDINGS) {
  test(`${at} ${more.replaceAll("\n", " ")}with ${JSON.stringify(settings)} is ${wanted}`, async (t) => {
    const { find } = await rig(t, plugin(at, "1", more));
    const [found] = await find();
    assert.ok(found);
    const standing = standingOf(found, settings);
    assert.equal(standing.type === "single" ? `single: ${standing.setting}` : standing.type, wanted);
  });
}
