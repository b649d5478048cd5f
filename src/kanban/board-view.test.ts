// What a dispatcher sees of a board that others write to as well.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { recordingLog } from "../../test/support/tool-context.ts";
import { systemClock } from "../kit/clock.ts";
import { viewBoard } from "./board-view.ts";
import { assign, cardOf, comment, createCard, forgetEvents } from "./cards.ts";
import { block, claim, complete, reclaim, unblock } from "./moves.ts";
import { plan } from "./plan.ts";
import { endRun, storeWorker } from "./runs.ts";
import { BoardFile } from "./schema.ts";

const limits = {
  ...{ failureLimit: 2, maxInProgress: null, maxPerProfile: null, staleSeconds: 0, claimSeconds: 900 },
  ...{ cooldownSeconds: 300, defaultAssignee: null, maxStarts: null },
};

async function world() {
  const folder = mkdtempSync(join(tmpdir(), "board-view-"));
  const board = await BoardFile.open(join(folder, "kanban.db"), { clock: systemClock, log: recordingLog() });
  const { id } = await board.change((change) => createCard(change, { title: "Paint", assignee: "painter" }));
  const alive = new Set<number>();
  const view = () =>
    viewBoard(
      board.db,
      {
        ...{ host: "here", gone: new Set<number>(), workspaces: join(folder, "workspaces") },
        lives: async ({ pid }) => alive.has(pid),
        exitOf: () => null,
        lastWords: async () => "",
      },
      { now: board.now, profiles: new Set(["painter"]), limits },
    );
  return { board, id, alive, view };
}

test("no second worker starts while one of an attempt long before lives", async () => {
  const { board, id, alive, view } = await world();
  await board.change((change) => {
    const first = claim(change, id, { lock: "here:1:a" });
    storeWorker(change, id, { run: first?.run ?? 0, pid: 71, startTime: 5 });
    reclaim(change, id, "too slow");
    // By hand: no process of ours.
    claim(change, id, { lock: "here:2:b" });
    reclaim(change, id, "not me either");
  });
  alive.add(71);
  assert.deepEqual(plan(await view()), [{ type: "wait", card: id, reason: "worker_ending" }]);
  alive.clear();
  assert.deepEqual(plan(await view()), [{ type: "start", card: id, assignee: "painter", isReview: false }]);
});

test("what holds a card back is lifted by whoever puts it into line by hand, and by nothing else", async () => {
  const { board, id, view } = await world();
  const waits = async () => plan(await view()).flatMap((action) => (action.type === "wait" ? [action.reason] : []));
  await board.change((change) => comment(change, id, { author: "painter", body: "see https://github.com/a/b/pull/7" }));
  assert.deepEqual(await waits(), ["open_pull_request"]);
  await board.change((change) => comment(change, id, { author: "boss", body: "looks good" }));
  assert.deepEqual(await waits(), ["open_pull_request"]);
  await board.change((change) => {
    block(change, id, {});
    unblock(change, id, undefined);
  });
  assert.deepEqual(await waits(), []);
  await board.change((change) => complete(change, id, { summary: "done" }));
  // Another program puts it back without a word.
  board.db.run("UPDATE tasks SET status = 'ready' WHERE id = ?", id);
  board.db.run("UPDATE task_runs SET ended_at = ended_at + 1 WHERE task_id = ?", id);
  assert.deepEqual(await waits(), ["recently_completed"]);
  board.db.run(
    "INSERT INTO task_events (task_id, kind, payload, created_at) VALUES (?, 'status', '{\"status\": \"ready\"}', ?)",
    ...[id, board.now + 1],
  );
  assert.deepEqual(await waits(), []);
});

test("failures count until somebody unblocks the card or gives it to another", async () => {
  const { board, id } = await world();
  const crash = () =>
    board.change((change) => {
      const run = claim(change, id, { lock: "here:1:a" })?.run ?? 0;
      return endRun(change, id, { run, outcome: "crashed", error: "boom", limit: 9 })?.consecutive_failures;
    });
  assert.deepEqual([await crash(), await crash()], [1, 2]);
  await board.change((change) => assign(change, id, "other"));
  assert.equal(await crash(), 1);
  await board.change((change) => {
    block(change, id, {});
    unblock(change, id, undefined);
  });
  assert.equal(cardOf(board.db, id).last_failure_error, null);
  assert.equal(await crash(), 1);
});

test("what happened to a card is forgotten when it is over, and not before", async () => {
  const { board, id } = await world();
  const forget = () => {
    board.db.run("UPDATE task_events SET created_at = 1");
    return board.change((change) => forgetEvents(change, 1));
  };
  assert.equal(await forget(), 0);
  await board.change((change) => complete(change, id, { summary: "done" }));
  assert.equal(await forget(), 2);
});

for (const payload of ["oops", "null", "[1]", "7", null])
  test(`events of another program that say ${payload} hold nothing up`, async () => {
    const { board, id, view } = await world();
    const say = (kind: string, run: number | null = null) =>
      board.db.run(
        "INSERT INTO task_events (task_id, run_id, kind, payload, created_at) VALUES (?, ?, ?, ?, ?)",
        ...[id, run, kind, payload, board.now],
      );
    for (const kind of ["created", "blocked", "unblocked", "promoted_manual", "status", "respawn_guarded"]) say(kind);
    assert.deepEqual(
      plan(await view()).map(({ type }) => type),
      ["start"],
    );
    const run = await board.change((change) => claim(change, id, { lock: "here:1:a" })?.run ?? 0);
    board.db.run("UPDATE task_runs SET worker_pid = 71 WHERE id = ?", run);
    say("spawned", run);
    assert.equal((await view()).cards[0]?.run?.worker.type, "dead");
    await board.change((change) => {
      block(change, id, { reason: "why", kind: "needs_input" });
      unblock(change, id, undefined);
      complete(change, id, { summary: "done" });
    });
  });
