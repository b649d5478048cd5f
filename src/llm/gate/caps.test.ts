import assert from "node:assert/strict";
import { test } from "node:test";
import { GOAL_ACCOUNT } from "../gate.ts";
import { limitsOf, refusedAtOnce } from "./caps.ts";

const none = { usd: null, tokens: null };
const caps = { call: none, session: none, job: { usd: 1, tokens: null }, day: none, goal: { usd: 5, tokens: null } };
const at = new Date(0);
const scopes = (jobId?: string) =>
  limitsOf({ task: "main", sessionId: "s", ...(jobId ? { jobId } : {}) }, caps, at).map(({ cap, scope }) => [
    cap,
    scope,
  ]);

test("a goal pays from its own cap and from no job's, and the other way round", () => {
  assert.deepEqual(scopes(`${GOAL_ACCOUNT}s:1`), [["goal", { job: `${GOAL_ACCOUNT}s:1` }]]);
  assert.deepEqual(scopes("cron:7"), [["job", { job: "cron:7" }]]);
  assert.deepEqual(scopes(), []);
});

test("a goal that may cost nothing is told which setting says so; other calls are not its business", () => {
  const shut = { ...caps, job: none, goal: { usd: 0, tokens: null } };
  const call = (jobId?: string) =>
    refusedAtOnce({ task: "main", sessionId: "s", ...(jobId ? { jobId } : {}) }, { usd: 0.1, tokens: 10 }, shut);
  assert.match(call(`${GOAL_ACCOUNT}s:1`) ?? "", /the cap for this goal is 0 \(goals\.max_usd in config\.yaml\)/);
  assert.deepEqual([call(), call("cron:7")], [null, null]);
});
