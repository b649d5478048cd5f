import assert from "node:assert/strict";
import { access, readFile, rm } from "node:fs/promises";
import { test } from "node:test";
import { commandRig } from "../../test/support/command-rig.ts";
import { memoryRun } from "../../test/support/memory.ts";
import { skillText } from "../../test/support/skills-home.ts";
import { toolContext } from "../../test/support/tool-context.ts";

const SKILLS = {
  "skills/dev/release/SKILL.md": skillText("release", "Release the package"),
  "skills/dev/status-page/SKILL.md": skillText("status-page", "Update the page"),
  "skills/new/SKILL.md": skillText("new", "Has a command's name"),
  ".no-bundled-skills": "",
};

test("a skill's whole name comes before the beginning of a command, and half a skill's name is enough", async (t) => {
  const rig = await commandRig(t, { ...SKILLS, "skills/sta/SKILL.md": skillText("sta", "Short one") });
  await rig.type("/sta now");
  assert.match(rig.text(), /^queued as \/sta now: /);
  await rig.type("/status-p do it");
  assert.match(rig.text(), /The user invoked the "status-page" skill[\s\S]*instruction: do it$/);
  await rig.type("/rele tag it");
  assert.match(rig.text(), /invoked the "release" skill/);
  await rig.type("/releese");
  assert.match(rig.text(), /Did you mean .*\/release/);
});

test("a skill with a command's name is reached through /skill", async (t) => {
  const rig = await commandRig(t, SKILLS);
  await rig.type("/skill new make it so");
  assert.match(rig.text(), /invoked the "new" skill/);
  await rig.type("/skill");
  assert.match(rig.text(), /warning: \/skill needs a name/);
});

test("commands inside a typed skill run when the user switched that on", async (t) => {
  const rig = await commandRig(t, {
    ".no-bundled-skills": "",
    "config.yaml": "skills:\n  inline_shell: true\n",
    "skills/a/SKILL.md": skillText("a", "A", "", "Today: !`echo it-$((1 + 1))`\n"),
  });
  await rig.type("/a go");
  assert.match(rig.text(), /Today: it-2/);
  rig.heard.length = 0;
  await rig.type("/skill a");
  assert.match(rig.text(), /Today: it-2/);
});

