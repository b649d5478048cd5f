import assert from "node:assert/strict";
import { test } from "node:test";
import { PNG } from "pngjs";
import { ScriptedGate, type ScriptedStep } from "../../../test/support/agent/scripted-gate.ts";
import { aTarget } from "../../../test/support/model-target.ts";
import { manualClock, recordedLog } from "../../../test/support/session-store.ts";
import { defaultConfig } from "../../home/config/schema.ts";
import { ProviderError } from "../providers/settings.ts";
import type { Target } from "../wire.ts";
import { createAuxiliary } from "./client.ts";
import { type AuxCall, AuxiliaryError, type AuxTask, type ModelSpec } from "./contract.ts";

const main = aTarget("chat_completions", {
  model: "main",
  provider: "openrouter",
  baseUrl: "https://openrouter.ai/api/v1",
});

interface Rig {
  readonly steps?: readonly ScriptedStep[];
  /** Providers with a key. */
  readonly keys?: readonly string[];
  readonly settings?: Partial<Record<AuxTask, Record<string, unknown>>>;
  readonly main?: Target;
  /** The section `model` of the settings. */
  readonly model?: object;
}

function rig({ steps = [], keys = [], settings = {}, main: own = main, model = {} }: Rig = {}) {
  const gate = new ScriptedGate(...steps);
  const clock = manualClock();
  const log = recordedLog();
  const defaults = defaultConfig();
  const auxiliary = { ...defaults.auxiliary };
  for (const [task, change] of Object.entries(settings))
    Object.assign(auxiliary, { [task]: { ...(auxiliary[task] as object), ...change } });
  const specs: ModelSpec[] = [];
  const client = createAuxiliary({
    gate,
    clock,
    log,
    config: () => ({ ...defaults, auxiliary, model: { ...defaults.model, ...model } }),
    main: () => own,
    resolve: async (spec) => {
      specs.push(spec);
      if (!keys.includes(spec.provider))
        throw new ProviderError("missing_key", `No API key for provider ${spec.provider}.`);
      const { provider, model = "default", baseUrl = `https://${provider}.example/v1` } = spec;
      return aTarget("chat_completions", { provider, model, baseUrl });
    },
  });
  const call = (more: Partial<AuxCall> = {}) =>
    client.callAux({
      task: "title_generation",
      messages: [{ role: "user", content: "name this" }],
      signal: new AbortController().signal,
      sessionId: "s1",
      ...more,
    });
  const asked = () => gate.requests.map(({ target }) => `${target.provider}/${target.model}`);
  return { client, gate, clock, log, specs, call, asked };
}

const billing = { error: { status: 402, message: "insufficient credits" } };
const refused = { error: { message: "connect ECONNREFUSED", code: "ECONNREFUSED" } };
const limited = { error: { status: 429, message: "rate limit" } };

test("by default the main model is asked, through the gate, under the task's name and with the task's time limit", async () => {
  const { gate, call } = rig({ steps: [{ text: " A title " }] });
  const answer = await call({ turn: 3, maxTokens: 50, temperature: 0.3 });
  assert.equal(answer.text, "A title");
  assert.deepEqual(gate.purposes, [{ task: "title_generation", sessionId: "s1", turn: 3, jobId: undefined }]);
  const [request] = gate.requests;
  assert.equal(request?.target, main);
  assert.deepEqual(request?.limits, { totalMs: 30_000 });
  assert.deepEqual([request?.maxTokens, request?.temperature], [50, 0.3]);
});

test("settings of the task win over that, explicit wishes over the settings", async () => {
  const settings = { title_generation: { provider: "zai", model: "glm", timeout: 7, extra_body: { top_k: 1 } } };
  const { gate, call, asked } = rig({ steps: [{ text: "a" }, { text: "b" }], keys: ["zai", "deepseek"], settings });
  await call();
  await call({ provider: "deepseek", model: "ds" });
  assert.deepEqual(asked(), ["zai/glm", "deepseek/ds"]);
  assert.deepEqual(gate.requests[0]?.limits, { totalMs: 7000 });
  assert.deepEqual(gate.requests[0]?.overrides, { top_k: 1 });
});

