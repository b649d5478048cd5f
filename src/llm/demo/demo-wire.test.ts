import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../../test/support/session-store.ts";
import { systemClock } from "../../kit/clock.ts";
import { priceOf } from "../catalogue/prices.ts";
import { createGate } from "../gate/create-gate.ts";
import type { Caps } from "../gate.ts";
import type { Message } from "../messages.ts";
import { demoRuntime } from "../providers/resolve.ts";
import { targetFor } from "../providers/target.ts";
import type { ModelEvent, ToolDefinition } from "../wire.ts";
import { createWire } from "../wires/drive.ts";
import { embeddedFetch } from "./embedded-fetch.ts";

const none = { usd: null, tokens: null };
const caps: Caps = { call: none, session: none, job: none, day: none };
const tools: readonly ToolDefinition[] = [
  { type: "function", function: { name: "terminal", description: "", parameters: { type: "object", properties: {} } } },
];

test("through the real wire and the gate the demo calls a tool, answers from its result, and each call is a row that cost nothing", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "s1" });
  const outside: typeof fetch = () => assert.fail("the demo touches no network");
  const gate = createGate({
    ledger: store,
    caps: () => caps,
    priceOf,
    wireFor: (target) => createWire(target.apiMode, { fetch: embeddedFetch(outside), clock: systemClock }),
    clock: systemClock,
    onDefect: (what, error) => assert.fail(`${what}: ${error}`),
  });
  const target = await targetFor(demoRuntime(), { config: {} });
  const ask = async (messages: readonly Message[]) => {
    const events: ModelEvent[] = [];
    const stream = gate.stream(
      { target, messages, tools },
      { task: "main", sessionId: "s1" },
      new AbortController().signal,
    );
    for await (const event of stream) events.push(event);
    const last = events.at(-1);
    assert.equal(last?.type, "done", JSON.stringify(last));
    return last as Extract<ModelEvent, { type: "done" }>; // asserted just before
  };

  const question: Message = { role: "user", content: "run echo hi" };
  const first = await ask([question]);
  assert.equal(first.finishReason, "tool_calls");
  const [call] = first.message.tool_calls ?? [];
  assert.deepEqual(JSON.parse(call?.function.arguments ?? ""), { command: "echo hi" });

  const result: Message = {
    role: "tool",
    tool_call_id: call?.id ?? "",
    content: '{"output":"hi","exit_code":0,"error":null}',
  };
  const second = await ask([question, first.message, result]);
  assert.match(second.message.content ?? "", /exit code 0[\s\S]*hi/);

  const totals = (await store.usage({ by: "purpose" })).get("main");
  assert.deepEqual([totals?.calls, totals?.costUsd, totals?.unknownCostCalls], [2, 0, 0]);
  assert.ok((totals?.inputTokens ?? 0) > 0 && (totals?.outputTokens ?? 0) > 0);
});
