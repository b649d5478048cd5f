// A skill that is opened hands on the variables it declares, and nothing else of the user's keys.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentEvent } from "../../src/agent/events.ts";
import { builtinCommands } from "../../src/commands/builtin.ts";
import type { CommandContext } from "../../src/commands/context.ts";
import { dispatchTyped } from "../../src/commands/dispatch.ts";
import { missingBubblewrap } from "../support/engines/bubblewrap.ts";
import { withEngine } from "../support/engines/require.ts";
import { skillText } from "../support/skills-home.ts";
import { type Talk, talk } from "../support/talk.ts";

const NAMES = ["T_WEATHER_KEY", "T_OTHER", "LAB_ACCESS", "OPENAI_API_KEY", "T_LEGACY"];
const DECLARED = "required_environment_variables: [T_WEATHER_KEY, LAB_ACCESS, OPENAI_API_KEY, HOME]\n";
const HOME = {
  ".env": "T_WEATHER_KEY=w1\nT_OTHER=o1\nLAB_ACCESS=l1\nOPENAI_API_KEY=k1\nT_LEGACY=y1\n",
  "skills/weather/SKILL.md": skillText("weather", "Say what the weather is", DECLARED),
  "skills/old/SKILL.md": skillText("old", "An old one", "prerequisites:\n  env_vars: [T_LEGACY]\n"),
  "skill-bundles/both.yaml": "name: both\nskills: [weather, old]\n",
};
const CONFIG = 'providers:\n  lab: { api: "http://127.0.0.1:1/v1", key_env: LAB_ACCESS }\n';
/** Prints the names that are set, never a value. */
const SHOW = `for n in ${NAMES.join(" ")}; do [ -n "$(printenv "$n")" ] && echo "$n"; done; true`;
const show = { name: "terminal", arguments: { command: SHOW } };
const script = {
  name: "execute_code",
  arguments: { code: `import os\nprint("\\n".join(n for n in ${JSON.stringify(NAMES)} if os.environ.get(n)))` },
};
const view = (name: string) => ({ name: "skill_view", arguments: { name } });

/** One call after another; what each of them answered. */
async function calls(
  { server, say }: Talk,
  ...asked: { name: string; arguments: Readonly<Record<string, unknown>> }[]
) {
  server.script(...asked.map((call) => ({ toolCalls: [call] })), { text: "done" });
  return answersOf(await say("go"));
}

const answersOf = (events: readonly AgentEvent[]) =>
  events.flatMap((event) => (event.type === "tool_end" ? [JSON.parse(event.result)] : []));

const seen = ({ output }: { output: string }) => output.split("\n").filter((line) => line !== "");

test("commands and scripts see what an opened skill declares from the next one on, in the shell that is open too", async (t) => {
  const conversation = await talk(t, { config: CONFIG, home: HOME });
  const [before, opened, after, inScript, second, both] = await calls(
    conversation,
    ...[show, view("weather"), show, script, view("old"), show],
  );
  assert.deepEqual(seen(before), []);
  assert.match(
    opened.environment_note,
    /^Not seen by commands: LAB_ACCESS: .*terminal\.env_passthrough.*; OPENAI_API_KEY: a key that no skill can hand on\.$/,
  );
  assert.deepEqual(seen(after), ["T_WEATHER_KEY"]);
  assert.deepEqual(seen(inScript), ["T_WEATHER_KEY"]);
  assert.equal(second.environment_note, undefined);
  assert.deepEqual(seen(both), ["T_WEATHER_KEY", "T_LEGACY"]);
  await conversation.resume();
  assert.deepEqual(seen((await calls(conversation, show))[0]), ["T_WEATHER_KEY", "T_LEGACY"], "as it goes on later");
  await conversation.begin();
  assert.deepEqual(seen((await calls(conversation, show))[0]), [], "another conversation has opened nothing");
});

test("a skill that the agent wrote or changed hands nothing on, and says that the user must list it", async (t) => {
  const conversation = await talk(t, { home: HOME });
  const content = skillText("mine", "Made by the model", "required_environment_variables: [T_OTHER]\n");
  const [made, own, afterOwn, patched, changed, afterChanged] = await calls(
    conversation,
    { name: "skill_manage", arguments: { action: "create", name: "mine", content } },
    view("mine"),
    show,
    {
      name: "skill_manage",
      arguments: { action: "patch", name: "old", old_string: "[T_LEGACY]", new_string: "[T_LEGACY, T_OTHER]" },
    },
    view("old"),
    show,
  );
  assert.deepEqual([made.success, patched.success], [true, true]);
  assert.match(own.environment_note, /^Not seen by commands: T_OTHER: the agent wrote .*terminal\.env_passthrough/);
  assert.deepEqual(seen(afterOwn), []);
  assert.match(changed.environment_note, /^Not seen by commands: T_LEGACY, T_OTHER: /);
  assert.deepEqual(seen(afterChanged), []);
});

