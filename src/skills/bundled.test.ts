import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { type SkillsHome, skillsHome, skillText } from "../../test/support/skills-home.ts";
import {
  acceptBundled,
  diffBundled,
  findBundled,
  modifiedSkills,
  optIn,
  optOut,
  restoreBundled,
  syncBundledSkills,
} from "./bundled.ts";
import { syncOnStart } from "./open.ts";
import { readBundledManifest } from "./provenance.ts";
import { exists, hashSkill } from "./skill-copy.ts";

async function world(files: Record<string, string> = {}): Promise<SkillsHome> {
  const context = await skillsHome({
    "shipped/dev/one/SKILL.md": "One",
    "shipped/dev/one/references/a.md": "a\n",
    "shipped/dev/DESCRIPTION.md": "---\ndescription: Dev\n---\n",
    ...files,
  });
  context.variables.HERMES_BUNDLED_SKILLS = context.at("shipped");
  return context;
}
const one = "skills/dev/one";
const text = (context: SkillsHome, path = `${one}/SKILL.md`) => readFile(context.at(path), "utf8");
const done = async (context: SkillsHome) => {
  const { total_bundled: _, ...lists } = await syncBundledSkills(context);
  return Object.fromEntries(Object.entries(lists).filter(([, names]) => names.length > 0));
};

test("neither in the manifest nor on disk: copied, with its category's text", async () => {
  const context = await world();
  await chmod(context.at("shipped/dev/one/SKILL.md"), 0o444);
  assert.deepEqual(await done(context), { copied: ["one"] });
  assert.equal(await text(context, `${one}/references/a.md`), "a\n");
  assert.equal(await text(context, "skills/dev/DESCRIPTION.md"), "---\ndescription: Dev\n---\n");
  assert.ok((await stat(context.at(`${one}/SKILL.md`))).mode & 0o200, "the user can write to it");
  assert.match(await text(context, "skills/.bundled_manifest"), /^one:[0-9a-f]{64}\n$/);
  assert.deepEqual(await done(context), { skipped: ["one"] });
  assert.deepEqual(await readdir(context.at("skills/.hub/staging")), []);
});

test("not in the manifest, identical on disk: recorded", async () => {
  const context = await world({ [`${one}/SKILL.md`]: "One", [`${one}/references/a.md`]: "a\n" });
  assert.deepEqual(await done(context), { skipped: ["one"] });
  assert.ok((await readBundledManifest(context)).lines.has("one"));
});

test("not in the manifest, different on disk or under another path: the user's stays, unrecorded", async () => {
  for (const path of [one, "skills/other/one"]) {
    const context = await world({ [`${path}/SKILL.md`]: "Mine" });
    assert.deepEqual(await done(context), { conflicts: ["one"] });
    assert.equal((await readBundledManifest(context)).lines.size, 0);
    assert.match(await text(context, `${path}/SKILL.md`), /Mine/);
  }
});

test("a new version replaces an untouched copy, with files that are gone", async () => {
  const context = await world();
  await done(context);
  await context.write("shipped/dev/one/SKILL.md", "One, better");
  await rm(context.at("shipped/dev/one/references"), { recursive: true });
  assert.deepEqual(await done(context), { updated: ["one"] });
  assert.match(await text(context), /One, better/);
  assert.equal(await exists(context.at(`${one}/references`)), false);
  assert.deepEqual(await done(context), { skipped: ["one"] });
});

test("what the user changed stays", async () => {
  const context = await world();
  await done(context);
  await context.write(`${one}/SKILL.md`, "Mine");
  await context.write("shipped/dev/one/SKILL.md", "One, better");
  assert.deepEqual(await done(context), { user_modified: ["one"] });
  assert.match(await text(context), /Mine/);
});

test("what the user deleted stays deleted", async () => {
  const context = await world();
  await done(context);
  await rm(context.at(one), { recursive: true });
  assert.deepEqual(await done(context), { skipped: ["one"] });
  assert.equal(await exists(context.at(one)), false);
});

test("a skill that moved in the program moves in the home, if it is untouched", async () => {
  const context = await world();
  await done(context);
  await mkdir(context.at("shipped/ops"));
  await rename(context.at("shipped/dev/one"), context.at("shipped/ops/one"));
  await context.write("shipped/ops/one/SKILL.md", "One, better");
  assert.deepEqual(await done(context), { relocated: ["one"] });
  assert.match(await text(context, "skills/ops/one/SKILL.md"), /better/);
  assert.equal(await exists(context.at(one)), false);
});

test("what is no longer shipped loses its entry and keeps its files; entries of another edition stay", async () => {
  const context = await world();
  await done(context);
  const line = await text(context, "skills/.bundled_manifest");
  await writeFile(context.at("skills/.bundled_manifest"), `${line}theirs:${"a".repeat(32)}\n`);
  await rm(context.at("shipped/dev/one"), { recursive: true });
  assert.deepEqual(await done(context), { cleaned: ["one"] });
  assert.ok(await exists(context.at(one)));
  assert.equal(await text(context, "skills/.bundled_manifest"), `theirs:${"a".repeat(32)}\n`);
});

