// Requests that fail, and what the turn makes of it. The whole turn runs; only the model is scripted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { echo, said, turn } from "../../test/support/agent/one-turn.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { manualClock } from "../../test/support/session-store.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { RefusedRequest } from "./assembly.ts";

test("a failing server is tried again with growing pauses, then the turn ends with a sentence", async () => {
  const clock = manualClock(0);
  const down = { error: { message: "internal error", status: 500 } };
  const { outcome, gate, events } = await turn([down, down, down], { ports: { clock: { ...clock, random: () => 0 } } });
  assert.equal(gate.requests.length, 3);
  assert.equal(clock.ms, 6000);
  assert.equal(outcome.exitReason, "all_retries_exhausted_no_response");
  assert.match(outcome.finalText ?? "", /^API call failed after 3 retries: /);
  assert.equal(outcome.error, "HTTP 500: internal error");
  assert.equal(events.filter((event) => event.type === "status" && event.kind === "lifecycle").length, 2);
});

test("a server that says when to come back is obeyed, up to two minutes", async () => {
  for (const [header, waited] of [
    ["7", 7000],
    ["9999", 120_000],
  ] as const) {
    const clock = manualClock(0);
    const limited = { error: { message: "slow down", status: 429, headers: { "retry-after": header } } };
    const { outcome } = await turn([limited, { text: "ok" }], { ports: { clock } });
    assert.equal(outcome.finalText, "ok");
    assert.equal(clock.ms, waited);
  }
});

test("a wrong key is not tried again, and the sentence says what to do", async () => {
  const { outcome, gate } = await turn([{ error: { message: "invalid api key", status: 401 } }]);
  assert.equal(gate.requests.length, 1);
  assert.equal(outcome.exitReason, "non_retryable_error");
  assert.match(outcome.finalText ?? "", /did not accept the API key/);
});

for (const [what, message, status, isKept] of [
  ["a server refuses for good", "messages: unknown role", 422, true],
  ["a server fails over", "request validation failed", 500, false],
  ["a server is too busy for", "internal error", 500, false],
] as const) {
  test(`a request that ${what} is ${isKept ? "kept" : "not kept"} for whoever looks into it`, async () => {
    const kept: (number | undefined)[] = [];
    const keepRefused = async ({ error }: RefusedRequest) => `request ${kept.push(error.status)}`;
    const refusal = { error: { message, status } };
    await turn([refusal, refusal, refusal], { ports: { keepRefused } });
    assert.deepEqual(kept, isKept ? [status] : []);
  });
}

test("a spending cap ends the turn at once", async () => {
  const refused = {
    error: { message: "The session has spent 1.02 of 1.00 USD (budget.session.usd).", code: "budget_exceeded" },
  };
  const { outcome, gate } = await turn([refused]);
  assert.equal(gate.requests.length, 1);
  assert.equal(outcome.exitReason, "budget_cap");
  assert.match(outcome.finalText ?? "", /budget\.session\.usd/);
});

test("a request that is too long is not repeated as it is", async () => {
  const { outcome, gate } = await turn([{ error: { message: "maximum context length is 8192 tokens", status: 400 } }]);
  assert.equal(gate.requests.length, 1);
  assert.equal(outcome.exitReason, "context_overflow_exhausted");
  assert.match(outcome.finalText ?? "", /\/compress/);
});

test("a server without eyes gets the conversation without pictures, from then on", async () => {
  const gate = new ScriptedGate(
    { error: { message: "this model does not support image input", status: 400 } },
    { text: "a cat" },
    { text: "still" },
  );
  const agent = rigAgent({ gate });
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;
  assert.equal((await play(agent, { text: "look", parts: [image] })).outcome.finalText, "a cat");
  await play(agent, "and now?");
  assert.deepEqual(
    gate.requests.map((request) => JSON.stringify(request.messages).includes("AAAA")),
    [true, false, false],
  );
});

test("a parameter the server refuses is left out from then on", async () => {
  const refusal = { message: "Unsupported parameter: 'max_tokens' is not supported with this model.", status: 400 };
  const { outcome, gate } = await turn([{ error: refusal }, { text: "ok" }], {
    model: { target: aTarget("chat_completions"), maxTokens: 500 },
  });
  assert.equal(outcome.finalText, "ok");
  assert.deepEqual(gate.requests[1]?.overrides, { max_tokens: undefined, max_completion_tokens: 500 });
});

test("a hopeless 400 in a long conversation takes the message back", async () => {
  const history = Array.from(
    { length: 90 },
    (_, index): HistoryMessage =>
      index % 2 === 0 ? { role: "user", content: `q${index}` } : { role: "assistant", content: `a${index}` },
  );
  const { outcome } = await turn(
    [{ error: { message: "unknown parameter: frobnicate is not a known field of this request", status: 400 } }],
    { session: { history } },
  );
  assert.equal(outcome.failed, true);
  assert.equal(outcome.messages.length, 90);
  assert.match(outcome.finalText ?? "", /removed from the conversation/);
});

test("a defect of ours in an iteration is survived", async () => {
  const redact = (text: string) => {
    if (text.includes("spark")) throw new Error("disk on fire");
    return text;
  };
  const tools = { echo: () => "spark" };
  const { outcome } = await turn([{ calls: [echo("x")] }, { text: "sorry" }], { tools, ports: { redact } });
  assert.equal(outcome.finalText, "sorry");
  assert.match(String(outcome.messages[2]?.content), /^Error executing tool: disk on fire/);
});

test("a prompt that cannot be built fails the turn with its reason; the message is kept", async () => {
  const { outcome, gate } = await turn([], {
    prompt: { system: () => Promise.reject(new Error("SOUL.md is not readable")) },
  });
  assert.equal(gate.requests.length, 0);
  assert.equal(outcome.failed, true);
  assert.match(outcome.finalText ?? "", /SOUL\.md/);
  assert.deepEqual(said(outcome.messages), ["user: go"]);
});
