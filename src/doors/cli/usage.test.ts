import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Command } from "commander";
import { temporaryStore } from "../../../test/support/session-store.ts";
import type { CallRecord } from "../../llm/gate.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { define } from "./usage.ts";

const DAY = 86_400;

async function usageOf(
  t: TestContext,
  args: readonly string[],
  calls: readonly Partial<CallRecord>[],
): Promise<string> {
  const { store, clock } = await temporaryStore(t);
  await store.create({ id: "20260101_000000_aaaaaa" });
  await store.create({ id: "20260102_000000_bbbbbb" });
  for (const call of calls) {
    await store.recordCall({
      task: "main",
      sessionId: "20260101_000000_aaaaaa",
      model: "m1",
      provider: "p",
      baseUrl: "https://host.example",
      apiMode: "chat_completions",
      startedAt: clock.now() / 1000,
      ms: 5,
      outcome: "ok",
      inputTokens: 1000,
      outputTokens: 100,
      cacheReadTokens: 20_000,
      cacheWriteTokens: null,
      reasoningTokens: 7,
      costUsd: 0.25,
      costStatus: "estimated",
      costSource: "catalogue",
      ...call,
    });
  }
  let out = "";
  const command = new Command("usage").exitOverride().configureOutput({ writeErr: () => undefined });
  // Only what this sub-command uses of its context.
  const io = {
    out(text: string) {
      out += text;
    },
  };
  define(command, { store: async () => store, clock, io } as unknown as CliContext);
  await command.parseAsync([...args], { from: "user" });
  return out;
}

test("usage shows tokens by kind and cost per purpose, with a total", async (t) => {
  const out = await usageOf(t, [], [{}, { task: "title_generation", model: "m2", costUsd: 0.001 }]);
  const lines = out.trimEnd().split("\n");
  assert.match(
    lines[0] ?? "",
    /^purpose\s+calls\s+cache read\s+cache write\s+fresh input\s+output\s+reasoning\s+cost\s+status$/,
  );
  assert.match(lines[1] ?? "", /^main\s+1\s+20,000\s+0\s+1,000\s+100\s+7\s+\$0\.25\s+estimated$/);
  assert.match(lines[2] ?? "", /^title_generation .*\$0\.001000 {2}estimated$/);
  assert.match(lines[3] ?? "", /^total\s+2\s+40,000/);
});

test("an unknown cost is shown as unknown, never as 0", async (t) => {
  const unknown = { costUsd: null, costStatus: "unknown", task: "vision" } as const;
  const out = await usageOf(t, [], [{}, unknown]);
  assert.match(out, /^vision .* unknown +unknown$/m);
  assert.match(out, /^total .* \$0\.25 \+ unknown +unknown$/m);
  assert.match(out, /The cost of 1 call is unknown/);
  const json = JSON.parse(await usageOf(t, ["--json"], [unknown]));
  assert.deepEqual([json.rows[0].cost_usd, json.total.unknown_cost_calls], [null, 1]);
});

test("a sum of money is as sure as its least sure call", async (t) => {
  const actual = { costStatus: "actual", costSource: "provider" } as const;
  const included = { costStatus: "included", costUsd: 0, task: "vision" } as const;
  const status = async (...calls: Partial<CallRecord>[]) =>
    JSON.parse(await usageOf(t, ["--json"], calls)).total.cost_status;
  assert.equal(await status(included), "included");
  assert.equal(await status(actual, included), "actual");
  assert.equal(await status(actual, {}), "estimated");
  assert.equal(await status(actual, { costUsd: null, costStatus: "unknown" }), "unknown");
});

test("usage groups by model and by day, and leaves out what is older than --days", async (t) => {
  const old = { startedAt: Date.UTC(2026, 0, 2, 12) / 1000 - 3 * DAY, model: "old" };
  assert.match(await usageOf(t, ["--by", "model"], [{}, old]), /^old /m);
  assert.doesNotMatch(await usageOf(t, ["--by", "model", "--days", "2"], [{}, old]), /^old /m);
  assert.match(await usageOf(t, ["--by", "day"], [{}]), /^2026-01-0\d /m);
});

test("one session is found by a prefix of its id, an unknown one ends with code 1", async (t) => {
  const other = { sessionId: "20260102_000000_bbbbbb", task: "vision" } as const;
  const json = JSON.parse(await usageOf(t, ["--session", "20260102", "--json"], [{}, other]));
  assert.deepEqual([json.session_id, json.rows.length, json.rows[0].purpose], ["20260102_000000_bbbbbb", 1, "vision"]);
  await assert.rejects(
    usageOf(t, ["--session", "nope"], []),
    (error) => error instanceof ExitError && error.exitCode === 1,
  );
});

test("nothing recorded is one line; bad arguments are refused", async (t) => {
  assert.equal(await usageOf(t, [], []), "No model calls recorded for this selection.\n");
  await assert.rejects(usageOf(t, ["--days", "0"], []), { code: "commander.invalidArgument" });
  await assert.rejects(usageOf(t, ["--by", "colour"], []), { code: "commander.invalidArgument" });
});
