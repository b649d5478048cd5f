// Which messages become one turn, in which order, and what ends without one.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { recordedLog, temporaryStore } from "../../../test/support/session-store.ts";
import { systemClock } from "../../kit/clock.ts";
import { UserError } from "../../kit/errors.ts";
import { StoreError } from "../../sessions/store.ts";
import type { InboxEvent } from "../../sessions/work.ts";
import { Desk } from "./desk.ts";
import type { QueuedMessage } from "./reply.ts";
import type { CommandDesk } from "./surface.ts";
import type { TurnPorts } from "./turn.ts";

/** A desk whose turns end at once: the settings are to blame, and the chat hears it. One reply is one turn. */
async function open(t: TestContext, more: Partial<TurnPorts> = {}) {
  const { store } = await temporaryStore(t);
  await store.ensure({ id: "s", source: "p" });
  const work = await store.work();
  const entry = { name: "p", batchSeconds: () => 0.05 };
  const config = {
    gateway: { max_concurrent_turns: 2 },
    agent: { gateway_auto_continue_freshness: 3600 },
    display: { busy_input_mode: "queue" },
  };
  const ports = {
    ...{ work, store, clock: systemClock, log: recordedLog() },
    settings: {
      home: { config: () => config, redact: (text: string) => text },
      timers: { batch: 1 },
      option: () => () => undefined,
    },
    questions: { waits: () => false },
    ...{ routes: { get: async () => null }, mirror: { settle: async () => undefined } },
    conversations: { borrow: () => Promise.reject(new UserError("no model is set up")) },
    bot: () => ({ entry, account: "b", adapter: null }),
    serves: (platform: string) => platform === "p",
    isAllowed: async () => true,
    wake: () => undefined,
    ...more,
  } as unknown as TurnPorts;
  const desk = new Desk(ports, () => undefined);
  t.after(() => desk.drain(0, "shutdown"));
  /** Opens the desk, and answers with the rows that each turn ended, in the order the turns ended. */
  const turns = async () => {
    desk.open({} as CommandDesk);
    while ((await work.waiting()).size > 0) {
      await delay(5);
      desk.look();
    }
    return (await work.due("p", "b")).length > 0 ? replies() : [];
  };
  const replies = async () => {
    const causes: string[] = [];
    const lease = await work.takeBot("bot", `here:${process.pid}:a`);
    assert.ok(lease.type === "taken");
    for (let due = await work.due("p", "b"); due.length > 0; due = await work.due("p", "b"))
      for (const { id, cause } of due) {
        causes.push(cause.replace("inbox:", ""));
        await work.sending(id, lease.lease);
        await work.settleSend(id, { type: "sent", messageId: null }, lease.lease);
      }
    return causes;
  };
  return { desk, work, turns };
}

const said = (
  user: string,
  {
    kind = "user",
    thread = "t",
    ...more
  }: Partial<QueuedMessage> & Partial<Pick<InboxEvent, "kind">> & { thread?: string } = {},
) => {
  const source = { platform: "p", chat_type: "thread", chat_id: "club", thread_id: thread, user_id: user } as const;
  return { kind, event: { text: "hi", type: "text", source, updateId: "", sentAt: Date.now() / 1000, ...more } };
};

let updates = 0;

async function wrote(work: Awaited<ReturnType<typeof open>>["work"], ...messages: ReturnType<typeof said>[]) {
  const events = messages.map(({ kind, event }) => ({
    ...{
      sessionKey: `chat:${event.source.thread_id}`,
      platform: "p",
      account: "b",
      updateId: `${++updates}`,
      kind,
      event,
    },
  }));
  return (await work.accept(events as InboxEvent[])).map(String);
}

test("what one person writes in a breath is one turn; what somebody else writes is theirs", async (t) => {
  const { work, turns } = await open(t);
  const [first, , third, fourth] = await wrote(work, said("ann"), said("ann"), said("bob"), said("ann"));
  assert.deepEqual(await turns(), [first, third, fourth]);
});

test("a chat that waits for long keeps no other one waiting", async (t) => {
  const entry = { name: "p", batchSeconds: ({ text }: QueuedMessage) => (text === "an album" ? 600 : 0.05) };
  const bot = () => ({ entry, account: "b", adapter: null }) as unknown as ReturnType<TurnPorts["bot"]>; // what a desk asks of it
  const { desk, work } = await open(t, { bot });
  const [soon] = await wrote(work, said("ann", { thread: "one" }), said("bob", { thread: "two", text: "an album" }));
  desk.open({} as CommandDesk);
  const ended = async () => (await work.due("p", "b")).map(({ cause }) => cause);
  for (const end = Date.now() + 20_000; (await ended()).length === 0 && Date.now() < end; ) await delay(5);
  assert.deepEqual(await ended(), [`inbox:${soon}`]);
});

test("what is written later, or behind /queue, is a turn of its own", async (t) => {
  const { work, turns } = await open(t);
  const now = Date.now() / 1000;
  const ids = await wrote(
    work,
    said("ann", { sentAt: now - 60 }),
    said("ann"),
    said("ann", { queued: true }),
    said("ann", { queued: true }),
  );
  assert.deepEqual(await turns(), ids);
});

test("what a turn began with stays together when it goes on, whoever wrote it", async (t) => {
  const { work, turns } = await open(t);
  const ids = await wrote(work, said("ann"), said("bob"), said("ann"));
  const begun = ids.slice(0, 2).map(Number);
  const taken = await work.take("s", begun, `here:${process.pid}:z`);
  assert.ok(taken.type === "taken");
  await work.begin(taken.lease, { sessionId: "s", ids: begun, messages: [{ role: "user", content: "hi" }] });
  assert.deepEqual(await turns(), [ids[0], ids[2]]);
});

