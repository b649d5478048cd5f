import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Price } from "../catalogue/prices.ts";
import {
  type CallPurpose,
  type CallRecord,
  CallRefusedError,
  type CapScope,
  type Caps,
  type Ledger,
  type SpendingScope,
} from "../gate.ts";
import { profileFor } from "../providers/profiles.ts";
import type { Usage } from "../usage.ts";
import type { ModelEvent, ModelRequest, Target, Wire } from "../wire.ts";
import { writeBody } from "../wires/drive.ts";
import { createGate } from "./create-gate.ts";

const NONE: Caps = {
  call: { usd: null, tokens: null },
  session: { usd: null, tokens: null },
  job: { usd: null, tokens: null },
  day: { usd: null, tokens: null },
};
const DOLLAR: Price = {
  type: "per_token",
  rates: { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.25 },
  tiers: [],
  source: "catalogue",
};
const target: Target = {
  provider: "custom",
  model: "m",
  baseUrl: "https://host.example/v1",
  apiKey: "host-key",
  keyHosts: ["host.example"],
  apiMode: "chat_completions",
  contextLength: 1000,
  profile: profileFor({
    provider: "custom",
    model: "m",
    baseUrl: "https://host.example/v1",
    apiMode: "chat_completions",
  }),
};
const request: ModelRequest = { target, messages: [{ role: "user", content: "x".repeat(4000) }], tools: [] };
const purpose: CallPurpose = { task: "main", sessionId: "s1", jobId: "j1" };
const usage: Usage = {
  inputTokens: 1000,
  outputTokens: 500,
  cacheReadTokens: 10,
  cacheWriteTokens: null,
  reasoningTokens: null,
  promptTokens: 1010,
  totalTokens: 1510,
};
const done: ModelEvent = { type: "done", finishReason: "stop", message: { role: "assistant", content: "hi" } };
const failed = (code: string): ModelEvent => ({ type: "failed", error: { message: code, code } });

/** Books in memory, summed as the store sums them. */
function books() {
  const rows: CallRecord[] = [];
  const sum = (chosen: readonly CallRecord[]) => ({
    usd: chosen.reduce((total, row) => total + (row.costUsd ?? 0), 0),
    tokens: chosen.reduce((total, row) => total + (row.inputTokens ?? 0) + (row.outputTokens ?? 0), 0),
  });
  const spentIn = (scope: SpendingScope) => {
    if ("session" in scope) return sum(rows.filter((row) => row.sessionId === scope.session));
    return "job" in scope ? sum(rows.filter((row) => row.jobId === scope.job)) : sum(rows);
  };
  const ledger: Ledger = {
    recordCall: async (row, reservation = rows.length) => {
      rows[reservation] = row;
    },
    reserveCall: async (row, limits) => {
      for (const [exceeded, { scope, ...limit }] of limits.entries()) {
        const spent = spentIn(scope);
        const next = sum([row]);
        for (const unit of ["usd", "tokens"] as const)
          if (limit[unit] !== null && spent[unit] + next[unit] > limit[unit])
            return { exceeded, unit, spent: spent[unit] };
      }
      return { reservation: rows.push(row) - 1 };
    },
  };
  return { rows, ledger };
}

function gateWith(script: readonly ModelEvent[] | Error, change: { caps?: Caps; price?: Price; ledger?: Ledger } = {}) {
  const { rows, ledger } = books();
  const defects: string[] = [];
  const notices: string[] = [];
  let sent = 0;
  let now = 1000;
  const wire: Wire = {
    async *stream({ messages }, _signal, onSend) {
      sent++;
      onSend?.(writeBody({ messages }));
      if (script instanceof Error) throw script;
      for (const event of script) yield event;
    },
  };
  const gate = createGate({
    ledger: change.ledger ?? ledger,
    caps: () => change.caps ?? NONE,
    priceOf: () => change.price ?? DOLLAR,
    wireFor: () => wire,
    clock: { now: () => now++, random: () => 0, sleep: async () => undefined },
    onDefect: (what) => defects.push(what),
    onUnknownPrice: (message) => notices.push(message),
  });
  return { gate, rows, defects, notices, sent: () => sent };
}

