// Messages and answers between processes that die anywhere: nothing is lost, nothing comes twice, and everything in order.
//
// Each process is a machine whose every step is one call to the store or one request to the platform. What it holds in memory is gone with
// it; what it wrote is not. fast-check chooses who moves, who dies, when a lease runs out and what the platform does.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import fc from "fast-check";
import { openSessionStore } from "../src/sessions/open.ts";
import { LaneMovedError, type LaneToken, type SessionStore } from "../src/sessions/store.ts";
import type { BotLease, InboxRow, OutboxRow, SendOutcome, WorkStore } from "../src/sessions/work.ts";
import { fewer } from "./support/sample.ts";
import { manualClock, recordedLog } from "./support/session-store.ts";

const CHATS = ["a", "b", "c"];
const GIVE_UP = 3;

/** Knows what arrived, and by the key of a part whether it did, if it is one that can be asked. */
class Platform {
  readonly arrived: { readonly chat: string; readonly text: string; readonly key: string }[] = [];
  readonly hasHandle: boolean;
  constructor(hasHandle: boolean) {
    this.hasHandle = hasHandle;
  }
  deliver(chat: string, text: string, key: string): void {
    if (this.hasHandle && this.arrived.some((message) => message.key === key)) return;
    this.arrived.push({ chat, text, key });
  }
}

type Fate = "accepted" | "answer lost" | "slow down" | "unreachable";

interface Payload {
  readonly text: string;
  readonly key: string;
}

class Process {
  readonly #world: World;
  readonly #holder: string;
  #turn: Generator<() => Promise<unknown>, void, never> | null = null;
  #sender: Generator<() => Promise<unknown>, void, never> | null = null;
  #next = { turn: undefined as unknown, sender: undefined as unknown };

  constructor(world: World, holder: string) {
    this.#world = world;
    this.#holder = holder;
  }

