import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { type SkillsHome, skillsHome, skillText } from "../../test/support/skills-place.ts";
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
  const place = await skillsHome({
    "shipped/dev/one/SKILL.md": "One",
    "shipped/dev/one/references/a.md": "a\n",
    "shipped/dev/DESCRIPTION.md": "---\ndescription: Dev\n---\n",
    ...files,
  });
  place.variables.HERMES_BUNDLED_SKILLS = place.at("shipped");
  return place;
}
const one = "skills/dev/one";
const text = (place: SkillsHome, path = `${one}/SKILL.md`) => readFile(place.at(path), "utf8");
const done = async (place: SkillsHome) => {
  const { total_bundled: _, ...lists } = await syncBundledSkills(place);
  return Object.fromEntries(Object.entries(lists).filter(([, names]) => names.length > 0));
};

test("neither in the manifest nor on disk: copied, with its category's text", async () => {
  const place = await world();
  await chmod(place.at("shipped/dev/one/SKILL.md"), 0o444);
  assert.deepEqual(await done(place), { copied: ["one"] });
  assert.equal(await text(place, `${one}/references/a.md`), "a\n");
  assert.equal(await text(place, "skills/dev/DESCRIPTION.md"), "---\ndescription: Dev\n---\n");
  assert.ok((await stat(place.at(`${one}/SKILL.md`))).mode & 0o200, "the user can write to it");
  assert.match(await text(place, "skills/.bundled_manifest"), /^one:[0-9a-f]{64}\n$/);
  assert.deepEqual(await done(place), { skipped: ["one"] });
  assert.deepEqual(await readdir(place.at("skills/.hub/staging")), []);
});

test("not in the manifest, identical on disk: recorded", async () => {
  const place = await world({ [`${one}/SKILL.md`]: "One", [`${one}/references/a.md`]: "a\n" });
  assert.deepEqual(await done(place), { skipped: ["one"] });
  assert.ok((await readBundledManifest(place)).lines.has("one"));
});

test("not in the manifest, different on disk or under another path: the user's stays, unrecorded", async () => {
  for (const path of [one, "skills/other/one"]) {
    const place = await world({ [`${path}/SKILL.md`]: "Mine" });
    assert.deepEqual(await done(place), { conflicts: ["one"] });
    assert.equal((await readBundledManifest(place)).lines.size, 0);
    assert.match(await text(place, `${path}/SKILL.md`), /Mine/);
  }
});

test("a new version replaces an untouched copy, with files that are gone", async () => {
  const place = await world();
  await done(place);
  await place.write("shipped/dev/one/SKILL.md", "One, better");
  await rm(place.at("shipped/dev/one/references"), { recursive: true });
  assert.deepEqual(await done(place), { updated: ["one"] });
  assert.match(await text(place), /One, better/);
  assert.equal(await exists(place.at(`${one}/references`)), false);
  assert.deepEqual(await done(place), { skipped: ["one"] });
});

test("what the user changed stays", async () => {
  const place = await world();
  await done(place);
  await place.write(`${one}/SKILL.md`, "Mine");
  await place.write("shipped/dev/one/SKILL.md", "One, better");
  assert.deepEqual(await done(place), { user_modified: ["one"] });
  assert.match(await text(place), /Mine/);
});

test("what the user deleted stays deleted", async () => {
  const place = await world();
  await done(place);
  await rm(place.at(one), { recursive: true });
  assert.deepEqual(await done(place), { skipped: ["one"] });
  assert.equal(await exists(place.at(one)), false);
});

test("a skill that moved in the program moves in the home, if it is untouched", async () => {
  const place = await world();
  await done(place);
  await mkdir(place.at("shipped/ops"));
  await rename(place.at("shipped/dev/one"), place.at("shipped/ops/one"));
  await place.write("shipped/ops/one/SKILL.md", "One, better");
  assert.deepEqual(await done(place), { relocated: ["one"] });
  assert.match(await text(place, "skills/ops/one/SKILL.md"), /better/);
  assert.equal(await exists(place.at(one)), false);
});

test("what is no longer shipped loses its entry and keeps its files; entries of another edition stay", async () => {
  const place = await world();
  await done(place);
  const line = await text(place, "skills/.bundled_manifest");
  await writeFile(place.at("skills/.bundled_manifest"), `${line}theirs:${"a".repeat(32)}\n`);
  await rm(place.at("shipped/dev/one"), { recursive: true });
  assert.deepEqual(await done(place), { cleaned: ["one"] });
  assert.ok(await exists(place.at(one)));
  assert.equal(await text(place, "skills/.bundled_manifest"), `theirs:${"a".repeat(32)}\n`);
});