async function drain(events: AsyncIterable<ModelEvent>): Promise<readonly ModelEvent[]> {
  const seen: ModelEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

const never = new AbortController().signal;
const cap = (scope: CapScope, limit: { usd?: number; tokens?: number }): Caps => ({
  ...NONE,
  [scope]: { usd: limit.usd ?? null, tokens: limit.tokens ?? null },
});

test("a call that says nothing about cache markers gets what the settings say, others what they say themselves", async () => {
  const seen: unknown[] = [];
  const gate = createGate({
    ledger: books().ledger,
    caps: () => NONE,
    priceOf: () => DOLLAR,
    wireFor: () => ({
      async *stream({ cacheTtl }) {
        seen.push(cacheTtl);
        yield done;
      },
    }),
    cacheTtl: () => "off",
    clock: { now: () => 0, random: () => 0, sleep: async () => undefined },
    onDefect: (what) => seen.push(what),
  });
  for (const given of [{}, { cacheTtl: "1h" as const }])
    await drain(gate.stream({ ...request, ...given }, purpose, never));
  assert.deepEqual(seen, ["off", "1h"]);
});

test("events pass, usage gains its cost, and the row holds tokens, cost and purpose", async () => {
  const script: readonly ModelEvent[] = [{ type: "text", delta: "hi" }, { type: "usage", usage }, done];
  const { gate, rows } = gateWith(script);
  const cost = { usd: 0.002001, status: "estimated", source: "catalogue" };
  assert.deepEqual(await drain(gate.stream(request, { ...purpose, turn: 3 }, never)), [
    script[0],
    { type: "usage", usage: { ...usage, cost } },
    done,
  ]);
  assert.equal(rows.length, 1);
  const [row] = rows;
  assert.deepEqual(
    [row?.outcome, row?.task, row?.turn, row?.inputTokens, row?.cacheWriteTokens, row?.costStatus, row?.costSource],
    ["ok", "main", 3, 1000, null, "estimated", "catalogue"],
  );
  assert.equal(row?.costUsd, 0.002001);
});

const costs: readonly [string, Usage | null, Price, number | null, string][] = [
  ["what the provider reports is actual", { ...usage, reportedCostUsd: 0.5 }, DOLLAR, 0.5, "actual"],
  ["a plan is included", usage, { type: "included", source: "subscription" }, 0, "included"],
  ["an unknown price stays unknown", usage, { type: "unknown" }, null, "unknown"],
  ["unreported tokens leave the cost unknown", null, DOLLAR, null, "unknown"],
];
for (const [name, reported, price, usd, status] of costs) {
  test(`cost: ${name}`, async () => {
    const { gate, rows } = gateWith(reported ? [{ type: "usage", usage: reported }, done] : [done], { price });
    await drain(gate.stream(request, purpose, never));
    assert.deepEqual([rows[0]?.costUsd, rows[0]?.costStatus], [usd, status]);
  });
}

const ends: readonly [string, readonly ModelEvent[] | Error, string][] = [
  ["a failure", [failed("ECONNREFUSED")], "error"],
  ["an abort", [{ type: "text", delta: "hal" }, failed("aborted")], "aborted"],
  ["a wire that throws", new Error("bug"), "error"],
  ["a wire that just stops", [{ type: "text", delta: "hal" }], "error"],
];
for (const [name, script, outcome] of ends) {
  test(`${name} ends with one failed event and one row`, async () => {
    const { gate, rows } = gateWith(script);
    const events = await drain(gate.stream(request, purpose, never));
    assert.equal(events.filter((event) => event.type === "failed").length, 1);
    assert.equal(events.at(-1)?.type, "failed");
    assert.deepEqual(
      rows.map((row) => row.outcome),
      [outcome],
    );
  });
}

test("a call that failed before it began costs nothing; one broken off is estimated, never 0", async () => {
  const refused = gateWith([failed("ECONNREFUSED")]);
  await drain(refused.gate.stream(request, purpose, never));
  assert.equal(refused.rows[0]?.costUsd, 0);
  const broken = gateWith([{ type: "text", delta: "hal" }, failed("aborted")]);
  await drain(broken.gate.stream(request, purpose, never));
  assert.deepEqual([broken.rows[0]?.costUsd, broken.rows[0]?.inputTokens], [0.001002, null]);
});

test("an answer that was lost on its way, and a call the model wrote before it broke off, are estimated too", async () => {
  const costOf = async (...script: ModelEvent[]) => {
    const { gate, rows } = gateWith(script);
    await drain(gate.stream(request, purpose, never));
    return rows[0]?.costUsd ?? 0;
  };
  const partial = { text: "", pendingTools: ["look"] };
  const lost = await costOf({ type: "failed", error: { message: "terminated", partial } });
  assert.ok(lost > 0, "the server had begun");
  const call = {
    id: "c",
    type: "function",
    function: { name: "look", arguments: '{"at":"the birds outside"}' },
  } as const;
  assert.ok((await costOf({ type: "tool_call", call }, failed("aborted"))) > lost, "what it wrote counts");
});

test("a reader that leaves early still leaves one row", async () => {
  for (const script of [[{ type: "text", delta: "a" }, { type: "text", delta: "b" }, done], [done]] as const) {
    const { gate, rows } = gateWith(script);
    for await (const _ of gate.stream(request, purpose, never)) break;
    assert.equal(rows.length, 1);
  }
});

test("a wire that ends twice is still one row", async () => {
  const { gate, rows } = gateWith([done, failed("late")]);
  await drain(gate.stream(request, purpose, never));
  assert.deepEqual(
    rows.map((row) => row.outcome),
    ["ok"],
  );
});

test("a ledger that cannot write is reported and does not disturb the answer", async () => {
  const ledger: Ledger = {
    recordCall: () => Promise.reject(new Error("disk full")),
    reserveCall: async () => ({ reservation: 1 }),
  };
  const { gate, defects } = gateWith([done], { ledger });
  assert.deepEqual(await drain(gate.stream(request, purpose, never)), [done]);
  assert.equal(defects.length, 1);
});

test("caps that cannot be checked let nothing leave", async () => {
  const ledger: Ledger = { recordCall: async () => undefined, reserveCall: () => Promise.reject(new Error("locked")) };
  const { gate, sent } = gateWith([done], { ledger, caps: cap("day", { usd: 1 }) });
  const [event] = await drain(gate.stream(request, purpose, never));
  assert.equal(event?.type === "failed" && event.error.code, "budget_exceeded");
  assert.equal(sent(), 0);
});

// scope, cap, calls that fit (each call: 1,000 input tokens estimated, 1,500 used, $0.002)
const capped: readonly [CapScope, { usd?: number; tokens?: number }, number, RegExp][] = [
  ["call", { usd: 0.0009 }, 0, /one model call.*\$0\.001000.*budget\.call\.usd/],
  ["call", { tokens: 1000 }, 3, /^$/],
  ["call", { tokens: 999 }, 0, /budget\.call\.tokens/],
  ["session", { usd: 0.0031 }, 2, /this conversation.*Spent \$0\.004002.*cap is \$0\.003100.*budget\.session\.usd/],
  ["session", { tokens: 2500 }, 2, /Spent 3,000 tokens.*cap is 2,500 tokens/],
  ["job", { tokens: 1500 }, 1, /this job.*budget\.job\.tokens/],
  ["day", { usd: 0.002 }, 1, /today.*budget\.day\.usd/],
];
for (const [scope, limit, fits, wording] of capped) {
  test(`a ${scope} cap of ${JSON.stringify(limit)} lets ${fits} calls leave`, async () => {
    const { gate, sent, rows } = gateWith([{ type: "usage", usage }, done], { caps: cap(scope, limit) });
    let refusal = "";
    for (let call = 0; call < 3; call++) {
      const last = (await drain(gate.stream(request, purpose, never))).at(-1);
      if (last?.type === "failed") refusal = last.error.message;
    }
    assert.equal(sent(), fits);
    assert.match(refusal, wording);
    assert.equal(rows.length, 3);
    assert.deepEqual(
      [...new Set(rows.slice(fits).map((row) => `${row.outcome} ${row.costUsd}`))],
      fits < 3 ? ["refused 0"] : [],
    );
  });
}

test("the output cap of a request counts towards the estimate", async () => {
  const { gate, sent } = gateWith([done], { caps: cap("call", { tokens: 5000 }) });
  await drain(gate.stream({ ...request, maxTokens: 4001 }, purpose, never));
  assert.equal(sent(), 0);
});

test("parallel calls cannot pass one cap together", async () => {
  const { gate, sent } = gateWith([{ type: "usage", usage }, done], { caps: cap("day", { tokens: 2500 }) });
  await Promise.all([1, 2, 3, 4].map(() => drain(gate.stream(request, purpose, never))));
  assert.equal(sent(), 2);
});

test("an unknown price is told once per session, and token caps still hold", async () => {
  const caps = { ...cap("session", { usd: 0.000001, tokens: 2500 }) };
  const { gate, notices, sent } = gateWith([{ type: "usage", usage }, done], { caps, price: { type: "unknown" } });
  for (let call = 0; call < 3; call++) await drain(gate.stream(request, purpose, never));
  assert.equal(sent(), 2);
  assert.equal(notices.length, 1);
  await drain(gate.stream(request, { ...purpose, sessionId: "s2" }, never));
  assert.equal(notices.length, 2);
});

test("a key bound to another host never leaves", async () => {
  const { gate, sent, rows } = gateWith([done]);
  const wrong = { ...request, target: { ...target, baseUrl: "https://elsewhere.example/v1" } };
  const [event] = await drain(gate.stream(wrong, purpose, never));
  assert.equal(event?.type === "failed" && event.error.code, "key_host_mismatch");
  assert.equal(sent(), 0);
  assert.equal(rows[0]?.outcome, "refused");
});

const anyScript = fc.oneof(
  fc.constant<readonly ModelEvent[]>([done]),
  fc.constant<readonly ModelEvent[]>([{ type: "usage", usage }, done]),
  fc.constant<readonly ModelEvent[]>([failed("aborted")]),
  fc.constant<readonly ModelEvent[]>([{ type: "text", delta: "x" }]),
  fc.constant(new Error("bug")),
);
const anyPrice = fc.constantFrom<Price>(DOLLAR, { type: "unknown" }, { type: "included", source: "local" });

test("for every end, price and cap: as many rows as calls", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ early: fc.boolean() }), { maxLength: 5 }),
      anyScript,
      anyPrice,
      fc.option(fc.constantFrom<CapScope>("call", "session", "job", "day"), { nil: null }),
      fc.nat({ max: 4000 }),
      async (calls, script, price, scope, tokens) => {
        const { gate, rows } = gateWith(script, { price, caps: scope ? cap(scope, { tokens }) : NONE });
        for (const { early } of calls) {
          for await (const _ of gate.stream(request, purpose, never)) if (early) break;
        }
        assert.equal(rows.length, calls.length);
      },
    ),
    { numRuns: 60 },
  );
});

