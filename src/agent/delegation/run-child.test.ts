import assert from "node:assert/strict";
import { test } from "node:test";
import { type RigOptions, rigAgent } from "../../../test/support/agent/agent-rig.ts";
import { ScriptedGate, type ScriptedStep } from "../../../test/support/agent/scripted-gate.ts";
import { manualClock } from "../../../test/support/session-store.ts";
import { defaultConfig } from "../../home/config/schema.ts";
import type { Clock } from "../../kit/clock.ts";
import type { SessionTotals, SubagentEvent } from "../events.ts";
import { runChild } from "./run-child.ts";

/** Time stands still until the test moves it. */
function steppedClock() {
  const clock = manualClock();
  const sleepers: { readonly at: number; wake(): void }[] = [];
  const stepped: Clock = {
    ...clock,
    now: () => clock.ms,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
        sleepers.push({ at: clock.ms + ms, wake: resolve });
      }),
  };
  const advance = async (ms: number) => {
    const until = clock.ms + ms;
    for (;;) {
      const next = sleepers.filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)[0];
      if (!next) break;
      sleepers.splice(sleepers.indexOf(next), 1);
      clock.ms = next.at;
      next.wake();
      for (let tick = 0; tick < 20; tick++) await Promise.resolve();
    }
    clock.ms = until;
  };
  return { clock: stepped, advance };
}

function rig(steps: readonly ScriptedStep[], more: Partial<RigOptions> = {}) {
  const { clock, advance } = steppedClock();
  const agent = rigAgent({ gate: new ScriptedGate(...steps), ports: { clock }, ...more });
  const events: SubagentEvent[] = [];
  const beats: (string | undefined)[] = [];
  const used: SessionTotals[] = [];
  const interrupt = new AbortController();
  const stop = new AbortController();
  const running = runChild({
    agent,
    facts: { id: "sa-0-0", parentId: null, depth: 1, taskIndex: 0, taskCount: 1, task: { goal: "do it" }, model: "m" },
    call: {
      sessionId: "parent",
      callId: "c1",
      signal: interrupt.signal,
      emit: (event) => {
        if (event.type === "subagent") events.push(event);
      },
      progress: (text) => void beats.push(text),
      used: (totals) => void used.push(totals),
    },
    stop: stop.signal,
    clock,
    settings: defaultConfig().delegation,
    graceMs: 20,
  });
  return { running, advance, events, beats, used, interrupt, stop };
}

const call = (path: string) => ({ calls: [{ name: "look", args: { path } }] });
const look = { look: () => "seen" };

test("a child's way is told: it starts, thinks, calls tools, shows progress every five calls and completes", async () => {
  const steps = [{ thinking: "hm", ...call("0") }, ...["1", "2", "3", "4"].map(call), { text: "found it" }];
  const { running, events, used } = rig(steps, { tools: look });
  const { report } = await running;
  assert.deepEqual(
    events.map((event) => event.phase),
    ["start", "thinking", "tool", "tool", "tool", "tool", "tool", "progress", "complete"],
  );
  assert.deepEqual(events.at(-1), {
    ...{ type: "subagent", phase: "complete", id: "sa-0-0", parentId: null, depth: 1, taskIndex: 0, taskCount: 1 },
    ...{ goal: "do it", model: "m", status: "completed", ms: 0, text: "found it", summary: "found it" },
  });
  assert.equal(report.summary, "found it");
  assert.equal(report.status, "completed");
  assert.deepEqual(report.tool_trace[0], { tool: "look", args_bytes: 12, result_bytes: 4, status: "ok" });
  assert.deepEqual([report.api_calls, report.tokens], [6, { input: 60, output: 30 }]);
  assert.equal(used[0]?.apiCalls, 6, "what it took is counted with the parent's own");
});

