import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { recordedLog, temporaryStore } from "../../../test/support/session-store.ts";
import { systemClock } from "../../kit/clock.ts";
import type { OutboxRow, WorkStore } from "../../sessions/work.ts";
import type { ChatTarget, PlatformAdapter, SendResult } from "./contract.ts";
import { Delivery, type Payload } from "./delivery.ts";

interface Sent {
  readonly chat: string;
  readonly thread: string | undefined;
  readonly text: string;
  readonly key: string;
  readonly plain: boolean | undefined;
}

interface Rig {
  readonly repeatIsSafe?: boolean;
  readonly more?: Partial<PlatformAdapter>;
  readonly stopMs?: number;
  failing?(work: WorkStore): WorkStore;
  readonly options?: Partial<ConstructorParameters<typeof Delivery>[0]>;
}

/** A platform that answers as it is told, and accepts when it is told nothing. */
async function open(
  t: TestContext,
  { repeatIsSafe = false, more = {}, stopMs, failing = (one) => one, options = {} }: Rig = {},
) {
  const { store } = await temporaryStore(t);
  const work = await store.work();
  const sent: Sent[] = [];
  const answers: SendResult[] = [];
  const answer = (target: ChatTarget, text: string, { key, plain }: { key: string; plain?: boolean | undefined }) => {
    sent.push({ chat: target.chatId, thread: target.threadId, text, key, plain });
    return answers.shift() ?? { messageId: `m${sent.length}` };
  };
  const adapter: PlatformAdapter = {
    account: "@bot",
    connect: async () => undefined,
    disconnect: async () => undefined,
    send: async (target, text, options) => answer(target, text, options),
    ...more,
  };
  const taken = await work.takeBot("bot", "here:1:a");
  assert.ok(taken.type === "taken");
  const dead: string[] = [];
  let lost = 0;
  const delivery = new Delivery({
    ...{ work: failing(work), adapter, account: "b", lease: taken.lease, clock: systemClock, log: recordedLog() },
    entry: { name: "p", maxLength: 40, lengthUnit: "utf16", repeatIsSafe },
    timers: { retry: 0.01, retryMax: 0.05, poll: 0.02, ...(stopMs === undefined ? {} : { stopMs }) },
    onDead: (_row, error) => dead.push(error),
    onLost: () => {
      lost++;
    },
    ...options,
  });
  t.after(() => delivery.stop());
  return { work, sent, answers, delivery, dead, lease: taken.lease, lost: () => lost };
}

const promise = (work: WorkStore, cause: string, payload: Payload, target: ChatTarget = { chatId: "1" }) =>
  work.promise([{ cause, part: 0, platform: "p", account: "b", target, payload }]);
const say = (text: string): Payload => ({ type: "text", text });

async function settled(work: WorkStore, ids: readonly number[]): Promise<readonly OutboxRow["state"][]> {
  for (;;) {
    const rows = await Promise.all(ids.map((id) => work.outboxRow(id)));
    const states = rows.map((row) => row?.state ?? "dead");
    if (states.every((state) => state === "sent" || state === "dead")) return states;
    await delay(5);
  }
}

test("parts are sent in order, also those promised while it runs, and their ids are kept", async (t) => {
  const { work, sent, delivery } = await open(t);
  const ids = [...(await promise(work, "a", say("one"))), ...(await promise(work, "b", say("two")))];
  delivery.start();
  await settled(work, ids);
  const later = await promise(work, "c", say("three"));
  delivery.wake();
  assert.deepEqual(await settled(work, later), ["sent"]);
  assert.deepEqual(
    sent.map(({ text, key }) => [text, key.replace(/@.*/, "")]),
    [
      ["one", "a#0"],
      ["two", "b#0"],
      ["three", "c#0"],
    ],
  );
  assert.equal((await work.outboxRow(later[0] ?? 0))?.platformMessageId, "m3");
});

