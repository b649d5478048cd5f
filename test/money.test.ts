// Money: nothing leaves under a cap of nothing, whoever asks; and the books say what the server said.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import fc from "fast-check";
import { Conversation } from "../src/agent/conversation.ts";
import { flushMemories } from "../src/agent/flush-memories.ts";
import { approvalJudge } from "../src/agent/open-guard.ts";
import { runReview } from "../src/agent/review/review.ts";
import { nameSession } from "../src/agent/titles.ts";
import type { AuxTask } from "../src/llm/auxiliary/contract.ts";
import { createGate } from "../src/llm/gate/create-gate.ts";
import type { CallPurpose, CallRecord, CapScope, Caps, ModelGate, Task } from "../src/llm/gate.ts";
import { API_MODES, type ApiMode } from "../src/llm/wire.ts";
import { createWire } from "../src/llm/wires/drive.ts";
import { openSessionStore } from "../src/sessions/open.ts";
import type { SessionStore } from "../src/sessions/store.ts";
import { play, type RigOptions, rigAgent, rigOptions } from "./support/agent/agent-rig.ts";
import { talkOf } from "./support/agent/long-talk.ts";
import { MemoryModel, patientClock, type Reply } from "./support/model-server/in-memory.ts";
import { aRequest, aTarget } from "./support/model-target.ts";
import { manualClock, recordedLog, temporaryStore } from "./support/session-store.ts";

const FREE = { usd: null, tokens: null };
const NONE: Caps = { call: FREE, session: FREE, job: FREE, day: FREE };
const PRICE = {
  type: "per_token",
  rates: { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.25 },
  tiers: [],
  source: "catalogue",
} as const;
const JOB = "job-1";

interface Spending {
  readonly gate: ModelGate;
  readonly rig: RigOptions;
  readonly mode: ApiMode;
}

/** Has a model asked in the name of one task, through the door that task comes from. What it says of a refusal does not matter here. */
type EntryPoint = (spending: Spending) => Promise<unknown>;

/** Whoever makes the call in the product makes it here; the job is the conversation's, not the caller's. */
const door =
  (ask: (conversation: Conversation, signal: AbortSignal) => Promise<unknown>): EntryPoint =>
  async ({ rig }) => {
    const history = [
      { role: "user", content: "hello" },
      { role: "assistant", content: "Good day." },
    ] as const;
    const conversation = new Conversation(rigOptions({ ...rig, session: { ...rig.session, history, jobId: JOB } }));
    await conversation.systemPrompt();
    await ask(conversation, new AbortController().signal).catch((error: Error) => error);
  };

/** A title is given to a row; tests without a store of their own share this one. */
let shelf: ReturnType<typeof openShelf> | null = null;
async function openShelf() {
  const folder = await mkdtemp(join(tmpdir(), "hermes-money-"));
  const log = recordedLog();
  const store = await openSessionStore({
    path: join(folder, "state.db"),
    journalMode: "auto",
    log,
    clock: manualClock(),
  });
  await store.create({ id: "session-1", source: "cli" });
  return { folder, store };
}
async function namelessStore(): Promise<SessionStore> {
  shelf ??= openShelf();
  return (await shelf).store;
}
after(async () => {
  const opened = await shelf;
  await opened?.store.close();
  if (opened) await rm(opened.folder, { recursive: true, force: true });
});

/** For tasks whose own door needs a whole home (money-doors.test.ts), or that nothing asks for yet. */
const side =
  (task: AuxTask): EntryPoint =>
  ({ rig }) =>
    new Conversation(rigOptions(rig)).auxiliary
      .callAux({
        task,
        messages: [{ role: "user", content: "a side question" }],
        signal: new AbortController().signal,
        sessionId: "session-1",
        jobId: JOB,
      })
      .catch((error: Error) => error);

const turn =
  (task: Task): EntryPoint =>
  ({ rig }) =>
    play(rigAgent({ ...rig, session: { ...rig.session, task, jobId: JOB } }), "hello");

const raw =
  (task: Task): EntryPoint =>
  async ({ gate, mode }) => {
    const purpose: CallPurpose = { task, sessionId: "session-1", jobId: JOB };
    for await (const _ of gate.stream(aRequest(aTarget(mode)), purpose, new AbortController().signal));
  };