test("an old line without a digest takes what is there for the baseline", async () => {
  const place = await world({ [`${one}/SKILL.md`]: "Older", "skills/.bundled_manifest": "one\n" });
  assert.deepEqual(await done(place), { skipped: ["one"] });
  assert.match(await text(place), /Older/);
  assert.equal((await readBundledManifest(place)).lines.get("one")?.origin, await hashSkill(place.at(one)));
});

test("suppressed names, the opt-out marker and external folders are respected", async () => {
  const place = await world({ "skills/.curator_suppressed": "one\n", "ext/one/SKILL.md": "External" });
  assert.deepEqual(await done(place), { suppressed: ["one"] });
  await rm(place.at("skills/.curator_suppressed"));
  await writeFile(place.at(".no-bundled-skills"), "");
  assert.deepEqual(await syncBundledSkills(place).then(({ total_bundled }) => total_bundled), 0);
  await rm(place.at(".no-bundled-skills"));
  await done(place);
  place.settings = { external_dirs: ["ext"] };
  assert.deepEqual(await done(place), { skipped: ["one"] });
  assert.equal(await exists(place.at(one)), false, "an untouched copy gives way");
});

for (const aside of ["skills/.hub/staging/one/old", `${one}.bak`]) {
  test(`an update that was cut short is undone first (${aside})`, async () => {
    const place = await world();
    await done(place);
    await mkdir(place.at(aside, ".."), { recursive: true });
    await rename(place.at(one), place.at(aside));
    assert.deepEqual(await done(place), { skipped: ["one"] });
    assert.match(await text(place), /One/);
    assert.equal(await exists(place.at(aside)), false);
  });
}

test("a crash behind the copy and before the manifest is no edit by the user", async () => {
  const place = await world();
  await done(place);
  await place.write("shipped/dev/one/SKILL.md", "One, better");
  await place.write(`${one}/SKILL.md`, "One, better");
  assert.deepEqual(await done(place), { skipped: ["one"] });
  await place.write("shipped/dev/one/SKILL.md", "One, best");
  assert.deepEqual(await done(place), { updated: ["one"] });
});

test("one skill that fails does not stop the others", async () => {
  const place = await world({ "shipped/ops/two/SKILL.md": "Two", "skills/dev": "a file in the way\n" });
  const { failed, copied } = await syncBundledSkills(place);
  assert.deepEqual(copied, ["two"]);
  assert.equal(failed.length, 1);
  assert.match(failed[0] ?? "", /^one: /);
});

test("at start the sync runs once per version", async () => {
  const place = await world();
  assert.deepEqual((await syncOnStart(place))?.copied, ["one"]);
  assert.equal(await syncOnStart(place), null);
});

test("edits are listed and shown; accepting one lets the next change in", async () => {
  const place = await world();
  await done(place);
  assert.deepEqual(await modifiedSkills(place), []);
  await place.write(`${one}/SKILL.md`, skillText("one", "One", "", "# one\n\nMine.\n"));
  await place.write(`${one}/references/new.md`, "n\n");
  assert.deepEqual(
    (await modifiedSkills(place)).map(({ name }) => name),
    ["one"],
  );
  const skill = await findBundled("one", place);
  assert.ok(skill);
  const diff = await diffBundled(skill, place);
  assert.match(diff, /^-Do it\.\n\+Mine\.$/m);
  assert.match(diff, /^\+\+\+ b\/dev\/one\/references\/new\.md$/m);

  await acceptBundled(skill, place);
  assert.deepEqual(await modifiedSkills(place), []);
  assert.deepEqual(await done(place), { skipped: ["one"] });
  assert.match(await text(place), /Mine/);
  await place.write("shipped/dev/one/SKILL.md", "One, better");
  assert.deepEqual(await done(place), { updated: ["one"] });
});

test("restoring brings the shipped version back and keeps the user's in the archive", async () => {
  const place = await world();
  await done(place);
  await place.write(`${one}/SKILL.md`, "Mine");
  const skill = await findBundled("dev/one", place);
  assert.ok(skill);
  assert.equal(await restoreBundled(skill, place), place.at("skills/.archive/one"));
  assert.match(await text(place, "skills/.archive/one/SKILL.md"), /Mine/);
  assert.deepEqual(await done(place), { skipped: ["one"] });
  await rm(place.at(one), { recursive: true });
  assert.equal(await restoreBundled(skill, place), null);
  assert.match(await text(place), /One/);
});

test("opting out removes untouched copies on request, and opting in undoes it", async () => {
  const place = await world({ "shipped/dev/two/SKILL.md": "Two" });
  await done(place);
  await place.write("skills/dev/two/SKILL.md", "Mine");
  assert.deepEqual(await optOut(place, { remove: true }), ["one"]);
  assert.deepEqual((await readdir(place.at("skills/dev"))).sort(), ["DESCRIPTION.md", "two"]);
  assert.deepEqual(await done(place), {});
  await optIn(place);
  assert.deepEqual(await done(place), { copied: ["one"], user_modified: ["two"] });
});