test("a cap of 0 in any scope lets nothing leave, whatever the price", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom<CapScope>("call", "session", "job", "day"),
      fc.boolean(),
      anyPrice,
      anyScript,
      async (scope, money, price, script) => {
        const { gate, sent } = gateWith(script, { price, caps: cap(scope, money ? { usd: 0 } : { tokens: 0 }) });
        const [event] = await drain(gate.stream(request, purpose, never));
        assert.equal(event?.type === "failed" && event.error.code, "budget_exceeded");
        assert.equal(sent(), 0);
      },
    ),
    { numRuns: 60 },
  );
});

test("a cap for jobs, even of 0, does not stop a conversation", async () => {
  const { gate, sent } = gateWith([done], { caps: cap("job", { tokens: 0 }) });
  await drain(gate.stream(request, { task: "main", sessionId: "s1" }, never));
  assert.equal(sent(), 1);
});

test("the row tells how much of the request was there before; a break that nobody announced is a defect", async () => {
  const { gate, rows, defects } = gateWith([done]);
  const say = (...texts: readonly string[]) =>
    drain(gate.stream({ ...request, messages: texts.map((content) => ({ role: "user", content })) }, purpose, never));
  await say("a");
  await say("a", "b");
  await say("x", "b");
  gate.expectNewPrefix("s1", "rewind");
  await say("y");
  const told = rows.map(({ bytes, commonBytes, brokeOwner, brokeOffset, cause }) => [
    bytes,
    commonBytes,
    brokeOwner,
    brokeOffset,
    cause,
  ]);
  assert.deepEqual(told, [
    [29, 0, undefined, undefined, undefined],
    [59, 29, undefined, undefined, undefined],
    [59, 26, "message 0 (user)", 26, undefined],
    [29, 26, "message 0 (user)", 26, "rewind"],
  ]);
  assert.equal(defects.length, 1);
  assert.match(defects[0] ?? "", /message 0 \(user\) differs at byte 26/);
});

