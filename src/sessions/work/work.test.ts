import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { jobRunConformance } from "../../../test/support/job-run-conformance.ts";
import { temporaryStore } from "../../../test/support/session-store.ts";
import { type WorkSubject, workConformance } from "../../../test/support/work-conformance.ts";
import { openSessionStore } from "../open.ts";

const TIMES = {
  lanes: ["expires", "prefer_until"],
  adapter_leases: ["expires"],
  inbox: ["received_at", "done_at"],
  outbox: ["not_before", "created_at", "sent_at"],
  controls: ["created_at", "taken_at"],
};

async function open(t: TestContext): Promise<WorkSubject> {
  const { store, path, log, clock } = await temporaryStore(t);
  const db = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => db.close());
  return {
    store,
    async another() {
      const other = await openSessionStore({ path, journalMode: "auto", log, clock });
      t.after(() => other.close());
      return other;
    },
    passTime(seconds) {
      for (const [table, columns] of Object.entries(TIMES))
        db.prepare(`UPDATE ${table} SET ${columns.map((name) => `${name} = ${name} - ?1`).join(", ")}`).run(seconds);
    },
  };
}

workConformance("SQLite", open);
jobRunConformance("SQLite", open);

test("a file that may only be read, and never had any work, has none", async (t) => {
  const { path, log, clock } = await temporaryStore(t);
  const reader = await openSessionStore({ path, journalMode: "auto", log, clock, readOnly: true });
  t.after(() => reader.close());
  const { inbox, outbox, platforms } = await (await reader.work()).counts();
  assert.deepEqual([inbox.queued, outbox.pending, platforms], [0, 0, {}]);
});

test("a value and what follows from it change in one step; while somebody waits in the chat, not at all", async (t) => {
  const { store } = await open(t);
  const work = await store.work();
  const at = { sessionKey: "chat:1", platform: "p", account: "bot" };
  const row = (updateId: string, kind: "user" | "goal", more: object = {}) => ({
    ...{ ...at, updateId, kind, event: { text: updateId, ...more } },
  });
  const line = (cause: string) => ({ cause, part: 0, platform: "p", account: "bot", target: {}, payload: {} });
  const step = (value: string, expected: string | null, id: string) =>
    work.follow({
      ...{ meta: { key: "goal:s", value, expected }, sessionKey: "chat:1", withdrawGoals: true, unlessBusy: true },
      ...{ events: [row(id, "goal")], outbox: [line(id)] },
    });
  // What was only overheard waits for nobody.
  await work.accept([row("overheard", "user", { observed: true })]);
  assert.deepEqual([await step("1", null, "g1"), await step("2", null, "g")], ["done", "changed"]);
  assert.equal(await step("2", "1", "g2"), "done");
  await work.accept([row("said", "user")]);
  assert.equal(await step("3", "2", "g"), "busy");
  const waiting = (await work.waiting()).get("chat:1") ?? [];
  assert.deepEqual(
    waiting.map(({ updateId }) => updateId),
    ["overheard", "said", "g2"],
  );
  assert.deepEqual([await store.getMeta("goal:s"), (await work.counts()).outbox.pending], ["2", 2]);
});

test("a row that joins a turn ends with it unless a turn of its own has begun; settling can spare what has begun", async (t) => {
  const { store } = await temporaryStore(t);
  const work = await store.work();
  await store.ensure({ id: "s", source: "p" });
  await store.ensure({ id: "other", source: "p" });
  const event = { sessionKey: "chat", platform: "p", account: "b", kind: "user", event: {} } as const;
  const ids = (await work.accept(["1", "2", "3", "4"].map((updateId) => ({ ...event, updateId })))).map(Number);
  const [own = 0, joined = 0, elsewhere = 0, waits = 0] = ids;
  const begin = async (session: string, id: number) => {
    const taken = await work.take(session, [id], `here:${process.pid}:a`);
    assert.ok(taken.type === "taken");
    await work.begin(taken.lease, { sessionId: session, ids: [id], messages: [{ role: "user", content: "hi" }] });
    return taken.lease;
  };
  const lease = await begin("s", own);
  await begin("other", elsewhere);
  assert.deepEqual(await work.settle([elsewhere, waits], "stopped", { unbegun: true }), [waits]);
  const done = [{ id: own, outcome: "answered" as const }];
  await work.finish(lease, { sessionId: "s", append: [], done, joined: [joined, elsewhere], outbox: [] });
  assert.deepEqual(
    (await work.stillWaiting(ids)).map(({ id }) => id),
    [elsewhere],
  );
});

test("answers that the original still owes are told and left as they are", async (t) => {
  const { store, path } = await temporaryStore(t);
  const work = await store.work();
  assert.equal(await work.owedByOriginal(), null);
  const db = new DatabaseSync(path);
  t.after(() => db.close());
  db.exec("CREATE TABLE delivery_obligations (id TEXT, whatever TEXT)");
  assert.equal(await work.owedByOriginal(), null, "an empty table owes nothing");
  db.exec("INSERT INTO delivery_obligations VALUES ('a', 'x'), ('b', 'y')");
  assert.match((await work.owedByOriginal()) ?? "", /^state\.db holds 2 answers that Python Hermes had to deliver/);
  const told = (await store.health()).find(({ text }) => text.includes("delivery_obligations"));
  assert.equal(told?.ok, true);
  const left = db.prepare("SELECT * FROM delivery_obligations").all();
  assert.deepEqual(
    left.map((row) => ({ ...row })),
    [
      { id: "a", whatever: "x" },
      { id: "b", whatever: "y" },
    ],
  );
});
