// The loop over real sockets: the wires, the gate and the store as the product uses them, and a scripted model behind HTTP.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { play, type RigOptions, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { ModelServer } from "../../test/support/model-server/server.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { temporaryStore } from "../../test/support/session-store.ts";
import { systemClock } from "../kit/clock.ts";
import { createGate } from "../llm/gate/create-gate.ts";
import type { ApiMode } from "../llm/wire.ts";
import { createWire } from "../llm/wires/drive.ts";

const MODES: readonly ApiMode[] = ["chat_completions", "anthropic_messages", "codex_responses"];
const UNCAPPED = { usd: null, tokens: null };

async function overHttp(t: TestContext, mode: ApiMode, rig: Partial<RigOptions> = {}) {
  const server = await ModelServer.start();
  t.after(() => server.close());
  const { store } = await temporaryStore(t);
  const defects: string[] = [];
  const gate = createGate({
    ledger: store,
    caps: () => ({ call: UNCAPPED, session: UNCAPPED, job: UNCAPPED, day: UNCAPPED }),
    priceOf: () => ({ type: "included", source: "local" }),
    wireFor: (target) => createWire(target.apiMode, { fetch, clock: systemClock }),
    clock: systemClock,
    onDefect: (what, error) => defects.push(`${what}: ${error}`),
  });
  const target = aTarget(mode, { baseUrl: mode === "anthropic_messages" ? server.origin : server.url });
  const agent = rigAgent({ gate, store, model: { target }, tools: { echo: (args) => `echo ${args.text}` }, ...rig });
  return { server, store, agent, defects };
}

for (const mode of MODES) {
  test(`${mode}: tools run, every request begins with the bytes of the one before, every call is in the books`, async (t) => {
    const { server, store, agent, defects } = await overHttp(t, mode);
    server.script(
      {
        text: "Looking.",
        thinking: "hm",
        toolCalls: [
          { name: "echo", arguments: { text: "a" } },
          { name: "echo", arguments: { text: "b" } },
        ],
      },
      { toolCalls: [{ name: "echo", arguments: { text: "c" } }] },
      { text: "All done." },
      { text: "Again." },
    );
    const { outcome, events } = await play(agent, "go");
    assert.equal(outcome.finalText, "All done.");
    assert.equal(outcome.responsePreviewed, true);
    const { costUsd, costStatus, costSource } = outcome.totals;
    assert.deepEqual([costUsd, costStatus, costSource], [0, "included", "local"]);
    assert.equal((await play(agent, "more")).outcome.finalText, "Again.");
    const shown = events.flatMap((event) => (event.type === "text" ? [event.delta] : [])).join("");
    assert.equal(shown, "Looking.All done.");
    for (const [index, request] of server.requests.entries()) {
      const before = server.requests[index - 1];
      // The closing bracket of the last message is all that may differ.
      if (before)
        assert.ok(
          request.cachedChars >= before.promptChars - 4,
          `request ${index}: ${request.cachedChars} of ${before.promptChars}`,
        );
    }
    const used = await store.usage({ sessionId: "session-1", by: "purpose" });
    assert.equal(used.get("main")?.calls, 4);
    assert.equal(agent.totals.apiCalls, 4);
    assert.deepEqual(defects, []);
  });

  test(`${mode}: an interrupt closes the socket`, async (t) => {
    const { server, agent } = await overHttp(t, mode);
    server.script({ fault: "stall", after: 6, answer: { text: "a long story that never ends" } }, { text: "fine" });
    const { outcome } = await play(agent, "go", { onEvent: (event) => event.type === "text" && agent.interrupt() });
    assert.equal(outcome.exitReason, "interrupted_during_api_call");
    await server.last.clientLeft;
    assert.equal(await agent.chat("again"), "fine");
  });

  test(`${mode}: a half call is never run, whatever breaks`, async (t) => {
    const { server, agent } = await overHttp(t, mode);
    const answer = {
      text: "Well.",
      toolCalls: [{ name: "echo", arguments: { text: "a very long text ".repeat(20) } }],
    };
    server.script({ fault: "cut", after: 9, answer }, { text: " Here it is." });
    const { events, outcome } = await play(agent, "go");
    assert.ok(!events.some((event) => event.type === "tool_start"));
    assert.equal(outcome.finalText, "Well. Here it is.");
    assert.equal(outcome.messages.length, 2);
  });

  test(`${mode}: complete arguments that are no JSON are asked for twice more, then the model reads the parser's words`, async (t) => {
    const { server, agent } = await overHttp(t, mode);
    const bad = { toolCalls: [{ name: "echo", arguments: '{"command": ls}' }] };
    server.script(bad, bad, bad, { text: "Sorry." });
    const { events, outcome } = await play(agent, "go");
    assert.equal(outcome.finalText, "Sorry.");
    assert.equal(server.requests.length, 4);
    assert.match(server.last.raw, /not valid JSON \(Unexpected token 'l'/);
    assert.ok(!server.requests.some((request) => request.raw.includes("cut off")));
    assert.ok(!JSON.stringify(events).includes("cut off"));
  });
}

test("a stream that ends without saying why is a lost connection, not an answer", async (t) => {
  const { server, agent } = await overHttp(t, "chat_completions");
  server.script({ fault: "unfinished", answer: { text: "Nearly" } }, { text: " there." });
  assert.equal(await agent.chat("go"), "Nearly there.");
  assert.match(server.last.raw, /connection was lost/);
});

test("a server that is busy is tried again after the time it asks for", async (t) => {
  const { server, agent } = await overHttp(t, "chat_completions");
  server.script(
    { fault: "status", status: 429, headers: { "retry-after": "0" }, body: { error: { message: "slow down" } } },
    { text: "ok" },
  );
  assert.equal(await agent.chat("go"), "ok");
  assert.equal(server.requests.length, 2);
});