/** Every purpose a chat model is asked for. A new one does not compile until it stands here. */
const ENTRY_POINTS: Readonly<Record<AuxTask | "main" | "subagent" | "plugin", EntryPoint>> = {
  main: turn("main"),
  subagent: turn("subagent"),
  compression: ({ rig }) =>
    rigAgent({ ...rig, session: { ...rig.session, history: talkOf(30_000), jobId: JOB } }).compress(),
  title_generation: async (spending) => {
    const store = spending.rig.store ?? (await namelessStore());
    await store.setTitle("session-1", null);
    await door(({ auxiliary, transcript }, signal) => {
      const { messages, sessionId } = transcript;
      return nameSession({ store, auxiliary, messages, turn: 1, signal, sessionId: () => sessionId });
    })(spending);
  },
  background_review: door(async (conversation, signal) => {
    const { sent } = conversation;
    assert.ok(sent);
    return runReview(conversation, { triggers: ["memory"], sent, signal });
  }),
  flush_memories: door((conversation, signal) => flushMemories(conversation, { why: "closing", signal })),
  vision: side("vision"),
  web_extract: side("web_extract"),
  approval: door(({ auxiliary }, signal) => {
    const judge = approvalJudge(auxiliary, { sessionId: "session-1", turn: 1, redact: (text) => text });
    return judge({ command: "ls", category: "a rule", reason: "a reason", policy: "" }, signal);
  }),
  mcp: side("mcp"),
  curator: side("curator"),
  skills_hub: side("skills_hub"),
  goal_judge: side("goal_judge"),
  triage_specifier: side("triage_specifier"),
  kanban_decomposer: side("kanban_decomposer"),
  plugin: raw("plugin"),
};
const TASKS = Object.keys(ENTRY_POINTS) as readonly (keyof typeof ENTRY_POINTS)[]; // the keys of that record and no others

function spend(store: SessionStore | null, caps: Caps, mode: ApiMode, answer: (serial: number) => Reply) {
  const clock = patientClock();
  let serial = 0;
  const model = new MemoryModel(clock, () => answer(serial++));
  const booked: CallPurpose[] = [];
  const gate = createGate({
    ledger: {
      recordCall: async (call, reservation) => {
        booked.push(call);
        await store?.recordCall(call, reservation);
      },
      reserveCall: async (call, limits) => store?.reserveCall(call, limits) ?? assert.fail("there are no books"),
    },
    caps: () => caps,
    priceOf: () => PRICE,
    wireFor: (target) => createWire(target.apiMode, { fetch: model.fetch, clock }),
    clock,
    onDefect: (what, error) => {
      throw new Error(what, { cause: error });
    },
  });
  const rig: RigOptions = { gate, store, model: { target: aTarget(mode) }, tools: { touch: () => "ok" } };
  return { model, gate, rig, mode, booked };
}

for (const task of TASKS) {
  test(`${task}: a cap of 0 lets no request leave, in every scope and unit`, async () => {
    for (const scope of ["call", "session", "job", "day"] satisfies CapScope[]) {
      for (const unit of ["usd", "tokens"] as const) {
        const caps = { ...NONE, [scope]: { ...FREE, [unit]: 0 } };
        const spending = spend(null, caps, "chat_completions", () => ({ text: "ok" }));
        await ENTRY_POINTS[task](spending);
        assert.equal(spending.model.requests.length, 0, `${scope}.${unit}`);
        const uncapped = spend(null, NONE, "chat_completions", () => ({ text: "ok" }));
        await ENTRY_POINTS[task](uncapped);
        assert.ok(uncapped.model.requests.length > 0, "without a cap it does ask");
        assert.deepEqual([...new Set(uncapped.booked.map((call) => call.task))], [task]);
      }
    }
  });
}

test("a cap that is spent stops every purpose that draws on it", async (t) => {
  for (const scope of ["session", "job", "day"] as const) {
    const { store } = await temporaryStore(t);
    await store.create({ id: "session-1", source: "cli" });
    const caps = { ...NONE, [scope]: { usd: null, tokens: 100_000 } };
    const big = { input: 99_999, output: 1, cacheRead: 0 };
    const spending = spend(store, caps, "chat_completions", () => ({ text: "ok", usage: big }));
    await raw("plugin")(spending);
    assert.equal(spending.model.requests.length, 1);
    for (const task of TASKS) await ENTRY_POINTS[task](spending);
    assert.equal(spending.model.requests.length, 1, `${scope}: somebody spent more`);
  }
});

