import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { PruneFilter } from "./store.ts";

const DAY = 86_400_000;

test("only ended sessions that fit every filter are pruned", async (t) => {
  const { store, clock } = await temporaryStore(t);
  const now = clock.ms;
  const make = async (
    id: string,
    daysOld: number,
    options: { source?: string; open?: boolean; title?: string } = {},
  ) => {
    await store.create({
      id,
      source: options.source ?? "cli",
      startedAt: (now - daysOld * DAY) / 1000,
      model: "gpt-x",
      cwd: "/w",
    });
    if (options.title) await store.setTitle(id, options.title);
    if (!options.open) await store.end(id, "cli_close");
  };
  await make("old", 100);
  await make("old-open", 100, { open: true });
  await make("old-cron", 100, { source: "cron", title: "nightly_run" });
  await make("pinned", 100);
  await store.update("pinned", { pinned: true });
  await make("young", 10);
  const dry = (filter: PruneFilter) => store.prune(filter, { dryRun: true });
  assert.deepEqual([...(await dry({ olderThanDays: 90 }))].sort(), ["old", "old-cron"]);
  assert.deepEqual(await dry({ newerThanDays: 30 }), ["young"]);
  assert.deepEqual(await dry({ olderThanDays: 90, source: "cron" }), ["old-cron"]);
  assert.deepEqual(await dry({ title: "nightly_" }), ["old-cron"]);
  assert.deepEqual(await dry({ title: "nightly%" }), []);
  assert.deepEqual(await dry({ endReason: "branched" }), []);
  assert.equal((await dry({ model: "gpt", cwd: "/w", maxMessages: 0 })).length, 3);
  assert.deepEqual(await store.prune({ source: "cron" }, { archiveOnly: true }), ["old-cron"]);
  assert.equal((await store.get("old-cron"))?.archived, true);
  assert.deepEqual([...(await store.prune({ olderThanDays: 90 }, { vacuum: true }))].sort(), ["old", "old-cron"]);
  assert.equal(await store.get("old"), null);
  assert.ok(await store.get("pinned"));
});

test("automatic pruning runs once per interval and takes empty left-overs along", async (t) => {
  const { store, clock } = await temporaryStore(t);
  const ago = (days: number) => (clock.ms - days * DAY) / 1000;
  await store.create({ id: "ghost", startedAt: ago(2) });
  await store.end("ghost", "cli_close");
  await store.create({ id: "old", startedAt: ago(100) });
  await store.append("old", [{ role: "user", content: "x" }]);
  await store.end("old", "cli_close");
  const options = { retentionDays: 90, minIntervalHours: 24, vacuum: false };
  assert.deepEqual([...((await store.autoPrune(options)) ?? [])].sort(), ["ghost", "old"]);
  assert.equal(await store.autoPrune(options), null);
  clock.ms += DAY;
  assert.deepEqual(await store.autoPrune(options), []);
});