  /** One call of a turn: takes the next chat when it has none. */
  async work(): Promise<void> {
    this.#turn ??= this.#answer() as never;
    if (await this.#move("turn", this.#turn as never)) this.#turn = null;
  }

  async send(fate: Fate): Promise<void> {
    this.#sender ??= this.#drain(() => this.#fate) as never;
    this.#fate = fate;
    if (await this.#move("sender", this.#sender as never)) this.#sender = null;
  }
  #fate: Fate = "accepted";

  async #move(which: "turn" | "sender", machine: Generator<() => Promise<unknown>, void, unknown>): Promise<boolean> {
    const { value, done } = machine.next(this.#next[which]);
    if (done || !value) {
      this.#next[which] = undefined;
      return true;
    }
    try {
      this.#next[which] = await value();
      return false;
    } catch (error) {
      assert.ok(error instanceof LaneMovedError, String(error)); // somebody else has it now: stop without a word
      this.#next[which] = undefined;
      return true;
    }
  }

  *#answer(): Generator<() => Promise<unknown>, void, unknown> {
    const { work, store } = this.#world;
    const waiting = (yield () => work.waiting()) as ReadonlyMap<string, readonly InboxRow[]>;
    for (const [key, rows] of waiting) {
      const [row] = rows;
      if (!row) continue;
      const session = `s-${key}`;
      const got = (yield () => work.take(session, [row.id], this.#holder)) as Awaited<ReturnType<WorkStore["take"]>>;
      if (got.type !== "taken") continue;
      const { lease } = got;
      const [mine] = got.rows;
      if (!mine) return;
      const { text } = mine.event as { text: string };
      const target = { chat: key };
      const reply = (said: string, number: number) => {
        const cause = `inbox:${mine.id}`;
        const payload: Payload = { text: said, key: `${cause}#${number}` };
        return { cause, part: number, platform: "p", account: "bot", target, payload };
      };
      if (mine.attempts >= GIVE_UP) {
        yield () => work.settle([mine.id], "dead", { lease, outbox: [reply(`gave up: ${text}`, 0)] });
      } else {
        const begun = { sessionId: session, ids: [mine.id], messages: [{ role: "user" as const, content: text }] };
        if (mine.messageId === null) yield () => work.begin(lease, begun);
        yield () => work.asked(lease, [mine.id]);
        yield () =>
          work.finish(lease, {
            sessionId: session,
            append: [{ role: "assistant", content: `to ${text}` }],
            done: [{ id: mine.id, outcome: "answered" }],
            outbox: [reply(`to ${text}`, 0), reply(`more to ${text}`, 1)],
          });
      }
      yield () => store.releaseLane(lease as LaneToken);
      return;
    }
  }

  *#drain(fate: () => Fate): Generator<() => Promise<unknown>, void, unknown> {
    const { work, platform } = this.#world;
    const got = (yield () => work.takeBot("bot", this.#holder)) as Awaited<ReturnType<WorkStore["takeBot"]>>;
    if (got.type !== "taken") return;
    const lease: BotLease = got.lease;
    const settle = (row: OutboxRow, outcome: SendOutcome) => () => work.settleSend(row.id, outcome, lease);
    for (const row of (yield () => work.interruptedSends("p", "bot", lease)) as readonly OutboxRow[]) {
      const payload = row.payload as Payload;
      const marked = platform.hasHandle ? payload : { ...payload, text: `(recovered) ${payload.text}` };
      // Sent once more, and no more than that, where nobody can say whether it arrived.
      const given = !platform.hasHandle && payload.text.startsWith("(recovered)");
      yield given
        ? settle(row, { type: "dead", error: "unknown twice" })
        : settle(row, { type: "again", afterSeconds: 0, counts: true, error: "unknown", payload: marked });
    }
    for (const row of (yield () => work.due("p", "bot")) as readonly OutboxRow[]) {
      const payload = row.payload as Payload;
      if (!(yield () => work.sending(row.id, lease))) continue;
      let met: Fate = "accepted";
      yield async () => {
        met = fate();
        if (met === "accepted" || met === "answer lost")
          platform.deliver((row.target as { chat: string }).chat, payload.text, payload.key);
      };
      if (met === ("answer lost" as Fate)) return; // as after a crash: the row stays as it is until somebody looks
      const later = { type: "again", afterSeconds: 5, counts: met === ("unreachable" as Fate), error: met } as const;
      yield settle(row, met === "accepted" ? { type: "sent", messageId: payload.key } : later);
    }
  }
}

class World {
  readonly store: SessionStore;
  readonly work: WorkStore;
  readonly platform: Platform;
  readonly received: { readonly chat: string; readonly text: string }[] = [];
  readonly #db: DatabaseSync;
  #processes: Process[];
  #born = 0;

  constructor(store: SessionStore, work: WorkStore, db: DatabaseSync, platform: Platform) {
    this.store = store;
    this.work = work;
    this.platform = platform;
    this.#db = db;
    this.#processes = [this.#birth(), this.#birth()];
  }

  #birth(): Process {
    this.#born++;
    return new Process(this, `machine${this.#born}:${this.#born}:x`);
  }

  process(number: number): Process {
    return this.#processes[number % this.#processes.length] ?? assert.fail();
  }

  kill(number: number): void {
    this.#processes[number % this.#processes.length] = this.#birth();
  }

  /** Leases run out and pauses end, for those who live too. */
  passTime(seconds: number): void {
    const shift = (table: string, column: string) =>
      this.#db.prepare(`UPDATE ${table} SET ${column} = ${column} - ?`).run(seconds);
    shift("lanes", "expires");
    shift("lanes", "prefer_until");
    shift("adapter_leases", "expires");
    shift("outbox", "not_before");
  }

  async receive(chat: string, number: number): Promise<void> {
    const text = `${chat}${number}`;
    const event = {
      sessionKey: chat,
      platform: "p",
      account: "bot",
      updateId: text,
      kind: "user",
      event: { text },
    } as const;
    const [id] = await this.work.accept([event], { platform: "p", account: "bot", cursor: text });
    if (id !== null) this.received.push({ chat, text });
  }

  /** Everybody goes on until nothing is left to do. */
  async settle(): Promise<void> {
    for (let round = 0; round < 400; round++) {
      this.passTime(61);
      if (round === 0) for (const number of [0, 1]) this.kill(number);
      for (const number of [0, 1]) {
        for (let step = 0; step < 8; step++) await this.process(number).work();
        for (let step = 0; step < 12; step++) await this.process(number).send("accepted");
      }
      const { inbox, outbox } = await this.work.counts();
      if (inbox.queued + outbox.pending + outbox.sending === 0) return;
    }
    assert.fail("something is stuck");
  }
}

type Step =
  | { readonly type: "receive"; readonly chat: number; readonly number: number }
  | { readonly type: "work"; readonly process: number }
  | { readonly type: "kill"; readonly process: number }
  | { readonly type: "send"; readonly process: number; readonly fate: Fate }
  | { readonly type: "time"; readonly seconds: number };

const process = fc.nat(1);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant("receive" as const), chat: fc.nat(2), number: fc.nat(4) }) },
  { weight: 9, arbitrary: fc.record({ type: fc.constant("work" as const), process }) },
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant("send" as const),
      process,
      fate: fc.constantFrom<Fate>("accepted", "accepted", "accepted", "answer lost", "slow down", "unreachable"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("kill" as const), process }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("time" as const), seconds: fc.constantFrom(6, 61) }) },
);

