import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { commandRig } from "../../test/support/command-rig.ts";

const demo = "model:\n  provider: demo\n";

test("/context shows what fills the window, before the first message and after it", async (t) => {
  const rig = await commandRig(t, { "config.yaml": demo });
  await writeFile(join(rig.ctx.cwd, "AGENTS.md"), "Use tabs. ".repeat(200));
  await rig.type("/context");
  const before = rig.text();
  assert.match(before, /tokens in use \(\d+\.\d %\)/);
  assert.match(before, /█ System prompt +[\d,]+ +\d+\.\d %/);
  assert.match(before, /▓ Tool definitions/);
  assert.match(before, /▒ Rules +5\d\d/);
  assert.match(before, /· Free space/);
  assert.doesNotMatch(before, /Conversation/);
  const grid = before.split("\n\n")[1]?.split("\n") ?? [];
  assert.deepEqual([grid.length, grid[0]?.split(" ").length], [5, 20]);
  await rig.chat("hello");
  await rig.type("/ctx all");
  const after = rig.text();
  assert.match(after, /▚ Conversation/);
  assert.match(after, /Files\n +\d+ {2}.*AGENTS\.md/);
  assert.match(after, /Toolsets\n +[\d,]+ {2}\w+/);
});

test("/context counts no rules and no memory where they are ignored", async (t) => {
  const files = { "config.yaml": demo, "SOUL.md": "You are Ada.", "memories/MEMORY.md": "A note." };
  const rig = await commandRig(t, files, { ignoreRules: true });
  await writeFile(join(rig.ctx.cwd, "AGENTS.md"), "Use tabs.");
  await rig.type("/context all");
  assert.doesNotMatch(rig.text(), /Rules|Memory|AGENTS\.md/);
  await rig.type("/context prompt identity");
  assert.match(rig.text(), /^You are Hermes Agent/);
});

test("/context lists skills of which the prompt has the names only", async (t) => {
  const skill = "---\nname: soup\ndescription: Cook it\n---\nText.\n";
  const config = `${demo}agent:\n  coding_context: focus\n`;
  const rig = await commandRig(t, { "config.yaml": config, "skills/cooking/soup/SKILL.md": skill });
  await writeFile(join(rig.ctx.cwd, "package.json"), "{}");
  await rig.type("/context all");
  assert.match(rig.text(), /Skills in the index\n(?: +\d.+\n)* +\d+ {2}soup\n/);
});

test("/context prompt shows the stored prompt, or one block of it", async (t) => {
  const rig = await commandRig(t, { "config.yaml": demo, "SOUL.md": "You are Ada." });
  await rig.chat("hello");
  await rig.type("/context prompt");
  const shown = rig.text();
  assert.ok(shown.startsWith("You are Ada.\n\n"));
  assert.match(shown, / {2}identity\n/);
  await rig.type("/context prompt identity");
  assert.equal(rig.text(), "You are Ada.");
  await rig.type("/context prompt nothing");
  assert.match(rig.text(), /^warning: There is no block "nothing".*identity, product_help/);
  await rig.type("/context everything");
  assert.match(rig.text(), /^warning: \/context takes/);
});

test("/personality lists, sets and clears the text that is sent with every request", async (t) => {
  const config = `${demo}agent:\n  personalities:\n    terse: Answer in one word.\n    poet: {system_prompt: You rhyme., tone: warm, description: in verse}\n`;
  const rig = await commandRig(t, { "config.yaml": config });
  await rig.type("/personality");
  assert.match(
    rig.text(),
    /Active: none\n[\s\S]*\n {2}pirate +\S[\s\S]*\n {2}poet +in verse\n[\s\S]*\n {2}terse +Answer in one word\./,
  );
  await rig.type("/personality POET");
  assert.match(rig.text(), /^Personality: poet/);
  assert.equal(rig.ctx.home.config().display.personality, "poet");
  assert.equal(rig.ctx.home.config().agent.system_prompt, "You rhyme.\nTone: warm");
  await rig.type("/personality nobody");
  assert.match(
    rig.text(),
    /^warning: There is no personality "nobody"\. Known: catgirl, .*, poet, .*, terse, uwu, none\./,
  );
  await rig.type("/personality");
  assert.match(rig.text(), /^Active: poet\n/);
  await rig.type("/personality none");
  assert.deepEqual(rig.ctx.home.config().agent.system_prompt, "");
  assert.equal(rig.ctx.home.config().display.personality, "none");
});

test("/reload-prompt builds the prompt anew and says what that costs", async (t) => {
  const rig = await commandRig(t, { "config.yaml": demo, "SOUL.md": "You are Ada." });
  await rig.chat("hello");
  await rig.type("/reload-prompt");
  assert.match(rig.text(), /no changes/);
  await writeFile(rig.ctx.home.paths.soulFile, "You are Grace.");
  await rig.type("/reload-prompt");
  assert.match(rig.text(), /cache for this conversation is lost/);
  await rig.type("/context prompt identity");
  assert.equal(rig.text(), "You are Grace.");
  rig.busy = true;
  await rig.type("/reload-prompt");
  assert.match(rig.text(), /cannot run during a turn/);
});
