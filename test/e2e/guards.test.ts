// The guards through the agent's own door: a model judges first in smart mode, and files are where commands run.
import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { AgentEvent } from "../../src/agent/events.ts";
import { missingBubblewrap } from "../support/engines/bubblewrap.ts";
import { withEngine } from "../support/engines/require.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { talk } from "../support/talk.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";

const SMART = "approvals:\n  mode: smart\n  timeout: 1\n  smart_policy: Be kind.\n";
/** Asked about because of its form; what it does is nothing. */
const COMMAND = "bash --norc -c 'echo judged'";
const call = { toolCalls: [{ name: "terminal", arguments: { command: COMMAND } }] };

const results = (events: readonly AgentEvent[]) =>
  events.flatMap((event) => (event.type === "tool_end" ? [JSON.parse(String(event.result))] : []));
const asks = (events: readonly AgentEvent[]) => events.filter((event) => event.type === "ask").length;

test("in smart mode a command runs on the model's word, this once, and nobody is asked", async (t) => {
  const { server, say } = await talk(t, { config: SMART, request: { interactive: true, yolo: false } });
  server.script(call, { text: "APPROVE" }, { text: "done" });
  const events = await say("go");
  const [result] = results(events);
  assert.equal(result.output, "judged");
  assert.match(result.approval, /approving model/);
  assert.equal(asks(events), 0);
  const judged = JSON.stringify(server.requests[1]?.body);
  assert.match(judged, /Be kind\./);
  assert.match(judged, /echo judged/);
});

test("in smart mode a refusal is final, and anything unclear is a question to the user", async (t) => {
  const { server, say } = await talk(t, { config: SMART, request: { interactive: true, yolo: false } });
  server.script(call, { text: "DENY" }, { text: "a pity" });
  const [refused] = results(await say("go"));
  assert.match(refused.error, /approving model refused/);
  server.script(call, { text: "It depends." }, { text: "a pity" });
  const events = await say("again");
  assert.equal(asks(events), 1);
});