test("texts that one person writes in a breath while a turn runs are one turn, on every platform", async (t) => {
  const entry = { name: "p", display: {} };
  const bot = () => ({ entry, account: "b", adapter: null }) as unknown as ReturnType<TurnPorts["bot"]>; // what a desk asks of it
  let letGo = (): void => undefined;
  const held = new Promise<never>((_, reject) => {
    letGo = () => reject(new UserError("no model is set up"));
  });
  held.catch(() => undefined);
  const borrow = () => held;
  const conversations = { borrow } as unknown as TurnPorts["conversations"]; // all that a turn gets to ask
  const { desk, work, turns } = await open(t, { bot, conversations });
  const [running] = await wrote(work, said("ann"));
  const over = turns();
  while (desk.running.length === 0) await delay(5);
  const [first] = await wrote(work, said("ann"), said("ann"));
  const [other] = await wrote(work, said("bob"));
  await delay(400);
  const [later, queued] = await wrote(work, said("ann"), said("ann", { queued: true }));
  const old = Date.now() / 1000 - 300;
  const [late, lost] = await wrote(work, said("bob", { sentAt: old }), said("bob", { sentAt: old + 60 }));
  await delay(100);
  letGo();
  assert.deepEqual(await over, [running, first, other, later, queued, late, lost]);
});

test("a goal comes after everything that people said", async (t) => {
  const { work, turns } = await open(t);
  const [goal, first, second] = await wrote(work, said("ann", { kind: "goal" }), said("ann"), said("bob"));
  assert.deepEqual(await turns(), [first, second, goal]);
});

test("what was only overheard begins no turn, and comes along with what is meant for us", async (t) => {
  const { work, turns } = await open(t);
  await wrote(work, said("bob", { observed: true }), said("ann"), said("cleo", { thread: "u" }));
  assert.equal((await turns()).length, 2, "three messages have ended, with two replies");
});

test("whoever may no longer write when the turn begins is not answered, and not told", async (t) => {
  const { work, turns } = await open(t, { isAllowed: async ({ source }) => source.user_id !== "eve" });
  const [, second] = await wrote(work, said("eve"), said("ann", { thread: "u" }));
  assert.deepEqual(await turns(), [second]);
});

test("a command that comes before the desk is open is run when it opens", async (t) => {
  const { desk, work } = await open(t);
  const [id] = await wrote(work, said("ann", { kind: "command", text: "/status" }));
  desk.look();
  await delay(30);
  const ran: string[] = [];
  desk.open({
    async run(_key: string, row: { readonly id: number }) {
      ran.push(String(row.id));
      await work.settle([row.id], "command");
    },
  } as unknown as CommandDesk); // the one thing that is asked of it
  while ((await work.waiting()).size > 0) await delay(5);
  assert.deepEqual(ran, [id]);
});

/** A desk whose turns break before they begin, with waits that are over at once. */
async function broken(t: TestContext, failure: () => Error) {
  let ahead = 0;
  let tries = 0;
  const borrow = async () => {
    tries++;
    throw failure();
  };
  const clock = { ...systemClock, now: () => Date.now() + ahead };
  const subject = await open(t, { clock, conversations: { borrow } } as unknown as Partial<TurnPorts>);
  const { desk, work } = subject;
  const [id] = await wrote(work, said("ann"), said("bob"));
  desk.open({} as CommandDesk);
  const until = async (holds: () => boolean | Promise<boolean>) => {
    for (const end = Date.now() + 20_000; !(await holds()) && Date.now() < end; await delay(5)) {
      ahead += 120_000;
      desk.look();
    }
  };
  return { ...subject, id: Number(id), until, tries: () => tries };
}

test("a message whose turn breaks three times before the model is asked ends with the reason, and the next one is looked at", async (t) => {
  const { work, until, tries, id } = await broken(t, () => new Error("the skill is damaged"));
  await until(async () => (await work.waiting()).size === 0);
  assert.equal(tries(), 6);
  const [told] = await work.due("p", "b");
  assert.equal(told?.cause, `inbox:${id}`);
  assert.match(
    JSON.stringify(told?.payload),
    /three times to start answering this message: the skill is damaged\. Your next message starts/,
  );
  assert.equal((await work.counts()).inbox.dead, 2);
});

test("a store that cannot be written costs no message its turn", async (t) => {
  const { work, until, tries } = await broken(t, () => new StoreError("full", "the disk is full"));
  await until(() => tries() >= 5);
  assert.ok(tries() >= 5);
  assert.equal((await work.waiting()).size, 1);
  assert.deepEqual(await work.due("p", "b"), []);
});

test("a clock that is set back by a day holds back no chat", async (t) => {
  let ahead = 86_400_000;
  const clock = { ...systemClock, now: () => Date.now() + ahead };
  let failures = 1;
  const borrow = async () => {
    if (failures-- > 0) throw new Error("once");
    throw new UserError("no model is set up");
  };
  const { desk, work } = await open(t, { clock, conversations: { borrow } } as unknown as Partial<TurnPorts>);
  await wrote(work, said("ann"));
  desk.open({} as CommandDesk);
  while (failures > 0) await delay(5);
  await delay(20);
  ahead = 0;
  while ((await work.waiting()).size > 0) {
    desk.look();
    await delay(5);
  }
});
