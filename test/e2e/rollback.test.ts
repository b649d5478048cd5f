// Checkpoints as a user meets them: taken by turns of the agent, gone back to on the screen, looked at from the command line.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { ScriptedCall, Step } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { talk, warningsOf } from "../support/talk.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const ON = "checkpoints: {enabled: true}\n";
const SEEN = "onboarding:\n  seen:\n    busy_input_prompt: true\n    tool_progress_prompt: true\n";
const write = (path: string, content: string) => ({ name: "write_file", arguments: { path, content } });
const run = (command: string, more: object = {}) => ({ name: "terminal", arguments: { command, ...more } });
const calls = (...toolCalls: ScriptedCall[]): Step => ({
  toolCalls: toolCalls.map((call, at) => ({ id: `c${at}`, ...call })),
});

test("one checkpoint per turn and folder, before the first change; reading and harmless commands make none", async (t) => {
  const chat = await talk(t, {
    config: ON,
    project: { "package.json": "{}\n", "a.txt": "0", "sub/b.txt": "0" },
  });
  chat.server.script(
    calls(write("a.txt", "1"), write("sub/b.txt", "1")),
    calls(write("a.txt", "2"), run("rm -f sub/b.txt", { workdir: "sub" })),
    { text: "done" },
  );
  await chat.say("change things");
  const files = await chat.conversation.rollback();
  assert.equal(files.root, chat.project);
  // The two writes run side by side: either may be the first.
  assert.match((await files.list()).map(({ why }) => why).join("\n"), /^before write_file: (?:a|sub\/b)\.txt$/);
  chat.server.script(calls(run("ls; cat a.txt; echo x >> a.txt"), run("git status || true")), { text: "done" });
  await chat.say("look around");
  assert.equal((await files.list()).length, 1);
  chat.server.script(calls(run("cd sub && mv nothing nowhere; true")), { text: "done" });
  await chat.say("go on");
  assert.equal((await files.list()).length, 2, "a turn that changes something takes another");

  const report = await files.restore(await files.find("2"), {});
  assert.deepEqual(report.restored, ["a.txt", "sub/b.txt"]);
  assert.equal(await readFile(join(chat.project, "sub/b.txt"), "utf8"), "0");
});

test("before a script that may write files there is a checkpoint too", async (t) => {
  const chat = await talk(t, { config: ON, project: { "package.json": "{}\n", "a.txt": "0" } });
  const code = "open('a.txt', 'w').write('1')";
  chat.server.script(calls({ name: "execute_code", arguments: { code } }), { text: "done" });
  await chat.say("change");
  const files = await chat.conversation.rollback();
  await files.restore(await files.find("1"), {});
  assert.equal(await readFile(join(chat.project, "a.txt"), "utf8"), "0");
});

test("checkpoints are off unless wished for", async (t) => {
  const chat = await talk(t, { project: { "a.txt": "0" } });
  chat.server.script(calls(write("a.txt", "1")), { text: "done" });
  await chat.say("change");
  assert.deepEqual(await (await chat.conversation.rollback()).list(), []);
  await chat.begin({ checkpoints: true });
  chat.server.script(calls(write("a.txt", "2")), { text: "done" });
  await chat.say("change");
  assert.equal((await (await chat.conversation.rollback()).list()).length, 1);
});

test("without git the tool runs all the same, and the user is told once", async (t) => {
  const chat = await talk(t, { config: ON, project: { "a.txt": "0" }, env: { PATH: "/nowhere" } });
  chat.server.script(calls(write("a.txt", "1")), { text: "done" }, calls(write("a.txt", "2")), { text: "done" });
  assert.match(warningsOf(await chat.say("one")).join(), /git is not installed/);
  assert.deepEqual(warningsOf(await chat.say("two")), []);
  assert.equal(await readFile(join(chat.project, "a.txt"), "utf8"), "2");
});

test("the user's home and what lies above it are not copied", async (t) => {
  const chat = await talk(t, { config: ON, project: { "a.txt": "0" } });
  chat.server.script(calls(write(join(chat.osHome, "note.txt"), "x")), { text: "done" });
  assert.deepEqual(warningsOf(await chat.say("one")), []);
  const status = await (await chat.conversation.rollback()).list();
  assert.deepEqual(status, []);
});

test("/rollback lists, shows and goes back on the screen; hermes checkpoints keeps house", {
  skip: tmuxMissing(),
}, async () => {
  const server = await ModelServer.start();
  const at = await tempHome({ "config.yaml": modelConfig(server) + SEEN });
  const screen = await TerminalScreen.start(["--checkpoints"], { home: at, rows: 50 });
  try {
    await mkdir(join(at.project, "src"), { recursive: true });
    await writeFile(join(at.project, "src", "a.txt"), "the old text\n");
    await screen.waitFor("fake-model");
    await screen.say("/rollback");
    await screen.waitFor("No checkpoints of ~/project yet");
    server.script(calls(write("src/a.txt", "the new text\n"), write("src/new.txt", "new\n")), { text: "all written" });
    await screen.say("write");
    await screen.waitFor("all written");
    // The answer stands there before the turn is over, and on a busy machine for a while.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await screen.say("/rollback");
    await screen.waitFor(/1 {2}[0-9a-f]{7} {2}just now {4}before write_file/);
    await screen.say("/rollback diff 1");
    await screen.waitFor("-the old text");
    await screen.say("/rollback 7");
    await screen.waitFor("is not a checkpoint");
    await screen.say("/rollback 1 no-such.txt");
    await screen.waitFor("no-such.txt is not in checkpoint");
    await screen.say("/rollback 1");
    const text = await screen.waitFor("To undo this: /rollback");
    assert.match(text, /Restored:\s+src\/a\.txt[\s\S]*Created since then \(kept\):\s+src\/new\.txt/);
    assert.equal(await readFile(join(at.project, "src", "a.txt"), "utf8"), "the old text\n");
    const [, hint = ""] = /To remove them too: (\/rollback.*)/.exec(text) ?? [];
    await screen.say(hint.trim());
    await screen.waitFor(/Removed:\s+src\/new\.txt/);
    assert.equal(
      await readFile(join(at.project, "src", "a.txt"), "utf8"),
      "the old text\n",
      "the hint means the same one",
    );

    const status = await runHermes(["checkpoints"], { home: at });
    assert.match(status.stdout, /Checkpoints: off[\s\S]*MB of at most 500 MB[\s\S]* {3}3 {2}just now {4}~\/project\n$/);
    assert.match(
      (await runHermes(["checkpoints", "prune"], { home: at })).stdout,
      /^Removed 0 checkpoints and 0 folders; /,
    );
    const refused = await runHermes(["checkpoints", "clear"], { home: at });
    assert.deepEqual([refused.code, refused.stdout], [1, ""]);
    assert.match(refused.stderr, /pass -y/);
    assert.equal(
      (await runHermes(["checkpoints", "clear", "--yes"], { home: at })).stdout,
      "Deleted all checkpoints.\n",
    );
    assert.match((await runHermes(["checkpoints", "status"], { home: at })).stdout, /No checkpoints yet/);
    assert.equal((await runHermes(["checkpoints", "nonsense"], { home: at })).code, 2);
  } finally {
    await screen[Symbol.asyncDispose]();
    await server.close();
    await at[Symbol.asyncDispose]();
  }
});
