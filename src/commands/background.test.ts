import assert from "node:assert/strict";
import { test } from "node:test";
import { commandRig } from "../../test/support/command-rig.ts";
import { ModelServer } from "../../test/support/model-server/server.ts";
import { modelConfig } from "../../test/support/temp-home.ts";
import { findLatest } from "../sessions/session-id.ts";

async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("a prompt in the background has a session of its own and leaves the conversation as it is", async (t) => {
  const rig = await commandRig(t);
  await rig.chat("hello");
  const before = (await rig.ctx.store.load(rig.ctx.conversation.agent.sessionId)).length;
  await rig.type("/background what can you do?");
  const [started = ""] = rig.heard.splice(0);
  const id = /^▶ (bg_\d{6}_[0-9a-f]{6}) started: what can you do\?$/.exec(started)?.[1] ?? "";
  assert.notEqual(id, "", started);
  await rig.type("/agents");
  // The rig takes the first row of a list, then the first thing to do with it.
  assert.match(rig.text(), /^Running work: what can you do\?\n.*: Show its output \| Stop it\nbackground bg_/s);
  await until(() => rig.heard.length > 0);
  assert.match(rig.text(), new RegExp(`^${id} done: .`));
  const messages = await rig.ctx.store.load(id);
  assert.deepEqual([messages[0]?.role, messages[0]?.content], ["user", "what can you do?"]);
  const session = await rig.ctx.store.get(id);
  assert.deepEqual([session?.source, session?.endReason], ["cli", "cli_close"]);
  assert.equal((await rig.ctx.store.load(rig.ctx.conversation.agent.sessionId)).length, before);
  assert.equal(await findLatest(rig.ctx.store), rig.ctx.conversation.agent.sessionId, "what -c goes on with");
  await rig.type("/agents");
  assert.equal(rig.text(), "Nothing is running.");
  rig.busy = true;
  await rig.type("/agents");
  assert.equal(rig.text(), "turn         waiting for the model, 0 of 90 model calls");
  rig.busy = false;
});

test("it is stopped by its id; wrong words are answered with the right ones", async (t) => {
  const rig = await commandRig(t);
  await rig.type("/bg run sleep 30");
  const id = /bg_\w+/.exec(rig.text())?.[0] ?? "";
  assert.equal(rig.ctx.background?.running.length, 1);
  await rig.type(`/agents stop ${id}`);
  await until(() => rig.heard.length > 1);
  assert.match(rig.text(), new RegExp(`⏹ ${id} is stopping\\.\\n${id} (stopped|done): `));
  const cases = [
    ["/background", /needs a prompt/],
    ["/agents stop", /needs an id/],
    ["/agents stop bg_0", /Nothing named "bg_0" is running/],
    ["/agents show", /needs an id/],
    ["/agents dance", /show, stop, pause or resume/],
    ["/agents pause", /no new ones will start/],
    ["/tasks", /paused/],
    ["/agents resume", /Sub-agents resumed/],
  ] as const;
  for (const [line, said] of cases) {
    await rig.type(line);
    assert.match(rig.text(), said);
  }
});

test("a process of the agent's is listed, looked into and stopped; its end stays to be seen", async (t) => {
  const server = await ModelServer.start();
  t.after(() => server.close());
  const rig = await commandRig(t, { "config.yaml": `${modelConfig(server)}terminal:\n  sandbox: off\n` });
  const command = "echo up and running; exec sleep 60";
  server.script({ toolCalls: [{ name: "terminal", arguments: { command, background: true } }] }, { text: "started" });
  await rig.chat("start it");
  const { processes } = rig.ctx.conversation;
  const [started] = processes.list();
  assert.ok(started);
  await until(() => started.output.includes("up and running"));
  await rig.type(`/tasks show ${started.id}`);
  assert.match(rig.text(), new RegExp(`^process ${started.id} · \\d+s\\necho up and running; .*\\n\\nup and running$`));
  await rig.type(`/tasks stop ${started.id}`);
  assert.match(rig.text(), /is stopping/);
  assert.equal(rig.ctx.conversation.processes.running, 0);
  await rig.type(`/tasks stop ${started.id}`);
  assert.match(rig.text(), /has already ended/);
  await rig.type("/tasks");
  assert.match(rig.text(), /Show its output\nprocess .* · exit -?\d+\n/);
});

test("what a process printed is shown without its colours and keys, by its end", async (t) => {
  const server = await ModelServer.start();
  t.after(() => server.close());
  const config = { "config.yaml": `${modelConfig(server)}terminal:\n  sandbox: off\n` };
  const rig = await commandRig(t, config, { masked: true });
  const key = `sk-proj-${"a1B2c3D4".repeat(5)}`;
  const command = `seq 1 300; printf '\\033[31mred\\033[0m ${key.slice(0, 20)}%s\\n' ${key.slice(20)}; exec sleep 60`;
  server.script({ toolCalls: [{ name: "terminal", arguments: { command, background: true } }] }, { text: "started" });
  await rig.chat("start it");
  const [started] = rig.ctx.conversation.processes.list();
  assert.ok(started);
  await until(() => started.output.includes("red"));
  rig.heard.length = 0;
  await rig.type(`/tasks show ${started.id}`);
  const shown = rig.text();
  assert.match(shown, /\n…\n102\n[\s\S]*\n300\nred \S/);
  assert.doesNotMatch(shown.slice(shown.indexOf("…")), new RegExp(`\u001b|${key}`));
  await rig.type(`/tasks stop ${started.id}`);
});

test("a sub-agent is listed while it works and stopped by its id; the conversation goes on", async (t) => {
  const server = await ModelServer.start();
  t.after(() => server.close());
  const rig = await commandRig(t, { "config.yaml": modelConfig(server) });
  server.otherwise((request) => {
    const last = request.body.messages.at(-1);
    if (last.role === "tool") return { text: "It was stopped." };
    if (JSON.stringify(last.content).includes("delegate")) {
      return { toolCalls: [{ name: "delegate_task", arguments: { goal: "count the herons" } }] };
    }
    return { fault: "stall", after: 1, answer: { text: "one heron, two" } };
  });
  const turn = rig.chat("please delegate");
  const { subagents } = rig.ctx.conversation;
  await until(() => subagents.listActiveSubagents().length > 0 && server.requests.length > 1);
  const [child] = subagents.listActiveSubagents();
  rig.heard.length = 0;
  await rig.type(`/agents stop ${child?.id}`);
  assert.match(rig.text(), /⏹ \S+ is stopping\./);
  assert.match(await turn, /It was stopped\./);
});
