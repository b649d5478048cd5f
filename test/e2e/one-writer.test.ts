// Two processes on one conversation, as a user may have them open in two windows.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { exists } from "../../src/kit/files.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes, startHermes } from "../support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

describe("two processes on one conversation", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const query = (home: TempHome, sql: string) => {
    const db = new DatabaseSync(home.at("state.db"), { timeout: 5000 });
    try {
      return db.prepare(sql).all();
    } finally {
      db.close();
    }
  };
  const rows = (home: TempHome) =>
    query(home, "SELECT role, content FROM messages ORDER BY id").map(({ role, content }) => `${role}: ${content}`);

  /** A conversation with one exchange, and a process that runs a command in it until `go` is there. */
  async function atWork(home: TempHome) {
    server.script({ text: "hello" });
    const first = await runHermes(["-z", "first"], { home });
    assert.equal(first.code, 0, first.stderr);
    const [session] = query(home, "SELECT id FROM sessions");
    const id = String(session?.id);
    const command = "touch started; while [ ! -e go ]; do sleep 0.05; done";
    server.script({ toolCalls: [{ name: "terminal", arguments: { command } }] });
    const child = startHermes(["--resume", id, "-z", "second"], { home });
    while (!(await exists(join(home.project, "started")))) await sleep(20);
    return { id, child, go: () => writeFile(join(home.project, "go"), "") };
  }

  test("one that slept past its lease writes nothing after another went on", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const { id, child, go } = await atWork(home);
    child.kill("SIGSTOP");
    try {
      query(home, "UPDATE lanes SET expires = 0");
      server.script({ text: "the other's answer" });
      const other = await runHermes(["--resume", id, "-z", "third"], { home });
      assert.equal(other.stdout, "the other's answer\n", other.stderr);
      await go();
    } finally {
      child.kill("SIGCONT");
    }
    const stored = rows(home);
    const asked = server.requests.length;
    const { code, stdout, stderr } = await child.result;
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /^hermes: .*nothing more was saved/m);
    assert.deepEqual(rows(home), stored);
    assert.equal(server.requests.length, asked, "no model is asked for what cannot be kept");
    assert.deepEqual(stored.at(-1), "assistant: the other's answer");
  });

  test("one waits for the other and answers with what that said before it", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const { id, child, go } = await atWork(home);
    server.script({ text: "the second answer" }, { text: "the third answer" });
    const other = startHermes(["--resume", id, "-z", "third"], { home });
    const started = query(home, "SELECT count(*) AS n FROM messages")[0]?.n;
    await sleep(1500);
    assert.equal(
      query(home, "SELECT count(*) AS n FROM messages")[0]?.n,
      started,
      "nothing is written beside the other",
    );
    await go();
    assert.equal((await child.result).stdout, "the second answer\n");
    const late = await other.result;
    assert.equal(late.stdout, "the third answer\n", late.stderr);
    assert.deepEqual(rows(home).slice(-3), [
      "assistant: the second answer",
      "user: third",
      "assistant: the third answer",
    ]);
    assert.match(JSON.stringify(server.last.body), /the second answer/);
  });

  test("a sub-agent writes nothing either once the conversation it works for was taken over", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const command = "touch started; while [ ! -e go ]; do sleep 0.05; done";
    server.script(
      { toolCalls: [{ name: "delegate_task", arguments: { goal: "wait for it" } }] },
      { toolCalls: [{ name: "terminal", arguments: { command } }] },
    );
    const child = startHermes(["-z", "first"], { home });
    while (!(await exists(join(home.project, "started")))) await sleep(20);
    const stored = rows(home);
    query(home, "UPDATE lanes SET holder = 'elsewhere:1:x', token = token + 1");
    await writeFile(join(home.project, "go"), "");
    const { code, stderr } = await child.result;
    assert.equal(code, 1, stderr);
    assert.deepEqual(rows(home), stored);
    assert.equal(server.requests.length, 2, "no model is asked for what cannot be kept");
  });

  test("the screen shows what it has not sent yet, and gives it back on Ctrl+C", { skip: tmuxMissing() }, async () => {
    const seen = "onboarding:\n  seen:\n    busy_input_prompt: true\n";
    await using home = await tempHome({ "config.yaml": modelConfig(server) + seen });
    const { id, child, go } = await atWork(home);
    await using screen = await TerminalScreen.start(["--resume", id], { home });
    await screen.waitFor("fake-model");
    await screen.say("/undo");
    await screen.waitFor("Nothing was changed");
    await screen.say("wait for me");
    await screen.waitFor(`process ${child.pid} is using this conversation; waiting`);
    await screen.waitFor("▶ next: wait for me");
    await screen.say("and me");
    await screen.waitFor("▶ next: wait for me and me");
    await screen.press("C-c");
    await screen.waitFor("⏹ stopped: nothing was sent");
    await screen.waitFor(/❯ wait for me\n +and me/);
    server.script({ text: "the second answer" }, { text: "the third answer" });
    await go();
    await child.result;
    await screen.press("Enter");
    await screen.waitFor("the third answer");
    assert.deepEqual(rows(home).slice(-2), ["user: wait for me\nand me", "assistant: the third answer"]);
  });

  test("the screen says that another process took its conversation", { skip: tmuxMissing() }, async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const command = "touch started; while [ ! -e go ]; do sleep 0.05; done";
    server.script({ toolCalls: [{ name: "terminal", arguments: { command } }] });
    await using screen = await TerminalScreen.start([], { home });
    await screen.waitFor("fake-model");
    await screen.say("begin");
    while (!(await exists(join(home.project, "started")))) await sleep(20);
    query(home, "UPDATE lanes SET holder = 'elsewhere\u001b[31m:1:x', token = token + 1");
    await writeFile(join(home.project, "go"), "");
    await screen.waitFor("is in use by process 1 on elsewhere now");
  });

  test("one that was killed holds nobody up", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const { id, child, go } = await atWork(home);
    child.kill("SIGKILL");
    await child.result;
    await go();
    server.script({ text: "at once" });
    const { stdout, stderr } = await runHermes(["--resume", id, "-z", "third"], { home });
    assert.equal(stdout, "at once\n", stderr);
  });
});