const outcomes: readonly [string, SendResult[], string[], "sent" | "dead"][] = [
  ["a rate limit is waited for", [{ failed: "rate_limited", error: "429", retryAfter: 0.01 }], ["hi", "hi"], "sent"],
  ["a format that is refused becomes plain text", [{ failed: "format", error: "parse" }], ["hi", "hi plain"], "sent"],
  [
    "and is given up when that is refused too",
    [
      { failed: "format", error: "parse" },
      { failed: "format", error: "parse" },
    ],
    ["hi", "hi plain"],
    "dead",
  ],
  [
    "no connection is tried again",
    [
      { failed: "unreachable", error: "down" },
      { failed: "unreachable", error: "down" },
    ],
    ["hi", "hi", "hi"],
    "sent",
  ],
  ["a refusal is final", [{ failed: "refused", error: "blocked" }], ["hi"], "dead"],
  [
    "an answer that never came is repeated once, with a mark",
    [{ failed: "unknown", error: "timeout" }],
    ["hi", "(recovered) hi"],
    "sent",
  ],
  [
    "and no more than once",
    [
      { failed: "unknown", error: "timeout" },
      { failed: "unknown", error: "timeout" },
    ],
    ["hi", "(recovered) hi"],
    "dead",
  ],
];
for (const [what, results, texts, state] of outcomes)
  test(`${what}`, async (t) => {
    const { work, sent, answers, delivery, dead } = await open(t);
    answers.push(...results);
    const ids = await promise(work, "a", say("hi"));
    delivery.start();
    assert.deepEqual(await settled(work, ids), [state]);
    assert.deepEqual(
      sent.map(({ text, plain }) => (plain ? `${text} plain` : text)),
      texts,
    );
    await delivery.stop();
    assert.equal(dead.length, state === "dead" ? 1 : 0);
  });

test("a thread that is gone is left for its chat, and the text says so", async (t) => {
  const { work, sent, answers, delivery } = await open(t);
  answers.push({ failed: "thread_gone", error: "no topic" });
  delivery.start();
  await settled(work, await promise(work, "a", say("hi"), { chatId: "1", threadId: "9" }));
  assert.deepEqual(
    sent.map(({ thread, text }) => [thread, text]),
    [
      ["9", "hi"],
      [undefined, "(the thread is gone)\nhi"],
    ],
  );
});

test("where a repeat is safe it is made without a mark; where the platform can be asked, it is asked", async (t) => {
  const safe = await open(t, { repeatIsSafe: true });
  safe.answers.push({ failed: "unknown", error: "timeout" });
  safe.delivery.start();
  await settled(safe.work, await promise(safe.work, "a", say("hi")));
  const [first, second] = safe.sent;
  assert.deepEqual([first?.text, second?.text, second?.key], ["hi", "hi", first?.key]);
  const other = await open(t, { repeatIsSafe: true });
  await delay(2);
  other.delivery.start();
  await settled(other.work, await promise(other.work, "a", say("hi")));
  assert.notEqual(other.sent[0]?.key, first?.key, "another store, another key: a platform remembers keys");
  let asked = 0;
  const asking = await open(t, { more: { findSent: async () => (asked++ === 0 ? null : "m7") } });
  asking.answers.push({ failed: "unknown", error: "timeout" }, { failed: "unknown", error: "timeout" });
  asking.delivery.start();
  const ids = await promise(asking.work, "a", say("hi"));
  assert.deepEqual(await settled(asking.work, ids), ["sent"]);
  assert.deepEqual(
    asking.sent.map(({ text }) => text),
    ["hi", "hi"],
  );
  assert.equal((await asking.work.outboxRow(ids[0] ?? 0))?.platformMessageId, "m7");
});

