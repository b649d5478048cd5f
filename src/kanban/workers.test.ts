import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openHome } from "../home/open.ts";
import { systemClock } from "../kit/clock.ts";
import { isAlive, processFacts } from "../kit/pid.ts";
import type { Card } from "./schema.ts";
import { Workers, type WorkerTask, workerCommand, workerEnvironment } from "./workers.ts";

const posix = { skip: process.platform === "win32" };
const card = (more: Partial<Card> = {}): Card => ({
  ...{ id: "t_0000aaaa", title: "card", body: null, assignee: "ann", status: "running", priority: 0, created_by: null },
  ...{ created_at: 1, started_at: null, completed_at: null, workspace_kind: "scratch", workspace_path: null },
  ...{ branch_name: null, project_id: null, claim_lock: null, claim_expires: null, tenant: null, result: null },
  ...{ idempotency_key: null, consecutive_failures: 0, worker_pid: null, last_failure_error: null },
  ...{ max_runtime_seconds: null, last_heartbeat_at: null, current_run_id: 3, skills: null, model_override: null },
  ...{ provider_override: null, reasoning_effort: null, max_retries: null, goal_mode: 0, goal_max_turns: null },
  ...{ session_id: null, block_kind: null, block_recurrences: 0 },
  ...more,
});
const task = (more: Partial<Card> = {}, rest: Partial<WorkerTask> = {}): WorkerTask => ({
  ...{ card: card(more), run: 3, lock: "host:1:dispatch-00", profile: "ann", isReview: false },
  place: {
    ...{ slug: "side", folder: "/r/kanban/boards/side", database: "/r/kanban/boards/side/kanban.db" },
    ...{ workspaces: "/r/w", attachments: "/r/a", logs: "/r/l" },
  },
  workspace: { path: "/r/w/t_0000aaaa", branch: null },
  ...rest,
});

test("a worker is this program as the profile of the card, with what the card asks for", () => {
  const words = (more: Partial<Card>, rest: Partial<WorkerTask> = {}) =>
    workerCommand(task(more, rest)).slice(2).join(" ");
  assert.equal(words({}), "-p ann --cli --accept-hooks chat -q work kanban task t_0000aaaa");
  assert.equal(
    words({ skills: '["a","b"]', model_override: "m", provider_override: "p", reasoning_effort: "high", goal_mode: 1 }),
    "-p ann --cli --accept-hooks --skills a --skills b -m m --provider p --reasoning high chat -Q -q work kanban task t_0000aaaa",
  );
  assert.match(words({ provider_override: "p" }, { isReview: true }), /--accept-hooks --skills sdlc-review chat/);
});

test("its environment names card, run and places; nothing of a chat, of another worker or of .env is in it", async (t) => {
  const root = await mkdtemp(join(tmpdir(), "hermes-worker-"));
  t.after(() => rm(root, { recursive: true, force: true }));
  await writeFile(join(root, ".env"), "OPENAI_API_KEY=from-file\n");
  await writeFile(join(root, "config.yaml"), "terminal: {timeout: 100}\n");
  const env = {
    ...{ HERMES_HOME: root, HOME: root, PATH: "/bin", HERMES_KANBAN_TASK: "t_other", HERMES_KANBAN_BRANCH: "b" },
    ...{ HERMES_SESSION_PLATFORM: "telegram", HERMES_SESSION_CHAT_ID: "1", HERMES_TENANT: "old", KEPT: "yes" },
    HERMES_KANBAN_CLAIM_TTL_SECONDS: "60",
  };
  const home = await openHome({ argv: [], env, osHome: root, cwd: root });
  t.after(() => home.close());
  const made = workerEnvironment(home, task());
  const { PATH, HOME, ...rest } = made;
  assert.deepEqual(rest, {
    ...{
      KEPT: "yes",
      HERMES_HOME: join(root, "profiles", "ann"),
      HERMES_PROFILE: "ann",
      HERMES_SESSION_SOURCE: "kanban",
    },
    ...{ HERMES_KANBAN_TASK: "t_0000aaaa", HERMES_KANBAN_RUN_ID: "3", HERMES_KANBAN_CLAIM_LOCK: "host:1:dispatch-00" },
    ...{
      HERMES_KANBAN_BOARD: "side",
      HERMES_KANBAN_DB: "/r/kanban/boards/side/kanban.db",
      TERMINAL_CWD: "/r/w/t_0000aaaa",
    },
    ...{ HERMES_KANBAN_WORKSPACES_ROOT: "/r/w", HERMES_KANBAN_WORKSPACE: "/r/w/t_0000aaaa" },
    HERMES_KANBAN_CLAIM_TTL_SECONDS: "60",
  });
  const limits = { max_runtime_seconds: 90, goal_mode: 1, goal_max_turns: 5, tenant: "acme" };
  const more = workerEnvironment(home, task(limits, { profile: "default", workspace: { path: "/w", branch: "wt/x" } }));
  assert.deepEqual(
    [
      "HERMES_HOME",
      "HERMES_KANBAN_BRANCH",
      "HERMES_KANBAN_GOAL_MODE",
      "HERMES_KANBAN_GOAL_MAX_TURNS",
      "HERMES_TENANT",
    ].map((name) => more[name]),
    [root, "wt/x", "1", "5", "acme"],
  );
  assert.deepEqual([more.TERMINAL_TIMEOUT, more.TERMINAL_MAX_FOREGROUND_TIMEOUT], ["60", "60"]);
});

