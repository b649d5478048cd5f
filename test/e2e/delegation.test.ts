import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { RecordedRequest, Reply } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes, startHermes } from "../support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

type Answering = (request: RecordedRequest) => Reply | Promise<Reply>;

/** Children begin with their goal as the only user message; everything else is the parent. */
const goalOf = (request: RecordedRequest): string => {
  const { messages } = request.body;
  return String(messages.find((message: { role: string }) => message.role === "user")?.content);
};
const systemOf = (request: RecordedRequest): string => String(request.body.messages[0].content);
const newestRole = (request: RecordedRequest): string => request.body.messages.at(-1).role;
const newestText = (request: RecordedRequest): string => String(request.body.messages.at(-1).content);
const toolsOf = (request: RecordedRequest): string[] =>
  request.body.tools.map((tool: { function: { name: string } }) => tool.function.name);

describe("delegate_task", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const home = (more = "") => tempHome({ "config.yaml": modelConfig(server) + more });
  /** The parent delegates and then repeats what it was told; children answer by their goal. */
  function play(call: object, children: Readonly<Record<string, Answering>>): void {
    server.otherwise((request) => {
      const child = children[goalOf(request)];
      if (child) return child(request);
      if (newestRole(request) === "tool") return { text: `PARENT GOT ${newestText(request)}` };
      return { toolCalls: [{ name: "delegate_task", arguments: call as never }] };
    });
  }
  const run = (at: TempHome, args: readonly string[] = []) => runHermes(["-z", "start it", ...args], { home: at });
  const answerOf = (stdout: string) => JSON.parse(stdout.slice("PARENT GOT ".length));

  test("children work side by side and their reports come back in the order of the tasks", async () => {
    await using at = await home();
    const second = Promise.withResolvers<void>();
    play(
      { tasks: [{ goal: "first", context: "the sky is green" }, { goal: "second" }, { goal: "third" }] },
      {
        first: async () => {
          await second.promise;
          return { text: "one" };
        },
        second: () => {
          second.resolve();
          return { text: "two" };
        },
        third: () => ({ text: "three" }),
      },
    );
    const { stdout, stderr, code } = await run(at);
    assert.equal(code, 0, stderr);
    const { results, total_duration_seconds } = answerOf(stdout);
    assert.deepEqual(
      results.map(
        (one: { task_index: number; status: string; summary: string; exit_reason: string; model: string }) => [
          one.task_index,
          one.status,
          one.summary,
          one.exit_reason,
          one.model,
        ],
      ),
      [
        [0, "completed", "one", "completed", "fake-model"],
        [1, "completed", "two", "completed", "fake-model"],
        [2, "completed", "three", "completed", "fake-model"],
      ],
    );
    assert.equal(typeof total_duration_seconds, "number");
    assert.ok(results[0].tokens.input > 0 && results[0].tokens.output > 0);
  });

  test("a child has its own prompt, history, tools and session row, and nothing of the parent's", async () => {
    await using at = await home();
    await at.write("SOUL.md", "I am the parent's soul.\n");
    await at.write("memories/MEMORY.md", "the user likes herons\n");
    await writeFile(join(at.project, "AGENTS.md"), "Rules of the project.\n");
    play({ goal: "look around", context: "only the north side" }, { "look around": () => ({ text: "seen" }) });
    const { code, stderr } = await run(at);
    assert.equal(code, 0, stderr);
    const parent = server.requests[0];
    const child = server.requests.find((request) => goalOf(request) === "look around");
    assert.ok(parent && child);
    assert.match(systemOf(parent), /parent's soul/);
    assert.match(systemOf(parent), /Rules of the project/);
    for (const secret of [/parent's soul/, /Rules of the project/, /herons/, /# Project Context/, /start it/])
      assert.doesNotMatch(child.raw, secret);
    assert.match(systemOf(child), /You are Hermes/);
    assert.match(systemOf(child), /## Task\nlook around\n\n## Context\nonly the north side\n\n## Workspace\n/);
    assert.deepEqual(
      child.body.messages.map((message: { role: string }) => message.role),
      ["system", "user"],
    );
    for (const gone of ["delegate_task", "clarify", "memory", "send_message", "cronjob"])
      assert.ok(!toolsOf(child).includes(gone), gone);
    assert.ok(toolsOf(parent).includes("delegate_task"));
    assert.ok(toolsOf(child).includes("terminal") && toolsOf(child).includes("read_file"));

    const db = new DatabaseSync(at.at("state.db"), { readOnly: true, timeout: 10_000 });
    const rows = db.prepare("SELECT id, source, parent_session_id AS parent, model_config FROM sessions").all();
    const [mother, row] = [rows.find((one) => one.source === "cli"), rows.find((one) => one.source === "subagent")];
    assert.equal(row?.parent, mother?.id);
    assert.equal(JSON.parse(String(row?.model_config))._delegate_from, mother?.id);
    const tasks = db.prepare("SELECT task, session_id FROM model_calls ORDER BY id").all();
    assert.deepEqual(
      tasks.map((one) => [one.task, one.session_id === row?.id]),
      [
        ["main", false],
        ["subagent", true],
        ["main", false],
      ],
    );
    db.close();
    const listed = await runHermes(["sessions", "list"], { home: at });
    assert.ok(!listed.stdout.includes(String(row?.id)));
  });

  test("asked toolsets are cut to what the parent has; unknown ones are named", async () => {
    await using at = await home();
    play({ goal: "read", toolsets: ["file", "web", "nonsense"] }, { read: () => ({ text: "ok" }) });
    const { stdout } = await run(at, ["--toolsets", "file,terminal,delegation"]);
    const child = server.requests.find((request) => goalOf(request) === "read");
    assert.ok(child);
    assert.deepEqual(toolsOf(child).sort(), ["patch", "read_file", "search_files", "write_file"]);
    assert.match(answerOf(stdout).results[0].error, /nonsense/);
  });

  test("a child has fifty model calls by default, and its own setting counts", async () => {
    await using at = await home("delegation:\n  max_iterations: 3\n");
    let calls = 0;
    play(
      { goal: "never done" },
      {
        "never done": (request) => {
          if (request.body.tools === undefined || request.body.tool_choice === "none") return { text: "gave up" };
          calls++;
          return { toolCalls: [{ name: "read_file", arguments: { path: `x${calls}` } }] };
        },
      },
    );
    const { stdout } = await run(at);
    const [report] = answerOf(stdout).results;
    assert.equal(report.exit_reason, "max_iterations");
    assert.equal(report.tool_trace.length, 3);
    assert.deepEqual(Object.keys(report.tool_trace[0]), ["tool", "args_bytes", "result_bytes", "status"]);
    const shown = await runHermes(["config", "get", "delegation.max_iterations"], { home: await tempHome() });
    assert.equal(shown.stdout.trim(), "50");
  });

  test("a child whose model fails is a report, and the others are not touched by it", async () => {
    await using at = await home();
    play(
      { tasks: [{ goal: "bad" }, { goal: "good" }] },
      {
        bad: () => ({ fault: "status", status: 401, body: { error: { message: "no such key" } } }),
        good: () => ({ text: "fine" }),
      },
    );
    const { stdout } = await run(at);
    const { results } = answerOf(stdout);
    assert.equal(results[0].status, "failed");
    assert.match(results[0].error, /key|401/i);
    assert.equal(results[1].summary, "fine");
  });

  test("dangerous commands of a child are refused without a question", async () => {
    await using at = await home();
    await writeFile(join(at.project, "file.txt"), "");
    play(
      { goal: "open it up" },
      {
        "open it up": (request) =>
          newestRole(request) === "tool"
            ? { text: `child heard ${newestText(request)}` }
            : { toolCalls: [{ name: "terminal", arguments: { command: "chmod 666 file.txt" } }] },
      },
    );
    const { stdout } = await run(at);
    assert.match(answerOf(stdout).results[0].summary, /BLOCKED.*subagent_auto_approve/);
  });

  test("settings that cannot be used are named, and nothing else is taken in their place", async () => {
    await using at = await home("delegation:\n  provider: anthropic\n  model: claude-x\n");
    play({ goal: "anything" }, { anything: () => ({ text: "never" }) });
    const { stdout } = await run(at);
    assert.match(answerOf(stdout).error, /delegation\.\*.*anthropic/i);
    assert.ok(!server.requests.some((request) => goalOf(request) === "anything"));
  });

  test("children may have a model of their own", async () => {
    await using at = await home("delegation:\n  model: small-model\n");
    play({ goal: "cheap work" }, { "cheap work": () => ({ text: "done" }) });
    const { stdout } = await run(at);
    assert.equal(answerOf(stdout).results[0].model, "small-model");
    assert.equal(server.requests.find((request) => goalOf(request) === "cheap work")?.body.model, "small-model");
  });

  test("children have stand-ins of their own when their model cannot answer", async () => {
    const spare = `    - provider: custom\n      model: spare-model\n      base_url: ${server.url}\n      api_key: other-key-1234567890\n`;
    await using at = await home(`delegation:\n  model: small-model\n  fallback_providers:\n${spare}`);
    play(
      { goal: "stubborn" },
      {
        stubborn: (request) =>
          request.body.model === "small-model"
            ? { fault: "status", status: 402, body: { error: { message: "insufficient credits" } } }
            : { text: `by ${request.body.model}` },
      },
    );
    const { stdout } = await run(at);
    assert.equal(answerOf(stdout).results[0].summary, "by spare-model");
  });

  test("an orchestrator may delegate as deep as the settings allow, and no deeper", async () => {
    await using at = await home("delegation:\n  max_spawn_depth: 2\n");
    const nested: Answering = (request) =>
      newestRole(request) === "tool"
        ? { text: `middle: ${newestText(request)}` }
        : { toolCalls: [{ name: "delegate_task", arguments: { goal: "inner", role: "orchestrator" } }] };
    play({ goal: "outer", role: "orchestrator" }, { outer: nested, inner: () => ({ text: "deep" }) });
    const { stdout } = await run(at, ["--json"]);
    const { final_response, api_calls, usage } = JSON.parse(stdout);
    assert.match(final_response, /deep/);
    const [outer, inner] = ["outer", "inner"].map((goal) => server.requests.find((one) => goalOf(one) === goal));
    assert.ok(outer && toolsOf(outer).includes("delegate_task"));
    assert.match(systemOf(outer), /## Delegating\n.*at most 3 at once/);
    assert.ok(inner && !toolsOf(inner).includes("delegate_task"));
    assert.equal(api_calls, 2);
    const db = new DatabaseSync(at.at("state.db"), { readOnly: true, timeout: 10_000 });
    const spent = db.prepare("SELECT SUM(output_tokens) AS output, COUNT(*) AS calls FROM model_calls").get();
    db.close();
    assert.equal(spent?.calls, 5);
    assert.equal(usage.output_tokens, spent?.output);
  });

  test("a leaf is not offered the tool at the default depth, even as an orchestrator", async () => {
    await using at = await home();
    play({ goal: "outer", role: "orchestrator" }, { outer: () => ({ text: "alone" }) });
    await run(at);
    const outer = server.requests.find((request) => goalOf(request) === "outer");
    assert.ok(outer && !toolsOf(outer).includes("delegate_task"));
  });

  test("the budget of a session counts its children", async () => {
    await using at = await home("budget:\n  session:\n    tokens: 6000\n");
    play({ goal: "big" }, { big: () => ({ text: "x", usage: { input: 5900, output: 50 } }) });
    server.script({
      toolCalls: [{ name: "delegate_task", arguments: { goal: "big" } }],
      usage: { input: 100, output: 10 },
    });
    const { stderr, code } = await run(at);
    assert.notEqual(code, 0);
    assert.match(stderr, /budget\.session/);
  });

  test("files that a child changed and the parent had read are named", async () => {
    await using at = await home();
    await writeFile(join(at.project, "shared.txt"), "old\n");
    server.otherwise((request) => {
      if (goalOf(request) === "change it")
        return newestRole(request) === "tool"
          ? { text: "changed" }
          : { toolCalls: [{ name: "write_file", arguments: { path: "shared.txt", content: "new\n" } }] };
      const tools = request.body.messages.filter((message: { role: string }) => message.role === "tool").length;
      if (tools === 0) return { toolCalls: [{ name: "read_file", arguments: { path: "shared.txt" } }] };
      if (tools === 1) return { toolCalls: [{ name: "delegate_task", arguments: { goal: "change it" } }] };
      return { text: `PARENT GOT ${newestText(request)}` };
    });
    const { stdout } = await run(at);
    assert.match(answerOf(stdout).note, /shared\.txt/);
    assert.equal(await readFile(join(at.project, "shared.txt"), "utf8"), "new\n");
  });

  test("an interrupt reaches the child's request and the processes it started", async () => {
    await using at = await home();
    play(
      { tasks: [{ goal: "hang" }, { goal: "sleep" }] },
      {
        hang: () => ({ fault: "stall", after: 1, answer: { text: "never said" } }),
        sleep: () => ({
          toolCalls: [{ name: "terminal", arguments: { command: "echo $$ > pid.txt; exec sleep 600" } }],
        }),
      },
    );
    const child = startHermes(["chat", "-q", "start it"], { home: at });
    const pid = await until(
      async () => Number(await readFile(join(at.project, "pid.txt"), "utf8").catch(() => "")) || null,
    );
    child.kill("SIGINT");
    const { code } = await child.result;
    assert.equal(code, 130);
    await until(async () => (isAlive(pid) ? null : true));
    await server.requests.find((request) => goalOf(request) === "hang")?.clientLeft;
    const db = new DatabaseSync(at.at("state.db"), { readOnly: true, timeout: 10_000 });
    const open = db.prepare("SELECT COUNT(*) AS n FROM sessions WHERE ended_at IS NULL").get();
    const aborted = db.prepare("SELECT COUNT(*) AS n FROM model_calls WHERE outcome = 'aborted'").get();
    db.close();
    assert.equal(open?.n, 0, "every session is ended");
    assert.equal(aborted?.n, 1, "the hanging request was given up");
  });

  test("-q shows what children do", async () => {
    await using at = await home();
    play(
      { tasks: [{ goal: "count the files" }, { goal: "name the colours" }] },
      {
        "count the files": (request) =>
          newestRole(request) === "tool"
            ? { text: "two files" }
            : { toolCalls: [{ name: "terminal", arguments: { command: "ls" } }] },
        "name the colours": () => ({ text: "red" }),
      },
    );
    const { stderr } = await runHermes(["chat", "-q", "start it"], { home: at });
    assert.match(stderr, /┊ 🔀 \[1\/2\] count the files/);
    assert.match(stderr, /┊ 🔀 \[2\/2\] name the colours/);
    assert.match(stderr, /┊ ✓ {2}\[1\/2\] count the files +\d+\.\ds/);
    assert.match(stderr, /┊ 🔀 delegate +2 parallel tasks/);
  });
});

describe("agents beside the conversation, on the screen", { skip: tmuxMissing() }, () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());
  const home = () =>
    tempHome({
      "config.yaml": `${modelConfig(server)}onboarding:\n  seen:\n    busy_input_prompt: true\n    tool_progress_prompt: true\n`,
    });
  const isTitle = (request: RecordedRequest) => /You name conversations/.test(systemOf(request));
  const open = async (at: TempHome) => {
    const screen = await TerminalScreen.start([], { home: at });
    await screen.waitFor("fake-model");
    return screen;
  };

  test("children are shown at work; a message meanwhile waits for the end of the turn", async () => {
    await using at = await home();
    const slow = Promise.withResolvers<void>();
    server.otherwise(async (request) => {
      if (isTitle(request)) return { text: "Files and colours" };
      if (goalOf(request) === "count the files") {
        await slow.promise;
        return { text: "two" };
      }
      if (goalOf(request) === "name the colours") return { text: "red" };
      if (newestText(request) === "and then?") return { text: "That was all." };
      if (newestRole(request) === "tool") return { text: "Both are done." };
      return {
        toolCalls: [
          { name: "delegate_task", arguments: { tasks: [{ goal: "count the files" }, { goal: "name the colours" }] } },
        ],
      };
    });
    await using screen = await open(at);
    await screen.say("start it");
    await screen.waitFor("✓  [2/2] name the colours");
    await screen.say("and then?");
    await screen.waitFor("Sub-agents are running");
    slow.resolve();
    const text = await screen.waitFor("That was all.");
    assert.match(text, /┊ 🔀 \[1\/2\] count the files/);
    assert.match(text, /┊ ✓ {2}\[1\/2\] count the files +\d+\.\ds/);
    assert.match(text, /Both are done\.[\s\S]*❯ and then\?/);
    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
    const listed = await runHermes(["sessions", "list"], { home: at });
    assert.match(listed.stdout, /Files and colours/);
  });

  test("a prompt in the background answers in a panel; what still runs ends with the program", async () => {
    await using at = await home();
    server.otherwise(async (request) => {
      if (isTitle(request)) return { text: "A title" };
      if (goalOf(request) === "look it up") return { text: "It is **heron**." };
      if (goalOf(request) === "take your time")
        return { toolCalls: [{ name: "terminal", arguments: { command: "echo $$ > pid.txt; exec sleep 600" } }] };
      return { text: "Hello." };
    });
    await using screen = await open(at);
    await screen.say("/background look it up");
    const text = await screen.waitFor("It is heron.");
    assert.match(text, /▶ bg_\d{6}_[0-9a-f]{6} started: look it up/);
    assert.match(text, /─ ▶ bg_\d{6}_[0-9a-f]{6} · look it up · \d+\.\ds ─/);
    await screen.say("/bg take your time");
    const pid = await until(
      async () => Number(await readFile(join(at.project, "pid.txt"), "utf8").catch(() => "")) || null,
    );
    await screen.say("hello");
    await screen.waitFor("Hello.");
    await screen.say("/agents");
    await screen.waitFor(/Running work[\s\S]*take your time/);
    await screen.press("Escape");
    await screen.waitFor(/^❯ *\n─/m, { history: false });
    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
    await until(async () => (isAlive(pid) ? null : true));
    const hello = server.requests.find((request) => goalOf(request) === "hello");
    assert.doesNotMatch(hello?.raw ?? "", /look it up|heron/, "the conversation knows nothing of it");
    const db = new DatabaseSync(at.at("state.db"), { readOnly: true, timeout: 10_000 });
    const open_ = db.prepare("SELECT COUNT(*) AS n FROM sessions WHERE ended_at IS NULL").get();
    db.close();
    assert.equal(open_?.n, 0);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // gone
  }
}

async function until<T>(look: () => Promise<T | null>): Promise<T> {
  for (let tries = 0; tries < 2400; tries++) {
    const found = await look();
    if (found !== null) return found;
    await pause(25);
  }
  throw new Error("it never happened");
}
