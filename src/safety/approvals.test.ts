import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { Clock } from "../kit/clock.ts";
import { createApprovalStore } from "./approvals.ts";
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
  assert.equal(store.open()[0]?.expiresAt, 120);
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
  const third = store.open().find(({ payload }) => payload.kind === "approval" && payload.command === "three");
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

test("a question is a row without secrets that another process can answer once; a nonsense answer is no answer", async (t) => {
  const { clock, advance } = handClock();
  const { store: sessions } = await temporaryStore(t, { clock });
  const redact = (text: string) => text.replaceAll("hunter2", "***");
  const store = createApprovalStore({ clock, table: async () => sessions, redact });
  const asked = store.request("a", question('echo "hunter2"'), { show: door().show, timeoutMs: 60_000 });
  await advance(0);
  const [row] = await sessions.questions();
  assert.ok(row);
  assert.deepEqual([row.sessionKey, row.kind, row.askedAt, row.expiresAt], ["a", "approval", 0, 60]);
  assert.deepEqual(row.payload, question('echo "***"'));
  assert.deepEqual(store.open()[0]?.payload, question('echo "hunter2"'));

  assert.equal(await sessions.answerQuestion(row.id, { choice: "whatever" }, "cli"), true);
  await advance(500);
  assert.equal(store.open().length, 1);
  await sessions.putQuestion(row);
  assert.equal(await sessions.answerQuestion(row.id, { choice: "always" }, "cli"), true);
  assert.equal(await sessions.answerQuestion(row.id, { choice: "deny" }, "cli"), false);
  assert.equal(await sessions.answerQuestion("none", { choice: "deny" }, "cli"), false);
  await advance(500);
  assert.deepEqual(await asked, { choice: "always" });
  await advance(0);
  assert.equal(await sessions.answerTo(row.id), null, "the row is gone");
  assert.deepEqual(await sessions.questions(), []);
});

test("a table that fails is reported and the question goes on without it", async () => {
  const problems: string[] = [];
  const table = () => Promise.reject(new Error("disk full"));
  const store = createApprovalStore({ clock: handClock().clock, table, report: (text) => void problems.push(text) });
  const asked = store.request("a", question("one"), {});
  await settled();
  assert.equal(problems.length, 1);
  store.resolve("a", "once");
  assert.deepEqual(await asked, { choice: "once" });
});
