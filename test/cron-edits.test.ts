// The real cron/jobs.json, changed from the command line and by the agent's tool while a scheduler takes slots from it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { JobFile } from "../src/cron/jobs.ts";
import { define } from "../src/doors/gateway/cron-cli.ts";
import { homePaths } from "../src/home/paths.ts";
import { systemClock } from "../src/kit/clock.ts";
import { registry, type ToolSpec } from "../src/tools/toolset/registry.ts";
import "../src/tools/cronjob.ts";
import { processOf, random, worldOf } from "./support/cron-world.ts";
import { gatewayUser } from "./support/gateway-command.ts";
import { toolContext } from "./support/tool-context.ts";

test("edits from the command line and by the tool, while jobs are taken: all kept, each slot run once or explained", async (t) => {
  const { home, typed, store: open } = await gatewayUser(t, { "config.yaml": "timezone: UTC\n" });
  const sessions = await open();
  t.after(() => sessions.close());
  const work = await sessions.work();
  const paths = homePaths(home.dir, home.dir, "default");
  const file = new JobFile({ paths, clock: systemClock, report: (problem) => assert.fail(problem) });
  const schedule = { startQueued: async () => assert.fail("nothing was to be run by hand") };
  const ctx = toolContext({ home: paths, sessions, schedule, clock: systemClock });
  const tool = async (args: Record<string, unknown>) => {
    const entry = registry.get("cronjob");
    assert.ok(entry);
    const answer = JSON.parse(String(await (entry.spec as ToolSpec).handler(args, ctx))); // one of ours
    assert.equal(answer.success, true, JSON.stringify(answer));
    return answer;
  };
  const cli = async (...args: string[]) => {
    const { code, out, err } = await typed(define, { args: [...args, "--json"] });
    assert.equal(code, 0, `${args.join(" ")}: ${out}${err}`);
    return JSON.parse(out);
  };
  const world = worldOf([], work, systemClock);
  const { scheduler } = processOf(world, "nowhere:1:x", { file });
  for (let at = 0; at < 6; at++)
    await tool({ action: "create", schedule: "every 10h", prompt: "x", name: `job ${at}` });

  const pick = random(7);
  const start = Math.floor(Date.now() / 1000) * 1000 - 55_000;
  const due: { readonly id: string; readonly slot: string }[] = [];
  const gone = new Set<string>();
  for (let round = 0; round < 12; round++) {
    const at = new Date(start + round * 1000).toISOString();
    await file.change((jobs) => {
      for (const [index, job] of jobs.entries()) {
        if (!job.enabled) continue;
        jobs[index] = { ...job, next_run_at: at };
        due.push({ id: job.id, slot: `${at.slice(0, 19)}Z` });
      }
    });
    const [one, two, three] = (await file.read()).toSorted(() => pick(3) - 1);
    assert.ok(one && two && three);
    const edits = [
      one.enabled ? cli("pause", one.id) : cli("resume", one.id),
      tool({ action: "update", job_id: two.id, schedule: `every ${10 + pick(5)}h`, name: `named ${round}` }),
      ...(round % 4 === 3
        ? [cli("remove", three.id).then(() => gone.add(three.id))]
        : [cli("edit", three.id, "--prompt", "y")]),
      ...(round % 4 === 1
        ? [tool({ action: "create", schedule: "every 10h", prompt: "x", name: `more ${round}` })]
        : []),
    ];
    if (round % 2 === 1) await Promise.all(edits); // some are there before the look
    await Promise.all([scheduler.tick(), ...edits]);
    await scheduler.settled();
    const { jobs } = JSON.parse(await readFile(home.at("cron", "jobs.json"), "utf8"));
    assert.equal(jobs.length, 6 + Math.floor((round + 3) / 4) - gone.size);
    assert.equal(jobs.find(({ id }: { id: string }) => id === two.id)?.name, `named ${round}`);
  }
  for (const { id, enabled } of await file.read()) if (!enabled) await tool({ action: "resume", job_id: id });
  const rows = await work.jobRuns({ limit: 1000 });
  const kept = due.filter(({ id }) => !gone.has(id));
  for (const { id, slot } of kept) {
    const own = rows.filter((row) => row.jobId === id && row.slot === slot);
    assert.deepEqual(
      own.map(({ state, reason }) => [state, reason ?? ""]),
      [[world.ran.get(`${id} ${slot}`) === 1 ? "completed" : "skipped", own[0]?.reason ?? ""]],
      `${id} ${slot}`,
    );
    if (own[0]?.state === "skipped") assert.match(own[0].reason ?? "", /^(?:paused|missed)$/);
  }
  assert.ok(kept.length > 20);
  for (const reason of ["paused", "missed"])
    assert.ok(
      rows.some((row) => row.reason === reason),
      reason,
    );
});
