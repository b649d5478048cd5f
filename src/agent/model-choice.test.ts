import assert from "node:assert/strict";
import { test } from "node:test";
import { aTarget } from "../../test/support/model-target.ts";
import { defaultConfig } from "../home/config/schema.ts";
import { modelChoice, reasoningFor } from "./ask-model.ts";
import type { OpenRequest } from "./open-request.ts";

function choice(agent: Partial<ReturnType<typeof defaultConfig>["agent"]>, env: Record<string, string> = {}) {
  const config = defaultConfig();
  const home = {
    config: () => ({ ...config, agent: { ...config.agent, ...agent } }),
    env: (name: string) => env[name],
  };
  return modelChoice({ home } as unknown as OpenRequest, aTarget("chat_completions")); // the settings are all it reads
}

test("the settings say how the model is asked", () => {
  assert.equal(choice({}).serviceTier, undefined);
  assert.equal(choice({ service_tier: "fast" }).serviceTier, "fast");
  assert.equal(choice({}).reasoning, undefined);
  assert.deepEqual(choice({ reasoning_effort: "none" }).reasoning, { enabled: false });
  assert.deepEqual(choice({ reasoning_effort: "high" }).reasoning, { enabled: true, effort: "high" });
});

test("a model at OpenRouter is asked to think unless the settings say otherwise; others are not", () => {
  const { target } = choice({});
  const routed = { ...target, profile: { ...target.profile, reasoningStyle: "openrouter" as const } };
  assert.deepEqual(reasoningFor({ target: routed }), { enabled: true, effort: "medium" });
  assert.deepEqual(reasoningFor({ target: routed, reasoning: { enabled: false } }), { enabled: false });
  assert.equal(reasoningFor({ target }), undefined);
});

test("variables say how long it is waited for; what is no number of seconds counts as not said", () => {
  const env = { HERMES_API_TIMEOUT: "60", HERMES_STREAM_STALE_TIMEOUT: "soon", HERMES_API_CALL_STALE_TIMEOUT: "-1" };
  assert.deepEqual(choice({}, env).liveness, {
    totalSeconds: 60,
    staleSeconds: undefined,
    wholeStaleSeconds: undefined,
  });
});