test("records from before it was kept tell by their other marks, and what cannot be read counts as the agent's", async (t) => {
  for (const usage of ['{"old": {"patch_count": 1}}', '{"old": {"created_by": "agent"}}', "{broken"]) {
    const conversation = await talk(t, { home: { ...HOME, "skills/.usage.json": usage } });
    const [, after] = await calls(conversation, view("old"), show);
    assert.deepEqual(seen(after), [], usage);
  }
});

test("what the agent lists for itself with a skill file is not what the user listed", async (t) => {
  const conversation = await talk(t, { home: HOME, config: "terminal: { env_passthrough: [T_OTHER] }\n" });
  const content = skillText("mine", "Made by the model", "required_environment_variables: [T_OTHER, T_LEGACY]\n");
  const [, own, after] = await calls(
    conversation,
    { name: "skill_manage", arguments: { action: "create", name: "mine", content } },
    view("mine"),
    show,
  );
  assert.match(own.environment_note, /^Not seen by commands: T_LEGACY: /);
  assert.deepEqual(seen(after), ["T_OTHER"]);
});

test("skills of -s hand on as well, and so does a conversation that goes on without it", async (t) => {
  const conversation = await talk(t, { config: CONFIG, home: HOME, request: { skills: ["weather"] } });
  assert.deepEqual(seen((await calls(conversation, show))[0]), ["T_WEATHER_KEY"]);
  await conversation.resume({ skills: [] });
  assert.deepEqual(seen((await calls(conversation, show))[0]), ["T_WEATHER_KEY"]);
});

test("a skill or bundle that is typed as a command hands on, also when the conversation goes on later", async (t) => {
  for (const [typed, expected] of [
    ["/weather in Bern", ["T_WEATHER_KEY"]],
    ["/both", ["T_WEATHER_KEY", "T_LEGACY"]],
    ["/skill old", ["T_LEGACY"]],
  ] as const) {
    const conversation = await talk(t, { config: CONFIG, home: HOME });
    const queued: { text: string; persistText: string }[] = [];
    const ctx = {
      ...{ home: conversation.home, platform: "cli", busy: false, conversation: conversation.conversation },
      warn: assert.fail,
      queue: (text: string, { shownAs = text } = {}) => void queued.push({ text, persistText: shownAs }),
    } as unknown as CommandContext; // what these commands use of it
    await dispatchTyped(typed, builtinCommands(), ctx, { kind: "terminal", interrupt: async () => undefined });
    assert.deepEqual(seen((await calls(conversation, show))[0]), expected, typed);
    conversation.server.script({ text: "done" });
    for (const input of queued) for await (const _ of conversation.conversation.agent.run(input));
    await conversation.resume();
    assert.deepEqual(seen((await calls(conversation, show))[0]), expected, typed);
  }
});

test("children see what their parent's skills handed on", async (t) => {
  const conversation = await talk(t, { home: HOME });
  const { server, say } = conversation;
  server.script(
    { toolCalls: [view("weather")] },
    { toolCalls: [{ name: "delegate_task", arguments: { goal: "look" } }] },
    { toolCalls: [show] },
    (request) => ({ text: JSON.stringify(request.body).includes("T_WEATHER_KEY\\\\n") ? "there" : "not there" }),
    { text: "done" },
  );
  const delegated = answersOf(await say("go")).find((answer) => "results" in answer);
  assert.equal(delegated.results[0].summary, "there");
});

await withEngine("bubblewrap", missingBubblewrap, () => {
  test("in a sandbox they are seen too", async (t) => {
    const conversation = await talk(t, { home: HOME, config: `${CONFIG}terminal: { backend: bubblewrap }\n` });
    const [before, , after] = await calls(conversation, show, view("weather"), show);
    assert.deepEqual([seen(before), seen(after)], [[], ["T_WEATHER_KEY"]]);
  });
});
