// Waiting for a model: signs of life, connections that break, providers that fall silent, and what they say is left.
import assert from "node:assert/strict";
import { test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { ScriptedGate, type ScriptedStep } from "../../test/support/agent/scripted-gate.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { manualClock } from "../../test/support/session-store.ts";
import { defaultConfig } from "../home/config/schema.ts";

const reset: ScriptedStep = { error: { message: "socket hang up", code: "ECONNRESET" } };
const silent: ScriptedStep = { error: { message: "The stream fell silent: timed out", code: "stale_stream" } };

test("a connection that breaks before anything came is made again at once, twice", async () => {
  const clock = manualClock();
  const before = clock.ms;
  const gate = new ScriptedGate(reset, reset, { text: "ok" });
  const { outcome } = await play(rigAgent({ gate, ports: { clock } }), "go");
  assert.equal(outcome.finalText, "ok");
  assert.equal(gate.requests.length, 3);
  assert.equal(clock.ms, before, "nobody waited");
});

test("each attempt has its own repeats, and a setting takes them away", async () => {
  for (const [streamRetries, requests] of [
    [2, 9],
    [0, 3],
  ] as const) {
    const gate = new ScriptedGate(...Array<ScriptedStep>(12).fill(reset));
    const { outcome } = await play(rigAgent({ gate, limits: { streamRetries } }), "go");
    assert.match(outcome.finalText ?? "", /^API call failed after 3 retries: /);
    assert.equal(gate.requests.length, requests);
  }
});

test("when every attempt ran out of time, a new connection gets one more round, and only one", async () => {
  let renewed = 0;
  const gate = new ScriptedGate(...Array<ScriptedStep>(20).fill(silent));
  const ports = { renewConnections: () => void renewed++ };
  const { outcome } = await play(rigAgent({ gate, ports, limits: { apiMaxRetries: 3 } }), "go");
  assert.match(outcome.finalText ?? "", /^API call failed after 3 retries: /);
  assert.deepEqual([gate.requests.length, renewed], [6, 1]);
});

test("of several keys each is asked twice before the next takes over, at no cost in attempts, and forgiven once it answers", async () => {
  const limited: ScriptedStep = { error: { message: "slow down", status: 429 } };
  const key = (apiKey: string) => aTarget("chat_completions", { apiKey });
  const used: string[] = [];
  const keys = {
    others: async () => 1,
    rotate: async () => key("second"),
    used: async ({ apiKey }: { readonly apiKey: string }) => void used.push(apiKey),
  };
  const gate = new ScriptedGate(limited, { text: "1" }, limited, { text: "2" }, limited, limited, { text: "3" });
  const agent = rigAgent({ gate, model: { target: key("first") }, limits: { apiMaxRetries: 1 }, ports: { keys } });
  for (const answer of ["1", "2", "3"]) assert.equal((await play(agent, "go")).outcome.finalText, answer);
  assert.deepEqual(
    gate.requests.map(({ target }) => target.apiKey),
    [...Array(6).fill("first"), "second"],
  );
  assert.deepEqual(used, ["first"], "told once");
});

const FIRST = "fake-model";
const SECOND = "other";
const withSecond = (gate: ScriptedGate) =>
  rigAgent({
    gate,
    model: { target: aTarget("chat_completions", { model: FIRST }) },
    limits: { apiMaxRetries: 10 },
    ports: {
      config: () => ({ ...defaultConfig(), fallback_providers: [{ provider: "x", model: SECOND }] }),
      resolveSpec: async () => aTarget("chat_completions", { model: SECOND, baseUrl: "https://other.example/v1" }),
    },
  });
const asked = (gate: ScriptedGate) => gate.requests.map(({ target }) => target.model);
const times = <T>(count: number, value: T) => Array<T>(count).fill(value);

test("a provider that fell silent five times in a row gives way to the next one", async () => {
  const gate = new ScriptedGate(...times(5, silent), { text: "ok" });
  const { outcome } = await play(withSecond(gate), "go");
  assert.deepEqual(asked(gate), [...times(5, FIRST), SECOND]);
  assert.deepEqual([outcome.finalText, outcome.model], ["ok", SECOND]);
});

test("silences with an answer between them, or with nobody to give way to, are waited out", async () => {
  const call = { calls: [{ name: "look", args: {} }] };
  const gate = new ScriptedGate(...times(4, silent), call, ...times(4, silent), { text: "ok" });
  assert.equal((await play(withSecond(gate), "go")).outcome.finalText, "ok");
  assert.deepEqual(asked(gate), times(10, FIRST));
  const alone = new ScriptedGate(...times(6, silent), { text: "ok" });
  const { outcome } = await play(rigAgent({ gate: alone, limits: { apiMaxRetries: 10 } }), "go");
  assert.deepEqual([outcome.finalText, alone.requests.length], ["ok", 7]);
});

test("a model that takes its time is told about every thirty seconds", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const agent = rigAgent({ gate: new ScriptedGate({ hang: "hm" }) });
  const beats: string[] = [];
  await play(agent, "go", {
    onEvent: (event) => {
      if (event.type === "text") t.mock.timers.tick(60_000);
      if (event.type !== "status" || event.kind !== "heartbeat") return;
      beats.push(event.message);
      if (beats.length === 2) agent.interrupt();
    },
  });
  assert.equal(beats.length, 2);
  assert.match(beats[0] ?? "", /^waiting for /);
});

test("what an answer or a refusal says is left of the allowance is known from then on", async () => {
  const headers = (remaining: string) => ({
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": remaining,
  });
  const window = (remaining: number) => ({
    limit: 60,
    remaining,
    used: 60 - remaining,
    usagePct: 0,
    resetSeconds: null,
  });
  const gate = new ScriptedGate(
    { error: { message: "slow down", status: 429, headers: headers("0") } },
    {
      text: "ok",
      rateLimits: { provider: "p", requestsMin: window(59), requestsHour: null, tokensMin: null, tokensHour: null },
    },
  );
  const agent = rigAgent({ gate });
  const remaining = () => agent.rateLimits?.limits.requestsMin?.remaining;
  const left: (number | undefined)[] = [remaining()];
  await play(agent, "go", {
    onEvent: (event) => {
      if (event.type === "status" && /trying again/.test(event.message)) left.push(remaining());
    },
  });
  left.push(remaining());
  assert.deepEqual([left[0], left.at(-1)], [undefined, 59]);
});

test("a conversation at OpenRouter asks its model to think, elsewhere it asks for nothing", async () => {
  for (const [reasoningStyle, wished] of [
    ["openrouter", { enabled: true, effort: "medium" }],
    ["openai", undefined],
  ] as const) {
    const gate = new ScriptedGate({ text: "ok" });
    await play(
      rigAgent({ gate, model: { target: aTarget("chat_completions", { profile: { reasoningStyle } }) } }),
      "go",
    );
    assert.deepEqual(gate.requests[0]?.reasoning, wished);
  }
});