for (const hasHandle of [true, false])
  test(`every message is answered once and in order, whoever dies when${hasHandle ? "" : "; a repeat is marked where nobody can tell"}`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120, size: "max" }), async (steps) => {
        const folder = await mkdtemp(join(tmpdir(), "hermes-work-"));
        const path = join(folder, "state.db");
        const store = await openSessionStore({ path, journalMode: "auto", log: recordedLog(), clock: manualClock() });
        const db = new DatabaseSync(path, { timeout: 10_000 });
        try {
          for (const chat of CHATS) await store.ensure({ id: `s-${chat}` });
          const world = new World(store, await store.work(), db, new Platform(hasHandle));
          for (const move of steps) {
            if (move.type === "receive") await world.receive(CHATS[move.chat] ?? "a", move.number);
            else if (move.type === "work") await world.process(move.process).work();
            else if (move.type === "send") await world.process(move.process).send(move.fate);
            else if (move.type === "kill") world.kill(move.process);
            else world.passTime(move.seconds);
          }
          await world.settle();
          await judge(world);
        } finally {
          db.close();
          await store.close();
          await rm(folder, { recursive: true, force: true });
        }
      }),
      { numRuns: fewer(800, 32) },
    );
  });

async function judge({ received, platform, store, work }: World): Promise<void> {
  const dead = await work.deadLetters();
  if (platform.hasHandle) assert.deepEqual(dead, []);
  for (const chat of CHATS) {
    const asked = received.filter((message) => message.chat === chat).map(({ text }) => text);
    const arrived = platform.arrived.filter((message) => message.chat === chat).map(({ text }) => text);
    const unmarked = arrived.filter((text) => !text.startsWith("(recovered)"));
    assert.equal(new Set(unmarked).size, unmarked.length, `twice in ${chat}: ${arrived}`);
    const expected = asked.flatMap((text) =>
      arrived.includes(`gave up: ${text}`) ? [`gave up: ${text}`] : [`to ${text}`, `more to ${text}`],
    );
    if (platform.hasHandle) assert.deepEqual(arrived, expected, "whole, in order, and without a mark");
    else {
      // Where nobody can tell, a part that was cut off twice is given up and said to be; the rest keeps its order.
      const plain = arrived.map((text) => text.replace("(recovered) ", ""));
      const firsts = plain.filter((text, at) => plain.indexOf(text) === at);
      assert.ok(expected.length - firsts.length <= dead.length, `lost in ${chat}: asked ${asked}, got ${arrived}`);
      const places = firsts.map((text) => expected.indexOf(text));
      assert.deepEqual(
        places,
        [...places].sort((one, other) => one - other),
        `out of order in ${chat}: ${arrived}`,
      );
    }
    const stored = (await store.load(`s-${chat}`)).map(({ content }) => String(content));
    const answered = new Set(stored);
    const whole = asked.flatMap((text) => (answered.has(`to ${text}`) ? [text, `to ${text}`] : [text]));
    assert.deepEqual(stored, whole, "the conversation holds each message and each answer once, in order");
  }
  assert.equal((await work.waiting()).size, 0);
}