test("a turn that hits a cap says which one, what was spent and where it is set", async (t) => {
  const caps = { ...NONE, day: { usd: 0.000001, tokens: null } };
  const { store } = await temporaryStore(t);
  const { rig } = spend(store, caps, "chat_completions", () => ({ text: "ok" }));
  const { outcome } = await play(rigAgent(rig), "hello");
  assert.equal(outcome.exitReason, "budget_cap");
  assert.match(
    outcome.finalText ?? "",
    /today.*Spent \$0\.00, this call needs about \$0\.0000\d+, the cap is \$0\.000001 \(budget\.day\.usd/,
  );
});

// --- reserved before, settled after: each call here is estimated at 1,000 tokens and takes as many

const capped = (scope: "session" | "day", tokens: number): Caps => ({ ...NONE, [scope]: { usd: null, tokens } });
const thousand = { usage: { input: 1000, output: 0, cacheRead: 0 }, text: "" };

function thousands(store: SessionStore, caps: Caps) {
  const { gate, model } = spend(store, caps, "chat_completions", () => thousand);
  const messages = [{ role: "user", content: "x".repeat(4000) }] as const;
  const ask = async (purpose: Partial<CallPurpose> = {}) => {
    const request = { ...aRequest(aTarget("chat_completions")), messages, tools: [] };
    const whole = { task: "main", sessionId: "session-1", ...purpose } as const;
    for await (const _ of gate.stream(request, whole, new AbortController().signal));
  };
  return { ask, sent: () => model.requests.length };
}

test("calls of several processes at one instant cannot pass a cap together", async (t) => {
  const { store, path, clock, log } = await temporaryStore(t);
  const others = await Promise.all([1, 2].map(() => openSessionStore({ path, journalMode: "auto", log, clock })));
  t.after(() => Promise.all(others.map((other) => other.close())));
  const gates = [store, ...others].map((one) => thousands(one, capped("day", 2500)));
  await Promise.all(gates.flatMap(({ ask }) => [ask(), ask()]));
  assert.equal(
    gates.reduce((total, { sent }) => total + sent(), 0),
    2,
  );
  assert.deepEqual(await store.spent({ day: new Date(clock.ms) }), { usd: 0.002, tokens: 2000 });
  assert.equal((await store.usage({ by: "purpose" })).get("main")?.calls, 2, "one row for each call that left");
});

test("sub-agents at work side by side cannot pass the cap of their conversation together; prompts of a batch have their own", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "session-1", source: "cli" });
  for (const id of ["child-1", "child-2"]) await store.create({ id, parentSessionId: "session-1", source: "subagent" });
  const family = thousands(store, capped("session", 1500));
  await Promise.all(["session-1", "child-1", "child-2"].map((sessionId) => family.ask({ sessionId })));
  assert.equal(family.sent(), 1);
  const batch = thousands(store, capped("session", 1500));
  await Promise.all([1, 2, 3].map((n) => batch.ask({ sessionId: `prompt-${n}`, jobId: `job-${n}` })));
  assert.equal(batch.sent(), 3);
});

/** As the gate writes it before a call leaves. */
const underWay = (startedAt: number): CallRecord => ({
  task: "main",
  sessionId: "session-1",
  model: "m",
  provider: "p",
  baseUrl: "http://x",
  apiMode: "chat_completions",
  startedAt,
  ms: 0,
  outcome: "reserved",
  inputTokens: 1000,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0.001,
  costStatus: "estimated",
  costSource: null,
});

