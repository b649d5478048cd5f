import assert from "node:assert/strict";
import { mkdir, readFile, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { skillsHome, skillText } from "../../test/support/skills-home.ts";
import { systemClock } from "../kit/clock.ts";
import { loadCatalogue, unshadowed } from "./catalogue.ts";
import { walkSkills } from "./files.ts";
import { resolveSkill } from "./resolve.ts";

const paths = async (context: Parameters<typeof loadCatalogue>[0]) =>
  (await loadCatalogue(context)).roots.flatMap(({ skills }) => skills.map(({ path }) => path));

test("skills are found at any depth, with their category", async () => {
  const context = await skillsHome({
    "skills/alone/SKILL.md": "At the top",
    "skills/dev/git/SKILL.md": "One down",
    "skills/dev/deep/er/SKILL.md": "Two down",
    "skills/dev/DESCRIPTION.md": "---\ndescription: For developers\n---\n",
  });
  const [root] = (await loadCatalogue(context)).roots;
  assert.deepEqual(
    root?.skills.map(({ path, category, name, description }) => [path, category, name, description]),
    [
      ["alone", null, "alone", "At the top"],
      ["dev/deep/er", "dev/deep", "er", "Two down"],
      ["dev/git", "dev", "git", "One down"],
    ],
  );
  assert.deepEqual(root?.categories, { dev: "For developers" });
});

const hidden =
  ".git .github .hub .archive .curator_backups .venv venv node_modules site-packages __pycache__ .tox .nox .pytest_cache .mypy_cache .ruff_cache";
test("certain folders are never entered", async () => {
  const context = await skillsHome(
    Object.fromEntries(hidden.split(" ").map((name) => [`skills/${name}/x/SKILL.md`, "Hidden"])),
  );
  await context.write("skills/references/y/SKILL.md", "A category of that name is a category");
  assert.deepEqual(await paths(context), ["references/y"]);
});

test("a SKILL.md below a skill's support folders is data; below its other folders it is a skill", async () => {
  const context = await skillsHome({
    "skills/a/SKILL.md": "A",
    "skills/a/references/x/SKILL.md": "data",
    "skills/a/templates/x/SKILL.md": "data",
    "skills/a/scripts/x/SKILL.md": "data",
    "skills/a/assets/x/SKILL.md": "data",
    "skills/a/sub/SKILL.md": "Sub",
  });
  assert.deepEqual(await paths(context), ["a", "a/sub"]);
});

test("a root below a folder of an excluded name is searched all the same", async () => {
  const context = await skillsHome({ "venv/node_modules/x/SKILL.md": "External" });
  context.settings = { external_dirs: ["venv/node_modules"] };
  assert.deepEqual(await paths(context), ["x"]);
});

test("linked folders are followed once, circles end, and a folder keeps its own path", async () => {
  const context = await skillsHome({ "skills/z/real/SKILL.md": "Real", "elsewhere/linked/SKILL.md": "Linked" });
  await symlink(context.at("elsewhere"), context.at("skills/b"));
  await symlink(context.at("skills"), context.at("skills/a-circle"));
  await symlink(context.at("skills/z"), context.at("skills/a-double"));
  await symlink(context.at("nowhere"), context.at("skills/dangling"));
  assert.deepEqual(await paths(context), ["b/linked", "z/real"]);
});

test("external folders: home, variables, relative, missing, doubled and the home's own", async () => {
  const context = await skillsHome({ "skills/a/SKILL.md": "local", "more/b/SKILL.md": "B" });
  const user = context.home.osHome;
  for (const [dir, name] of [
    ["tilde", "c"],
    ["var", "d"],
  ] as const) {
    await mkdir(join(user, dir, name), { recursive: true });
    await writeFile(join(user, dir, name, "SKILL.md"), skillText(name, name));
  }
  context.variables.WHERE = join(user, "var");
  context.settings = {
    external_dirs: [
      "more",
      "~/tilde",
      ["$", "{WHERE}"].join(""),
      "/does/not/exist",
      "more/../more",
      context.at("skills"),
    ],
  };
  assert.deepEqual(await paths(context), ["a", "b", "c", "d"]);
});

test("of one name the first root wins", async () => {
  const context = await skillsHome({
    "skills/a/SKILL.md": "Mine",
    "ext/cat/a/SKILL.md": "Theirs",
    "ext/b/SKILL.md": "B",
  });
  context.settings = { external_dirs: ["ext"] };
  const skills = unshadowed(await loadCatalogue(context));
  assert.deepEqual(
    skills.map(({ name, description }) => [name, description]),
    [
      ["a", "Mine"],
      ["b", "B"],
    ],
  );
});

test("what cannot be parsed is listed by its directory and reported", async () => {
  const context = await skillsHome({
    "skills/none/SKILL.md": "# Just text\n",
    "skills/open/SKILL.md": "---\nname: x\n",
    "skills/yaml/SKILL.md": "---\nname: saved\ndescription: Kept\nbad: [\n---\nBody\n",
    "skills/named/SKILL.md": "---\nname: ../../etc\ndescription: D\n---\nBody\n",
    "skills/platform/SKILL.md": "---\nname: platform\ndescription: D\nplatforms: [amiga, linux]\n---\nBody\n",
  });
  const [root] = (await loadCatalogue(context)).roots;
  const rows = root?.skills.map(({ name, description, problems }) => [name, description, problems.length]);
  assert.deepEqual(rows, [
    ["named", "D", 1],
    ["none", "", 1],
    ["open", "", 1],
    ["platform", "D", 1],
    ["saved", "Kept", 1],
  ]);
});

test("a long front matter is read whole", async () => {
  const context = await skillsHome({
    "skills/a/SKILL.md": `---\nx: ${"y".repeat(9000)}\nname: late\ndescription: D\n---\nBody\n`,
  });
  assert.equal((await loadCatalogue(context)).roots[0]?.skills[0]?.name, "late");
});

test("the snapshot is written once and trusted only while every file is as it was", async () => {
  const context = await skillsHome({
    "skills/c/a/SKILL.md": "First",
    "skills/c/DESCRIPTION.md": "---\ndescription: C\n---\n",
  });
  const file = context.at(".skills_prompt_snapshot.json");
  const first = await loadCatalogue(context);
  const stored = JSON.parse(await readFile(file, "utf8"));
  assert.equal(stored.version, 3);
  assert.deepEqual(Object.keys(stored.manifest), ["c/DESCRIPTION.md", "c/a/SKILL.md"]);
  assert.match(stored.manifest["c/a/SKILL.md"][0], /^\d{18,}$/);
  assert.equal(stored.skills[0].frontmatter_name, "a");

  stored.skills[0].description = "From the snapshot";
  await writeFile(file, JSON.stringify(stored));
  const second = await loadCatalogue(context);
  assert.equal(second.roots[0]?.skills[0]?.description, "From the snapshot");
  assert.deepEqual(second.roots[0]?.categories, first.roots[0]?.categories);
  assert.equal(second.digest, first.digest);

  await utimes(context.at("skills/c/a/SKILL.md"), 1, 1);
  const third = await loadCatalogue(context);
  assert.equal(third.roots[0]?.skills[0]?.description, "First");
  assert.notEqual(third.digest, first.digest);
});

test("when one file has changed, only that file is read again", async () => {
  const context = await skillsHome({
    "skills/c/a/SKILL.md": "A",
    "skills/c/b/SKILL.md": "B",
    "skills/c/DESCRIPTION.md": "---\ndescription: C\n---\n",
    "skills/d/DESCRIPTION.md": "---\ndescription: D\n---\n",
  });
  const file = context.at(".skills_prompt_snapshot.json");
  await loadCatalogue(context);
  const stored = JSON.parse(await readFile(file, "utf8"));
  for (const skill of stored.skills) skill.description = `${skill.description} kept`;
  stored.category_descriptions = { c: "C kept", d: "D kept" };
  await writeFile(file, JSON.stringify(stored));

  await context.write("skills/c/b/SKILL.md", "B is new");
  await context.write("skills/c/new/SKILL.md", "New");
  await context.write("skills/d/DESCRIPTION.md", "---\ndescription: D is new\n---\n");
  const [root] = (await loadCatalogue(context)).roots;
  assert.deepEqual(
    root?.skills.map(({ description }) => description),
    ["A kept", "B is new", "New"],
  );
  assert.deepEqual(root?.categories, { c: "C kept", d: "D is new" });
});

for (const broken of [
  "",
  "{",
  "[]",
  '{"version":3}',
  '{"version":2,"manifest":{},"skills":[],"category_descriptions":{}}',
  '{"version":3,"manifest":{},"skills":[{"x":1}],"category_descriptions":{}}',
]) {
  test(`a snapshot that reads ${JSON.stringify(broken).slice(0, 40)} is replaced`, async () => {
    const context = await skillsHome({ "skills/a/SKILL.md": "A", ".skills_prompt_snapshot.json": broken });
    assert.deepEqual(await paths(context), ["a"]);
    assert.equal(JSON.parse(await readFile(context.at(".skills_prompt_snapshot.json"), "utf8")).skills.length, 1);
  });
}

test("a snapshot that cannot be written costs nothing", async () => {
  const context = await skillsHome({ "skills/a/SKILL.md": "A" });
  await mkdir(context.at(".skills_prompt_snapshot.json"));
  assert.deepEqual(await paths(context), ["a"]);
});

test("a missing root is empty", async () => {
  assert.deepEqual(await walkSkills("/does/not/exist"), { skills: [], described: [], manifest: {} });
});

const world = {
  "skills/dev/git-flow/SKILL.md": skillText("branching", "Front matter name differs"),
  "skills/ops/twin/SKILL.md": "One",
  "skills/web/twin/SKILL.md": "Two",
  "skills/top/SKILL.md": "No category",
  "skills/deep/er/down/SKILL.md": "Deep",
  "ext/misc/twin/SKILL.md": "Shadowed",
  "ext/misc/only/SKILL.md": "External",
  "plug/one/SKILL.md": "Of a plugin",
  "plug/neighbour/SKILL.md": "Not registered",
  "plug-more/set/two/SKILL.md": "Of the same plugin, in another folder of several",
};
const names: readonly (readonly [string, string])[] = [
  ["branching", "dev/git-flow"],
  ["git-flow", "dev/git-flow"],
  ["dev/git-flow", "dev/git-flow"],
  ["dev:git-flow", "dev/git-flow"],
  ["dev/branching", "dev/git-flow"],
  ["dev/git-flow/", "dev/git-flow"],
  ["ops/twin", "ops/twin"],
  ["twin", "ambiguous"],
  ["top", "top"],
  ["general/top", "top"],
  ["general:top", "top"],
  ["deep/er/down", "deep/er/down"],
  ["er/down", "not_found"],
  ["only", "misc/only"],
  ["misc/twin", "misc/twin"],
  ["my-plugin:one", "one"],
  ["my-plugin:two", "set/two"],
  ["my-plugin:neighbour", "not_found"],
  ["other-plugin:one", "not_found"],
  ["one", "not_found"],
  ["", "bad_name"],
  ["/etc/passwd", "bad_name"],
  ["C:\\x", "bad_name"],
  ["c:/x", "bad_name"],
  ["~/x", "bad_name"],
  ["../x", "bad_name"],
  ["dev/../top", "bad_name"],
  ["dev\\..\\top", "bad_name"],
  ["dev:..", "bad_name"],
  ["a\u0000b", "bad_name"],
  ["Branching", "not_found"],
];
for (const [name, expected] of names) {
  test(`the name ${JSON.stringify(name)} means ${expected}`, async () => {
    const home = await skillsHome(world);
    home.settings = { external_dirs: ["ext"] };
    const context = { ...home, plugins: new Map([["my-plugin", [home.at("plug/one"), home.at("plug-more/set")]]]) };
    const found = await resolveSkill(name, await loadCatalogue(context), context);
    assert.equal(found.type === "found" ? found.skill.path : found.type, expected);
  });
}

test("what a local skill hides is told", async () => {
  const context = await skillsHome({ "skills/a/SKILL.md": "Mine", "ext/x/a/SKILL.md": "Theirs" });
  context.settings = { external_dirs: ["ext"] };
  const found = await resolveSkill("a", await loadCatalogue(context), context);
  assert.deepEqual(found.type === "found" && found.shadows, [context.at("ext/x/a")]);
});

test("a root is read again when something in it changed, and only then", async () => {
  const context = await skillsHome({
    "skills/a/SKILL.md": "First",
    "skills/dev/b/SKILL.md": "Second",
    "linked/one/SKILL.md": "One",
    "linked/two/SKILL.md": "Two",
  });
  const at = (name: string) => context.at("skills", name);
  // A while later, as the clock says: what was written just now counts as settled.
  const later = { ...context, clock: { ...systemClock, now: () => Date.now() + 60_000 } };
  const shown = async (): Promise<readonly string[]> => {
    const [root] = (await loadCatalogue(later)).roots;
    assert.equal((await loadCatalogue(later)).roots[0], root, "it was read again");
    return root?.skills.map(({ path, description }) => `${path}: ${description}`) ?? [];
  };
  assert.deepEqual(await shown(), ["a: First", "dev/b: Second"]);
  await context.write("skills/a/SKILL.md", "Fi4st");
  assert.deepEqual(await shown(), ["a: Fi4st", "dev/b: Second"]);
  await context.write("skills/dev/c/SKILL.md", "Third");
  assert.deepEqual(await shown(), ["a: Fi4st", "dev/b: Second", "dev/c: Third"]);
  await rename(at("dev/b"), at("b"));
  assert.deepEqual(await shown(), ["a: Fi4st", "b: Second", "dev/c: Third"]);
  await symlink(context.at("linked/one"), at("link"));
  assert.deepEqual(await shown(), ["a: Fi4st", "b: Second", "dev/c: Third", "link: One"]);
  await rename(context.at("linked/two"), context.at("linked/three"));
  await rename(context.at("linked/one"), context.at("linked/two"));
  assert.deepEqual(await shown(), ["a: Fi4st", "b: Second", "dev/c: Third"]);
  await rename(context.at("linked/three"), context.at("linked/one"));
  assert.deepEqual(await shown(), ["a: Fi4st", "b: Second", "dev/c: Third", "link: Two"]);
  await rm(at("dev"), { recursive: true });
  assert.deepEqual(await shown(), ["a: Fi4st", "b: Second", "link: Two"]);
});

test("what was changed a moment ago is looked at again each time", async () => {
  const before = Date.now();
  const context = await skillsHome({ "skills/a/SKILL.md": "First" });
  const then = { ...context, clock: { ...systemClock, now: () => before } };
  const [first] = (await loadCatalogue(then)).roots;
  const [second] = (await loadCatalogue(then)).roots;
  assert.notEqual(first, second);
});
