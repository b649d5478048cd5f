// Boards that are worked off: a real gateway or daemon, real workers, a model that follows a script.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import { isAlive } from "../../src/kit/pid.ts";
import { answerTurns, gatewayHome, lastSaid, ModelServer, startGateway, typed, until } from "../support/gateway-rig.ts";
import { startHermes } from "../support/run-hermes.ts";
import type { TempHome } from "../support/temp-home.ts";

const LONG_MS = 120_000;

describe("a board that is worked off", { skip: process.platform === "win32" }, () => {
  let model: ModelServer;
  before(async () => {
    model = await ModelServer.start();
  });
  after(() => model.close());

  const asks = async (home: TempHome, ...words: string[]) => {
    const { code, stdout, stderr } = await typed(home, ["kanban", ...words]);
    assert.equal(code, 0, `${words.join(" ")}: ${stdout}${stderr}`);
    return stdout;
  };
  const shown = async (home: TempHome, id: string) => JSON.parse(await asks(home, "show", id, "--json"));
  const created = async (home: TempHome, ...words: string[]): Promise<string> =>
    JSON.parse(await asks(home, "create", ...words, "--json")).id;
  /** Looked at without a program that starts each time. */
  const rows = (home: TempHome, sql: string) => {
    const db = new DatabaseSync(home.at("kanban.db"), { readOnly: true, timeout: 10_000 });
    try {
      return db.prepare(sql).all();
    } finally {
      db.close();
    }
  };
  const statusOf = (home: TempHome, id: string) => rows(home, `SELECT status FROM tasks WHERE id = '${id}'`)[0]?.status;

  test("a gateway starts a worker in a worktree, is killed, the worker goes on, and the next card starts with the next gateway", async () => {
    await using home = await gatewayHome(model, { env: {}, config: "kanban: {dispatch_interval_seconds: 1}\n" });
    const repository = join(home.osHome, "repository");
    const git = (...args: string[]) => execFileSync("git", args, { cwd: repository, encoding: "utf8" });
    await mkdir(repository);
    git("init", "-q", "-b", "main");
    await writeFile(join(repository, "README.md"), "hello\n");
    git("add", "-A");
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first");
    const held = Promise.withResolvers<void>();
    let isAsked = false;
    answerTurns(model, async (request) => {
      const { messages } = request.body;
      const last = messages.at(-1);
      if (last.role === "user" && messages.filter(({ role }: { role: string }) => role === "assistant").length === 0) {
        isAsked = true;
        return { toolCalls: [{ name: "terminal", arguments: { command: "pwd; echo built > built.txt" } }] };
      }
      if (last.role === "tool" && !lastSaid(request).includes('"task_id"')) {
        await held.promise;
        return { toolCalls: [{ name: "kanban_complete", arguments: { summary: "Built it." } }] };
      }
      return { text: "Done." };
    });
    const first = await created(home, "Build", "it", "--assignee", "default", "--workspace", `worktree:${repository}`);
    const second = await created(home, "Ship it", "--assignee", "default", "--parent", first);
    const own = await created(home, "By hand", "--assignee", "ann", "--lane");
    let gateway = await startGateway(home);
    try {
      assert.match(gateway.lines.join("\n"), /\[Kanban\] 1 board: 2 ready, 0 running/);
      await until("its worker asks the model", () => isAsked, LONG_MS);
      const [run] = rows(home, "SELECT * FROM task_runs");
      const pid = Number(run?.worker_pid);
      assert.ok(isAlive(pid));
      assert.equal(statusOf(home, first), "running");
      const stats = JSON.parse(await asks(home, "stats", "--json"));
      assert.deepEqual(
        stats.waiting.map(({ id, reason }: { id: string; reason: string }) => [id, reason]),
        [[own, "no_profile"]],
      );
      await gateway.kill();
      assert.ok(isAlive(pid), "it goes on without the gateway");
      held.resolve();
      await until("it completes its card", () => statusOf(home, first) === "done", LONG_MS);
      const { task, runs, events } = await shown(home, first);
      assert.deepEqual([runs.length, runs[0].outcome, task.result], [1, "completed", "Built it."]);
      const worktree = join(repository, ".worktrees", first);
      assert.deepEqual([task.workspace_path, task.branch_name], [worktree, `wt/${first}`]);
      assert.equal(
        execFileSync("git", ["-C", worktree, "status", "--porcelain"], { encoding: "utf8" }),
        "?? built.txt\n",
      );
      assert.equal(git("status", "--porcelain"), "");
      assert.deepEqual(
        events.map(({ kind }: { kind: string }) => kind).filter((kind: string) => kind !== "heartbeat"),
        ["created", "claimed", "spawned", "completed"],
      );
      assert.equal(statusOf(home, second), "ready", "nobody starts it");
      gateway = await startGateway(home);
      await until("the next card is done", () => statusOf(home, second) === "done", LONG_MS);
      await until("its scratch folder is gone", () => !existsSync(home.at("kanban", "workspaces", second)), LONG_MS);
    } finally {
      held.resolve();
      await gateway.stop();
    }
    assert.equal(rows(home, "SELECT * FROM task_runs").length, 2, "one attempt each");
    assert.match(await asks(home, "log", first), /work kanban task[\s\S]*Done\./);
  });

  test("a daemon does the same; whoever takes a card away stops its worker; what happens can be followed", async () => {
    await using home = await gatewayHome(model, { env: {}, config: "kanban: {max_in_progress: 1}\n" });
    const held = Promise.withResolvers<void>();
    answerTurns(model, async () => {
      await held.promise;
      return { text: "too late" };
    });
    const first = await created(home, "First", "--assignee", "default", "--priority", "2");
    const second = await created(home, "Second", "--assignee", "default", "--initial-status", "blocked");
    assert.match(await asks(home, "stats"), new RegExp(`${first}: nobody starts workers: run hermes gateway run`));
    const dry = JSON.parse(await asks(home, "dispatch", "--dry-run", "--json"));
    assert.deepEqual(dry.actions, [{ type: "start", card: first, assignee: "default", isReview: false }]);
    assert.equal(statusOf(home, first), "ready", "a dry run changes nothing");
    const start = (...words: string[]) => startHermes(["kanban", ...words], { home });
    const [daemon, watching] = [start("daemon"), start("watch", "--kinds", "claimed", "blocked", "--interval", "1s")];
    let seen = "";
    watching.stdout?.on("data", (text: string) => {
      seen += text;
    });
    try {
      await until("its worker runs", () => statusOf(home, first) === "running", LONG_MS);
      await until("its process is known", () => rows(home, "SELECT * FROM task_runs")[0]?.worker_pid !== null, LONG_MS);
      const pid = Number(rows(home, "SELECT * FROM task_runs")[0]?.worker_pid);
      const refused = await typed(home, ["kanban", "daemon"]);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /another process, most likely the gateway, starts workers.*--force/);
      await asks(home, "unblock", second);
      assert.match(
        await asks(home, "stats"),
        new RegExp(`${second}: as many cards run as kanban\\.max_in_progress allows`),
      );
      assert.match(await asks(home, "block", first, "not", "now"), /is put aside/);
      assert.ok(!isAlive(pid), "it was stopped before the answer came");
      await until("the place is free for the next", () => statusOf(home, second) === "running", LONG_MS);
      await until("somebody saw it", () => seen.includes(`${first}  blocked  reason=not now`), LONG_MS);
      assert.doesNotMatch(seen, /spawned/);
    } finally {
      daemon.kill("SIGTERM");
      watching.kill("SIGINT");
      await Promise.all([daemon.result, watching.result]);
      await asks(home, "reclaim", second);
      held.resolve();
    }
    const { stdout } = await daemon.result;
    assert.match(stdout, new RegExp(`\\[default\\] ${first}: started, by default`));
    const claimed = await asks(home, "claim", second);
    assert.equal(claimed, `✓ ${second} is yours, as run 3\n${home.at("kanban", "workspaces", second)}\n`);
  });
});
