import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Command } from "commander";
import { pressKeys } from "../../../test/support/press-keys.ts";
import { tempHome } from "../../../test/support/temp-home.ts";
import { openHome } from "../../home/open.ts";
import { systemClock } from "../../kit/clock.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { define } from "./skills.ts";

const skill = (name: string, description = "Does it", extra = "") =>
  `---\nname: ${name}\ndescription: ${description}\n${extra}---\n\nDo it.\n`;

async function world(files: Record<string, string> = {}, typed: { keys?: string[]; answers?: string[] } | null = null) {
  const temp = await tempHome({ "shipped/dev/one/SKILL.md": skill("one"), ...files });
  const home = await openHome({
    argv: [],
    env: { HERMES_HOME: temp.dir, HERMES_BUNDLED_SKILLS: temp.at("shipped"), HOME: temp.osHome },
    osHome: temp.osHome,
    cwd: temp.project,
  });
  const skills = async (...args: string[]) => {
    let out = "";
    let err = "";
    let code = 0;
    const io: Partial<CliContext["io"]> = {
      out(text: string) {
        out += text;
      },
      err(text: string) {
        err += text;
      },
      columns: 100,
      stdinIsTerminal: typed !== null,
      stdoutIsTerminal: typed !== null,
      question: async () => typed?.answers?.shift() ?? null,
      choose: async (question) => pressKeys(question, typed?.keys ?? []),
    };
    const command = new Command("skills").exitOverride();
    define(command, { home, io, clock: systemClock, cwd: temp.dir } as unknown as CliContext);
    try {
      await command.parseAsync(args, { from: "user" });
    } catch (error) {
      if (!(error instanceof ExitError)) throw error;
      code = error.exitCode;
      err += error.message;
    }
    return { out, err, code };
  };
  const end = async () => {
    await home.close();
    await temp[Symbol.asyncDispose]();
  };
  return { temp, home, skills, end };
}

test("the list shows category, description, source, what is off, and what is wrong", async (t) => {
  const { skills, end } = await world({
    "skills/dev/a/SKILL.md": skill("a", "First"),
    "skills/b/SKILL.md": "# no front matter\n",
    "config.yaml": "skills:\n  disabled: [a]\n",
  });
  t.after(end);
  const { out, err } = await skills();
  assert.match(out, /^general\n {2}✓ b .*\[local\]\n\ndev\n {2}✗ a {2}First {2}\[local\]\n\n2 skills/);
  assert.match(err, /b: SKILL\.md has no front matter/);
  const { skills: rows } = JSON.parse((await skills("list", "--json")).out);
  assert.deepEqual(
    rows.map((row: { name: string; enabled: boolean }) => [row.name, row.enabled]),
    [
      ["b", true],
      ["a", false],
    ],
  );
});

test("view prints a skill or a file of it; everything else is an error that helps", async (t) => {
  const { skills, end } = await world({
    "skills/dev/a/SKILL.md": skill("a"),
    "skills/dev/a/references/x.md": "X\n",
    "skills/c/t/SKILL.md": skill("t"),
    "skills/d/t/SKILL.md": skill("t"),
  });
  t.after(end);
  assert.equal((await skills("view", "dev/a")).out, skill("a"));
  assert.match((await skills("view", "a")).err, /references\/x\.md/);
  assert.equal((await skills("view", "a", "references/x.md")).out, "X\n");
  const wrong: readonly (readonly [string[], RegExp])[] = [
    [["none"], /There is no skill "none"/],
    [["t"], /c\/t, d\/t/],
    [["../a"], /'\.\.'/],
    [["a", "../../x"], /'\.\.'/],
    [["a", "none"], /It has: references\/x\.md, SKILL\.md/],
  ];
  for (const [args, message] of wrong) {
    const { code, err } = await skills("view", ...args);
    assert.deepEqual([code, message.test(err)], [1, true], err);
  }
});

test("scan says safe, caution, dangerous or error by its exit code", async (t) => {
  const { skills, end } = await world({
    "s0/SKILL.md": "Fine.\n",
    "s1/SKILL.md": "Use sudo.\n",
    "s2/SKILL.md": "See authorized_keys.\n",
  });
  t.after(end);
  for (const [dir, code] of [
    ["s0", 0],
    ["s1", 1],
    ["s2", 2],
    ["none", 3],
    ["s0/SKILL.md", 3],
  ] as const) {
    assert.equal((await skills("scan", dir)).code, code, dir);
  }
  assert.equal(JSON.parse((await skills("scan", "s2", "--json")).out).findings[0].id, "ssh_backdoor");
});

