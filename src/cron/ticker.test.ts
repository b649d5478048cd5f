// Who says that it runs the schedule, while others do too, after a kill and after an end.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { processOf, worldOf } from "../../test/support/cron-world.ts";
import { memoryStore } from "../../test/support/session-store.ts";
import { tempHome } from "../../test/support/temp-home.ts";
import { homePaths } from "../home/paths.ts";
import { systemClock as clock } from "../kit/clock.ts";
import { processFacts } from "../kit/pid.ts";
import { keepTicking, tickerStatus } from "./ticker.ts";
import { Zone } from "./wall-clock.ts";

async function rig(t: TestContext) {
  const home = await tempHome();
  t.after(() => home[Symbol.asyncDispose]());
  const work = await (await memoryStore(t, clock)).work();
  const { scheduler } = processOf(worldOf([], work, clock), "nowhere:1:x");
  const paths = homePaths(home.dir, home.dir, "default");
  /** One look. */
  const tick = async (seen: () => Promise<unknown>) => {
    const over = new AbortController();
    const ticked = Promise.withResolvers<void>();
    const options = { paths, clock, by: "daemon", scheduler, zone: () => Zone.named("UTC") } as const;
    const ticking = keepTicking(
      {
        ...options,
        everySeconds: () => 1000,
        queueSeconds: () => 1000,
        ticked: () => ticked.resolve(),
        report: (problem) => assert.fail(problem),
      },
      over.signal,
    );
    try {
      await ticked.promise;
      await seen();
    } finally {
      over.abort();
      await ticking;
    }
  };
  return { home, paths, tick };
}

test("who ticks is said while it does, and no longer", async (t) => {
  const { paths, tick, home } = await rig(t);
  assert.deepEqual(await tickerStatus(paths), { running: false, by: null, pid: null, last_tick_at: null });
  await tick(async () => {
    const { last_tick_at: at, ...who } = await tickerStatus(paths);
    assert.deepEqual(who, { running: true, by: "daemon", pid: process.pid });
    assert.ok(Date.parse(at ?? "") > 0);
  });
  assert.equal((await tickerStatus(paths)).running, false);
  assert.ok(Date.parse((await tickerStatus(paths)).last_tick_at ?? "") > 0);
  await home.write("cron/ticker.json", "{ torn");
  assert.equal((await tickerStatus(paths)).running, false);
});

test("of two that tick the first one speaks; what a killed one said is not believed", async (t) => {
  const { paths, tick, home } = await rig(t);
  const other = spawn(process.execPath, ["-e", "process.stdin.resume()"]);
  t.after(() => other.kill("SIGKILL"));
  await once(other, "spawn");
  const { pid = 0 } = other;
  const facts = await processFacts(pid);
  const said = { pid, start_time: facts?.startTime ?? null, by: "gateway", last_tick_at: "2026-11-18T11:59:00+00:00" };
  await home.write("cron/ticker.json", JSON.stringify(said));
  const stored = async () => JSON.parse(await readFile(home.at("cron", "ticker.json"), "utf8"));
  await tick(async () => assert.deepEqual(await stored(), said));
  assert.deepEqual(await stored(), said);
  assert.deepEqual(await tickerStatus(paths), {
    ...{ running: true, by: "gateway", pid, last_tick_at: said.last_tick_at },
  });
  other.kill("SIGKILL");
  await once(other, "exit");
  assert.equal((await tickerStatus(paths)).running, false);
  await tick(async () => assert.equal((await tickerStatus(paths)).pid, process.pid));
});