test("an old line without a digest takes what is there for the baseline", async () => {
  const context = await world({ [`${one}/SKILL.md`]: "Older", "skills/.bundled_manifest": "one\n" });
  assert.deepEqual(await done(context), { skipped: ["one"] });
  assert.match(await text(context), /Older/);
  assert.equal((await readBundledManifest(context)).lines.get("one")?.origin, await hashSkill(context.at(one)));
});

test("suppressed names, the opt-out marker and external folders are respected", async () => {
  const context = await world({ "skills/.curator_suppressed": "one\n", "ext/one/SKILL.md": "External" });
  assert.deepEqual(await done(context), { suppressed: ["one"] });
  await rm(context.at("skills/.curator_suppressed"));
  await writeFile(context.at(".no-bundled-skills"), "");
  assert.deepEqual(await syncBundledSkills(context).then(({ total_bundled }) => total_bundled), 0);
  await rm(context.at(".no-bundled-skills"));
  await done(context);
  context.settings = { external_dirs: ["ext"] };
  assert.deepEqual(await done(context), { skipped: ["one"] });
  assert.equal(await exists(context.at(one)), false, "an untouched copy gives way");
});

for (const aside of ["skills/.hub/staging/one/old", `${one}.bak`]) {
  test(`an update that was cut short is undone first (${aside})`, async () => {
    const context = await world();
    await done(context);
    await mkdir(context.at(aside, ".."), { recursive: true });
    await rename(context.at(one), context.at(aside));
    assert.deepEqual(await done(context), { skipped: ["one"] });
    assert.match(await text(context), /One/);
    assert.equal(await exists(context.at(aside)), false);
  });
}

test("a crash behind the copy and before the manifest is no edit by the user", async () => {
  const context = await world();
  await done(context);
  await context.write("shipped/dev/one/SKILL.md", "One, better");
  await context.write(`${one}/SKILL.md`, "One, better");
  assert.deepEqual(await done(context), { skipped: ["one"] });
  await context.write("shipped/dev/one/SKILL.md", "One, best");
  assert.deepEqual(await done(context), { updated: ["one"] });
});

test("one skill that fails does not stop the others", async () => {
  const context = await world({ "shipped/ops/two/SKILL.md": "Two", "skills/dev": "a file in the way\n" });
  const { failed, copied } = await syncBundledSkills(context);
  assert.deepEqual(copied, ["two"]);
  assert.equal(failed.length, 1);
  assert.match(failed[0] ?? "", /^one: /);
});

test("at start the sync runs once per version", async () => {
  const context = await world();
  assert.deepEqual((await syncOnStart(context))?.copied, ["one"]);
  assert.equal(await syncOnStart(context), null);
});

test("edits are listed and shown; accepting one lets the next change in", async () => {
  const context = await world();
  await done(context);
  assert.deepEqual(await modifiedSkills(context), []);
  await context.write(`${one}/SKILL.md`, skillText("one", "One", "", "# one\n\nMine.\n"));
  await context.write(`${one}/references/new.md`, "n\n");
  assert.deepEqual(
    (await modifiedSkills(context)).map(({ name }) => name),
    ["one"],
  );
  const skill = await findBundled("one", context);
  assert.ok(skill);
  const diff = await diffBundled(skill, context);
  assert.match(diff, /^-Do it\.\n\+Mine\.$/m);
  assert.match(diff, /^\+\+\+ b\/dev\/one\/references\/new\.md$/m);

  await acceptBundled(skill, context);
  assert.deepEqual(await modifiedSkills(context), []);
  assert.deepEqual(await done(context), { skipped: ["one"] });
  assert.match(await text(context), /Mine/);
  await context.write("shipped/dev/one/SKILL.md", "One, better");
  assert.deepEqual(await done(context), { updated: ["one"] });
});

test("restoring brings the shipped version back and keeps the user's in the archive", async () => {
  const context = await world();
  await done(context);
  await context.write(`${one}/SKILL.md`, "Mine");
  const skill = await findBundled("dev/one", context);
  assert.ok(skill);
  assert.equal(await restoreBundled(skill, context), context.at("skills/.archive/one"));
  assert.match(await text(context, "skills/.archive/one/SKILL.md"), /Mine/);
  assert.deepEqual(await done(context), { skipped: ["one"] });
  await rm(context.at(one), { recursive: true });
  assert.equal(await restoreBundled(skill, context), null);
  assert.match(await text(context), /One/);
});

test("opting out removes untouched copies on request, and opting in undoes it", async () => {
  const context = await world({ "shipped/dev/two/SKILL.md": "Two" });
  await done(context);
  await context.write("skills/dev/two/SKILL.md", "Mine");
  assert.deepEqual(await optOut(context, { remove: true }), ["one"]);
  assert.deepEqual((await readdir(context.at("skills/dev"))).sort(), ["DESCRIPTION.md", "two"]);
  assert.deepEqual(await done(context), {});
  await optIn(context);
  assert.deepEqual(await done(context), { copied: ["one"], user_modified: ["two"] });
});