test("/skills lists what this platform has, shows one, and says what it does not know", async (t) => {
  const rig = await commandRig(t, {
    ...SKILLS,
    "config.yaml": "skills:\n  disabled: new\n  platform_disabled:\n    cli: status-page\n",
  });
  await rig.type("/skills");
  const list = rig.text();
  assert.match(list, /dev\n {2}release {2}Release the package/);
  assert.doesNotMatch(list, /status-page|command's name/);
  await rig.type("/skills list nowhere");
  assert.match(rig.text(), /No skills in the category "nowhere"/);
  await rig.type("/skills view release");
  assert.match(rig.text(), /description: "Release the package"/);
  await rig.type("/skills view status-page");
  assert.match(rig.text(), /switched off/);
  await rig.type("/skills frobnicate");
  assert.match(rig.text(), /Unknown: \/skills frobnicate/);
  await rig.type("/status-page");
  assert.match(rig.text(), /Unknown command|could be/);
});

test("a change of a skill waits, is looked at, let through or thrown away", async (t) => {
  const rig = await commandRig(t, { ...SKILLS, "config.yaml": "skills:\n  write_approval: true\n" });
  const { skills } = rig.ctx.conversation;
  assert.ok(skills);
  const manage = (name: string, origin: "foreground" | "background_review" = "foreground") =>
    skills.manage({ action: "create", name, content: skillText(name, `About ${name}`) }, toolContext({ origin }));
  await rig.type("/skills pending");
  assert.equal(rig.text(), "Nothing is pending approval.");
  const { pending_id: first } = await manage("alpha");
  const { pending_id: second } = await manage("beta", "background_review");
  await rig.type("/skills pending");
  assert.match(
    rig.text(),
    new RegExp(`${first}  create 'alpha' — About alpha[\\s\\S]*${second} \\[auto\\]  create 'beta'`),
  );
  await rig.type(`/skills diff ${first}`);
  assert.match(rig.text(), /description: "About alpha"/);
  await rig.type("/skills approve");
  assert.match(rig.text(), /needs an id, or all/);
  await rig.type("/skills approve 00000000");
  assert.match(rig.text(), /No pending write has the id 00000000/);
  await rig.type(`/skills approve ${first}`);
  assert.match(rig.text(), new RegExp(`✓ ${first}`));
  await access(rig.ctx.home.paths.at("skills", "alpha", "SKILL.md"));
  await rig.type(`/skills deny ${second}`);
  assert.match(rig.text(), new RegExp(`Discarded: ${second}`));
  await assert.rejects(access(rig.ctx.home.paths.at("skills", "beta")));
  const { pending_id: third } = await manage("gamma");
  await rm(rig.ctx.home.paths.at("skills", "alpha"), { recursive: true });
  await manage("delta");
  await rig.ctx.home.setConfigKey("skills.write_approval", false);
  await manage("gamma");
  await rig.type("/skills apply all");
  assert.match(rig.text(), new RegExp(`✓ .*delta[\\s\\S]*✗ ${third}  .*It is still pending`));
  await rig.type("/skills approval on");
  assert.equal(rig.text(), "Approval of skill writes: on");
  assert.match(await readFile(rig.ctx.home.paths.configFile, "utf8"), /write_approval: true/);
  await rig.type("/skills approval perhaps");
  assert.match(rig.text(), /takes on or off, not "perhaps"/);
});

test("a memory write waits, is listed, let through or thrown away", async (t) => {
  const rig = await commandRig(t, { "config.yaml": "memory:\n  write_approval: true\n", "memories/USER.md": "Ada" });
  const { memory } = rig.ctx.conversation;
  assert.ok(memory);
  const add = (content: string, origin = "foreground") =>
    memory.apply({ action: "add", target: "memory", content }, memoryRun({ origin })) as Promise<{
      pending_id: string;
    }>;
  const first = (await add("Likes tea")).pending_id;
  const second = (await add("Likes cake", "background_review")).pending_id;
  await rig.type("/memory");
  assert.match(
    rig.text(),
    /MEMORY\.md {2}0%[\s\S]*nothing yet[\s\S]*USER\.md[\s\S]*1\. Ada[\s\S]*2 writes wait for you/,
  );
  await rig.type("/memory pending");
  assert.match(rig.text(), new RegExp(`${first}  memory: add "Likes tea"[\\s\\S]*${second} \\[auto\\]`));
  await rig.type(`/memory approve ${first}`);
  assert.match(rig.text(), new RegExp(`✓ ${first}`));
  assert.equal(await readFile(memory.fileOf("memory"), "utf8"), "Likes tea");
  await rig.type("/memory reject all");
  assert.match(rig.text(), new RegExp(`Discarded: ${second}`));
  const long = (await add("x".repeat(2000))).pending_id;
  await memory.write({ action: "add", content: "y".repeat(1000) }, { origin: "user" });
  await rig.type("/memory approve all");
  assert.match(rig.text(), new RegExp(`✗ ${long}  There is not enough room in MEMORY.md.*It is still pending`));
  await rig.type("/memory approval off");
  assert.equal(rig.text(), "Approval of memory writes: off");
  await rig.type("/memory dance");
  assert.match(rig.text(), /Unknown: \/memory dance/);
});

test("/reload-skills tells what came and went; /bundles lists bundles; /help names the skills", async (t) => {
  const rig = await commandRig(t, {
    ...SKILLS,
    "skill-bundles/morning.yaml": "skills: [release, status-page]\ndescription: Start\n",
    "skill-bundles/broken.yaml": "skills: []\n",
  });
  await rig.ctx.conversation.skills?.namesAtStart("cli");
  await rig.type("/reload-skills");
  assert.match(
    rig.text(),
    /^No skills added or removed\.\n3 skills\. The system prompt of this conversation is not changed/,
  );
  const { mkdir, writeFile } = await import("node:fs/promises");
  await mkdir(rig.ctx.home.paths.at("skills", "fresh"));
  await writeFile(rig.ctx.home.paths.at("skills", "fresh", "SKILL.md"), skillText("fresh", "Fresh one"));
  await rm(rig.ctx.home.paths.at("skills", "dev", "release"), { recursive: true });
  await rig.type("/reload_skills");
  assert.match(rig.text(), /^Added: fresh\nRemoved: release\n3 skills/);
  await rig.type("/bundles");
  assert.match(rig.text(), /warning: .*broken\.yaml is skipped[\s\S]*\/morning {2}release, status-page {2}\(Start\)/);
  await rig.type("/help");
  assert.match(rig.text(), /3 skill commands\n {2}\/fresh \/morning \/status-page/);
});