test("what a crash cut off is taken up as unknown, and everything else goes on", async (t) => {
  const { work, sent, delivery, lease } = await open(t);
  const ids = [...(await promise(work, "a", say("one"))), ...(await promise(work, "b", say("two")))];
  await work.sending(ids[0] ?? 0, lease);
  delivery.start();
  assert.deepEqual(await settled(work, ids), ["sent", "sent"]);
  assert.deepEqual(
    sent.map(({ text }) => text),
    ["(recovered) one", "two"],
  );
});

test("one chat that cannot be reached holds nobody else up", async (t) => {
  const { work, delivery, sent } = await open(t, {
    more: {
      send: async (target, text) => {
        if (target.chatId === "1") return { failed: "unreachable", error: "down" };
        sent.push({ chat: target.chatId, thread: undefined, text, key: "", plain: undefined });
        return { messageId: "m" };
      },
    },
  });
  await promise(work, "a", say("stuck"));
  delivery.start();
  assert.deepEqual(await settled(work, await promise(work, "b", say("hi"), { chatId: "2" })), ["sent"]);
});

test("files, edits and questions go their own way, and as text where there is none", async (t) => {
  const file = { path: "/x/a.png", kind: "image", name: "a.png" } as const;
  const buttons = [{ label: "Yes", choice: "once" }];
  const question: Payload = { type: "question", text: "may I?", id: "q", buttons };
  const plain = await open(t);
  plain.delivery.start();
  await settled(plain.work, [
    ...(await promise(plain.work, "a", { type: "file", file })),
    ...(await promise(plain.work, "b", { type: "edit", text: "whole", messageId: "m1" })),
    ...(await promise(plain.work, "c", question)),
  ]);
  assert.deepEqual(
    plain.sent.map(({ text }) => text),
    ["[file: a.png]", "whole", "may I?"],
  );
  const done: string[] = [];
  const note = (what: string, messageId: string) => {
    done.push(what);
    return { messageId };
  };
  const rich = await open(t, {
    more: {
      sendFile: async (_target, { path }) => note(`file ${path}`, "f"),
      edit: async (_target, id, text, { final }) => note(`edit ${id} ${text} ${final}`, id),
      ask: async (_target, text, { id }) => note(`ask ${id} ${text}`, "q"),
    },
  });
  rich.delivery.start();
  await settled(rich.work, [
    ...(await promise(rich.work, "a", { type: "file", file })),
    ...(await promise(rich.work, "b", { type: "edit", text: "whole", messageId: "m1" })),
    ...(await promise(rich.work, "c", question)),
  ]);
  assert.deepEqual(done, ["file /x/a.png", "edit m1 whole true", "ask q may I?"]);
});

test("an adapter that throws has an unknown outcome, and one that lost its bot stops", async (t) => {
  const thrown = await open(t, { more: { send: () => Promise.reject(new Error("bug")) } });
  thrown.delivery.start();
  assert.deepEqual(await settled(thrown.work, await promise(thrown.work, "a", say("hi"))), ["dead"]);
  const { work, delivery, sent, lease, lost } = await open(t);
  await work.releaseBot(lease);
  await work.takeBot("bot", "elsewhere:1:b");
  await promise(work, "a", say("hi"));
  delivery.start();
  while (lost() === 0) await delay(5);
  assert.deepEqual(sent, []);
});

test("a mark that does not fit in front of a full part goes ahead of it", async (t) => {
  const { work, sent, delivery, answers } = await open(t);
  const full = "x".repeat(40);
  answers.push({ failed: "unknown", error: "timeout" });
  delivery.start();
  await settled(work, await promise(work, "a", say(full)));
  assert.deepEqual(
    sent.map(({ text }) => text),
    [full, "(recovered)", full],
  );
});

