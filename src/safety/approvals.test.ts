import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../kit/clock.ts";
import { type ApprovalTable, createApprovalStore } from "./approvals.ts";
import type { ApprovalQuestion, Ask } from "./decision.ts";

/** Time that moves when told; a sleep ends early with its signal. */
function handClock() {
  let now = 0;
  const sleepers = new Set<{ at: number; wake: () => void }>();
  const clock: Clock = {
    now: () => now,
    random: () => 0,
    sleep: (ms, signal) =>
      new Promise((wake, stop) => {
        signal?.addEventListener("abort", () => stop(signal.reason), { once: true });
        sleepers.add({ at: now + ms, wake });
      }),
  };
  const advance = async (ms: number) => {
    now += ms;
    for (const sleeper of sleepers) if (sleeper.at <= now) sleeper.wake();
    await settled();
  };
  return { clock, advance };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

const question = (command: string): ApprovalQuestion => ({
  kind: "approval",
  command,
  description: "recursive delete",
  patternKey: "recursive delete",
  allowAlways: true,
});

/** A door that shows what it is asked and lets the test answer. */
function door() {
  const shown: string[] = [];
  const answers: ((answer: unknown) => void)[] = [];
  const signals: AbortSignal[] = [];
  const show = ((asked: ApprovalQuestion, signal: AbortSignal) => {
    shown.push(asked.command);
    signals.push(signal);
    return new Promise<unknown>((resolve) => answers.push(resolve));
  }) as unknown as Ask; // the tests ask for approvals only
  return { show, shown, answers, signals };
}

test("questions of one conversation come up one by one, oldest first; other conversations do not wait", async () => {
  const store = createApprovalStore({ clock: handClock().clock });
  const { show, shown, answers } = door();
  const first = store.request("a", question("one"), { show });
  const second = store.request("a", question("two"), { show });
  const other = store.request("b", question("three"), { show });
  assert.deepEqual(shown, ["one", "three"]);
  answers[0]?.({ choice: "once" });
  assert.deepEqual(await first, { choice: "once" });
  assert.deepEqual(shown, ["one", "three", "two"]);
  answers[2]?.({ choice: "deny", reason: "no" });
  answers[1]?.({ choice: "session" });
  assert.deepEqual(await second, { choice: "deny", reason: "no" });
  assert.deepEqual(await other, { choice: "session" });
  assert.deepEqual(store.open(), []);
});

test("time runs from when a question is shown, and silence is a no", async () => {
  const { clock, advance } = handClock();
  const store = createApprovalStore({ clock });
  const { show, signals } = door();
  const first = store.request("a", question("one"), { show, timeoutMs: 60_000 });
  const second = store.request("a", question("two"), { show, timeoutMs: 60_000 });
  await advance(60_000);
  assert.deepEqual(await first, { choice: "deny", timedOut: true });
  assert.equal(signals[0]?.aborted, true);
  assert.equal(store.open()[0]?.expiresAt, 120_000);
  await advance(60_000);
  assert.deepEqual(await second, { choice: "deny", timedOut: true });
});

test("an answer from elsewhere settles the oldest, one by its id, or all, and withdraws what is shown", async () => {
  const store = createApprovalStore({ clock: handClock().clock });
  const { show, signals } = door();
  const requests = ["one", "two", "three", "four"].map((text) => store.request("a", question(text), { show }));
  assert.equal(store.resolve("a", "once"), 1);
  assert.deepEqual(await requests[0], { choice: "once" });
  assert.equal(signals[0]?.aborted, true);
  const third = store.open().find(({ question: asked }) => asked.kind === "approval" && asked.command === "three");
  assert.equal(store.resolve("a", "deny", { id: third?.id ?? "", reason: "not now" }), 1);
  assert.deepEqual(await requests[2], { choice: "deny", reason: "not now" });
  assert.equal(store.resolve("a", "session", { all: true }), 2);
  assert.deepEqual(await requests[3], { choice: "session" });
  assert.equal(store.resolve("a", "once"), 0);
});

test("an interrupt and the end of a conversation refuse what waits, and nothing new is shown on the way out", async () => {
  const store = createApprovalStore({ clock: handClock().clock });
  const { show, shown } = door();
  const stop = new AbortController();
  const interrupted = store.request("a", question("one"), { show, signal: stop.signal });
  stop.abort();
  assert.deepEqual(await interrupted, { choice: "deny" });
  const waiting = [store.request("a", question("two"), { show }), store.request("a", question("three"), { show })];
  assert.equal(store.release("a", "the conversation ended"), 2);
  assert.deepEqual(await Promise.all(waiting), [
    { choice: "deny", reason: "the conversation ended" },
    { choice: "deny", reason: "the conversation ended" },
  ]);
  assert.deepEqual(shown, ["one", "two"]);
  assert.deepEqual(await store.request("a", question("four"), { show, signal: stop.signal }), { choice: "deny" });
});

test("a question is a row that another process can answer within a second; a nonsense answer is no answer", async () => {
  const { clock, advance } = handClock();
  const rows = new Map<string, unknown>();
  const table: ApprovalTable = {
    insert: async ({ id }) => void rows.set(id, null),
    answerOf: async (id) => rows.get(id),
    remove: async (id) => void rows.delete(id),
  };
  const store = createApprovalStore({ clock, table });
  const asked = store.request("a", question("one"), { show: door().show });
  await settled();
  const [id = ""] = rows.keys();
  rows.set(id, { choice: "whatever" });
  await advance(500);
  assert.equal(store.open().length, 1);
  rows.set(id, { choice: "always" });
  await advance(500);
  assert.deepEqual(await asked, { choice: "always" });
  await settled();
  assert.equal(rows.size, 0);
});

test("a table that fails is reported and the question goes on without it", async () => {
  const problems: string[] = [];
  const table: ApprovalTable = {
    insert: () => Promise.reject(new Error("disk full")),
    answerOf: async () => null,
    remove: async () => undefined,
  };
  const store = createApprovalStore({ clock: handClock().clock, table, report: (text) => void problems.push(text) });
  const asked = store.request("a", question("one"), {});
  await settled();
  assert.equal(problems.length, 1);
  store.resolve("a", "once");
  assert.deepEqual(await asked, { choice: "once" });
});
