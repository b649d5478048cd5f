// What every store owes to runs of scheduled jobs. Each implementation runs this suite.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newHolder } from "../../src/sessions/lanes.ts";
import type { OutboxPart, WorkStore } from "../../src/sessions/work.ts";
import type { WorkSubject } from "./work-conformance.ts";

/** Holders of other machines: nobody here can see whether they live. */
const [ANN, BOB] = ["north:1:a", "south:2:b"] as const;

const part = (cause: string): OutboxPart => ({
  ...{ cause, part: 0, platform: "p", account: "bot", target: { chat: "1" }, payload: { text: cause } },
});

export function jobRunConformance(kind: string, open: (t: TestContext) => Promise<WorkSubject>): void {
  const check = (name: string, run: (subject: WorkSubject & { work: WorkStore }) => Promise<void>) =>
    test(`${kind}: ${name}`, async (t) => {
      const subject = await open(t);
      await subject.store.ensure({ id: "s" });
      await run({ ...subject, work: await subject.store.work() });
    });

  check(
    "a slot of a job is claimed once, and its end and what is sent of it are one step",
    async ({ work, another }) => {
      const other = await (await another()).work();
      const run = { jobId: "j", slot: "2026-01-01T09:00:00Z", state: "claimed" } as const;
      const ids = await Promise.all([
        work.claimSlot({ ...run, holder: ANN }),
        other.claimSlot({ ...run, holder: BOB }),
      ]);
      const [id = 0, ...more] = ids.filter((one) => one !== null);
      assert.equal(more.length, 0);
      const holder = ids[0] === null ? BOB : ANN;
      assert.equal(await work.beginRun(id, { holder: "elsewhere:1:z", sessionId: "s" }), false);
      assert.equal(await work.beginRun(id, { holder, sessionId: "s" }), true);
      assert.equal(await other.endRun(id, { state: "completed" }, [part("cron:j:1:0")]), true);
      assert.equal(await work.endRun(id, { state: "failed" }, [part("cron:j:1:1")]), false);
      assert.deepEqual(
        (await work.due("p", "bot")).map(({ cause }) => cause),
        ["cron:j:1:0"],
      );
      assert.deepEqual(
        (await work.jobRuns({ jobId: "j" })).map(({ state, sessionId }) => [state, sessionId]),
        [["completed", "s"]],
      );
    },
  );

  check(
    "a run that was asked for goes to one taker; one whose process is gone is unknown, once",
    async ({ work, another }) => {
      const other = await (await another()).work();
      await work.claimSlot({ jobId: "j", slot: "manual:1", state: "queued" });
      const taken = await Promise.all([work.takeQueuedRuns(ANN), other.takeQueuedRuns(BOB)]);
      assert.equal(taken.flat().length, 1);
      assert.deepEqual(await work.abandonedRuns(), [], "nobody can see whether holders of other machines live");
      await work.claimSlot({
        jobId: "j",
        slot: "2",
        state: "claimed",
        holder: `${newHolder().split(":")[0]}:4194300:x`,
      });
      const lost = [...(await work.abandonedRuns()), ...(await other.abandonedRuns())];
      assert.deepEqual(
        lost.map(({ slot, state }) => [slot, state]),
        [["2", "unknown"]],
      );
      assert.equal(await work.claimSlot({ jobId: "j", slot: "2", state: "claimed", holder: ANN }), null);
    },
  );
}
