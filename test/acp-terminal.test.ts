// Commands in terminals of the editor: it starts and shows them, and everything else is as in a shell of ours.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { RequestPermissionRequest } from "@agentclientprotocol/sdk";
import { chosen, type Editor, startEditor } from "./support/editor.ts";
import type { Reply } from "./support/model-server/script.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { isRunning } from "./support/running.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

interface Shown {
  readonly child: ChildProcess;
  output: string;
  readonly ended: Promise<{ readonly exitCode: number | null; readonly signal: string | null }>;
}

let model: ModelServer;
let home: TempHome;
let editor: Editor;
let replies: Reply[] = [];
let refusesTerminals = false;
let answer: (request: RequestPermissionRequest) => string;
const terminals = new Map<string, Shown>();
const calls: string[] = [];

/** What an editor does, without the screen. Its own environment holds a key. */
function terminal(method: string, params: Readonly<Record<string, unknown>>): unknown {
  calls.push(method);
  const shown = terminals.get(String(params.terminalId));
  switch (method) {
    case "terminal/create": {
      if (refusesTerminals) throw new Error("no terminals today");
      const child = spawn(String(params.command), params.args as string[], {
        cwd: String(params.cwd),
        env: { ...process.env, OPENAI_API_KEY: "key of the editor" },
      });
      const exit = once(child, "exit").then(([exitCode, signal]) => ({ exitCode, signal }));
      const one: Shown = { child, output: "", ended: exit };
      child.stdout?.on("data", (bytes: Buffer) => {
        one.output += bytes.toString("utf8").replaceAll("\n", "\r\n");
      });
      const terminalId = `terminal-${terminals.size + 1}`;
      terminals.set(terminalId, one);
      return { terminalId };
    }
    case "terminal/wait_for_exit":
      return shown?.ended.then(async (end) => {
        await sleep(20); // its last output is read
        return end;
      });
    case "terminal/output":
      return { output: shown?.output ?? "", truncated: false };
    case "terminal/kill":
      shown?.child.kill("SIGTERM");
      return {};
    default:
      return {};
  }
}

before(async () => {
  model = await ModelServer.start();
  home = await tempHome({ "config.yaml": `${modelConfig(model)}terminal:\n  sandbox: "off"\n` });
  const capabilities = { terminal: true };
  editor = await startEditor({ home, capabilities, call: terminal, answer: (request) => chosen(answer(request)) });
});
beforeEach(() => {
  replies = [];
  refusesTerminals = false;
  answer = () => "allow_once";
  terminals.clear();
  calls.length = 0;
  editor.told.length = 0;
  editor.asked.length = 0;
  model
    .clear()
    .otherwise((request) => (request.body.tools?.length ? (replies.shift() ?? { text: "done" }) : { text: "A title" }));
});
after(async () => {
  await editor[Symbol.asyncDispose]();
  await model.close();
  await home[Symbol.asyncDispose]();
});

const run = (command: string) => ({ toolCalls: [{ name: "terminal", arguments: { command } }] });
const results = () =>
  model.requests
    .filter(({ body }) => body.tools?.length)
    .at(-1)
    ?.body.messages.filter(({ role }: { role: string }) => role === "tool")
    .map(({ content }: { content: string }) => JSON.parse(content));

test("a command runs in a terminal of the editor, which is part of its call and is released at the end", async () => {
  const id = await editor.begin();
  replies = [run("echo shown; exit 3")];
  await editor.say(id, "go");
  const [{ output, exit_code }] = results();
  assert.deepEqual([output, exit_code], ["shown", 3]);
  assert.doesNotMatch([...terminals.values()][0]?.output ?? "", /HERMES_CWD/);
  const updates = editor.updates("tool_call_update", id);
  assert.deepEqual(updates[0]?.content, [{ type: "terminal", terminalId: "terminal-1" }]);
  assert.deepEqual([updates.at(-1)?.status, updates.at(-1)?.content], ["failed", updates[0]?.content]);
  assert.deepEqual(calls, ["terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"]);
});

test("folder and variables are kept from one to the next, keys of the editor are not seen, and nothing is a terminal", async () => {
  const id = await editor.begin();
  await mkdir(join(home.project, "deep"), { recursive: true });
  replies = [
    run("cd deep; export WORD=heron"),
    run("pwd; echo $WORD $(printenv OPENAI_API_KEY || echo no key); [ -t 1 ] && echo tty; cat"),
    { text: "done" },
  ];
  await editor.say(id, "go");
  assert.equal(results()[1].output, `${join(home.project, "deep")}\nheron no key`);
});

test("our rules are asked first: what is denied opens no terminal", async () => {
  const id = await editor.begin();
  answer = () => "deny";
  replies = [run(`rm -rf ${join(home.project, "gone")}`)];
  await editor.say(id, "go");
  assert.equal(editor.asked.length, 1);
  assert.deepEqual(calls, []);
});

test("an editor that opens none after all changes nothing", async () => {
  const id = await editor.begin();
  refusesTerminals = true;
  replies = [run("echo here")];
  await editor.say(id, "go");
  assert.deepEqual([results()[0].output, results()[0].exit_code], ["here", 0]);
});

test("cancelling ends the command and what it started", async () => {
  const id = await editor.begin();
  const file = join(home.project, "pid");
  replies = [run(`bash -c 'echo $$ > ${file}; exec sleep 300'`)];
  const ended = editor.say(id, "go");
  let pid = 0;
  while (pid === 0) {
    pid = Number(await readFile(file, "utf8").catch(() => ""));
    await sleep(20);
  }
  await editor.agent.notify("session/cancel", { sessionId: id });
  assert.deepEqual(await ended, { stopReason: "cancelled" });
  while (isRunning(pid)) await sleep(20);
});