test("a call that was refused has no prefix", async () => {
  const { gate, rows } = gateWith([done], { caps: cap("call", { tokens: 0 }) });
  await drain(gate.stream(request, purpose, never));
  assert.equal(rows[0]?.bytes, undefined);
});

const picture = { ...target, model: "painter", apiMode: "images", input: "x".repeat(400) };
const painting: CallPurpose = { ...purpose, task: "image_generation" };

test("a paid call has the caps and the row of every other; a price nobody knows stays unknown", async () => {
  const caps = cap("session", { usd: 1, tokens: 1000 });
  const { gate, rows, notices } = gateWith([], { price: { type: "unknown" }, caps });
  const counted = { inputTokens: 100, outputTokens: 850 };
  const answer = await gate.pay(picture, painting, async () => ({ value: "a heron", usage: counted }), never);
  assert.deepEqual([answer.value, answer.cost.usd, answer.cost.status], ["a heron", null, "unknown"]);
  const left = gate.pay(picture, painting, async () => assert.fail("it left"), never);
  await assert.rejects(
    left,
    (error) => error instanceof CallRefusedError && /budget\.session\.tokens/.test(error.message),
  );
  assert.match(notices.join(), /The price of painter.*is unknown/);
  assert.deepEqual(
    rows.map(({ task, apiMode, model, outcome, inputTokens, outputTokens, costUsd, costStatus, jobId }) => ({
      ...{ task, apiMode, model, outcome, inputTokens, outputTokens, costUsd, costStatus, jobId },
    })),
    [
      {
        ...{ task: "image_generation", apiMode: "images", model: "painter", jobId: "j1" },
        outcome: "ok",
        ...counted,
        costUsd: null,
        costStatus: "unknown",
      },
      {
        ...{ task: "image_generation", apiMode: "images", model: "painter", jobId: "j1" },
        outcome: "refused",
        inputTokens: 0,
        outputTokens: 0,
        costUsd: 0,
        costStatus: "actual",
      },
    ],
  );
});

