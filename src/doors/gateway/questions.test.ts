// Questions in chats: asked with buttons, answered once, by somebody who may.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { recordedLog, temporaryStore } from "../../../test/support/session-store.ts";
import type { AskRequest } from "../../agent/events.ts";
import { systemClock } from "../../kit/clock.ts";
import type { ChatSource } from "./chat.ts";
import type { Payload } from "./delivery.ts";
import { type AskedPlace, Questions } from "./questions.ts";

const ann: ChatSource = { platform: "p", chat_type: "group", chat_id: "club", user_id: "ann" };
const bob: ChatSource = { ...ann, user_id: "bob" };
const place: AskedPlace = {
  ...{ key: "agent:main:p:group:club:ann", source: ann, target: { chatId: "club" } },
  ...{ platform: "p", account: "b", shared: false },
};

async function open(t: TestContext, { isAdmin = true } = {}) {
  const work = await (await temporaryStore(t)).store.work();
  const closed: string[] = [];
  const questions = new Questions({
    ...{ work, clock: systemClock, log: recordedLog() },
    redact: (text) => text.replaceAll("sk-secret", "***"),
    wake: () => undefined,
    mayAnswer: (who) => who.user_id === "ann",
    isAdmin: () => isAdmin,
    closed: async (_place, _id, text) => void closed.push(text),
  });
  /** What the chat was shown last, as if it had been sent. */
  const shown = async () => {
    const [row] = (await work.due("p", "b")).slice(-1);
    return row?.payload as Extract<Payload, { type: "question" }>;
  };
  return { questions, work, closed, shown };
}

function approval(command = "rm -rf x", more: Partial<AskRequest> = {}) {
  const answers: unknown[] = [];
  const over = new AbortController();
  const request = {
    question: {
      kind: "approval",
      command,
      description: "recursive delete",
      reasons: [],
      allowSession: true,
      allowAlways: true,
      ...more,
    },
    signal: over.signal,
    answer: (given: unknown) => {
      answers.push(given);
      over.abort();
    },
  } as unknown as AskRequest;
  return { request, answers, over };
}

const clarify = (choices: readonly string[] = []) => {
  const { request, ...rest } = approval();
  return { ...rest, request: { ...request, question: { kind: "clarify", question: "Which?", choices } } as AskRequest };
};

const settle = () => new Promise((resolve) => setTimeout(resolve, 20));

test("a button counts once, for the one who was asked, and only if it was offered", async (t) => {
  const { questions, shown } = await open(t);
  const { request, answers } = approval();
  const over = questions.ask(request, place);
  await settle();
  const { id } = await shown();
  assert.equal(questions.press("no-such-id", "once", ann), "This question is closed.");
  assert.equal(questions.press(id, "once", bob), "You may not answer this.");
  assert.equal(questions.press(id, "root", ann), "This choice was not offered.");
  assert.deepEqual(answers, []);
  assert.notEqual(questions.press(id, "once", ann), "This question is closed.");
  assert.equal(questions.press(id, "deny", ann), "This question is closed.", "a callback that is played again");
  await over;
  assert.deepEqual(answers, [{ choice: "once" }]);
});

test("words answer it too: of the one who was asked alone, and a question that is over takes none", async (t) => {
  const { questions } = await open(t);
  const { request, answers } = approval();
  const over = questions.ask(request, place);
  await settle();
  assert.equal(questions.takeText(place.key, "yes", bob), "no");
  assert.equal(questions.takeText("agent:main:p:dm:bob", "yes", ann), "no", "another chat");
  assert.equal(questions.takeText(place.key, "what does it do?", ann), "no");
  assert.equal(questions.answer(place.key, "once", bob, { all: true }), 0);
  assert.equal(questions.takeText(place.key, " YES ", ann), "taken");
  assert.equal(questions.takeText(place.key, "no", ann), "no");
  await over;
  assert.deepEqual(answers, [{ choice: "once" }]);
});

test("always is offered to admins alone, with a button or without", async (t) => {
  const { questions, shown } = await open(t, { isAdmin: false });
  const { request, answers } = approval();
  const over = questions.ask(request, place);
  await settle();
  const { buttons, text } = await shown();
  assert.deepEqual(
    buttons.map(({ choice }) => choice),
    ["once", "session", "deny"],
  );
  assert.doesNotMatch(text, /always/);
  assert.equal(questions.takeText(place.key, "always", ann), "no");
  assert.equal(questions.answer(place.key, "always", ann), 1);
  await over;
  assert.deepEqual(answers, [{ choice: "once" }], "the nearest yes that was offered");
});

test("a key in a question is masked before it is stored", async (t) => {
  const { questions, shown } = await open(t);
  const { request, over } = approval("curl -H sk-secret");
  const asked = questions.ask(request, place);
  await settle();
  const { text } = await shown();
  assert.match(text, /curl -H \*\*\*/);
  over.abort();
  await asked;
  assert.equal(questions.waits(place.key), false);
});

test("a question of the agent takes numbers, choices and any other words", async (t) => {
  for (const [said, expected] of [
    ["2", "Coffee"],
    ["Milk, please", "Milk, please"],
  ] as const) {
    const { questions } = await open(t);
    const { request, answers } = clarify(["Tea", "Coffee"]);
    const over = questions.ask(request, place);
    await settle();
    assert.equal(questions.takeText(place.key, said, bob), "no");
    assert.equal(questions.takeText(place.key, said, ann), "taken");
    await over;
    assert.deepEqual(answers, [{ text: expected }]);
  }
});

test("before a destructive command another message is a no, and is read as a message", async (t) => {
  const { questions } = await open(t);
  const asked = questions.confirm("New conversation?", "The old one is kept.", place);
  await settle();
  assert.equal(questions.takeText(place.key, "by the way", bob), "no");
  assert.equal(questions.waits(place.key), true, "somebody else's message is none");
  assert.equal(questions.takeText(place.key, "by the way", ann), "no");
  assert.equal(questions.waits(place.key), false, "at once, not when its two minutes are over");
  assert.equal(await asked, "cancel");
  const again = questions.confirm("New conversation?", "The old one is kept.", place);
  await settle();
  assert.equal(questions.answer(place.key, "once", ann), 1);
  assert.equal(await again, "once");
});

test("/approve answers the oldest approval, /approve all each of them, and approvals come before confirmations", async (t) => {
  const { questions } = await open(t);
  const asked = [approval("one"), approval("two"), approval("three")];
  const over = asked.map(({ request }) => questions.ask(request, place));
  const confirmed = questions.confirm("New conversation?", "", place);
  await settle();
  assert.equal(questions.answer(place.key, "deny", ann, { reason: "too risky" }), 1);
  assert.deepEqual(
    asked.map(({ answers }) => answers),
    [[{ choice: "deny", reason: "too risky" }], [], []],
  );
  assert.equal(questions.answer(place.key, "once", ann, { all: true }), 2);
  await Promise.all(over);
  assert.equal(questions.answer(place.key, "deny", ann), 1);
  assert.equal(await confirmed, "cancel");
  assert.equal(questions.answer(place.key, "once", ann), 0);
});
