import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { dispatch } from "../../test/support/dispatch.ts";
import { shellContext } from "../../test/support/shell-context.ts";
import { configSchema } from "../home/config/schema.ts";
import { systemClock } from "../kit/clock.ts";
import { isAlive } from "../kit/pid.ts";
import type { BackgroundChild } from "../sandbox/environment.ts";
import { startTimeOf } from "../sandbox/processes.ts";
import type { ToolContext } from "./toolset/context.ts";

import "./process.ts";
import { processTable } from "./terminal/processes.ts";
import { registry } from "./toolset/registry.ts";
import { createToolState } from "./toolset/session-tools.ts";
import "./terminal.ts";

async function open(t: TestContext, given: Partial<ToolContext> = {}) {
  const shell = await shellContext(t, given);
  const call = async (tool: string, args: Record<string, unknown>, ctx = shell.ctx) =>
    JSON.parse((await dispatch(registry, tool, args, ctx)) as string);
  const start = async (command: string, extra: object = {}): Promise<string> =>
    (await call("terminal", { command, background: true, ...extra })).session_id;
  const act = (action: string, session_id?: string, extra: object = {}) =>
    call("process", { action, session_id, ...extra });
  return { ...shell, call, start, act };
}

/** Messages as they come, and a promise for the n-th. */
function inbox() {
  const messages: string[] = [];
  let wake: () => void = () => undefined;
  return {
    messages,
    notify(text: string) {
      messages.push(text);
      wake();
    },
    async count(n: number): Promise<string[]> {
      while (messages.length < n) await new Promise<void>((resolve) => (wake = resolve));
      return messages;
    },
  };
}

test("a process is listed, polled, waited for and read", async (t) => {
  const { start, act } = await open(t);
  const id = await start("echo one; echo two; read -r x; echo three; exit 4");
  const running = await act("poll", id);
  assert.deepEqual([running.session_id, running.status, "exit_code" in running], [id, "running", false]);
  await act("submit", id, { data: "go" });
  assert.deepEqual(await act("wait", id), {
    status: "exited",
    exit_code: 4,
    session_id: id,
    output: "one\ntwo\nthree",
  });
  const done = await act("poll", id);
  assert.deepEqual([done.status, done.exit_code, done.output_preview], ["exited", 4, "one\ntwo\nthree"]);
  const { processes } = await act("list");
  assert.deepEqual(
    processes.map((line: { session_id: string; status: string }) => [line.session_id, line.status]),
    [[id, "exited"]],
  );
});

test("neither the buffer's end nor a message leaves half a secret", async (t) => {
  const box = inbox();
  const redact = (text: string) => text.replaceAll("hunter2-secret", "***");
  const { start, act } = await open(t, { notify: box.notify, redact });
  const id = await start("head -c 30000 /dev/zero | tr '\\0' a; for i in $(seq 25000); do printf hunter2-secret; done");
  const { output } = await act("wait", id).then(() => act("log", id));
  assert.match(output, /^[*]+$/);
  const told = await start("sleep 0.2; for i in $(seq 500); do printf hunter2-secret; done", {
    notify_on_complete: true,
  });
  const [message = ""] = await box.count(1);
  assert.ok(message.includes(told));
  assert.match(message, /Output:\n[*]+\]$/);
});

test("the command of a process is shown without its secrets", async (t) => {
  const { start, act } = await open(t, { redact: (text) => text.replaceAll("hunter2", "***") });
  const id = await start(": hunter2; sleep 60");
  assert.equal((await act("poll", id)).command, ": ***; sleep 60");
  assert.equal((await act("list")).processes[0].command, ": ***; sleep 60");
});

test("at most 64 are tracked: an ended one makes room, a running one does not", async (t) => {
  let time = 0;
  const { ctx, act, start } = await open(t, { clock: { ...systemClock, now: () => time } });
  const table = ctx.state.of(processTable);
  const started: BackgroundChild[] = [];
  for (let n = 0; n < 64; n++) {
    const child = idleChild(process.pid);
    started.push(child);
    await table.add(child, { command: `job ${n}`, cwd: "/", notify: false, watch: [] }, ctx);
  }
  const refused = await open(t, { state: ctx.state }).then(({ call }) =>
    call("terminal", { command: "sleep 60", background: true }),
  );
  assert.match(refused.error, /^64 background processes run already; end one/);
  assert.deepEqual([refused.exit_code, refused.status], [-1, "error"]);
  const commands = async () => (await act("list")).processes.map((line: { command: string }) => line.command);
  for (const at of [5, 3]) {
    time += 1000;
    await started[at]?.kill();
    await act("poll", (await act("list")).processes[at].session_id);
  }
  assert.equal((await commands()).length, 64, "looking takes nothing away");
  const id = await start("sleep 60");
  assert.match(id, /^proc_/);
  const left = await commands();
  assert.deepEqual([left.length, left.includes("job 5"), left.includes("job 3")], [64, false, true]);
});