test("an endpoint without a provider's name is a custom one; a model alone is asked of the main provider", async () => {
  const custom = rig({
    steps: [{ text: "a" }],
    keys: ["custom"],
    settings: { title_generation: { base_url: "http://127.0.0.1:1/v1", model: "m", api_key: "k" } },
  });
  await custom.call();
  assert.deepEqual(custom.specs[0], {
    provider: "custom",
    model: "m",
    baseUrl: "http://127.0.0.1:1/v1",
    apiKey: "k",
    contextLength: undefined,
  });
  const model = rig({
    steps: [{ text: "a" }],
    keys: ["openrouter"],
    settings: { title_generation: { model: "cheap" } },
  });
  await model.call();
  assert.deepEqual(model.asked(), ["openrouter/cheap"]);
});

test("what fails for lack of credit or connection is followed by the chain, then by the main model, then by an error", async () => {
  const settings = {
    title_generation: {
      provider: "zai",
      model: "glm",
      fallback_chain: [{ provider: "deepseek", model: "ds" }, { nonsense: true }],
    },
  };
  for (const failure of [billing, refused]) {
    const { call, asked } = rig({ steps: [failure, failure, { text: "ok" }], keys: ["zai", "deepseek"], settings });
    assert.equal((await call()).text, "ok");
    assert.deepEqual(asked(), ["zai/glm", "deepseek/ds", "openrouter/main"]);
  }
  const { call, asked } = rig({ steps: [billing, billing, billing], keys: ["zai", "deepseek"], settings });
  await assert.rejects(
    call(),
    (error) => error instanceof AuxiliaryError && error.kind === "failed" && /402/.test(error.message),
  );
  assert.equal(asked().length, 3, "the main model is tried once");
});

test("whoever is down is not asked again for ten minutes", async () => {
  const settings = { title_generation: { provider: "zai", model: "glm" } };
  const { call, asked, clock } = rig({
    steps: [refused, { text: "1" }, { text: "2" }, { text: "3" }],
    keys: ["zai"],
    settings,
  });
  await call();
  await call();
  clock.ms += 10 * 60_000;
  await call();
  assert.deepEqual(asked(), ["zai/glm", "openrouter/main", "openrouter/main", "zai/glm"]);
});

test("a rate limit sends an automatic choice elsewhere, a chosen one nowhere", async () => {
  const auto = rig({ steps: [limited, { text: "ok" }], keys: ["deepseek"] });
  assert.equal((await auto.call()).text, "ok");
  assert.deepEqual(auto.asked(), ["openrouter/main", "deepseek/deepseek-chat"]);
  const chosen = rig({
    steps: [limited],
    keys: ["zai"],
    settings: { title_generation: { provider: "zai", model: "glm" } },
  });
  await assert.rejects(chosen.call(), /429/);
  assert.equal(chosen.asked().length, 1);
});

test("an automatic choice guesses only providers with a key, and never leaves this machine", async () => {
  const away = rig({ steps: [billing, billing, { text: "ok" }], keys: ["anthropic", "deepseek", "nous"] });
  await away.call();
  assert.deepEqual(away.asked(), ["openrouter/main", "anthropic/claude-haiku-4-5-20251001", "deepseek/deepseek-chat"]);
  const local = rig({ steps: [refused], keys: ["anthropic"], main: aTarget("chat_completions", { model: "local" }) });
  await assert.rejects(local.call());
  assert.deepEqual(local.asked(), ["custom/local"]);
});

test("the endpoint of the settings is asked before a provider is guessed, when the conversation has moved on", async () => {
  const model = { provider: "custom", default: "house", base_url: "https://models.example/v1", api_key: "house-key" };
  const { call, asked, specs } = rig({
    steps: [billing, billing, billing, { text: "ok" }],
    keys: ["openrouter", "custom", "deepseek"],
    main: aTarget("chat_completions", { provider: "zai", model: "glm", baseUrl: "https://z.example/v1" }),
    model,
  });
  await call();
  assert.deepEqual(asked(), [
    "zai/glm",
    "openrouter/google/gemini-3-flash-preview",
    "custom/house",
    "deepseek/deepseek-chat",
  ]);
  assert.deepEqual(
    specs.find(({ provider }) => provider === "custom"),
    {
      ...{ provider: "custom", model: "house", baseUrl: "https://models.example/v1", apiKey: "house-key" },
    },
  );
});

