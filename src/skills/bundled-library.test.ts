// The skills this program ships are held to what it asks of others.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { skillsHome } from "../../test/support/skills-home.ts";
import { SUBCOMMANDS } from "../doors/cli/program.ts";
import { parseFrontMatter } from "../kit/front-matter.ts";
import { bundledSkills, syncBundledSkills } from "./bundled.ts";
import { checkContent, checkName } from "./manage/write.ts";
import { listSkills } from "./open-skill.ts";
import { hermesFields, listField } from "./read-entry.ts";
import { scanSkill } from "./scan/scan.ts";

const shipped = await bundledSkills(await skillsHome());

test("there are skills to ship, the product's own guide among them", () => {
  assert.ok(shipped.length >= 8);
  assert.ok(shipped.some(({ name }) => name === "hermes-agent"));
  assert.equal(new Set(shipped.map(({ name }) => name)).size, shipped.length);
});

for (const skill of shipped) {
  test(`the shipped skill ${skill.name} could be created by the agent itself`, async () => {
    const text = await readFile(join(skill.dir, "SKILL.md"), "utf8");
    assert.deepEqual([skill.problems, skill.name], [[], skill.dirName]);
    assert.equal(checkName(skill.name), null);
    assert.equal(checkName(skill.category ?? "", "category"), null);
    assert.equal(checkContent(text, { name: skill.name, isNew: true }), null);
    for (const heading of ["When to use", "Pitfalls", "Verification"])
      assert.match(text, new RegExp(`^## ${heading}$`, "m"));
    assert.match(text, /^1\. /m, "numbered steps");
  });

  test(`the shipped skill ${skill.name} passes the scan`, async () => {
    const { verdict, findings } = await scanSkill(skill.dir);
    assert.equal(verdict, "safe", JSON.stringify(findings));
  });

  test(`the skills that ${skill.name} points to exist`, async () => {
    const { fields } = parseFrontMatter(await readFile(join(skill.dir, "SKILL.md"), "utf8"));
    const names = new Set(shipped.map(({ name }) => name));
    assert.deepEqual(
      listField(hermesFields(fields).related_skills).filter((name) => !names.has(name)),
      [],
    );
  });
}

test("every command the guide names is one", async () => {
  const guide = shipped.find(({ name }) => name === "hermes-agent");
  assert.ok(guide);
  const text = await readFile(join(guide.dir, "SKILL.md"), "utf8");
  const known = new Set(SUBCOMMANDS.map(({ name }) => name));
  const named = [...text.matchAll(/`hermes ([a-z]+)/g)].map(([, word]) => word ?? "");
  assert.ok(named.length > 10);
  assert.deepEqual(
    named.filter((word) => !known.has(word)),
    [],
  );
});

test("a new home gets all of them", async () => {
  const home = await skillsHome();
  assert.equal((await syncBundledSkills(home)).copied.length, shipped.length);
  const { count, categories } = await listSkills(home, { platform: "cli" });
  assert.ok(Number(count) >= 8 && (categories as string[]).length > 4);
});