test("a child that takes too long is stopped, and the report says what it was doing", async () => {
  const { running, advance, events } = rig([call("x"), { hang: "hm" }], { tools: look });
  await until(() => events.some((event) => event.phase === "tool"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  await advance(599_000);
  assert.ok(!events.some((event) => event.phase === "complete"));
  await advance(1_000);
  const { report } = await running;
  assert.equal(report.status, "timeout");
  assert.equal(report.exit_reason, "timeout");
  assert.match(report.error ?? "", /600 s.*child_timeout_seconds.*waiting for the model.*of 20 model calls/);
  assert.equal(report.tool_trace.length, 1, "what it did until then is in the report");
});

test("a child that ignores its end is given up after the grace time", async () => {
  const stuck = Promise.withResolvers<string>();
  const { running, interrupt, events } = rig([call("x"), { text: "late" }], {
    tools: { look: () => stuck.promise },
    limits: { toolTimes: { heartbeatMs: 5000, graceMs: 60_000, overtimeMs: 1 } },
  });
  await until(() => events.some((event) => event.phase === "tool"));
  interrupt.abort();
  const { report, over } = await running;
  assert.equal(report.status, "interrupted");
  stuck.resolve("at last");
  await over;
});

test("a child can be stopped by itself", async () => {
  const { running, stop, events } = rig([{ hang: "hm" }]);
  await until(() => events.some((event) => event.phase === "start"));
  stop.abort();
  const { report } = await running;
  assert.deepEqual([report.status, report.exit_reason, report.summary], ["interrupted", "interrupted", null]);
});

test("a child whose model refuses is a failed report with the reason", async () => {
  const { running } = rig([{ error: { status: 401, message: "bad key" } }]);
  const { report } = await running;
  assert.deepEqual([report.status, report.exit_reason], ["failed", "error"]);
  assert.match(report.error ?? "", /key|401/);
});

const atLimit = { tools: look, limits: { maxIterations: 2 }, session: { task: "subagent" } } as const;
const limit = "stopped at its limit of 2 model calls (delegation.max_iterations)";

test("a child at its limit has a status of its own and names its own setting, beside what it found by then", async () => {
  const { running, events } = rig([call("0"), call("1"), { text: "So far: seen." }], atLimit);
  const { report } = await running;
  assert.deepEqual([report.status, report.exit_reason], ["max_iterations", "max_iterations"]);
  assert.deepEqual([report.summary, report.error], ["So far: seen.", limit]);
  assert.equal(events.at(-1)?.status, "max_iterations");
});

test("a child at its limit that has nothing to say says so once, with no advice for a user", async () => {
  const { running } = rig([call("0"), call("1"), {}, {}], atLimit);
  const { report } = await running;
  assert.deepEqual([report.status, report.summary, report.error], ["max_iterations", null, limit]);
});

test("a child whose answer was cut off is a failed report with what it said", async () => {
  const piece = { text: "x", finish: "length" } as const;
  const { report } = await rig([piece, piece, piece, piece]).running;
  assert.deepEqual([report.status, report.summary, report.error], ["failed", "xxxx", "the answer was cut off"]);
});

test("a child that throws is an error report", async () => {
  const gate = new ScriptedGate();
  const agent = rigAgent({ gate });
  await agent.close();
  const { report } = await runChild({
    agent,
    facts: { id: "sa-0-0", parentId: null, depth: 1, taskIndex: 0, taskCount: 1, task: { goal: "x" }, model: "m" },
    call: {
      ...{ sessionId: "p", callId: "c", signal: new AbortController().signal },
      ...{ emit: () => undefined, progress: () => undefined, used: () => undefined },
    },
    stop: new AbortController().signal,
    clock: steppedClock().clock,
    settings: defaultConfig().delegation,
  });
  assert.deepEqual([report.status, report.exit_reason], ["error", "error"]);
  assert.match(report.error ?? "", /closed/);
});

test("a child that gets nowhere stops vouching for its parent after fifteen heartbeats", async () => {
  const { running, advance, beats, stop, events } = rig([{ hang: "hm" }]);
  await until(() => events.some((event) => event.phase === "start"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  await advance(590_000);
  assert.equal(beats.length, 15);
  stop.abort();
  await running;
});

async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setImmediate(resolve));
}