test("doctor finds what is broken, doubled, hidden or missing", async (t) => {
  const { skills, end } = await world({
    "skills/a/t/SKILL.md": skill("t"),
    "skills/b/t/SKILL.md": skill("t"),
    "skills/broken/SKILL.md": "---\nname: x\n",
    "ext/t/SKILL.md": skill("t"),
    "skills/.usage.json": "{",
    "config.yaml": "skills:\n  disabled: [ghost]\n  external_dirs: [ext, nowhere]\n",
  });
  t.after(end);
  const { out, code } = await skills("doctor");
  assert.equal(code, 1);
  for (const problem of [
    /broken: .*closing/,
    /ask for a\/t or b\/t/,
    /ext\/t: hidden/,
    /no skill ghost/,
    /nowhere is not a folder/,
    /\.usage\.json/,
  ]) {
    assert.match(out, problem);
  }
  const sound = await world({ "skills/a/SKILL.md": skill("a") });
  t.after(sound.end);
  assert.deepEqual(await sound.skills("doctor"), { out: "✓ 1 skill, no problems.\n", err: "", code: 0 });
});

test("shipped skills: bring, change, see, accept, restore, refuse", async (t) => {
  const { skills, temp, end } = await world({}, { answers: ["n", "y"] });
  t.after(end);
  assert.match((await skills("opt-in", "--sync")).out, /copied: one\n1 bundled/);
  assert.match((await skills("list-modified")).out, /not changed any/);
  await temp.write("skills/dev/one/SKILL.md", skill("one", "Mine"));
  assert.equal((await skills("list-modified")).out, "one\n");
  assert.match((await skills("diff", "one")).out, /^-description: Does it\n\+description: Mine$/m);
  assert.match((await skills("reset", "one", "--restore")).err, /Nothing was changed/);
  assert.match((await skills("reset", "one")).out, /is kept until/);
  assert.match((await skills("list-modified")).out, /not changed any/);
  assert.match(
    (await skills("reset", "one", "--restore")).out,
    /Restored the bundled one\. Your version is in .*\.archive\/one/,
  );
  assert.match((await skills("diff", "one")).out, /is the bundled version/);
  assert.match((await skills("opt-out", "--remove")).out, /Removed: one/);
  assert.equal((await skills("reset", "ghost")).code, 1);
});

test("restoring without a terminal needs --yes", async (t) => {
  const { skills, end } = await world();
  t.after(end);
  assert.equal((await skills("reset", "one", "--restore")).code, 1);
  assert.match((await skills("reset", "one", "--restore", "--yes")).out, /Restored the bundled one/);
});

test("config switches skills by name or in a list, everywhere or on one platform", async (t) => {
  const files = {
    "skills/a/SKILL.md": skill("a"),
    "skills/dir/SKILL.md": skill("front"),
    "config.yaml": "# mine\nmodel: {}\n",
  };
  const { skills, home, temp, end } = await world(files, { keys: ["front", " ", "\r"] });
  t.after(end);
  assert.match((await skills("config", "disable", "a", "front")).out, /Disabled everywhere: a, front/);
  assert.deepEqual(home.config().skills.disabled, ["a", "front"]);
  await skills("config", "enable", "dir");
  assert.deepEqual(home.config().skills.disabled, ["a"]);
  await skills("config", "disable", "a", "--platform", "telegram");
  assert.deepEqual(home.config().skills.platform_disabled, { telegram: ["a"] });
  assert.match((await skills("config", "enable", "a", "--platform", "telegram")).out, /Still disabled everywhere: a/);
  const wrong = await skills("config", "disable", "ghost");
  assert.deepEqual([wrong.code, /Nothing was changed/.test(wrong.err)], [1, true]);
  await skills("config");
  assert.deepEqual(home.config().skills.disabled, ["a", "front"]);
  assert.match(await readFile(temp.at("config.yaml"), "utf8"), /^# mine\n/);
});

test("config without a terminal is an error", async (t) => {
  const { skills, end } = await world();
  t.after(end);
  assert.equal((await skills("config")).code, 1);
});