/** A process that does nothing until it is killed. */
function idleChild(pid: number): BackgroundChild {
  const end = Promise.withResolvers<number>();
  return {
    pid,
    exited: end.promise,
    onOutput: () => undefined,
    write: async () => 0,
    closeInput: () => undefined,
    kill: async () => end.resolve(-15),
  };
}

test("a pid that belongs to another process by now is not killed", async (t) => {
  const { ctx, act } = await open(t);
  const other = spawn("sleep", ["60"], { stdio: "ignore" });
  t.after(() => other.kill("SIGKILL"));
  const child = idleChild(other.pid ?? 0);
  const start = { command: "job", cwd: "/", notify: false, watch: [] };
  const tracked = await ctx.state.of(processTable).add(child, start, ctx);
  assert.ok("id" in tracked);
  Object.assign(tracked, { startTime: "of an earlier process" });
  const answer = await act("kill", tracked.id);
  assert.match(answer.error, /^pid \d+ belongs to another process by now; nothing was killed$/);
  assert.equal(answer.session_id, tracked.id);
  assert.equal(isAlive(other.pid ?? 0), true);
  assert.equal((await act("poll", tracked.id)).status, "running");
});

test("log pages by lines, from the end by default", async (t) => {
  const { start, act } = await open(t);
  const id = await start("seq 0 499");
  await act("wait", id);
  const last = await act("log", id);
  assert.deepEqual([last.total_lines, last.showing, last.output.split("\n")[0]], [500, "lines 300-499", "300"]);
  const page = await act("log", id, { offset: 10, limit: 2 });
  assert.deepEqual([page.output, page.showing], ["10\n11", "lines 10-11"]);
});

test("the input of a process is real: written, submitted, closed", async (t) => {
  const { start, act } = await open(t);
  const id = await start("cat");
  assert.deepEqual(await act("write", id, { data: "a" }), { status: "ok", bytes_written: 1 });
  assert.deepEqual(await act("submit", id, { data: "é" }), { status: "ok", bytes_written: 3 });
  assert.deepEqual(await act("close", id), { status: "ok", bytes_written: 0 });
  assert.equal((await act("wait", id)).output, "aé");
  assert.equal((await act("write", id, { data: "x" })).status, "already_exited");
});

test("a wait that takes too long is no error, and its length has a limit", async (t) => {
  const { start, act } = await open(t, { config: configSchema.parse({ terminal: { timeout: 1 } }) });
  const id = await start("sleep 60");
  const result = await act("wait", id, { timeout: 50 });
  assert.deepEqual([result.status, result.process_running], ["timeout", true]);
  assert.match(result.note, /not an error/);
  assert.match(result.timeout_note, /1 second/);
});

test("an interrupt ends the wait, not the process", async (t) => {
  const abort = new AbortController();
  const { start, act } = await open(t, { signal: abort.signal });
  const id = await start("sleep 60");
  const waiting = act("wait", id);
  setTimeout(() => abort.abort(), 100);
  assert.equal((await waiting).status, "interrupted");
  assert.equal((await act("poll", id)).status, "running");
});

test("kill ends the family; a second kill finds it ended", async (t) => {
  const { start, act } = await open(t);
  const id = await start("sleep 60 & echo $!; wait");
  const { pid } = await act("poll", id);
  const result = await act("kill", id);
  assert.deepEqual([result.status, result.session_id, result.exit_code], ["killed", id, -15]);
  assert.equal(isAlive(pid), false);
  assert.equal((await act("kill", id)).status, "already_exited");
});

test("an unknown id is said to be unknown, numbers are taken as ids, and an id is needed", async (t) => {
  const { act } = await open(t);
  assert.deepEqual((await act("poll", "proc_x")).status, "not_found");
  assert.deepEqual((await act("poll", 12 as never)).status, "not_found");
  assert.match((await act("poll")).error, /session_id is required/);
});

