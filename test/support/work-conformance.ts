// What every store owes to messages that wait and answers that are promised. Each implementation runs this suite.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { HistoryMessage } from "../../src/llm/messages.ts";
import { LaneMovedError, type LaneToken, type SessionStore } from "../../src/sessions/store.ts";
import type { BotLease, InboxEvent, InboxRow, OutboxPart, WorkStore } from "../../src/sessions/work.ts";

export interface WorkSubject {
  readonly store: SessionStore;
  /** Another connection to the same data. */
  another(): Promise<SessionStore>;
  /** Makes everything that is stored so much older. */
  passTime(seconds: number): void;
}

/** Holders of other machines: nobody here can see whether they live. */
const [ANN, BOB] = ["north:1:a", "south:2:b"] as const;
const DAY = 86_400;

const user = (content: string): HistoryMessage => ({ role: "user", content });
const answer = (content: string): HistoryMessage => ({ role: "assistant", content });
const event = (updateId: string, sessionKey = "chat:1", more: Partial<InboxEvent> = {}): InboxEvent => ({
  ...{ sessionKey, platform: "p", account: "bot", updateId, kind: "user" as const, event: { text: updateId } },
  ...more,
});
const part = (cause: string, chat = "1", more: Partial<OutboxPart> = {}): OutboxPart => ({
  ...{ cause, part: 0, platform: "p", account: "bot", target: { chat }, payload: { text: cause } },
  ...more,
});
const texts = (rows: readonly InboxRow[]) => rows.map(({ updateId }) => updateId);

async function accepted(work: WorkStore, ...events: InboxEvent[]): Promise<number[]> {
  return (await work.accept(events)).map((id) => id ?? assert.fail("a duplicate"));
}

async function taken(work: WorkStore, ids: readonly number[], holder: string = ANN, session = "s"): Promise<LaneToken> {
  const got = await work.take(session, ids, holder);
  assert.ok(got.type === "taken", got.type);
  return got.lease;
}

async function bot(work: WorkStore, holder: string = ANN): Promise<BotLease> {
  const got = await work.takeBot("bot", holder);
  assert.ok(got.type === "taken", got.type);
  return got.lease;
}

/** Sends all that is due, in the order it is handed out. */
async function sendAll(work: WorkStore, lease: BotLease): Promise<string[]> {
  const sent: string[] = [];
  for (let rows = await work.due("p", "bot"); rows.length > 0; rows = await work.due("p", "bot"))
    for (const { id, cause, part: number } of rows) {
      assert.equal(await work.sending(id, lease), true);
      sent.push(`${cause}#${number}`);
      await work.settleSend(id, { type: "sent", messageId: `m${id}` }, lease);
    }
  return sent;
}