test("pictures go to a model that sees them; when there is none the error names the setting", async () => {
  const blind = aTarget("chat_completions", {
    provider: "zai",
    model: "glm",
    baseUrl: "https://z.example/v1",
    profile: { images: false },
  });
  const sees = rig({ steps: [{ text: "a cat" }], keys: ["zai"], main: blind });
  await sees.call({ task: "vision" });
  assert.deepEqual(sees.asked(), ["zai/glm-5v-turbo"]);
  const none = rig({ main: blind });
  await assert.rejects(
    none.call({ task: "vision" }),
    (error) =>
      error instanceof AuxiliaryError &&
      error.kind === "no_provider" &&
      /auxiliary\.vision\.provider/.test(error.message),
  );
  assert.equal(await none.client.resolveAux("vision"), null);
});

test("a parameter the server does not know is left out, once and from then on", async () => {
  const unknown = {
    error: { status: 400, message: "Unsupported parameter: 'temperature' is not supported with this model." },
  };
  const { gate, call } = rig({ steps: [unknown, { text: "a" }, { text: "b" }] });
  await call({ temperature: 0.3 });
  await call({ temperature: 0.3 });
  assert.equal(gate.requests.length, 3);
  for (const request of gate.requests.slice(1))
    assert.ok(request.overrides && "temperature" in request.overrides && request.overrides.temperature === undefined);
});

test("an answer that is only reasoning counts as its text", async () => {
  const { call } = rig({ steps: [{ message: { content: "", reasoning_content: "the thought" } }] });
  assert.equal((await call()).text, "the thought");
});

test("a budget that forbids the call says so; no other model is tried", async () => {
  const { call, asked } = rig({
    steps: [{ error: { code: "budget_exceeded", message: "the day's budget is used up" } }],
    keys: ["deepseek"],
  });
  await assert.rejects(call(), (error) => error instanceof AuxiliaryError && error.kind === "over_budget");
  assert.equal(asked().length, 1);
});

test("it ends with its signal", async () => {
  const { call } = rig({ steps: [{ hang: "hm" }] });
  const controller = new AbortController();
  const answer = call({ signal: controller.signal });
  setTimeout(() => controller.abort(), 5);
  await assert.rejects(answer, (error) => error instanceof AuxiliaryError && error.kind === "aborted");
});

test("a chosen provider without a key is named in the log once, and the main model serves", async () => {
  const { client, call, log } = rig({
    steps: [{ text: "a" }, { text: "b" }],
    settings: { title_generation: { provider: "zai", model: "glm" } },
  });
  await call();
  await call();
  assert.equal(
    log.lines.filter((line) => /auxiliary\.title_generation: No API key for provider zai/.test(line)).length,
    1,
  );
  assert.deepEqual(await client.resolveAux("title_generation"), { target: main, main: true, auto: false });
});

test("a side model gets a smaller copy of a picture it finds too large; one that cannot be made smaller brings its own refusal", async () => {
  const tooLarge = { error: { status: 400, message: "image dimensions exceed max allowed size: 8000 pixels" } };
  const picture = (type: string, bytes: Buffer) =>
    ({
      role: "user",
      content: [{ type: "image_url", image_url: { url: `data:image/${type};base64,${bytes.toString("base64")}` } }],
    }) as const;
  const wide = picture("png", PNG.sync.write(new PNG({ width: 9000, height: 20 })));
  const seen = rig({ steps: [tooLarge, { text: "a line" }] });
  assert.equal((await seen.call({ task: "vision", messages: [wide] })).text, "a line");
  assert.deepEqual(
    seen.gate.requests.map(({ messages }) => /data:image\/\w+/.exec(JSON.stringify(messages))?.[0]),
    ["data:image/png", "data:image/jpeg"],
  );
  const huge = picture("webp", Buffer.alloc(5_000_000));
  const lost = rig({ steps: [tooLarge, tooLarge] });
  await assert.rejects(lost.call({ task: "vision", messages: [huge] }), /8000 pixels/);
  assert.ok(lost.gate.requests.every(({ messages }) => JSON.stringify(messages).includes("data:image/webp")));
});
