import assert from "node:assert/strict";
import { test } from "node:test";
import { play, type RigOptions, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { assertLegalRequest } from "../../test/support/agent/legal.ts";
import { talkOf } from "../../test/support/agent/long-talk.ts";
import { ScriptedGate, type ScriptedStep } from "../../test/support/agent/scripted-gate.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { manualClock } from "../../test/support/session-store.ts";
import { defaultConfig } from "../home/config/schema.ts";
import { ProviderError } from "../llm/providers/settings.ts";
import type { ModelError } from "../llm/wire.ts";
import type { AgentEvent } from "./events.ts";
import { readFallbacks } from "./fallback.ts";

const OWN = aTarget("chat_completions", {
  provider: "openrouter",
  model: "own",
  baseUrl: "https://openrouter.ai/api/v1",
});
const PLACES = {
  second: aTarget("anthropic_messages", {
    provider: "anthropic",
    model: "second",
    baseUrl: "https://api.anthropic.com",
    contextLength: 20_000,
    profile: { images: false },
  }),
  third: aTarget("codex_responses", { provider: "xai", model: "third", baseUrl: "https://api.x.ai/v1" }),
  own: OWN,
  mirror: aTarget("chat_completions", { provider: "custom", model: "own", baseUrl: OWN.baseUrl }),
  demo: aTarget("chat_completions", { provider: "demo", model: "demo", baseUrl: "demo:/v1" }),
};

function rig(chain: unknown, steps: ScriptedStep[], more: Partial<RigOptions> = {}) {
  const gate = new ScriptedGate(...steps);
  const clock = manualClock();
  const agent = rigAgent({
    gate,
    model: { target: OWN, maxTokens: 500 },
    prompt: { system: async ({ target }) => `You are ${target.model}.` },
    ...more,
    ports: {
      clock,
      config: () => ({ ...defaultConfig(), fallback_providers: chain as unknown[] }),
      resolveSpec: async ({ model }) => {
        const found = Object.entries(PLACES).find(([name]) => name === model)?.[1];
        if (!found) throw new ProviderError("missing_key", `No API key for ${model}.`);
        return found;
      },
      ...more.ports,
    },
  });
  const asked = () => gate.requests.map(({ target }) => target.model);
  return { gate, clock, agent, asked };
}
const entry = (model: string) => ({ provider: "x", model });
const down: ScriptedStep = { error: { message: "bad gateway", status: 502 } };
const lines = (events: readonly AgentEvent[]) =>
  events.flatMap((event) => (event.type === "status" && event.kind !== "waiting" ? [event.message] : []));

test("after all attempts the next model answers, with its own prompt, window and wire, and one line says so", async () => {
  const { agent, gate, asked } = rig([entry("second")], [down, down, down, { text: "hello from the second" }]);
  const { outcome, events } = await play(agent, "hi");
  assert.equal(outcome.finalText, "hello from the second");
  assert.deepEqual(asked(), ["own", "own", "own", "second"]);
  const last = gate.requests.at(-1);
  assert.equal(last?.messages[0]?.content, "You are second.");
  assert.equal(last?.target.contextLength, 20_000);
  assert.equal(last?.maxTokens, undefined, "the output cap was set for the own model");
  const moves = lines(events).filter((line) => line.includes("continuing with"));
  assert.equal(moves.length, 1);
  assert.match(moves[0] ?? "", /own \(openrouter\): HTTP 502.* — continuing with second \(anthropic\)/);
  assert.equal(outcome.model, "second");
});

const atOnce: readonly [string, ModelError][] = [
  ["rate limit", { message: "slow down", status: 429 }],
  ["rate limit upstream", { message: "x", status: 429, body: { error: { message: "Provider returned error" } } }],
  ["billing", { message: "insufficient credits", status: 402 }],
  ["unknown model", { message: "model not found", status: 404 }],
  ["bad key", { message: "invalid api key", status: 401 }],
  ["malformed", { message: "a long explanation of what is wrong here", status: 422 }],
];
for (const [name, error] of atOnce) {
  test(`${name}: the next model is asked at once, without waiting`, async () => {
    const { agent, clock, asked } = rig([entry("second")], [{ error }, { text: "ok" }]);
    const before = clock.ms;
    assert.equal((await play(agent, "hi")).outcome.finalText, "ok");
    assert.deepEqual(asked(), ["own", "second"]);
    assert.equal(clock.ms, before);
  });
}

test("a budget cap, a key for another host and a data policy end the turn; nobody else is asked", async () => {
  for (const error of [
    { message: "Nothing was sent", code: "budget_exceeded" },
    { message: "Nothing was sent", code: "key_host_mismatch" },
    { message: "no endpoints found matching your data policy", status: 404 },
  ]) {
    const { agent, asked } = rig([entry("second")], [{ error }]);
    assert.equal((await play(agent, "hi")).outcome.failed, true);
    assert.deepEqual(asked(), ["own"]);
  }
});

test("entries that are the failing model under another name, the demo or without a key are stepped over", async () => {
  const chain = [
    { model: "x" },
    "nonsense",
    entry("own"),
    entry("mirror"),
    entry("demo"),
    entry("unknown"),
    entry("third"),
  ];
  const { agent, asked } = rig(chain, [down, down, down, { text: "third" }, { text: "own again" }]);
  const { events } = await play(agent, "hi");
  assert.deepEqual(asked(), ["own", "own", "own", "third"]);
  const ignored = lines(events).filter((line) => line.startsWith("fallback_providers["));
  assert.deepEqual(ignored, [
    "fallback_providers[0] has no provider and is ignored.",
    "fallback_providers[1] has no provider and is ignored.",
  ]);
  const unusable = lines(events).filter((line) => line.startsWith("fallback_providers:"));
  assert.deepEqual(unusable, ["fallback_providers: x unknown cannot be used: No API key for unknown."]);
  assert.equal(lines((await play(agent, "more")).events).filter((line) => line.startsWith("fallback_")).length, 0);
});

test("the same model on another server of one's own may stand in", async () => {
  const server = (host: string) =>
    aTarget("chat_completions", { provider: "custom", model: "own", baseUrl: `https://${host}.example/v1` });
  const { agent, gate } = rig([entry("own")], [down, down, down, { text: "ok" }], {
    model: { target: server("one") },
    ports: { resolveSpec: async () => server("two") },
  });
  assert.equal((await play(agent, "hi")).outcome.finalText, "ok");
  assert.equal(gate.requests.at(-1)?.target.baseUrl, "https://two.example/v1");
});

test("the chain is walked once per turn; the last failure is what the user reads", async () => {
  const fail = (what: string): ScriptedStep => ({ error: { message: what, status: 401 } });
  const { agent, asked } = rig([entry("second"), entry("third")], [fail("one"), fail("two"), fail("three")]);
  const { outcome } = await play(agent, "hi");
  assert.deepEqual(asked(), ["own", "second", "third"]);
  assert.equal(outcome.failed, true);
  assert.match(outcome.error ?? "", /three/);
});

test("the next turn goes back to the own model, whose requests continue where they were", async () => {
  const { agent, gate, asked } = rig(
    [entry("second")],
    [{ text: "first" }, down, down, down, { text: "stand-in" }, { text: "back" }],
  );
  await play(agent, "one");
  await play(agent, "two");
  const { outcome, events } = await play(agent, "three");
  assert.equal(outcome.finalText, "back");
  assert.deepEqual(asked(), ["own", "own", "own", "own", "second", "own"]);
  assert.ok(lines(events).includes("Back to own (openrouter)."));
  assert.deepEqual(gate.requests.at(-1)?.messages.slice(0, 3), [
    ...(gate.requests[0]?.messages ?? []),
    { role: "assistant", content: "first" },
  ]);
  assert.equal(gate.requests.at(-1)?.maxTokens, 500);
});

test("an own model that ran into its limit is left alone for a minute, or until the time it named", async () => {
  const limited = (headers: Record<string, string> = {}): ScriptedStep => ({
    error: { message: "rate limit", status: 429, headers },
  });
  const short = rig([entry("second")], [limited(), { text: "a" }, { text: "b" }, { text: "c" }]);
  await play(short.agent, "1");
  short.clock.ms += 59_000;
  await play(short.agent, "2");
  short.clock.ms += 2_000;
  await play(short.agent, "3");
  assert.deepEqual(short.asked(), ["own", "second", "second", "own"]);

  const long = rig([entry("second")], [limited({ "retry-after": "600" }), { text: "a" }, { text: "b" }, { text: "c" }]);
  await play(long.agent, "1");
  long.clock.ms += 590_000;
  await play(long.agent, "2");
  long.clock.ms += 20_000;
  await play(long.agent, "3");
  assert.deepEqual(long.asked(), ["own", "second", "second", "own"]);
});

test("a conversation too long for the stand-in is shortened before it is sent there", async () => {
  const { agent, gate, asked } = rig([entry("second")], [{ error: { message: "no credit", status: 402 } }], {
    session: { history: talkOf(40_000) },
  });
  const { outcome, events } = await play(agent, "go on");
  assert.equal(outcome.failed, false, outcome.finalText ?? "");
  assert.ok(events.some((event) => event.type === "compressed"));
  assert.deepEqual([...new Set(asked())], ["own", "second"]);
  const tasks = gate.purposes.map(({ task }) => task);
  assert.deepEqual([tasks[0], tasks[1], tasks[tasks.length - 1]], ["main", "compression", "main"]);
  assert.equal(tasks.filter((task) => task === "main").length, 2);
  for (const request of gate.requests) assertLegalRequest(request.messages);
});

test("pictures and thinking that a stand-in cannot take stay behind, in the middle of a tool round too", async () => {
  const { agent, gate } = rig(
    [entry("second"), entry("third")],
    [
      { thinking: "hm", calls: [{ id: "c1", name: "look", args: {} }] },
      { error: { message: "overloaded", status: 401 } },
      { text: "done" },
    ],
    { tools: { look: () => "a result" } },
  );
  const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;
  const { outcome } = await play(agent, { text: "see", parts: [picture] });
  assert.equal(outcome.finalText, "done");
  const last = gate.requests.at(-1);
  assert.equal(last?.target.model, "second");
  assert.ok(!JSON.stringify(last?.messages).includes("image_url"));
  assertLegalRequest(last?.messages ?? []);
});

test("a model that keeps answering with nothing gives way, and the next one starts with clean counters", async () => {
  const empty: ScriptedStep = { text: "" };
  const { agent, asked } = rig([entry("second")], [empty, empty, empty, empty, empty, { text: "something" }]);
  const { outcome } = await play(agent, "hi");
  assert.equal(outcome.finalText, "something");
  assert.deepEqual(asked(), ["own", "own", "own", "own", "second", "second"]);
});

test("after a refusal one other model is asked, not all of them", async () => {
  const refuse: ScriptedStep = { text: "I cannot do that.", finish: "content_filter" };
  const { agent, asked } = rig([entry("second"), entry("third")], [refuse, refuse, { text: "never" }]);
  const { outcome } = await play(agent, "hi");
  assert.deepEqual(asked(), ["own", "second"]);
  assert.equal(outcome.exitReason, "content_policy_blocked");
  assert.match(outcome.finalText ?? "", /I cannot do that\./);
});

test("a stand-in whose prompt cannot be made is stepped over and leaves everything as it was", async () => {
  const { agent, asked } = rig([entry("second"), entry("third")], [down, down, down, { text: "third" }], {
    prompt: {
      system: async ({ target }) => {
        if (target.model === "second") throw new Error("no prompt");
        return `You are ${target.model}.`;
      },
    },
  });
  assert.equal((await play(agent, "hi")).outcome.finalText, "third");
  assert.deepEqual(asked(), ["own", "own", "own", "third"]);
});

test("a model the user switches to is the own one from then on, and the chain no longer leads to the old one", async () => {
  const { agent, asked } = rig(
    [entry("own"), entry("second")],
    [down, down, down, { text: "2" }, down, down, down, { text: "3" }],
  );
  await agent.switchModel({ target: PLACES.third });
  await play(agent, "hi");
  assert.deepEqual(asked(), ["third", "third", "third", "second"]);
  await play(agent, "again");
  assert.deepEqual(asked().slice(4), ["third", "third", "third", "second"]);
});

test("what is changed about the model while another stands in holds for the own model too", async () => {
  const { agent, gate, clock } = rig(
    [entry("second")],
    [{ error: { message: "x", status: 402 } }, { text: "a" }, { text: "b" }, { text: "c" }],
  );
  await play(agent, "1");
  await agent.switchModel({ ...agent.model, reasoning: { enabled: true, effort: "high" } });
  await play(agent, "2");
  assert.deepEqual(gate.requests.at(-1)?.target.model, "second");
  assert.deepEqual(gate.requests.at(-1)?.reasoning, { enabled: true, effort: "high" });
  clock.ms += 61_000;
  await play(agent, "3");
  const { target, reasoning, maxTokens } = gate.requests.at(-1) ?? {};
  assert.deepEqual([target?.model, reasoning, maxTokens], ["own", { enabled: true, effort: "high" }, 500]);
});

test("a chain is a list, or one mapping; what it lacks is named", () => {
  assert.deepEqual(readFallbacks(undefined), { entries: [], ignored: [] });
  const one = { provider: "xai", model: "grok", api_key_env: "MY_KEY" };
  const place = {
    provider: "xai",
    model: "grok",
    baseUrl: undefined,
    apiKey: undefined,
    keyEnv: "MY_KEY",
    apiMode: undefined,
  };
  assert.deepEqual(readFallbacks(one).entries, [place]);
  assert.deepEqual(readFallbacks([{ base_url: "http://x/v1", model: "m" }]).entries[0]?.provider, "custom");
  assert.deepEqual(readFallbacks([{ provider: "xai" }, 7]).ignored, [
    "fallback_providers[0] has no model and is ignored.",
    "fallback_providers[1] has no provider and is ignored.",
  ]);
});