const nonsense: readonly [string, (answer: never) => unknown][] = [
  ["nothing", () => undefined],
  ["a word", () => "sent"],
  ["an unknown failure", () => ({ failed: "bored", error: 1 })],
  ["an id that is none", () => ({ messageId: {} })],
  [
    "an error at once",
    () => {
      throw new Error("bug");
    },
  ],
];
for (const [what, answer] of nonsense)
  test(`an adapter that answers ${what} has an unknown outcome, for each way to send, and sending goes on`, async (t) => {
    const { work, delivery, sent } = await open(t, {
      more: { edit: answer as never, ask: answer as never, sendFile: answer as never },
    });
    const question: Payload = { type: "question", text: "may I?", id: "q", buttons: [] };
    const file = { path: "/x/a.png", kind: "image", name: "a.png" } as const;
    const ids = [
      ...(await promise(work, "a", { type: "file", file })),
      ...(await promise(work, "b", question, { chatId: "2" })),
    ];
    delivery.start();
    assert.deepEqual(await settled(work, ids), ["dead", "dead"]);
    assert.deepEqual(await settled(work, await promise(work, "c", say("hi"))), ["sent"]);
    assert.equal(sent.length, 1);
  });

test("a wait that is no number, or without end, does not stop a bot", async (t) => {
  const { work, delivery, answers } = await open(t);
  answers.push({ failed: "rate_limited", error: "429", retryAfter: Number.NaN });
  delivery.start();
  const ids = await promise(work, "a", say("hi"));
  assert.deepEqual(await settled(work, ids), ["sent"]);
  assert.equal((await work.outboxRow(ids[0] ?? 0))?.attempts, 1, "a wait is no try");
  answers.push({ failed: "rate_limited", error: "429", retryAfter: Number.POSITIVE_INFINITY });
  await promise(work, "b", say("later"), { chatId: "2" });
  delivery.wake();
  assert.deepEqual(await settled(work, await promise(work, "c", say("hi"), { chatId: "3" })), ["sent"]);
});

test("a send that never ends holds no other chat up; a stop leaves its row to the next start", async (t) => {
  const { work, delivery, sent } = await open(t, {
    more: {
      send: async (target, text) => {
        if (target.chatId === "1") return new Promise<SendResult>(() => undefined);
        sent.push({ chat: target.chatId, thread: undefined, text, key: "", plain: undefined });
        return { messageId: "m" };
      },
    },
    stopMs: 10,
  });
  const [stuck = 0] = await promise(work, "a", say("stuck"));
  delivery.start();
  assert.deepEqual(await settled(work, await promise(work, "b", say("hi"), { chatId: "2" })), ["sent"]);
  await delivery.stop();
  assert.equal((await work.outboxRow(stuck))?.state, "sending");
});

test("a store that fails for a while loses nothing: what was sent is noted when it can be, and not sent again", async (t) => {
  const { work, delivery, sent } = await open(t, {
    failing: (real) => {
      let left = 3;
      return {
        ...real,
        settleSend: async (...args) => {
          if (left-- > 0) throw new Error("the disk is full");
          return real.settleSend(...args);
        },
      };
    },
  });
  const ids = await promise(work, "a", say("hi"));
  delivery.start();
  assert.deepEqual(await settled(work, ids), ["sent"]);
  assert.deepEqual(
    sent.map(({ text }) => text),
    ["hi"],
  );
});

test("a history that cannot be read says nothing: it is looked at again before anything is sent twice", async (t) => {
  let looked = 0;
  const { work, sent, answers, delivery } = await open(t, {
    more: {
      findSent: async () => {
        if (++looked < 3) throw new Error("502");
        return "m7";
      },
    },
  });
  answers.push({ failed: "unknown", error: "no receipt" });
  const ids = await promise(work, "a", say("once"));
  delivery.start();
  assert.deepEqual(await settled(work, ids), ["sent"]);
  assert.deepEqual([looked, sent.length], [3, 1]);
  assert.equal((await work.outboxRow(ids[0] ?? 0))?.platformMessageId, "m7");
});

