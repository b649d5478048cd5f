// What every session store owes to those who write one conversation from several processes. Each implementation runs this suite.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { hostname } from "node:os";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import type { HistoryMessage } from "../../src/llm/messages.ts";
import { newHolder } from "../../src/sessions/lanes.ts";
import {
  type LaneAnswer,
  LaneMovedError,
  type LaneToken,
  type SessionStore,
  StoreError,
} from "../../src/sessions/store.ts";

export interface LaneSubject {
  readonly store: SessionStore;
  /** Another connection to the same data. */
  another(): Promise<SessionStore>;
  /** Moves the store's clock on for everything that is leased. */
  passTime(seconds: number): void;
}

const user = (content: string): HistoryMessage => ({ role: "user", content });
const moved = (error: unknown) =>
  error instanceof LaneMovedError && error instanceof StoreError && error.code === "moved";

/** Holders of other machines: nobody here can see whether they live. */
const [ANN, BOB, CAT] = ["north:1:a", "south:2:b", "west:3:c"] as const;

async function take(store: SessionStore, id: string, holder: string, seconds = 60): Promise<LaneToken> {
  return leaseOf(await store.takeLane(id, holder, { seconds }));
}

function leaseOf(answer: LaneAnswer): LaneToken {
  assert.ok(answer.type === "taken", `${answer.type}, not taken`);
  return answer.lease;
}

async function everything(store: SessionStore): Promise<unknown[]> {
  const sessions: unknown[] = [];
  for await (const session of store.export()) sessions.push(session);
  return sessions;
}