test("what a process has reserved counts as long as it lives, and no longer", async (t) => {
  const { store, path, clock } = await temporaryStore(t);
  const from = (file: string) => JSON.stringify(new URL(file, import.meta.url).href);
  const program = `
    import { openSessionStore } from ${from("../src/sessions/open.ts")};
    import { systemClock } from ${from("../src/kit/clock.ts")};
    import { recordedLog } from ${from("support/session-store.ts")};
    const path = ${JSON.stringify(path)};
    const store = await openSessionStore({ path, journalMode: "auto", log: recordedLog(), clock: systemClock });
    await store.reserveCall(${JSON.stringify(underWay(clock.ms / 1000))}, []);
    process.stdout.write("reserved");
    setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const gone = once(child, "exit");
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  const { ask, sent } = thousands(store, capped("day", 1500));
  await ask();
  assert.equal(sent(), 0);
  child.kill("SIGKILL");
  await gone;
  await ask();
  assert.equal(sent(), 1);
});

test("a reservation that nobody settles counts for an hour at most; what comes later is still booked once", async (t) => {
  const { store, clock } = await temporaryStore(t);
  const call = underWay(clock.ms / 1000);
  const reserved = await store.reserveCall(call, []);
  assert.ok("reservation" in reserved);
  const { ask, sent } = thousands(store, capped("day", 1500));
  clock.ms += 3_590_000;
  await ask();
  assert.equal(sent(), 0);
  clock.ms += 20_000;
  await ask();
  assert.equal(sent(), 1);
  await store.recordCall({ ...call, outcome: "ok", costSource: "catalogue" }, reserved.reservation);
  assert.equal((await store.spent({ day: new Date(clock.ms) })).tokens, 2000);
});

const usage = fc.record({
  input: fc.nat(50_000),
  output: fc.nat(5_000),
  cacheRead: fc.nat(50_000),
  reasoning: fc.nat(100),
});
const spell = fc.record({
  mode: fc.constantFrom(...API_MODES),
  task: fc.constantFrom(...TASKS.filter((task) => task !== "compression")),
  usage,
});

test("what the ledger sums up is what the server handed out, for every purpose and wire", async (t: TestContext) => {
  await fc.assert(
    fc.asyncProperty(fc.array(spell, { minLength: 1, maxLength: 8 }), async (spells) => {
      const { store } = await temporaryStore(t);
      await store.create({ id: "session-1", source: "cli" });
      const expected = new Map<Task, { calls: number; input: number; output: number; cacheRead: number }>();
      for (const { mode, task, usage: handed } of spells) {
        const spending = spend(store, NONE, mode, () => ({ text: "ok", usage: handed }));
        await ENTRY_POINTS[task](spending);
        const sum = expected.get(task) ?? { calls: 0, input: 0, output: 0, cacheRead: 0 };
        for (const { usage: one } of spending.model.handedOut) {
          sum.calls++;
          sum.input += one.input;
          sum.output += one.output;
          sum.cacheRead += one.cacheRead ?? 0;
        }
        expected.set(task, sum);
      }
      const books = await store.usage({ by: "purpose" });
      for (const [task, sum] of expected) {
        const row = books.get(task);
        assert.deepEqual(
          { calls: row?.calls, input: row?.inputTokens, output: row?.outputTokens, cacheRead: row?.cacheReadTokens },
          sum,
          task,
        );
        const usd = (sum.input * 1 + sum.output * 2 + sum.cacheRead * 0.1) / 1e6;
        assert.ok(Math.abs((row?.costUsd ?? 0) - usd) < 1e-9, `${task}: ${row?.costUsd} is not ${usd}`);
      }
      assert.equal(books.size, expected.size, "no row of nobody");
      await store.close();
    }),
    { numRuns: 12 },
  );
});

test("a session's totals are the sum of its rows, side calls included", async (t) => {
  const { store } = await temporaryStore(t);
  const spending = spend(store, NONE, "chat_completions", (serial) =>
    serial === 0 ? { toolCalls: [{ name: "touch", arguments: {} }] } : { text: "ok" },
  );
  const agent = rigAgent({ ...spending.rig, session: { history: talkOf(30_000) } });
  await play(agent, "hello");
  await agent.compress();
  await play(agent, "more");
  const rows = [...(await store.usage({ by: "purpose" })).values()];
  const sum = (field: "inputTokens" | "outputTokens" | "cacheReadTokens" | "calls") =>
    rows.reduce((total, row) => total + row[field], 0);
  const { totals } = agent;
  assert.ok(rows.length > 1, "there was a side call");
  assert.deepEqual(
    [totals.inputTokens, totals.outputTokens, totals.cacheReadTokens, totals.apiCalls],
    [sum("inputTokens"), sum("outputTokens"), sum("cacheReadTokens"), sum("calls")],
  );
});