test("everything behind hermes safety check is the command, options and all", async () => {
  await using home = await tempHome({ "config.yaml": "" });
  const allowed = [
    [["ls", "-la"], 0, /^allow .*: ls -la\n$/],
    [["mkdir", "-p", "--json", "a b"], 0, /: mkdir -p --json 'a b'\n$/],
    [["--json", "ls", "--help"], 0, /^\{"command":"ls --help"/],
  ] as const;
  const unread = [
    [['echo "x'], 2, /^$/],
    [[""], 2, /^$/],
  ] as const;
  for (const [words, code, told] of [
    ...oneOf(allowed, "a checked command that is allowed"),
    [["git", "push", "--force"], 2, /^ask .*: git push --force\n$/],
    ...oneOf(unread, "a command that cannot be checked"),
  ] as const) {
    const { code: ended, stdout, stderr } = await runHermes(["safety", "check", ...words], { home });
    assert.equal(ended, code, words.join(" "));
    assert.match(stdout, told);
    assert.match(stderr, stdout === "" ? /^hermes: Not checked: / : /^$/);
  }
});

test("the person who reads a refusal is told what happened and how to allow it, not what a model is to do", async () => {
  await using home = await tempHome({ "config.yaml": "" });
  const { stdout } = await runHermes(["-z", `run ${COMMAND}`], { home });
  assert.match(stdout, /^The command was not run: (?!BLOCKED)/);
  assert.match(stdout, /To allow it, you can .*command_allowlist in config\.yaml\.\n$/);
  assert.doesNotMatch(stdout, /Do not try it again|the user/);
});

test("safe roots of the environment hold in a conversation, and a list that names none allows nothing", async (t) => {
  const write = { toolCalls: [{ name: "write_file", arguments: { path: "a.txt", content: "x" } }] };
  const writes = async (roots: string) => {
    const { server, say } = await talk(t, { env: { HERMES_WRITE_SAFE_ROOT: roots }, request: { interactive: true } });
    server.script(write, { text: "done" });
    return results(await say("go"))[0];
  };
  assert.match((await writes("/nowhere/at-all")).error, /outside HERMES_WRITE_SAFE_ROOT \(\/nowhere\/at-all\)/);
  assert.match((await writes(` ${delimiter} `)).error, /outside HERMES_WRITE_SAFE_ROOT/);
  assert.equal((await writes("/")).bytes_written, 1);
  assert.equal((await writes(" ")).bytes_written, 1);
});

test("a lasting yes is written to the settings, keeps their comments, and holds in the next run", async (t) => {
  const chat = await talk(t, { config: "# mine\n", request: { interactive: true, yolo: false } });
  chat.server.script(call, { text: "done" });
  const answered: string[] = [];
  for await (const event of chat.conversation.agent.run({ text: "go" })) {
    if (event.type === "tool_end") answered.push(JSON.parse(String(event.result)).output);
    if (event.type !== "ask" || event.request.question.kind !== "approval") continue;
    assert.equal(event.request.question.command, COMMAND);
    event.request.answer({ choice: "always" });
  }
  assert.deepEqual(answered, ["judged"]);
  const settings = await readFile(join(chat.homeDir, "config.yaml"), "utf8");
  assert.match(settings, /command_allowlist:\n {2}- "shell command via -c\/-lc flag"\n/);
  assert.match(settings, /# mine/);
  chat.server.script(call, { text: "done" });
  const ran = await runHermes(["-z", "go"], { home: { ...chat, dir: chat.homeDir } as unknown as TempHome }); // what it uses of one
  assert.equal(ran.stdout, "done\n", ran.stderr);
  assert.match(chat.server.last.raw, /judged\\?",/);
});

test("what --yolo began, /yolo ends: the next dangerous command is asked about", async (t) => {
  const { server, say, conversation } = await talk(t, { request: { interactive: true, yolo: true } });
  server.script(call, { text: "done" }, call, { text: "done" });
  assert.equal(results(await say("go"))[0].output, "judged");
  conversation.yolo = false;
  assert.equal(conversation.yolo, false);
  const asked: string[] = [];
  for await (const event of conversation.agent.run({ text: "go" })) {
    if (event.type !== "ask" || event.request.question.kind !== "approval") continue;
    asked.push(event.request.question.command);
    event.request.answer({ choice: "deny" });
  }
  assert.deepEqual(asked, [COMMAND]);
});

test("a question of one process is seen and answered from another", async (t) => {
  const chat = await talk(t, { request: { interactive: true, yolo: false }, now: Date.now() });
  const home = { ...chat, dir: chat.homeDir } as unknown as TempHome; // what it uses of one
  const hermes = async (...args: string[]) => runHermes(["approvals", ...args], { home });
  chat.server.script(call, { text: "done" });
  const results: string[] = [];
  for await (const event of chat.conversation.agent.run({ text: "go" })) {
    if (event.type === "tool_end") results.push(JSON.parse(String(event.result)).output);
    if (event.type !== "ask") continue;
    let listed = await hermes("list", "--json");
    while (listed.stdout === "") listed = await hermes("list", "--json");
    const { id, description, command: shown } = JSON.parse(listed.stdout);
    assert.equal(description, "shell command via -c/-lc flag");
    assert.equal(shown, COMMAND);
    assert.match((await hermes()).stdout, /^[0-9a-f]{8} {2}.*\[shell command via -c\/-lc flag\] bash --norc -c/);
    assert.match((await hermes("answer", id, "maybe")).stderr, /"maybe" is not an answer/);
    assert.match((await hermes("answer", "nothing", "once")).stderr, /No pending approval nothing/);
    assert.equal((await hermes("answer", id.slice(0, 8), "once")).code, 0);
  }
  assert.deepEqual(results, ["judged"]);
  assert.equal((await hermes("list")).stdout, "No pending approvals.\n");
});

const LONG = `echo ${"x".repeat(5000)}`;
const policies: readonly [what: string, config: string, flags: string[], command: string, said: RegExp][] = [
  [
    "is refused, with the settings that would allow it",
    "",
    [],
    COMMAND,
    /BLOCKED: shell command .*approvals\.mode.*--yolo.*command_allowlist/,
  ],
  [
    "runs when its category is allowed for good",
    "command_allowlist: [shell command via -c/-lc flag]",
    [],
    COMMAND,
    /^judged$/,
  ],
  ["runs with --yolo", "", ["--yolo"], COMMAND, /^judged$/],
  [
    "is refused with --yolo when the user refuses it for good",
    "approvals: {deny: ['*JUDGED*']}",
    ["--yolo"],
    COMMAND,
    /^BLOCKED: refused by approvals\.deny/,
  ],
  [
    "is not shown to a model that nobody stands behind",
    "approvals: {mode: smart}",
    [],
    COMMAND,
    /^BLOCKED: .*unattended/,
  ],
  [
    "that cannot be read runs in no mode, and is kept",
    "",
    ["--yolo"],
    LONG,
    /^BLOCKED \(hardline\): command parser limit exceeded.*blocked-\w+-[0-9a-f]{8}\.sh/,
  ],
];
describe("unattended, through -z, a command", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  after(() => server.close());
  // Of each end that a command comes to, one policy: it runs, it is refused, it cannot be read.
  const runs = policies.filter(([what]) => what.startsWith("runs"));
  const unreadable = policies.filter(([, , , command]) => command === LONG);
  const refused = policies.filter((policy) => !runs.includes(policy) && !unreadable.includes(policy));
  const drawn = [...oneOf(refused, "why it is refused"), ...oneOf(runs, "why it runs"), ...unreadable];
  for (const [what, config, flags, command, said] of drawn) {
    test(what, async () => {
      await using home = await tempHome({ "config.yaml": `${modelConfig(server)}${config}\n` });
      server.clear();
      server.script({ toolCalls: [{ name: "terminal", arguments: { command } }] }, { text: "done" });
      const { stdout, stderr } = await runHermes(["-z", "go", ...flags], { home });
      assert.deepEqual([stdout, stderr, server.requests.length], ["done\n", "", 2]);
      const { output, error } = JSON.parse(server.last.body.messages.at(-1).content);
      assert.match(error ?? output, said);
      if (command === LONG) assert.equal((await readdir(home.at("cache", "blocked-scripts"))).length, 1);
    });
  }
});

await withEngine("bubblewrap", missingBubblewrap, () => {
  test("hermes -z with backend auto works in a sandbox, scripts too; what it made in the project can be taken back", async (t) => {
    const server = await ModelServer.start();
    t.after(() => server.close());
    const settings = "terminal: {backend: auto}\ncheckpoints: {enabled: true}\n";
    await using home = await tempHome({ "config.yaml": modelConfig(server) + settings });
    await writeFile(join(home.project, "package.json"), "{}\n");
    const line = "echo in > made.txt; echo out > ~/outside.txt; ls -d ~/.hermes/.env";
    server.script(
      { toolCalls: [{ name: "write_file", arguments: { path: "package.json", content: "[1]\n" } }] },
      { toolCalls: [{ name: "terminal", arguments: { command: line } }] },
      { toolCalls: [{ name: "execute_code", arguments: { code: "open('../script.txt', 'w')" } }] },
      { text: "done" },
    );
    await writeFile(home.at(".env"), "A=1\n");
    const { stdout, stderr } = await runHermes(["-z", "go"], { home });
    assert.deepEqual([stdout, stderr], ["done\n", ""]);
    const [command, script] = server.requests.slice(2).map(({ body }) => JSON.parse(body.messages.at(-1).content));
    assert.match(command.output, /outside\.txt: Read-only file system/);
    assert.match(command.output, /\.env.*No such file/);
    assert.match(script.output, /OSError: \[Errno 30\] Read-only file system/);
    assert.deepEqual((await readdir(home.project)).sort(), ["made.txt", "package.json"]);
    assert.deepEqual(await readdir(home.osHome), [".hermes", "project"]);
    const kept = await runHermes(["checkpoints"], { home });
    assert.match(kept.stdout, /1 .*project\n$/, kept.stderr);
  });

  test("in the sandbox, where nobody can be asked, commands and file tools share one sandbox", async (t) => {
    const { server, say, project, osHome } = await talk(t, {
      config: "terminal:\n  sandbox: auto\n",
      request: { yolo: false },
    });
    const write = (path: string) => ({ name: "write_file", arguments: { path, content: "x\n" } });
    server.script(
      {
        toolCalls: [
          { name: "terminal", arguments: { command: "echo inside > /tmp/only-there; echo here > made.txt" } },
        ],
      },
      { toolCalls: [{ name: "read_file", arguments: { path: "/tmp/only-there" } }] },
      { toolCalls: [write("kept.txt")] },
      { toolCalls: [write("~/outside.txt")] },
      { text: "done" },
    );
    const [, seen, kept, outside] = results(await say("go"));
    assert.equal(seen.content, "1|inside");
    assert.equal(kept.bytes_written, 2);
    assert.match(outside.error, /outside sandbox: write .*command_allowlist/);
    assert.equal(await readFile(join(project, "kept.txt"), "utf8"), "x\n");
    await assert.rejects(readFile(join(osHome, "outside.txt")));
  });
});