test("a paid call of a known price is stopped by money that others spent", async () => {
  const { gate, sent } = gateWith([{ type: "usage", usage }, done], { caps: cap("session", { usd: 0.00205 }) });
  await drain(gate.stream(request, purpose, never));
  assert.equal(sent(), 1);
  const left = gate.pay(picture, painting, async () => assert.fail("it left"), never);
  await assert.rejects(left, /Spent \$0\.002001, this call needs about \$0\.000100.*budget\.session\.usd/);
});

test("a paid call that fails is in the books as a failure, and its error is the caller's; a key of another host never leaves", async () => {
  const { gate, rows } = gateWith([]);
  await assert.rejects(
    gate.pay(picture, painting, () => Promise.reject(new Error("no paint")), never),
    /no paint/,
  );
  const aborted = AbortSignal.abort();
  await assert.rejects(
    gate.pay(picture, painting, () => Promise.reject(new Error("gone")), aborted),
    /gone/,
  );
  const elsewhere = { ...picture, baseUrl: "https://other.example/v1" };
  await assert.rejects(
    gate.pay(elsewhere, painting, async () => assert.fail("it left"), never),
    CallRefusedError,
  );
  assert.deepEqual(
    rows.map(({ outcome, costUsd }) => [outcome, costUsd]),
    [
      ["error", null],
      ["aborted", null],
      ["refused", 0],
    ],
  );
  const priced = await gate.pay(
    picture,
    painting,
    async () => ({ value: 1, usage: { inputTokens: 1e6, outputTokens: 0 } }),
    never,
  );
  assert.deepEqual([priced.cost.usd, priced.cost.status], [1, "estimated"]);
});
