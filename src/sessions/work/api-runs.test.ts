import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryStore } from "../../../test/support/session-store.ts";
import { newHolder } from "../lanes.ts";

const RUN = { id: "run_1", sessionId: "s", model: "m" };
const event = (id: number, name = "message.delta") => ({ id, event: { event: name, delta: `${id}` } });

/** A process of this machine that is gone. */
const gone = () => newHolder().replace(/:\d+:/, ":999999999:");

test("a run has its events in order, from any of them on, and nothing comes behind its end", async (t) => {
  const { store } = await temporaryStore(t);
  const work = await store.work();
  const begun = await work.startApiRun({ ...RUN, holder: newHolder() });
  assert.deepEqual([begun.status, begun.endedAt], ["queued", null]);
  assert.equal(await work.noteApiRun("run_1", [event(1), event(2)], { status: "running" }), true);
  const end = { status: "completed", output: "done", usage: { total_tokens: 3 } } as const;
  assert.equal(await work.noteApiRun("run_1", [event(3, "run.completed")], end), true);
  assert.equal(await work.noteApiRun("run_1", [event(4)], { status: "running" }), false);
  assert.deepEqual(
    (await work.apiRunEvents("run_1", 1)).map(({ id }) => id),
    [2, 3],
  );
  const run = await work.apiRun("run_1");
  assert.deepEqual([run?.status, run?.output, run?.usage], ["completed", "done", { total_tokens: 3 }]);
  assert.ok(run?.endedAt);
  assert.equal(await work.apiRun("run_2"), null);
  assert.equal((await work.changes(0)).filter(({ kind, ref }) => kind === "run" && ref === "run_1").length, 3);
});

test("runs of processes that are gone are failed, once, behind their last event; those of others go on", async (t) => {
  const { store } = await temporaryStore(t);
  const work = await store.work();
  await work.startApiRun({ ...RUN, holder: gone() });
  await work.noteApiRun("run_1", [event(1), event(2)], { status: "running" });
  await work.startApiRun({ ...RUN, id: "run_2", holder: newHolder() });
  assert.deepEqual(await work.failAbandonedApiRuns(), ["run_1"]);
  assert.deepEqual(await work.failAbandonedApiRuns(), []);
  const run = await work.apiRun("run_1");
  assert.deepEqual([run?.status, run?.error], ["failed", "interrupted by a restart"]);
  const [last] = await work.apiRunEvents("run_1", 2);
  assert.deepEqual([last?.id, last?.event.event, last?.event.run_id], [3, "run.failed", "run_1"]);
  assert.equal((await work.apiRun("run_2"))?.status, "queued");
});

test("a run is kept for an hour behind its end, with its events; one that lasts is kept", async (t) => {
  const { store, path } = await temporaryStore(t);
  const work = await store.work();
  for (const id of ["old", "new", "open"]) {
    await work.startApiRun({ ...RUN, id, holder: newHolder() });
    await work.noteApiRun(id, [event(1)], id === "open" ? {} : { status: "failed", error: "x" });
  }
  const db = new DatabaseSync(path);
  db.exec("UPDATE runs SET ended_at = ended_at - 3601 WHERE run_id = 'old'");
  db.exec("UPDATE runs SET ended_at = ended_at - 3500 WHERE run_id = 'new'");
  db.exec("UPDATE runs SET created_at = created_at - 99999 WHERE run_id = 'open'");
  db.close();
  await work.sweep();
  assert.equal(await work.apiRun("old"), null);
  assert.deepEqual(await work.apiRunEvents("old", 0), []);
  assert.ok(await work.apiRun("new"));
  assert.equal((await work.apiRunEvents("open", 0)).length, 1);
});