async function rig(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), "hermes-worker-"));
  t.after(() => rm(root, { recursive: true, force: true }));
  const path = join(root, "logs", "t_0000aaaa.log");
  const ended = Promise.withResolvers<void>();
  const workers = new Workers(systemClock, () => ended.resolve());
  const start = (script: string, limits = { largest: 1000, backups: 1 }) =>
    workers.start(["/bin/sh", "-c", script], { cwd: root, env: { PATH: "/usr/bin:/bin" }, log: { path, ...limits } });
  return { root, path, workers, start, ended: ended.promise };
}

test(
  "a worker begins when it may, in a group of its own, without input, and how it ended is known",
  posix,
  async (t) => {
    const { path, workers, start, ended } = await rig(t);
    const worker = await start("ps -o pgid= -p $$; cat; echo out; echo err >&2; exit 75");
    await new Promise((done) => setTimeout(done, 50));
    assert.equal(await readFile(path, "utf8"), "", "it has not begun");
    assert.ok(await workers.lives(worker, "t_0000aaaa"));
    worker.go();
    await ended;
    assert.deepEqual(workers.exitOf(worker), { code: 75, signal: null });
    assert.deepEqual((await readFile(path, "utf8")).trim().split(/\s+/), [String(worker.pid), "out", "err"]);
    assert.equal(await workers.lives(worker, "t_0000aaaa"), false);
    workers.forget(worker);
    assert.equal(workers.exitOf(worker), null);
  },
);

test("a worker that may not begin ends without having done anything", posix, async (t) => {
  const { path, workers, start, ended } = await rig(t);
  const worker = await start("echo begun");
  worker.cancel();
  await ended;
  assert.equal(await readFile(path, "utf8"), "");
  assert.notEqual(workers.exitOf(worker)?.code, 0);
  await assert.rejects(
    workers.start(["/bin/true"], { cwd: "/does/not/exist", env: {}, log: { path, largest: 1, backups: 1 } }),
    /ENOENT/,
  );
});

test("stopping takes the whole group, and SIGKILL where SIGTERM is ignored", posix, async (t) => {
  const { path, workers, start } = await rig(t);
  const worker = await start("trap '' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 60' & wait; sleep 60");
  worker.go();
  let child = 0;
  while (child === 0) {
    child = Number(await readFile(path, "utf8"));
    await new Promise((done) => setTimeout(done, 20));
  }
  assert.equal(await workers.stop(worker, "t_0000aaaa"), true);
  while ((await processFacts(child)) !== null) await new Promise((done) => setTimeout(done, 20));
  assert.deepEqual(workers.exitOf(worker)?.signal, "SIGKILL");
  assert.equal(await workers.stop(worker, "t_0000aaaa"), true, "it is gone already");
});

test(
  "a process that has the number of a worker, and is none, is neither taken for it nor stopped",
  posix,
  async (t) => {
    const { workers } = await rig(t);
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    t.after(() => child.kill("SIGKILL"));
    const pid = child.pid ?? 0;
    const facts = await processFacts(pid);
    const startTime = facts?.startTime ?? null;
    const later = { pid, startTime: (startTime ?? 0) + 1 };
    assert.equal(await workers.lives({ pid, startTime }, "t_0000aaaa"), startTime !== null);
    if (process.platform === "linux")
      for (const who of [later, { pid, startTime: null }]) {
        assert.equal(await workers.lives(who, "t_0000aaaa"), false);
        assert.equal(await workers.stop(who, "t_0000aaaa"), true);
      }
    assert.ok(isAlive(pid));
    // Without a start time the card in its environment tells.
    const own = spawn("sleep", ["60"], {
      stdio: "ignore",
      env: { PATH: "/usr/bin:/bin", HERMES_KANBAN_TASK: "t_0000aaaa" },
    });
    t.after(() => own.kill("SIGKILL"));
    if (process.platform === "linux") {
      const who = { pid: own.pid ?? 0, startTime: null };
      while ((await readFile(`/proc/${own.pid}/cmdline`, "utf8")).startsWith("sleep") === false)
        await new Promise((done) => setTimeout(done, 5));
      assert.deepEqual([await workers.lives(who, "t_0000aaaa"), await workers.lives(who, "t_0000bbbb")], [true, false]);
    }
  },
);

test("a log that is too large makes room, and so many older ones are kept", posix, async (t) => {
  const { root, path, start } = await rig(t);
  const run = async (text: string, backups: number) => {
    const worker = await start(`printf '%s' '${text}'`, { largest: 5, backups });
    worker.go();
    while (!(await readFile(path, "utf8")).endsWith(text)) await new Promise((done) => setTimeout(done, 10));
  };
  const logs = async () => {
    const names = (await readdir(join(root, "logs"))).sort();
    return Promise.all(names.map((name) => readFile(join(root, "logs", name), "utf8")));
  };
  await run("one", 2);
  await run("two", 2);
  assert.deepEqual(await logs(), ["onetwo"]);
  await run("three!", 2);
  await run("four!!", 2);
  assert.deepEqual(await logs(), ["four!!", "three!", "onetwo"]);
  await run("five!!", 2);
  assert.deepEqual(await logs(), ["five!!", "four!!", "three!"]);
  await run("six", 0);
  assert.deepEqual((await logs())[0], "six");
});
