import assert from "node:assert/strict";
import { test } from "node:test";
import { type LivenessSettings, requestLimits } from "./liveness.ts";

const cloud = { baseUrl: "https://api.example.com/v1", model: "some-model" };
const local = { baseUrl: "http://127.0.0.1:8000/v1", model: "some-model" };

const cases: [
  string,
  Parameters<typeof requestLimits>[0],
  number,
  LivenessSettings,
  { totalMs: number; staleMs?: number },
][] = [
  ["a short prompt gets three minutes of silence", cloud, 1000, {}, { totalMs: 1_800_000, staleMs: 180_000 }],
  ["a long prompt gets four", cloud, 50_001, {}, { totalMs: 1_800_000, staleMs: 240_000 }],
  ["a very long one gets five", cloud, 100_001, {}, { totalMs: 1_800_000, staleMs: 300_000 }],
  [
    "a model that thinks long gets ten",
    { ...cloud, model: "openai/o3" },
    1000,
    {},
    { totalMs: 1_800_000, staleMs: 600_000 },
  ],
  ["a local server is never called silent", local, 1000, {}, { totalMs: 1_800_000 }],
  [
    "the user's word counts, for local servers too",
    local,
    1000,
    { staleSeconds: 5, totalSeconds: 60 },
    { totalMs: 60_000, staleMs: 5000 },
  ],
  [
    "what is set for a provider counts more than what is set for all",
    { ...cloud, patience: { totalSeconds: 90, staleSeconds: 7 } },
    1000,
    { staleSeconds: 5, totalSeconds: 60 },
    { totalMs: 90_000, staleMs: 7000 },
  ],
];
for (const [name, target, tokens, settings, expected] of cases) {
  test(name, () => assert.deepEqual(requestLimits(target, tokens, settings), expected));
}

test("an answer that comes whole has less time to begin", () => {
  const whole = (tokens: number, settings: LivenessSettings = {}, target = cloud) =>
    requestLimits(target, tokens, settings, { stream: false }).staleMs;
  assert.deepEqual(
    [1000, 50_001, 100_001].map((tokens) => whole(tokens)),
    [90_000, 150_000, 240_000],
  );
  assert.equal(whole(1000, { wholeStaleSeconds: 4, staleSeconds: 9 }), 4000);
  assert.equal(whole(1000, {}, local), undefined);
});
