// `agent.coding_context: focus`: a conversation about code, and nothing that code work does not need.
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { RecordedRequest } from "../support/model-server/script.ts";
import { talk } from "../support/talk.ts";

const config = "agent:\n  coding_context: lean\n";
const skill = (name: string) => `---\nname: ${name}\ndescription: About ${name}\n---\nText.\n`;
const home = {
  "skills/cooking/soup/SKILL.md": skill("soup"),
  "skills/devops/deploy/SKILL.md": `---\nname: deploy\ndescription: Ship it\nmetadata:\n  hermes:\n    requires_toolsets: [terminal]\n---\nText.\n`,
};
const systemOf = ({ body }: RecordedRequest): string => body.messages[0].content;
const CODING = [
  ...["clarify", "delegate_task", "execute_code", "memory", "patch", "process", "read_file", "search_files"],
  ...["session_search", "skill_manage", "skill_view", "skills_list", "terminal", "todo", "web_search", "write_file"],
];

test("in code the tools are those of code work, and everyday skills are names", async (t) => {
  const chat = await talk(t, { config, home, project: { "package.json": "{}" } });
  await chat.say("hello");
  const { last } = chat.server;
  const { toolNames } = chat.conversation;
  for (const tool of toolNames) assert.ok(CODING.includes(tool) || tool.startsWith("tool_"), tool); // those find other tools
  for (const tool of ["terminal", "patch", "memory", "skill_view"]) assert.ok(toolNames.includes(tool), tool);
  assert.match(systemOf(last), /\n {2}cooking \[names only\]: soup\n/);
  assert.match(systemOf(last), /\n {4}- deploy: Ship it\n/);
});

test("what a conversation began with stays, whatever becomes of its folder", async (t) => {
  const chat = await talk(t, { config, home, project: { "package.json": "{}" } });
  await chat.say("hello");
  const first = chat.server.last;
  await rm(join(chat.project, "package.json"));
  await chat.resume();
  await chat.say("and on");
  assert.deepEqual(chat.server.last.body.tools, first.body.tools);
  assert.equal(systemOf(chat.server.last), systemOf(first));
});
