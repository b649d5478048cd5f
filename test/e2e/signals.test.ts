// The program is asked to stop while a turn runs and nobody watches a screen.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ModelServer } from "../support/model-server/server.ts";
import { startHermes } from "../support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";

describe("a signal", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const codes = [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const;
  for (const [signal, code] of codes) {
    test(`${signal} in a stream ends with ${code} and leaves stdout empty`, async () => {
      await using home = await tempHome({ "config.yaml": modelConfig(server) });
      server.script({ fault: "stall", after: 4, answer: { text: "a long answer that never ends" } });
      const child = startHermes(["-z", "tell me everything"], { home });
      await waitFor(() => server.requests.length === 1);
      child.kill(signal);
      const result = await child.result;
      assert.equal(result.code, code, result.stderr);
      assert.equal(result.stdout, "");
      assert.match(result.stderr, /interrupted/);
    });
  }

  test("a reader who leaves ends the turn as a signal does: every call is booked, the history is closed", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const child = startHermes(["chat", "-q", "look around"], { home });
    server.script(
      () => {
        child.stderr?.destroy();
        child.stdout?.destroy();
        return { toolCalls: [{ name: "terminal", arguments: { command: "echo seen" } }] };
      },
      { fault: "stall", after: 3, answer: { text: "an answer that nobody waits for" } },
    );
    const { code } = await child.result;
    assert.equal(code, 141);
    const db = new DatabaseSync(home.at("state.db"), { readOnly: true, timeout: 10_000 });
    assert.equal(db.prepare("SELECT count(*) AS n FROM model_calls").get()?.n, server.requests.length);
    const roles = db.prepare("SELECT role FROM messages ORDER BY id").all();
    assert.deepEqual(
      roles.map((row) => row.role),
      ["user", "assistant", "tool", "assistant"],
    );
    db.close();
  });

  /** A command that does not listen to SIGTERM; resolves to the pid of its shell. */
  async function stubborn(home: TempHome): Promise<number> {
    let pid = 0;
    await waitFor(async () => {
      pid = Number(await readFile(join(home.project, "pid"), "utf8").catch(() => ""));
      return pid > 0;
    });
    return pid;
  }
  const command = "trap '' TERM; echo $$ > pid; while :; do sleep 0.2; done";

  test("that arrives twice in one moment counts once: the turn ends properly", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.script({ toolCalls: [{ name: "terminal", arguments: { command } }] });
    const child = startHermes(["chat", "-q", "wait"], { home });
    const pid = await stubborn(home);
    child.kill("SIGINT");
    child.kill("SIGHUP"); // another name, because two of the same may arrive as one
    const result = await child.result;
    assert.match(result.stderr, /resumes this conversation/);
    assert.ok(result.code === 130 || result.code === 129, String(result.code));
    await waitFor(() => !isAlive(pid));
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // no such process
  }
}

async function waitFor(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 2400; i++) {
    if (await condition()) return;
    await sleep(25);
  }
  throw new Error("waited a minute for nothing");
}
