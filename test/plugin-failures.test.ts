// A plugin that does everything wrong, at every event: the conversation goes on as if it were not there.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../src/kit/clock.ts";
import { HOOKS } from "../src/plugins/hooks.ts";
import { sampleOf } from "./support/sample.ts";
import { type Talk, type TalkOptions, talk, warningsOf } from "./support/talk.ts";

/**
 * Hooks get ten seconds, requests are tried again after some; nobody waits that long here. Loading a plugin has such a limit too, and on a
 * busy machine it takes its time: only a hook that hangs is given up soon.
 */
const impatient = (most = 800) => ({
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms <= 10_000 ? Math.min(ms, most) : ms, signal),
});

async function converse(t: TestContext, register: string, options: TalkOptions = {}): Promise<Talk> {
  return talk(t, {
    ...options,
    config: `plugins: { enabled: [t_wrong] }\n${options.config ?? ""}`,
    home: {
      "plugins/t_wrong/plugin.yaml": "name: t_wrong\nversion: 1.0.0\n",
      "plugins/t_wrong/index.mjs": `export default (ctx) => { ${register} };`,
    },
    request: { clock: impatient(), ...options.request },
  });
}

const everywhere = (body: string) =>
  `for (const event of ${JSON.stringify(Object.keys(HOOKS))}) ctx.registerHook(event, (facts) => { ${body} });`;

const WRONGS: readonly (readonly [what: string, body: string, told: RegExp | null])[] = [
  ["throws", `throw new Error("broken");`, /hook pre_tool_call failed and is ignored: broken/],
  ["throws no error", `throw null;`, /hook pre_tool_call failed and is ignored: null/],
  ["is rejected", `return Promise.reject(new Error("broken"));`, /hook pre_tool_call failed and is ignored: broken/],
  ["hangs", `return new Promise(() => {});`, /hook pre_tool_call did not respond within 10 s/],
  [
    "fails in a timer",
    `setTimeout(() => { throw new Error("too late"); });`,
    /"t_wrong" failed in the background: too late/,
  ],
  ["answers a number", `return 42;`, null],
  ["answers with wrong shapes", `return { action: 7, context: { a: 1 }, message: [] };`, null],
  ["answers with lists", `return [{ action: "block" }];`, null],
  [
    "changes what it is told",
    `for (const key of Object.keys(facts)) { if (typeof facts[key] === "object" && facts[key]) for (const inner of Object.keys(facts[key])) delete facts[key][inner]; delete facts[key]; }`,
    null,
  ],
];

for (const [what, body, told] of sampleOf(WRONGS, 2, "wrongs")) {
  test(`a plugin that ${what} at every event changes nothing`, async (t) => {
    const conversation = await converse(
      t,
      everywhere(body),
      what === "hangs" ? { request: { clock: impatient(250) } } : {},
    );
    const { server } = conversation;
    server.script(
      { fault: "status", status: 500 },
      { toolCalls: [{ name: "terminal", arguments: { command: "echo hello" } }] },
      { toolCalls: [{ name: "delegate_task", arguments: { goal: "count" } }] },
      { text: "counted" },
      { text: "done" },
    );
    const events = await conversation.say("go");
    const done = events.at(-1);
    assert.equal(done?.type === "done" && done.outcome.finalText, "done");
    const sent = JSON.stringify(server.last.body);
    assert.match(sent, /hello/);
    assert.match(sent, /counted/);
    server.script({ text: "and again" });
    await sleep(5);
    const later = await conversation.say("and?");
    const warned = [...warningsOf(events), ...warningsOf(later)].filter((line) => /t_wrong/.test(line)).join("\n");
    if (told) assert.match(warned, told);
    else assert.equal(warned, "");
    await conversation.begin();
    server.script({ text: "anew" });
    const after = (await conversation.say("go on")).at(-1);
    assert.equal(after?.type === "done" && after.outcome.finalText, "anew");
  });
}

test("a failure of nobody's plugin still ends the process", async () => {
  const { spawnSync } = await import("node:child_process");
  const module = new URL("../src/plugins/active-plugin.ts", import.meta.url).href;
  const code = `const { runAs } = await import(${JSON.stringify(module)});
    runAs({ stray: (error) => console.log("told", error.message) }, () => { Promise.reject(new Error("theirs")); });
    setTimeout(() => Promise.reject(new Error("ours")), 20);
    setTimeout(() => console.log("alive"), 200);`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
    encoding: "utf8",
  });
  assert.equal(stdout, "told theirs\n");
  assert.match(stderr, /Error: ours/);
  assert.equal(status, 1);
});

test("whoever interrupts does not wait for a hook, and what it might have blocked does not run", async (t) => {
  const conversation = await converse(
    t,
    `ctx.registerHook("pre_tool_call", () => new Promise(() => {}));`,
    // The time limit is a minute away; only the interrupt ends the wait before it.
    {
      request: {
        clock: { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms < 10_000 ? ms : 60_000, signal) },
      },
    },
  );
  const { agent } = conversation.conversation;
  conversation.server.script({ toolCalls: [{ name: "terminal", arguments: { command: "touch ran" } }] });
  for await (const event of agent.run({ text: "go" })) {
    if (event.type === "text_end" || event.type === "step") setTimeout(() => agent.interrupt("stop"), 300);
    assert.notEqual(event.type, "tool_start");
    assert.deepEqual(warningsOf([event]), [], "the hook's limit came first");
  }
  const stored = await conversation.store.load(agent.sessionId);
  assert.match(JSON.stringify(stored), /terminal was not started/);
});