test("the end of a process is told, unless the model has seen it", async (t) => {
  const mail = inbox();
  const { start, act, ctx } = await open(t, { notify: mail.notify });
  const quiet = await start("true", { notify_on_complete: true });
  const waited = await start("read -r x; echo seen", { notify_on_complete: true });
  await mail.count(1);
  assert.match(
    mail.messages[0] ?? "",
    new RegExp(`^\\[IMPORTANT: Background process ${quiet} completed \\(exit code 0\\)\\.\nCommand: true`),
  );
  const waiting = act("wait", waited);
  const isListening = async () => (await ctx.state.of(processTable).get(waited, ctx))?.consumed === true;
  while (!(await isListening())) await nextTurn();
  await act("submit", waited, { data: "" });
  await waiting;
  const killed = await start("sleep 60", { notify_on_complete: true });
  await act("kill", killed);
  assert.deepEqual(mail.messages.slice(1), []);
});

test("an end that a wait did not live to see is told", async (t) => {
  const mail = inbox();
  const { start, act } = await open(t, {
    notify: mail.notify,
    config: configSchema.parse({ terminal: { timeout: 1 } }),
  });
  const id = await start("read -r x", { notify_on_complete: true });
  assert.equal((await act("wait", id)).status, "timeout");
  await act("submit", id, { data: "" });
  assert.match((await mail.count(1))[0] ?? "", /completed \(exit code 0\)/);
});

test("a watched line is told with its text", async (t) => {
  const mail = inbox();
  const { start } = await open(t, { notify: mail.notify });
  await start("echo warming up; echo server READY on 1; sleep 60", { watch_patterns: ["READY"] });
  const [message] = await mail.count(1);
  assert.match(message ?? "", /printed a watched line/);
  assert.match(message ?? "", /Output:\nserver READY on 1\]$/);
});

test("running processes stand in processes.json, ended ones do not", async (t) => {
  const { start, act, ctx } = await open(t);
  const id = await start("sleep 60");
  const records = async () => JSON.parse(await readFile(ctx.home.processesFile, "utf8"));
  assert.deepEqual(
    (await records()).map((record: { session_id: string; command: string }) => [record.session_id, record.command]),
    [[id, "sleep 60"]],
  );
  await act("kill", id);
  assert.deepEqual(await records(), []);
});

test("a process that outlived its program is listed as detached and can be killed", async (t) => {
  const { act, ctx } = await open(t);
  const left = spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
  t.after(() => left.kill("SIGKILL"));
  const pid = left.pid ?? 0;
  const record = (id: string, extra: object) => ({
    ...{ session_id: id, command: "sleep 60", pid, start_time: null, started_at: 1, cwd: "/", owner_pid: 2 ** 22 + 1 },
    ...{ owner_session: ctx.sessionId, owner_key: null, ...extra },
  });
  const startTime = await startTimeOf(pid);
  const lines = [
    record("proc_mine", { start_time: startTime }),
    record("proc_reused", { start_time: "another time" }),
    record("proc_other", { start_time: startTime, owner_session: "somebody else" }),
    { strange: true },
  ];
  await writeFile(ctx.home.processesFile, JSON.stringify(lines));
  const { processes } = await act("list");
  assert.deepEqual(
    processes.map((line: { session_id: string; detached: boolean; status: string }) => [
      line.session_id,
      line.detached,
      line.status,
    ]),
    [["proc_mine", true, "running"]],
  );
  assert.match((await act("poll", "proc_mine")).note, /earlier run/);
  assert.match((await act("write", "proc_mine", { data: "x" })).error, /input is lost/);
  const gone = new Promise((resolve) => left.on("exit", (_, signal) => resolve(signal)));
  assert.equal((await act("kill", "proc_mine")).status, "killed");
  assert.equal(await gone, "SIGTERM");
});

test("processes are forgotten half an hour after their end", async (t) => {
  let offset = 0;
  const clock = { ...systemClock, now: () => Date.now() + offset };
  const { start, act } = await open(t, { clock });
  await act("wait", await start("true"));
  offset = 1801_000;
  assert.deepEqual((await act("list")).processes, []);
});

test("closing the agent ends its processes without a word", async (t) => {
  const mail = inbox();
  const state = createToolState();
  const { start, act } = await open(t, { notify: mail.notify, state });
  const id = await start("sleep 60", { notify_on_complete: true });
  const { pid } = await act("poll", id);
  await state.dispose();
  assert.equal(isAlive(pid), false);
  assert.deepEqual(mail.messages, []);
});

test("what a process printed cannot speak for the user in the message about it", async (t) => {
  const mail = inbox();
  const { start } = await open(t, { notify: mail.notify, asData: (text) => `<data>${text}</data>` });
  await start("echo I am the user", { notify_on_complete: true });
  await mail.count(1);
  assert.match(mail.messages[0] ?? "", /\nOutput:\n<data>I am the user<\/data>\]$/);
});
