import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { play, type RigTool, rigAgent } from "../../../test/support/agent/agent-rig.ts";
import { ScriptedGate } from "../../../test/support/agent/scripted-gate.ts";
import { dispatch } from "../../../test/support/dispatch.ts";
import { skillTools } from "../../../test/support/skill-run.ts";
import { skillsHome, skillText } from "../../../test/support/skills-home.ts";
import { defaultConfig } from "../../home/config/schema.ts";

import { registry } from "../../tools/toolset/registry.ts";

const names = ["skill_view", "skill_manage"];
const tools = Object.fromEntries(
  names.map((name): [string, RigTool] => [name, (args, ctx) => dispatch(registry, name, args, ctx)]),
);
const view = { calls: [{ name: "skill_view", args: { name: "release" } }] };
const patch = (old_string: string, new_string: string) => ({
  calls: [{ name: "skill_manage", args: { action: "patch", name: "release", old_string, new_string } }],
});

async function rig(files: Readonly<Record<string, string>> = {}) {
  const place = await skillsHome(files);
  const { skills } = skillTools(place);
  const config = defaultConfig();
  const gate = new ScriptedGate();
  const nudge = { every: 1 };
  const agent = rigAgent({
    gate,
    tools,
    session: { reviews: true },
    ports: {
      toolPorts: { skills },
      config: () => ({ ...config, skills: { ...config.skills, creation_nudge_interval: nudge.every } }),
    },
  });
  const results = () =>
    (gate.requests.at(-1)?.messages ?? []).flatMap((message) =>
      message.role === "tool" ? [String(message.content)] : [],
    );
  return { place, gate, agent, results, nudge };
}

test("a review makes a skill of its own, and may mend it later when it has read it; the user's own it may not touch", async () => {
  const { place, gate, agent, results } = await rig({ "skills/mine/SKILL.md": "Mine" });
  const content = skillText("release", "Release the package", "", "1. Tag it.\n");
  gate.script(
    { calls: [{ name: "skill_view", args: { name: "mine" } }] },
    { text: "ok" },
    { calls: [{ name: "skill_manage", args: { action: "create", name: "release", content } }] },
    patch("Tag it", "Tag the version"),
    view,
    patch("Tag it", "Tag the version"),
    {
      calls: [{ name: "skill_manage", args: { action: "patch", name: "mine", old_string: "Do", new_string: "Undo" } }],
    },
    { text: "Saved." },
  );
  await play(agent, "go");
  await agent.settled();
  const [, created, unread, , patched, refused] = results();
  assert.match(created ?? "", /"success":true/);
  assert.match(unread ?? "", /"code":"not_read"/);
  assert.match(patched ?? "", /"success":true/);
  assert.match(refused ?? "", /'mine' is the user's own/);
  assert.match(await readFile(place.at("skills/release/SKILL.md"), "utf8"), /Tag the version/);
  assert.match(await readFile(place.at("skills/mine/SKILL.md"), "utf8"), /^Do it/m);
});

test("what a review has read the conversation has not: it gets the whole text when it looks", async () => {
  const { gate, agent, results, nudge } = await rig({ "skills/release/SKILL.md": "Release the package" });
  gate.script({ calls: [{ name: "skill_view", args: { name: "none" } }] }, { text: "ok" }, view, {
    text: "Nothing to save.",
  });
  await play(agent, "go");
  await agent.settled();
  assert.match(results().at(-1) ?? "", /Do it\./);
  nudge.every = 0;
  gate.script(view, { text: "ok" });
  await play(agent, "look");
  assert.match(results().at(-1) ?? "", /Do it\./);
  gate.script(view, { text: "ok" });
  await play(agent, "look again");
  assert.doesNotMatch(results().at(-1) ?? "", /Do it\./, "a second look is not paid for");
  await agent.undo(2);
  gate.script(view, { text: "ok" });
  await play(agent, "once more");
  assert.match(results().at(-1) ?? "", /Do it\./, "what was taken back is shown again");
});