export function laneConformance(kind: string, open: (t: TestContext) => Promise<LaneSubject>): void {
  test(`${kind}: a lane has one holder; others are told who it is and until when`, async (t) => {
    const { store, another, passTime } = await open(t);
    const other = await another();
    const first = await take(store, "a", ANN);
    assert.deepEqual(first, { lane: "a", holder: ANN, token: 1 });
    const answer = await other.takeLane("a", BOB);
    assert.ok(answer.type === "held" && answer.by === ANN);
    assert.ok(Math.abs(answer.until - Date.now() / 1000 - 60) < 10, "60 seconds unless another time is asked for");
    assert.deepEqual(await take(store, "a", ANN), first, "its holder has it already");
    passTime(50);
    await store.renewLane(first);
    passTime(50);
    assert.equal((await other.takeLane("a", BOB)).type, "held");
    await store.releaseLane(first);
    assert.deepEqual(await take(other, "a", BOB), { lane: "a", holder: BOB, token: 2 });
    assert.equal((await take(store, "b", ANN)).token, 1, "each lane counts for itself");
  });

  test(`${kind}: a lease that ran out is taken over with a larger token; the old one renews, releases and writes nothing`, async (t) => {
    const { store, another, passTime } = await open(t);
    const other = await another();
    await store.create({ id: "a" });
    const old = await take(store, "a", ANN);
    passTime(61);
    const lease = await take(other, "a", BOB);
    assert.equal(lease.token, 2);
    await assert.rejects(store.renewLane(old), moved);
    await assert.rejects(store.append("a", [user("late")], { lease: old }), (error: Error) => {
      assert.match(error.message, /^session a is in use by process 2 on south now; nothing more was saved\. /);
      return moved(error);
    });
    await store.releaseLane(old);
    assert.equal((await store.takeLane("a", CAT)).type, "held");
    await other.append("a", [user("mine")], { lease });
    assert.deepEqual(
      (await store.load("a")).map(({ content }) => content),
      ["mine"],
    );
    await other.releaseLane(lease);
    await assert.rejects(other.append("a", [user("after")], { lease }), moved);
    await take(other, "a", BOB);
    await assert.rejects(other.append("a", [user("after")], { lease }), moved, "the same holder, an older token");
    await other.releaseLane(lease);
    assert.equal((await store.takeLane("a", CAT)).type, "held", "an older token releases nothing either");
  });

  test(`${kind}: a lease that ran out and that nobody took is still its holder's`, async (t) => {
    const { store, another, passTime } = await open(t);
    await store.create({ id: "a" });
    const lease = await take(store, "a", ANN);
    passTime(3600);
    await store.append("a", [user("the laptop slept")], { lease });
    await store.renewLane(lease);
    assert.equal((await (await another()).takeLane("a", BOB)).type, "held");
    assert.equal((await take(store, "a", ANN)).token, lease.token);
  });

  test(`${kind}: the lease of a process that is gone is free at once, on this machine only`, async (t) => {
    const { store, passTime } = await open(t);
    const { pid } = spawnSync(process.execPath, ["-e", ""]);
    const [here = ""] = newHolder().split(`:${process.pid}:`);
    await take(store, "a", `${here}:${pid}:x`);
    assert.equal((await take(store, "a", ANN)).token, 2);
    // The last three: a container with our host name, the machine before it was started again, an earlier version.
    const others = process.platform === "linux" ? [`${here}1`, here.replace("/", "/0"), hostname()] : [];
    for (const place of ["elsewhere", ...others]) {
      await take(store, place, `${place}:${pid}:x`);
      const answer = await store.takeLane(place, ANN);
      assert.ok(answer.type === "held" && answer.by === `${place}:${pid}:x`, place);
      passTime(61);
      assert.equal((await take(store, place, ANN)).token, 2, "it runs out all the same");
    }
    await take(store, "c", newHolder());
    assert.equal((await store.takeLane("c", ANN)).type, "held", "this process lives");
  });

  test(`${kind}: a released lane is kept for its last holder for ten minutes, for those who ask for that`, async (t) => {
    const { store, passTime } = await open(t);
    await store.releaseLane(await take(store, "a", ANN));
    const polite = { respectPreference: true };
    const answer = await store.takeLane("a", BOB, polite);
    assert.ok(answer.type === "preferred" && answer.by === ANN);
    const again = leaseOf(await store.takeLane("a", ANN, polite));
    await store.releaseLane(again);
    passTime(601);
    const next = leaseOf(await store.takeLane("a", BOB, polite));
    await store.releaseLane(next, { preferSeconds: Number.POSITIVE_INFINITY });
    passTime(1e9);
    assert.equal((await store.takeLane("a", ANN, polite)).type, "preferred", "pinned");
    await store.releaseLane(leaseOf(await store.takeLane("a", ANN)), { preferSeconds: 0 });
    assert.equal((await store.takeLane("a", CAT, polite)).type, "taken");
  });

  test(`${kind}: compressions and delegated work stay in the lane; branches have their own`, async (t) => {
    const { store } = await open(t);
    await store.create({ id: "a" });
    const lease = await take(store, "a", ANN);
    await store.append("a", [user("one")], { lease });
    const child = await store.continueAfterCompression("a", [user("summary")], { lease });
    const tip = await store.continueAfterCompression(child, [user("shorter")], { lease });
    await store.append(tip, [user("two")], { lease });
    assert.equal((await store.takeLane(tip, BOB)).type, "held");
    await store.create({ id: "task", parentSessionId: tip, source: "subagent", modelConfig: { _delegate_from: tip } });
    await store.append("task", [user("do it")], { lease });
    const half = await store.continueAfterCompression("task", [user("half done")], { lease });
    await store.append(half, [user("done")], { lease });
    assert.equal((await store.takeLane(half, BOB)).type, "held");

    await store.branch(tip, "branch", { lease, title: "aside" });
    assert.equal((await store.get("branch"))?.title, "aside");
    const own = await take(store, "branch", BOB);
    assert.equal(own.lane, "branch");
    await store.append("branch", [user("mine")], { lease: own });
    await assert.rejects(store.append("branch", [user("theirs")], { lease }), moved);
    await assert.rejects(store.append(tip, [user("theirs")], { lease: own }), moved);
    const same = await take(store, "another", ANN);
    assert.equal(same.token, lease.token);
    await assert.rejects(store.append(tip, [user("mine")], { lease: same }), moved, "the lease of another lane");
  });

  const WRITES: Readonly<Record<string, (store: SessionStore, lease: LaneToken, row: number) => Promise<unknown>>> = {
    append: (store, lease) => store.append("a", [user("x")], { lease }),
    replace: (store, lease) => store.replace("a", [user("x")], { lease }),
    rewind: (store, lease, row) => store.rewind("a", row, { lease }),
    setApiContent: (store, lease, row) => store.setApiContent(row, "x", { lease }),
    setPrompt: (store, lease) => store.setPrompt("a", { prompt: "x", stableChars: 1, fingerprint: null }, { lease }),
    setValue: (store, lease) => store.setValue("a", "key", "x", { lease }),
    update: (store, lease) => store.update("a", { model: "x" }, { lease }),
    end: (store, lease) => store.end("a", "cli_close", { lease }),
    branch: (store, lease) => store.branch("a", "copy", { lease }),
    continueAfterCompression: (store, lease) => store.continueAfterCompression("a", [user("x")], { lease }),
  };

  for (const [name, write] of Object.entries(WRITES)) {
    test(`${kind}: ${name} is done with the newest lease, and with an older one refused and nothing changed`, async (t) => {
      const { store, passTime } = await open(t);
      await store.create({ id: "a" });
      const [row = 0] = await store.append("a", [user("one")]);
      await store.setValue("a", "key", "old");
      const state = async () => [await everything(store), await store.getValue("a", "key")];
      const old = await take(store, "a", ANN);
      passTime(61);
      const lease = await take(store, "a", BOB);
      const before = await state();
      await assert.rejects(write(store, old, row), moved);
      assert.deepEqual(await state(), before);
      await write(store, lease, row);
      assert.notDeepEqual(await state(), before);
    });
  }

  test(`${kind}: a compression is taken back under the lease only`, async (t) => {
    const { store, passTime } = await open(t);
    await store.create({ id: "a" });
    const old = await take(store, "a", ANN);
    const child = await store.continueAfterCompression("a", [user("summary")], { lease: old });
    passTime(61);
    const lease = await take(store, "a", BOB);
    await assert.rejects(store.undoCompression(child, { lease: old }), moved);
    assert.ok(await store.get(child));
    assert.equal(await store.undoCompression(child, { lease }), "a");
    await store.append("a", [user("as before")], { lease });
  });

  test(`${kind}: compressing is a use of the lane`, async (t) => {
    const { store, another, passTime } = await open(t);
    const other = await another();
    await store.create({ id: "a" });
    const lease = await take(store, "a", ANN);
    assert.equal(await other.leaseCompression("a"), null, "somebody talks in it");
    const own = await store.leaseCompression("a", { lease });
    assert.ok(own);
    await own.release();
    await store.append("a", [user("the lease goes on")], { lease });
    await store.releaseLane(lease);
    await assert.rejects(store.leaseCompression("a", { lease }), moved);

    const alone = await store.leaseCompression("a", { seconds: 60 });
    assert.ok(alone);
    assert.equal(await other.leaseCompression("a"), null);
    assert.equal((await other.takeLane("a", ANN)).type, "held");
    passTime(61);
    const next = await other.leaseCompression("a", { seconds: 60 });
    assert.ok(next);
    await alone.release();
    assert.equal(await store.leaseCompression("a"), null, "a late release frees nothing that is somebody else's");
    await next.release();
    assert.equal((await store.takeLane("a", ANN, { respectPreference: true })).type, "taken");
  });

  test(`${kind}: pruning leaves a conversation that somebody holds; deleting it ends the lease`, async (t) => {
    const { store, passTime } = await open(t);
    await store.create({ id: "a", startedAt: 1 });
    await store.append("a", [user("one")]);
    const tip = await store.continueAfterCompression("a", [user("summary")]);
    const lease = await take(store, tip, ANN);
    assert.deepEqual(await store.prune({ before: 2 }, { dryRun: true }), []);
    assert.deepEqual(await store.prune({ before: 2 }), []);
    await store.append(tip, [user("two")], { lease });
    passTime(61);
    assert.deepEqual(await store.prune({ before: 2 }), ["a"]);
    await assert.rejects(store.append(tip, [user("three")], { lease }), moved);
    const anew = await take(store, tip, ANN);
    assert.equal(anew.lane, tip);
    await store.append(tip, [user("three")], { lease: anew });
    await store.delete(tip);
    await assert.rejects(store.append(tip, [user("four")], { lease: anew }), moved);
  });

  test(`${kind}: whatever holders do in whatever order, a write is done exactly when its lease is the newest`, async (t) => {
    const { store, another, passTime } = await open(t);
    const { pid } = spawnSync(process.execPath, ["-e", ""]);
    const dead = newHolder().replace(`:${process.pid}:`, `:${pid}:`);
    const stores = new Map([
      [ANN, store],
      [BOB, store],
      [CAT, await another()],
      [dead, store],
    ]);
    const who = fc.constantFrom(...stores.keys());
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant("take" as const), who, seconds: fc.constantFrom(20, 60) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), seconds: fc.constantFrom(15, 30, 70) }) },
      fc.record({ do: fc.constant("renew" as const), who, nth: fc.nat(2) }),
      fc.record({ do: fc.constant("release" as const), who, nth: fc.nat(2) }),
      { weight: 4, arbitrary: fc.record({ do: fc.constant("append" as const), who, nth: fc.nat(2) }) },
      fc.record({ do: fc.constant("compress" as const), who, nth: fc.nat(2) }),
    );
    let serial = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60, size: "max" }), async (steps) => {
        const id = `law-${++serial}`;
        await store.create({ id });
        let tip = id;
        let [holder, token, left] = [null as string | null, 0, 0];
        const leases = new Map<string, LaneToken[]>();
        for (const one of steps) {
          if (one.do === "wait") {
            passTime(one.seconds);
            left -= one.seconds;
            continue;
          }
          const own = stores.get(one.who) ?? store;
          if (one.do === "take") {
            const free = holder === null || holder === one.who || holder === dead || left <= 0;
            const answer = await own.takeLane(tip, one.who, { seconds: one.seconds });
            assert.equal(answer.type, free ? "taken" : "held");
            if (answer.type !== "taken") continue;
            if (holder !== one.who) token++;
            [holder, left] = [one.who, one.seconds];
            assert.deepEqual(answer.lease, { lane: id, holder, token });
            leases.set(one.who, [answer.lease, ...(leases.get(one.who) ?? [])]);
            continue;
          }
          const lease = leases.get(one.who)?.[one.nth];
          if (!lease) continue;
          const newest = lease.holder === holder && lease.token === token;
          const said = user(`${lease.holder} ${lease.token}`);
          if (one.do === "release") {
            await own.releaseLane(lease);
            if (newest) holder = null;
          } else if (one.do === "renew") {
            await (newest ? own.renewLane(lease) : assert.rejects(own.renewLane(lease), moved));
            if (newest) left = 60;
          } else if (one.do === "append") {
            const writing = own.append(tip, [said], { lease });
            await (newest ? writing : assert.rejects(writing, moved));
          } else {
            const writing = own.continueAfterCompression(tip, [said], { lease });
            if (newest) tip = await writing;
            else await assert.rejects(writing, moved);
          }
        }
        assertOneWriterPerToken(await store.load(tip, { withAncestors: true }));
      }),
      { numRuns: 120 },
    );
  });

  test(`${kind}: however the steps of holders interleave, no two write in one token's time, and none after its time`, async (t) => {
    const { store, another, passTime } = await open(t);
    const stores = [store, await another(), await another()];
    let serial = 0;
    let written = 0;
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.constantFrom("append", "append", "renew", "sleep", "release"), { minLength: 3, maxLength: 12 }),
        async (scheduler, actions) => {
          const id = `race-${++serial}`;
          await store.create({ id });
          const turn = async (own: SessionStore, holder: string) => {
            for (let attempt = 0; attempt < 3; attempt++) {
              await scheduler.schedule(Promise.resolve(), `${holder} takes`);
              const answer = await own.takeLane(id, holder);
              if (answer.type !== "taken") continue;
              const { lease } = answer;
              try {
                for (const action of actions) {
                  await scheduler.schedule(Promise.resolve(), `${holder}: ${action}`);
                  if (action === "append") await own.append(id, [user(`${holder} ${lease.token}`)], { lease });
                  if (action === "append") written++;
                  if (action === "renew") await own.renewLane(lease);
                  if (action === "sleep") passTime(40);
                  if (action === "release") await own.releaseLane(lease);
                }
              } catch (error) {
                if (!moved(error)) throw error;
                refused++;
              }
            }
          };
          const turns = [ANN, BOB, CAT].map((holder, index) => turn(stores[index] ?? store, holder));
          await scheduler.waitFor(Promise.all(turns));
          assertOneWriterPerToken(await store.load(id));
        },
      ),
      { numRuns: 100 },
    );
    assert.ok(written > 100 && refused > 20, `${written} written, ${refused} refused`);
  });
}

/** Rows say who wrote them with which token: a token has one writer, and no row comes behind one of a later token. */
export function assertOneWriterPerToken(rows: readonly { readonly content: unknown }[]): void {
  const writers = new Map<string, string>();
  let last = 0;
  for (const { content } of rows) {
    const [holder = "", token = ""] = String(content).split(" ");
    assert.equal(writers.get(token) ?? holder, holder, `token ${token} has two writers`);
    writers.set(token, holder);
    assert.ok(Number(token) >= last, `token ${token} wrote behind ${last}`);
    last = Number(token);
  }
}
