import assert from "node:assert/strict";
import { test } from "node:test";
import type { AskRequest } from "../../agent/events.ts";
import { systemClock } from "../../kit/clock.ts";
import type { ApprovalQuestion, Question } from "../../safety/decision.ts";
import { ApiError } from "./contract.ts";
import { Questions } from "./questions.ts";

const APPROVAL: ApprovalQuestion = {
  kind: "approval",
  command: "rm -r build",
  description: "recursive delete",
  patternKey: "recursive delete",
  allowAlways: true,
};

/** Asks, and keeps what was told and what was answered. */
function asking(question: Question, { seconds = 0, clock = systemClock } = {}) {
  const questions = new Questions();
  const answers: unknown[] = [];
  const told: [string, Readonly<Record<string, unknown>>][] = [];
  const over = new AbortController();
  const answer = (given: unknown) => void answers.push(given);
  const request = { id: "q", question, signal: over.signal, expiresAt: null, answer } as AskRequest;
  questions.ask(request, { clock, seconds, tell: (event, fields) => void told.push([event, fields]) });
  return { questions, answers, told, over };
}

const refused = (code: string) => (error: unknown) => error instanceof ApiError && error.facts.code === code;

test("only what the question offers can be answered", () => {
  const { questions, answers, told } = asking({ ...APPROVAL, allowAlways: false, allowSession: false });
  assert.deepEqual(told[0]?.[1].choices, ["once", "deny"]);
  for (const choice of ["always", "session", "perhaps"])
    assert.throws(() => questions.respond({ choice }), refused("invalid_approval_choice"));
  assert.deepEqual(questions.respond({ choice: "approved" }), { choice: "once", resolved: 1 });
  assert.deepEqual(answers, [{ choice: "once" }]);
  assert.throws(() => questions.respond({ choice: "once" }), refused("approval_not_pending"));
});

test("the oldest question is answered, or all of them", () => {
  const { questions, answers } = asking(APPROVAL);
  const others: unknown[] = [];
  for (const id of ["q2", "q3"])
    questions.ask(
      {
        ...{ id, question: APPROVAL, expiresAt: null },
        signal: new AbortController().signal,
        answer: (one) => others.push(one),
      },
      { clock: systemClock, seconds: 0, tell: () => undefined },
    );
  questions.respond({ choice: "deny" });
  assert.deepEqual([answers, others], [[{ choice: "deny" }], []]);
  assert.equal(questions.respond({ choice: "session", all: true }).resolved, 2);
  assert.deepEqual(others, [{ choice: "session" }, { choice: "session" }]);
  assert.equal(questions.waits, false);
});

test("a plan to confirm is answered in its own words; what a program cannot answer is refused at once", () => {
  const confirm = asking({ kind: "confirm", title: "Install?", detail: "the browser", onceOnly: true });
  assert.deepEqual(confirm.told[0]?.[1].choices, ["once", "deny"]);
  confirm.questions.respond({ choice: "deny" });
  assert.deepEqual(confirm.answers, [{ choice: "cancel" }]);
  const secret = asking({ kind: "secret", name: "KEY", prompt: "key?" });
  assert.deepEqual([secret.answers, secret.told], [[{ text: null }], []]);
});

test("silence is a no after its time; a question that is over elsewhere is told as closed", async () => {
  const { promise: slept, resolve } = Promise.withResolvers<void>();
  const late = asking(APPROVAL, { seconds: 300, clock: { ...systemClock, sleep: () => slept } });
  resolve();
  await slept;
  await null;
  assert.deepEqual(late.answers, [{ choice: "deny" }]);
  const elsewhere = asking(APPROVAL);
  elsewhere.over.abort();
  assert.deepEqual(elsewhere.answers, []);
  assert.equal(elsewhere.told.at(-1)?.[1].choice, "closed");
  assert.equal(elsewhere.questions.waits, false);
});