export function workConformance(kind: string, open: (t: TestContext) => Promise<WorkSubject>): void {
  const check = (name: string, run: (subject: WorkSubject & { work: WorkStore }) => Promise<void>) =>
    test(`${kind}: ${name}`, async (t) => {
      const subject = await open(t);
      await subject.store.ensure({ id: "s" });
      await run({ ...subject, work: await subject.store.work() });
    });

  check("an update is stored once, however often and by whomever it is delivered", async ({ work, another }) => {
    const other = await (await another()).work();
    await accepted(work, event("1"));
    const [again, second] = await work.accept([event("1"), event("2")]);
    assert.ok(again === null && second !== null);
    assert.deepEqual(await other.accept([event("2")]), [null]);
    await accepted(other, event("2", "chat:1", { account: "another bot" }));
    assert.deepEqual(texts((await work.waiting()).get("chat:1") ?? []), ["1", "2", "2"]);
  });

  check("rows and cursor of a batch are stored together", async ({ work, another }) => {
    assert.equal(await work.cursor("p", "bot"), null);
    await work.accept([event("7")], { platform: "p", account: "bot", cursor: "8" });
    await work.accept([], { platform: "p", account: "bot", cursor: "9" });
    const other = await (await another()).work();
    assert.equal(await other.cursor("p", "bot"), "9");
    assert.equal(await other.cursor("p", "another bot"), null);
    await assert.rejects(
      work.accept([event("10"), { ...event("11"), sessionKey: null as never }], {
        ...{ platform: "p", account: "bot", cursor: "12" },
      }),
    );
    assert.equal(await work.cursor("p", "bot"), "9");
    assert.deepEqual(texts((await work.waiting()).get("chat:1") ?? []), ["7"]);
  });

  check("chats come in the order of their oldest row, a goal behind what people said", async ({ work }) => {
    await accepted(
      work,
      event("g", "chat:b", { kind: "goal" }),
      event("a1", "chat:a"),
      event("b1", "chat:b"),
      event("a2", "chat:a"),
    );
    const waiting = await work.waiting();
    assert.deepEqual([...waiting.keys()], ["chat:b", "chat:a"]);
    assert.deepEqual([...waiting.values()].map(texts), [
      ["b1", "g"],
      ["a1", "a2"],
    ]);
    assert.deepEqual([...(await work.waiting({ limit: 1 })).keys()], ["chat:b"]);
  });

  check("an edit replaces what nobody has taken, and nothing else", async ({ work }) => {
    const [id = 0] = await accepted(work, event("1"));
    assert.equal(await work.replaceEvent(event("1"), { text: "edited" }), true);
    assert.deepEqual((await work.waiting()).get("chat:1")?.[0]?.event, { text: "edited" });
    assert.equal(await work.replaceEvent(event("none"), {}), false);
    await taken(work, [id]);
    assert.equal(await work.replaceEvent(event("1"), { text: "too late" }), false);
  });

  check(
    "one holder has a conversation and its rows; what is gone is not taken",
    async ({ work, another, passTime }) => {
      const other = await (await another()).work();
      const ids = await accepted(work, event("1"), event("2"));
      const lease = await taken(work, ids);
      assert.deepEqual({ ...(await other.take("s", ids, BOB)), until: 0 }, { type: "held", by: ANN, until: 0 });
      await work.finish(lease, {
        sessionId: "s",
        append: [],
        done: [{ id: ids[0] ?? 0, outcome: "answered" }],
        outbox: [],
      });
      passTime(61);
      const next = await other.take("s", ids, BOB);
      assert.ok(next.type === "taken" && next.lease.token === lease.token + 1);
      assert.deepEqual(texts(next.rows), ["2"]);
      await other.settle(ids, "stopped");
      assert.deepEqual(await other.take("s", ids, BOB), { type: "gone" });
    },
  );

  check(
    "rows that another conversation works on stay with it until its holder is gone",
    async ({ work, store, passTime }) => {
      await store.ensure({ id: "t" });
      const ids = await accepted(work, event("1"));
      await taken(work, ids, ANN, "s");
      assert.deepEqual(await work.take("t", ids, BOB), { type: "gone" });
      passTime(61);
      assert.equal((await work.take("t", ids, BOB)).type, "taken");
    },
  );

  check("the message of a user is stored once, and named in its rows", async ({ work, store }) => {
    const ids = await accepted(work, event("1"), event("2"));
    const lease = await taken(work, ids);
    const stored = (await work.begin(lease, { sessionId: "s", ids, messages: [user("1\n2")] })) ?? [];
    assert.equal(stored.length, 1);
    assert.deepEqual(await work.begin(lease, { sessionId: "s", ids, messages: [user("1\n2")] }), []);
    assert.deepEqual(
      (await store.load("s")).map(({ id }) => id),
      stored,
    );
    const rows = (await work.waiting()).get("chat:1") ?? [];
    assert.deepEqual(
      rows.map(({ messageId, lane }) => [messageId, lane]),
      [
        [stored[0], "s"],
        [stored[0], "s"],
      ],
    );
  });

  check(
    "whoever holds the conversation may begin rows nobody took, and none that are gone",
    async ({ work, store }) => {
      const ids = await accepted(work, event("1"));
      const answer = await store.takeLane("s", ANN);
      assert.ok(answer.type === "taken");
      const turn = { sessionId: "s", ids, messages: [user("1")] };
      assert.equal((await work.begin(answer.lease, turn))?.length, 1);
      assert.equal((await work.waiting()).get("chat:1")?.[0]?.lane, "s");
      await work.settle(ids, "withdrawn");
      assert.equal(await work.begin(answer.lease, turn), null);
      assert.equal((await store.load("s")).length, 1);
    },
  );

  check("attempts count from the first request on, and a planned stop takes its own back", async ({ work }) => {
    const ids = await accepted(work, event("1"));
    const lease = await taken(work, ids);
    assert.equal(await work.asked(lease, ids), 1);
    assert.equal(await work.asked(lease, ids), 2);
    await work.unasked(lease, ids);
    assert.equal((await work.waiting()).get("chat:1")?.[0]?.attempts, 1);
    assert.equal(await work.asked(lease, []), 0);
  });

  check("the end of a turn is one step: answer, done mark, promise and route", async ({ work, store }) => {
    const ids = await accepted(work, event("1"), event("2"));
    const lease = await taken(work, ids);
    const [first = 0, second = 0] = ids;
    await work.begin(lease, { sessionId: "s", ids, messages: [user("1")] });
    const end = {
      sessionId: "s",
      append: [answer("to 1")],
      done: [
        { id: first, outcome: "answered" as const },
        { id: second, outcome: "merged" as const },
      ],
      outbox: [part(`inbox:${first}`)],
      route: { scope: "h", sessionKey: "chat:1", entry: { session_id: "s" } },
    };
    await work.finish(lease, end);
    assert.equal((await work.waiting()).size, 0);
    assert.equal((await store.load("s")).length, 2);
    assert.deepEqual((await work.route("h", "chat:1"))?.entry, { session_id: "s" });
    assert.deepEqual(await sendAll(work, await bot(work)), [`inbox:${first}#0`]);
  });

  check("whoever lost a conversation changes nothing any more", async ({ work, store, passTime }) => {
    const ids = await accepted(work, event("1"));
    const old = await taken(work, ids);
    passTime(61);
    const lease = await taken(work, ids, BOB);
    const end = {
      sessionId: "s",
      append: [answer("late")],
      done: [{ id: ids[0] ?? 0, outcome: "answered" as const }],
      outbox: [part("inbox:1")],
      route: { scope: "h", sessionKey: "chat:1", entry: { session_id: "late" } },
    };
    const stale = (error: unknown) => error instanceof LaneMovedError;
    await assert.rejects(work.finish(old, end), stale);
    await assert.rejects(work.begin(old, { sessionId: "s", ids, messages: [user("late")] }), stale);
    await assert.rejects(work.asked(old, ids), stale);
    await assert.rejects(work.settle(ids, "failed", { lease: old, outbox: [part("late")] }), stale);
    await assert.rejects(work.finish(old, { sessionId: "s", append: [], done: [], outbox: [part("late")] }), stale);
    assert.deepEqual(await store.load("s"), []);
    assert.equal(await work.route("h", "chat:1"), null);
    assert.deepEqual(await work.due("p", "bot"), []);
    assert.equal((await work.waiting()).get("chat:1")?.[0]?.attempts, 0);
    await work.finish(lease, end);
  });

  check("a turn ends its own rows only", async ({ work, store }) => {
    await store.ensure({ id: "t" });
    const [mine = 0, foreign = 0, free = 0] = await accepted(work, event("1"), event("2", "chat:2"), event("3"));
    const lease = await taken(work, [mine]);
    await taken(work, [foreign], BOB, "t");
    const done = [mine, foreign, free].map((id) => ({ id, outcome: "answered" as const }));
    await work.finish(lease, { sessionId: "s", append: [], done, outbox: [] });
    assert.deepEqual(
      [...(await work.waiting()).values()].flat().map(({ id }) => id),
      [foreign, free],
    );
  });

  check("an end that cannot be stored leaves everything as it was", async ({ work, store }) => {
    const ids = await accepted(work, event("1"));
    const lease = await taken(work, ids);
    const broken = { ...part("inbox:1"), platform: null as never };
    const done = [{ id: ids[0] ?? 0, outcome: "answered" as const }];
    await assert.rejects(
      work.finish(lease, { sessionId: "s", append: [answer("a")], done, outbox: [part("first"), broken] }),
    );
    assert.deepEqual(await store.load("s"), []);
    assert.equal((await work.waiting()).size, 1);
    assert.deepEqual(await work.due("p", "bot"), []);
  });

  check("rows end without a turn once, with their reply", async ({ work }) => {
    const ids = await accepted(work, event("1"), event("2"), event("3"));
    const [one = 0, two = 0, three = 0] = ids;
    assert.deepEqual(await work.settle([one, two], "command", { outbox: [part("inbox:1")] }), [one, two]);
    assert.deepEqual(await work.settle([two, three], "dead"), [three]);
    assert.deepEqual(await work.settle(ids, "stopped"), []);
    assert.equal((await work.waiting()).size, 0);
    assert.deepEqual(await work.accept([event("3")]), [null], "also what was given up is not begun again");
    assert.equal((await work.counts()).inbox.dead, 1);
  });

  check("the same promise is made once; one that a stream kept is sent already", async ({ work }) => {
    const [id] = await work.promise([part("c")]);
    const [same, streamed = 0] = await work.promise([
      part("c", "elsewhere"),
      part("c", "1", { part: 1, sentAs: "m9" }),
    ]);
    assert.equal(same, id);
    const rows = await work.due("p", "bot");
    assert.deepEqual(
      rows.map(({ cause, target }) => [cause, target]),
      [["c", { chat: "1" }]],
    );
    const kept = await work.outboxRow(streamed);
    assert.deepEqual([kept?.state, kept?.platformMessageId], ["sent", "m9"]);
    assert.equal(await work.outboxRow(999), null);
  });

  check("a part that was sent and did not arrive is dead, once, with the reason", async ({ work }) => {
    const lease = await bot(work);
    const [id = 0] = await work.promise([part("a")]);
    const which = { platform: "p", account: "bot", cause: "a", part: 0 };
    assert.equal(await work.bounced(which, "early"), null, "it was not sent yet");
    await work.sending(id, lease);
    await work.settleSend(id, { type: "sent", messageId: "m" }, lease);
    assert.equal(await work.bounced({ ...which, account: "other" }, "no"), null);
    assert.equal((await work.bounced(which, "mailbox full"))?.id, id);
    assert.equal(await work.bounced(which, "again"), null);
    assert.deepEqual(
      (await work.deadLetters()).map(({ error }) => error),
      ["mailbox full"],
    );
  });

  check("a target gets its parts in order, while others do not wait for it", async ({ work, passTime }) => {
    const lease = await bot(work);
    const [a1 = 0, a2 = 0, b1 = 0] = await work.promise([
      part("a1", "a"),
      part("a2", "a", { target: { thread: undefined, chat: "a" } }),
      part("b1", "b"),
    ]);
    const due = async () => (await work.due("p", "bot")).map(({ id }) => id);
    assert.deepEqual(await due(), [a1, b1]);
    assert.equal(await work.sending(a2, lease), false, "its turn has not come");
    assert.equal(await work.sending(a1, lease), true);
    assert.equal(await work.sending(a1, lease), false, "it is being sent");
    assert.deepEqual(await due(), [b1]);
    await work.settleSend(a1, { type: "again", afterSeconds: 30, counts: false, error: "slow down" }, lease);
    assert.deepEqual(await due(), [b1], "not before its time, and nothing behind it");
    passTime(31);
    assert.deepEqual(await due(), [a1, b1]);
    assert.equal((await work.outboxRow(a1))?.attempts, 0);
    assert.equal(await work.sending(a1, lease), true);
    await work.settleSend(a1, { type: "dead", error: "blocked" }, lease);
    assert.deepEqual(await due(), [a2, b1], "what cannot be sent holds nobody up");
    assert.deepEqual(
      (await work.deadLetters()).map(({ error }) => error),
      ["blocked"],
    );
    await work.settleSend(a1, { type: "sent", messageId: "late" }, lease);
    assert.equal((await work.outboxRow(a1))?.state, "dead", "what was not being sent was not sent");
    assert.deepEqual(await work.due("p", "another bot"), []);
  });

  check("a part is sent again as something else where it has to be", async ({ work }) => {
    const lease = await bot(work);
    const [id = 0] = await work.promise([part("c", "thread")]);
    await work.sending(id, lease);
    const again = { type: "again", afterSeconds: 0, counts: true, error: "format", payload: { plain: true } } as const;
    await work.settleSend(id, { ...again, target: { chat: "itself" } }, lease);
    const [row] = await work.due("p", "bot");
    assert.deepEqual(
      [row?.payload, row?.target, row?.attempts, row?.error],
      [{ plain: true }, { chat: "itself" }, 1, "format"],
    );
    assert.notEqual(await work.nextDue("p", "bot"), null);
    assert.deepEqual(await sendAll(work, lease), ["c#0"]);
    assert.equal(await work.nextDue("p", "bot"), null);
  });

  check("one holder sends in the name of a bot; what it was sending is found by the next one", async (subject) => {
    const { work, passTime } = subject;
    const old = await bot(work);
    const held = await work.takeBot("bot", BOB);
    assert.ok(held.type === "held" && held.by === ANN);
    const [id = 0] = await work.promise([part("c")]);
    await work.sending(id, old);
    passTime(61);
    const lease = await bot(work, BOB);
    assert.equal(lease.token, old.token + 1);
    const stale = (error: unknown) => error instanceof LaneMovedError;
    await assert.rejects(work.sending(id, old), stale);
    await assert.rejects(work.settleSend(id, { type: "sent", messageId: "m" }, old), stale);
    await assert.rejects(work.renewBot(old), stale);
    await assert.rejects(work.interruptedSends("p", "bot", old), stale);
    assert.deepEqual(
      (await work.interruptedSends("p", "bot", lease)).map((row) => row.id),
      [id],
    );
    await work.renewBot(lease);
    await work.releaseBot(old);
    assert.equal((await work.takeBot("bot", ANN)).type, "held", "a stale lease gives nothing back");
    await work.releaseBot(lease);
    assert.equal((await work.takeBot("bot", ANN)).type, "taken");
  });

  check("what is asked of a turn reaches the holder of its conversation once", async ({ work, store }) => {
    assert.equal(await work.control("s", "interrupt", {}), null, "nobody works on it");
    const lease = await taken(work, await accepted(work, event("1")));
    const stop = await work.control("s", "interrupt", {});
    assert.equal(stop?.holder, ANN);
    const steer = await work.control("s", "steer", { text: "left" });
    assert.equal(await work.controlState(stop?.id ?? 0), "waits");
    assert.deepEqual(await store.takeControls([{ ...lease, lane: "another" }]), []);
    assert.deepEqual(
      (await store.takeControls([lease])).map(({ kind, says }) => [kind, says]),
      [
        ["interrupt", {}],
        ["steer", { text: "left" }],
      ],
    );
    assert.equal(await work.controlState(steer?.id ?? 0), "taken");
    assert.deepEqual(await store.takeControls([lease]), []);
  });

  check("what was asked of a turn that is over reaches no later one", async ({ work, store, passTime }) => {
    const ids = await accepted(work, event("1"));
    const old = await taken(work, ids);
    const stop = await work.control("s", "interrupt", {});
    passTime(61);
    assert.equal(await work.controlState(stop?.id ?? 0), "over");
    assert.equal(await work.control("s", "interrupt", {}), null, "its lease ran out");
    const lease = await taken(work, ids, BOB);
    assert.deepEqual(await store.takeControls([lease]), []);
    const later = await work.control("s", "interrupt", {});
    assert.deepEqual(await store.takeControls([old]), [], "what is for the next holder is left to it");
    assert.deepEqual(
      (await store.takeControls([lease])).map(({ id }) => id),
      [later?.id],
    );
    assert.equal(await work.controlState(stop?.id ?? 0), "over");
  });

  check("a message that steers a turn of elsewhere waits until it was read", async ({ work, store }) => {
    await taken(work, await accepted(work, event("1")));
    const asked = await work.control("s", "steer", { text: "more" }, event("2", "chat:2"));
    assert.equal(typeof asked?.id, "number");
    const row = (await work.waiting()).get("chat:2")?.[0];
    const [control] = await store.takeControls([{ lane: "s", holder: ANN, token: 1 }]);
    assert.deepEqual(control?.says, { text: "more", row: row?.id });
    assert.equal((await work.waiting()).get("chat:2")?.length, 1);
    assert.equal(await work.control("free", "steer", { text: "x" }, event("3", "chat:3")), null);
    assert.equal((await work.waiting()).get("chat:3"), undefined, "nobody to steer: nothing is stored");
  });

  for (const [how, days] of [
    ["forward", 1],
    ["back", -1],
  ] as const)
    check(`a clock that is set ${how} by a day holds nobody up and makes nothing twice`, async ({ work, passTime }) => {
      const ids = await accepted(work, event("1"));
      const old = await taken(work, ids);
      const held = await bot(work);
      const [id = 0] = await work.promise([part("a")]);
      await work.sending(id, held);
      await work.settleSend(id, { type: "again", afterSeconds: 300, counts: true, error: "no network" }, held);
      assert.deepEqual(await work.due("p", "bot"), []);
      passTime(days * DAY);
      assert.deepEqual(await work.accept([event("1")]), [null], "a duplicate stays one");
      assert.deepEqual(
        (await work.due("p", "bot")).map((row) => row.id),
        [id],
      );
      await taken(work, ids, BOB);
      await bot(work, BOB);
      const stale = (error: unknown) => error instanceof LaneMovedError;
      await assert.rejects(work.asked(old, ids), stale);
      await assert.rejects(work.sending(id, held), stale);
      await work.sweep();
      assert.equal((await work.waiting()).get("chat:1")?.length, 1);
    });

  check("requests are kept for a day", async ({ work, store, passTime }) => {
    const lease = await taken(work, await accepted(work, event("1")));
    const stop = await work.control("s", "interrupt", {});
    await store.takeControls([lease]);
    passTime(DAY - 60);
    await work.sweep();
    assert.equal(await work.controlState(stop?.id ?? 0), "taken");
    passTime(120);
    await work.sweep();
    assert.equal(await work.controlState(stop?.id ?? 0), "over");
  });

  check("a route is written only over what was read", async ({ work, another }) => {
    const other = await (await another()).work();
    const entry = (session_id: string) => ({ sessionKey: "chat:1", entry: { session_id, unknown: [1] } });
    assert.equal(await work.setRoute("h", entry("a"), null), true);
    assert.equal(await other.setRoute("h", entry("b"), null), false);
    const seen = (await other.route("h", "chat:1"))?.updatedAt;
    assert.equal(await other.setRoute("h", entry("b"), seen), true);
    assert.equal(await work.setRoute("h", entry("c"), seen), false);
    assert.equal(await work.setRoute("h", entry("d")), true, "without a condition");
    assert.deepEqual(
      (await work.routes("h")).map((route) => route.entry),
      [{ session_id: "d", unknown: [1] }],
    );
    assert.deepEqual(await work.routes("another home"), []);
    await work.removeRoute("h", "chat:1");
    assert.equal(await work.route("h", "chat:1"), null);
  });

  check("changes are told in order, to every reader from where it was", async ({ work, another }) => {
    const before = await work.lastChange();
    const ids = await accepted(work, event("1"));
    const lease = await taken(work, ids);
    await work.begin(lease, { sessionId: "s", ids, messages: [user("1")] });
    await work.note("question", "chat:1", "question:q1");
    await work.control("s", "interrupt", {});
    const other = await (await another()).work();
    const told = await other.changes(before);
    assert.deepEqual(
      told.map(({ kind, sessionKey }) => [kind, sessionKey]),
      [
        ["message", "chat:1"],
        ["message", "chat:1"],
        ["question", "chat:1"],
        ["control", null],
      ],
    );
    assert.deepEqual(await other.changes(told.at(-1)?.id ?? 0), []);
    assert.equal((await other.changes(before, { limit: 2 })).length, 2);
    assert.equal(await other.lastChange(), told.at(-1)?.id);
  });

  check("what ended long ago is forgotten, but never that it was there", async ({ work, passTime }) => {
    const lease = await bot(work);
    const ids = await accepted(work, event("old"), event("open"), event("dead"));
    await work.settle([ids[0] ?? 0], "answered", { outbox: [part("old"), part("unsent", "2")] });
    await work.settle([ids[2] ?? 0], "dead");
    const [row] = await work.due("p", "bot");
    await work.sending(row?.id ?? 0, lease);
    await work.settleSend(row?.id ?? 0, { type: "sent", messageId: "m" }, lease);
    passTime(6 * DAY);
    await work.sweep();
    assert.notEqual(await work.outboxRow(row?.id ?? 0), null);
    passTime(2 * DAY);
    await work.sweep();
    assert.equal(await work.outboxRow(row?.id ?? 0), null);
    assert.deepEqual((await work.counts()).inbox.dead, 1, "what failed is kept for longer");
    assert.deepEqual(await work.accept([event("old")]), [null]);
    assert.deepEqual(texts((await work.waiting()).get("chat:1") ?? []), ["open"]);
    assert.deepEqual(
      (await work.due("p", "bot")).map(({ cause }) => cause),
      ["unsent"],
    );
    passTime(30 * DAY);
    await work.sweep();
    assert.equal((await work.counts()).inbox.dead, 0);
    assert.deepEqual(await work.accept([event("dead")]), [null]);
  });

  check("counts tell what waits, since when, and what was given up", async ({ work }) => {
    const lease = await bot(work);
    const none = { queued: 0, oldest: null, dead: 0 };
    const nothing = { inbox: none, outbox: { pending: 0, sending: 0, oldest: null, dead: 0 }, platforms: {} };
    assert.deepEqual(await work.counts(), nothing);
    await accepted(work, event("1"), event("2"), event("3", "chat:9", { platform: "q" }));
    const [id = 0] = await work.promise([part("a"), part("b", "2"), part("c", "3"), part("d", "4", { platform: "r" })]);
    await work.sending(id, lease);
    const { inbox, outbox, platforms } = await work.counts();
    assert.deepEqual(platforms, {
      p: { queued: 2, pending: 3 },
      q: { queued: 1, pending: 0 },
      r: { queued: 0, pending: 1 },
    });
    assert.deepEqual([inbox.queued, outbox.pending, outbox.sending, outbox.dead], [3, 3, 1, 0]);
    assert.ok(Math.abs((inbox.oldest ?? 0) - Date.now() / 1000) < 600 && outbox.oldest !== null);
  });
}