test("one that can never be read is given up, and the part is sent once more with its mark", async (t) => {
  const more = { findSent: () => Promise.reject(new Error("403")) };
  const { work, sent, answers, delivery } = await open(t, { more });
  answers.push({ failed: "unknown", error: "no receipt" });
  const ids = await promise(work, "a", say("once"));
  delivery.start();
  assert.deepEqual(await settled(work, ids), ["sent"]);
  assert.deepEqual(
    sent.map(({ text }) => text),
    ["once", "(recovered) once"],
  );
});

test("with a human pause further parts of an answer wait, and nobody else does", async (t) => {
  const at: [string, number][] = [];
  const { work, delivery } = await open(t, {
    options: { humanPause: () => 0.15 },
    more: {
      send: async ({ chatId }, text) => {
        at.push([`${chatId} ${text}`, Date.now()]);
        return { messageId: "m" };
      },
    },
  });
  const parts = ["one", "two"].map((text, part) => ({ part, payload: say(text), target: { chatId: "1" } }));
  const rows = parts.map((part) => ({ cause: "a", platform: "p", account: "b", ...part }));
  const ids = [...(await work.promise(rows)), ...(await promise(work, "other", say("hi"), { chatId: "2" }))];
  delivery.start();
  await settled(work, ids);
  assert.deepEqual(at.map(([what]) => what).sort(), ["1 one", "1 two", "2 hi"]);
  const when = Object.fromEntries(at);
  assert.ok((when["1 two"] ?? 0) - (when["1 one"] ?? 0) >= 140);
  assert.ok((when["2 hi"] ?? 0) < (when["1 two"] ?? 0));
});

test("passing notices go after their time, answers stay", async (t) => {
  const removed: string[] = [];
  const { work, delivery } = await open(t, {
    options: { passingSeconds: () => 0.02 },
    more: { remove: async (_, id) => void removed.push(id) },
  });
  const ids = [
    ...(await promise(work, "notice:1", { ...say("wait"), passing: true })),
    ...(await promise(work, "inbox:1", say("the answer"), { chatId: "2" })),
  ];
  delivery.start();
  await settled(work, ids);
  const notice = (await work.outboxRow(ids[0] ?? 0))?.platformMessageId;
  while (removed.length === 0) await delay(5);
  await delay(30);
  assert.deepEqual(removed, [notice]);
});

test("what cannot be reached for a day is given up, and not before", async (t) => {
  let now = Date.now();
  const { work, delivery, dead } = await open(t, {
    more: { send: async () => ({ failed: "unreachable", error: "down" }) },
    options: { clock: { ...systemClock, now: () => now } },
  });
  const ids = await promise(work, "a", say("hi"));
  now += 86_390_000;
  delivery.start();
  while (((await work.outboxRow(ids[0] ?? 0))?.attempts ?? 0) < 2) await delay(5);
  assert.deepEqual(dead, []);
  now += 20_000;
  assert.deepEqual(await settled(work, ids), ["dead"]);
  assert.deepEqual(dead, ["down"]);
});

const tomorrow = { ...systemClock, now: () => Date.now() + 86_400_000 + 60_000 };
const away: SendResult = { failed: "unreachable", error: "no network" };

test("a machine that slept for a day tries again before it gives up", async (t) => {
  const { work, answers, delivery } = await open(t, { options: { clock: tomorrow } });
  answers.push(...Array.from({ length: 5 }, () => away));
  const ids = await promise(work, "a", say("one"));
  delivery.start();
  assert.deepEqual(await settled(work, ids), ["sent"]);
});

test("what could not be sent for a day and many tries is given up", async (t) => {
  const { work, answers, delivery, dead, sent } = await open(t, { options: { clock: tomorrow } });
  answers.push(...Array.from({ length: 40 }, () => away));
  const ids = await promise(work, "a", say("one"));
  delivery.start();
  assert.deepEqual(await settled(work, ids), ["dead"]);
  assert.deepEqual([dead, sent.length], [["no network"], 21]);
});
