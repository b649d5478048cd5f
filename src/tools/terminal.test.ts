import assert from "node:assert/strict";
import { mkdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { allowingGuard } from "../../test/support/cleared.ts";
import { dispatch } from "../../test/support/dispatch.ts";
import { shellContext } from "../../test/support/shell-context.ts";
import { configSchema } from "../home/config/schema.ts";
import { UserError } from "../kit/errors.ts";
import type { ApprovedCommand, RefusedCommand } from "../safety/decision.ts";
import { createRedactor } from "../safety/redact.ts";
import type { ToolContext } from "./toolset/context.ts";

import { registry } from "./toolset/registry.ts";
import "./terminal.ts";

async function open(t: TestContext, given: Partial<ToolContext> = {}) {
  const shell = await shellContext(t, given);
  const terminal = async (command: unknown, extra: Record<string, unknown> = {}) =>
    JSON.parse((await dispatch(registry, "terminal", { command, ...extra }, shell.ctx)) as string);
  return { ...shell, terminal };
}
const decision = (outcome: Partial<ApprovedCommand>) => {
  const guard = allowingGuard(outcome);
  return { guard, asked: guard.asked };
};
const refusal = (outcome: Partial<RefusedCommand>) => {
  const decide = async () => ({
    approved: false as const,
    message: "",
    description: null,
    patternKey: null,
    ...outcome,
  });
  return { guard: { decide } };
};

test("a command gives its output and exit code, and the directory only when it changed", async (t) => {
  const { terminal, project } = await open(t);
  await mkdir(join(project, "sub"));
  assert.deepEqual(await terminal("echo out; echo err >&2"), { output: "out\nerr", exit_code: 0, error: null });
  assert.deepEqual(await terminal("cd sub"), { output: "", exit_code: 0, error: null, cwd: join(project, "sub") });
  assert.equal((await terminal("pwd")).output, join(project, "sub"));
});

test("a workdir holds for one call", async (t) => {
  const { terminal, project, root } = await open(t);
  await mkdir(join(project, "sub"));
  assert.equal((await terminal("pwd", { workdir: "sub" })).output, join(project, "sub"));
  assert.equal((await terminal("pwd", { workdir: "~" })).output, root);
  const missing = await terminal("pwd", { workdir: "/no/such" });
  assert.deepEqual([missing.output, /does not exist/.test(missing.note)], ["/", true]);
  assert.equal((await terminal("pwd")).output, project);
});

test("a command that is no text is refused in the shape of a command's result", async (t) => {
  const { terminal } = await open(t);
  for (const command of [undefined, 5, { a: 1 }, "  "]) {
    const result = await terminal(command);
    assert.deepEqual([result.output, result.exit_code, result.status], ["", -1, "error"]);
    assert.match(result.error, /command/);
  }
});

test("time limits are checked before anything runs", async (t) => {
  const { guard, asked } = decision({});
  const { terminal } = await open(t, { guard });
  assert.match((await terminal("true", { timeout: 0 })).error, /at least 1/);
  assert.match((await terminal("true", { timeout: 601 })).error, /600 seconds.*background=true/);
  assert.deepEqual(asked, []);
});

test("what would not end in the foreground is not started there", async (t) => {
  const { guard, asked } = decision({});
  const { terminal } = await open(t, { guard });
  const result = await terminal("sleep 1 &");
  assert.deepEqual([result.exit_code, result.status, asked.length], [-1, "error", 0]);
  assert.match(result.error, /background=true/);
});

test("nothing runs without the guard's leave", async (t) => {
  const refused = await open(t, refusal({ message: "BLOCKED: no", patternKey: "k" }));
  const blocked = await refused.terminal("touch ran");
  assert.deepEqual(blocked, { output: "", exit_code: -1, error: "BLOCKED: no", status: "blocked" });
  assert.equal((await refused.terminal("touch ran", { background: true })).status, "blocked");
  await assert.rejects(readFile(join(refused.project, "ran")));

  const waiting = await open(t, refusal({ pending: true, message: "wait", description: "d", patternKey: "k" }));
  assert.deepEqual(await waiting.terminal("touch ran"), {
    output: "",
    exit_code: -1,
    error: "wait",
    status: "pending_approval",
    approval_pending: true,
    command: "touch ran",
    description: "d",
    pattern_key: "k",
  });
});

test("the guard is told where a command begins: the shell's directory, or the call's own", async (t) => {
  const told: (string | undefined)[] = [];
  const allowing = allowingGuard();
  const { terminal, project } = await open(t, {
    guard: {
      decide: (command, signal, { cwd } = {}) => {
        told.push(cwd);
        return allowing.decide(command, signal);
      },
    },
  });
  await mkdir(join(project, "sub"));
  await terminal("cd sub");
  await terminal("true");
  await terminal("true", { workdir: "/" });
  assert.deepEqual(told, [project, join(project, "sub"), "/"]);
});

test("the guard sees the command as it was written, and consent is told", async (t) => {
  const { guard, asked } = decision({ userApproved: true, description: "recursive delete" });
  const { terminal } = await open(t, { guard });
  assert.match((await terminal("echo  'as is'")).approval, /recursive delete/);
  assert.deepEqual(asked, ["echo  'as is'"]);
});

test("a blank workdir is none", async (t) => {
  const { terminal, project } = await open(t);
  for (const workdir of ["", "  "])
    assert.deepEqual(await terminal("pwd", { workdir }), { output: project, exit_code: 0, error: null });
  assert.equal((await terminal("sleep 0.01", { workdir: "", background: true })).error, null);
});

const workdirs: readonly [string, boolean][] = [
  ["/tmp/a b", true],
  ["~/проект-1/日本", true],
  ["C:\\x+@=,", true],
  ["/tmp; ls", false],
  ["$(pwd)", false],
  ["a'b", false],
];
for (const [workdir, allowed] of workdirs) {
  test(`a workdir ${JSON.stringify(workdir)} is ${allowed ? "taken" : "refused"}`, async (t) => {
    const { terminal } = await open(t);
    assert.equal((await terminal("true", { workdir })).status, allowed ? undefined : "blocked");
  });
}

test("a place that cannot be had is told in the shape of a command's result", async (t) => {
  const gone = () => Promise.reject(new UserError("the container engine is not running; start it"));
  const { ctx } = await shellContext(t);
  const { terminal } = await open(t, { environment: { ...ctx.environment, cwd: "/", execute: gone, spawn: gone } });
  const told = {
    output: "",
    exit_code: -1,
    error: "the container engine is not running; start it",
    status: "error",
  };
  assert.deepEqual(await terminal("true"), told);
  assert.deepEqual(await terminal("true", { background: true }), told);
});

test("a timeout keeps the output and says so", async (t) => {
  const { terminal } = await open(t);
  const result = await terminal("echo before; sleep 60", { timeout: 1 });
  assert.equal(result.exit_code, 124);
  assert.match(result.output, /^before\n(Terminated\n)?\[Command timed out after 1s\]$/);
  assert.match(result.hint, /timeout/);
});

test("an interrupt keeps the output and says so", async (t) => {
  const abort = new AbortController();
  const { terminal } = await open(t, { signal: abort.signal });
  setTimeout(() => abort.abort(), 300);
  const result = await terminal("sleep 60");
  assert.equal(result.exit_code, 130);
  assert.match(result.output, /\[Command interrupted\]$/);
});

test("exit codes are explained where they are no failure, and hints are given where they are", async (t) => {
  const { terminal } = await open(t);
  assert.match((await terminal("echo a | grep b")).exit_code_meaning, /No match/);
  assert.match((await terminal("no-such-program-here")).hint, /not found/);
});

test("control sequences and secrets do not reach the model", async (t) => {
  const { terminal } = await open(t, { redact: (text) => text.replaceAll("hunter2", "***") });
  assert.equal((await terminal("printf '\\033[31mred\\033[0m hunter2\\n\\n'")).output, "red ***");
});

test("long output keeps its ends, and the whole of it in a file", async (t) => {
  const redact = (text: string) => text.replaceAll("hunter2", "***");
  const { terminal, ctx } = await open(t, { redact, config: configSchema.parse({ tool_output: { max_bytes: 1000 } }) });
  const old = join(ctx.home.cacheDir, "terminal-output", "old.txt");
  await mkdir(join(ctx.home.cacheDir, "terminal-output"), { recursive: true });
  await writeFile(old, "");
  await utimes(old, 1000, 1000);
  const result = await terminal("echo begin; for i in $(seq 300); do echo hunter2 line; done; echo end");
  const total = "begin\n".length + 300 * "hunter2 line\n".length + "end\n".length;
  assert.match(result.output, /^begin\n/);
  assert.match(result.output, /end$/);
  const [head = "", missing, tail = ""] = result.output.split(
    /\n\n\.\.\. \[OUTPUT TRUNCATED - (\d+) chars omitted out of 3910 total\] \.\.\.\n\n/,
  );
  assert.ok(Number(missing) >= total - 1000 && Number(missing) < total - 900, missing);
  assert.doesNotMatch(`${head}${tail}`, /hunt|ter2/, "no half of a secret at the cut");
  assert.equal(result.output_total_chars, total);
  const whole = await readFile(result.full_output_path, "utf8");
  assert.equal(whole.split("\n").filter((line) => line === "*** line").length, 300);
  assert.match(result.truncation_note, /full_output_path has all of it$/);
  await assert.rejects(readFile(old), "files of last week are gone");
});

test("a key that the missing middle took a part of is hidden on both sides", async (t) => {
  const redact = createRedactor({ enabled: true, knownSecrets: () => [] });
  const { terminal, project } = await open(t, { redact });
  const key = `-----BEGIN PRIVATE KEY-----\n${"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2\n".repeat(60)}-----END PRIVATE KEY-----\n`;
  // Of an output its first 1.6 and its last 2.4 million bytes are kept: both cuts lie in a key.
  const text = `${"x".repeat(1_600_000 - 2000)}\n${key}${"y".repeat(4_000_000)}\n${key}${"z".repeat(2_400_000 - 2000)}`;
  await writeFile(join(project, "big.txt"), text);
  const { full_output_path } = await terminal("cat big.txt");
  const whole = await readFile(full_output_path, "utf8");
  assert.match(whole, /chars were not kept/);
  assert.equal(whole.split("[REDACTED PRIVATE KEY]").length, 3);
  assert.doesNotMatch(whole, /QUJD/);
});

test("100 MB of output raise the memory by less than 32 MB, and the file holds as much as it may", async (t) => {
  const { terminal } = await open(t);
  await terminal("yes warm | head -c 100000");
  const before = process.memoryUsage.rss();
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 5);
  const result = await terminal("yes 'a line like any other' | head -c 100000000");
  clearInterval(timer);
  assert.ok(peak - before < 32 * 1024 * 1024, `rose by ${Math.round((peak - before) / 1024 / 1024)} MB`);
  assert.equal(result.output_total_chars, 100_000_000);
  assert.match(result.truncation_note, /as much of it as was kept \(39999\d\d of 100000000 characters\)$/);
  const whole = await readFile(result.full_output_path, "utf8");
  assert.ok(whole.length > 3_990_000 && whole.length <= 4_000_000, String(whole.length));
});

/** Stands in for sudo: wants a password, reads one line when told to, and runs the rest. */
const fakeSudo = (password: string) => `#!/bin/bash
[ "$1" = -n ] && exit 1
[ "$1" = -S ] || { echo "sudo: a password is required"; exit 1; }
read -r given; shift 3
[ "$given" = ${JSON.stringify(password)} ] || { echo "Sorry, try again."; exit 1; }
echo "$given is in:"; "$@"
`;

test("a password for sudo travels through standard input alone, once per sudo", async (t) => {
  const { terminal, bin } = await open(t, { env: (name) => (name === "SUDO_PASSWORD" ? "pa'ss word" : undefined) });
  await writeFile(join(bin, "sudo"), fakeSudo("pa'ss word"), { mode: 0o755 });
  const result = await terminal("sudo echo one && sudo echo two");
  assert.equal(result.output, "*** is in:\none\n*** is in:\ntwo");
});

test("a masked password does not move the place where the middle of an output is missing", async (t) => {
  const env = (name: string) => (name === "SUDO_PASSWORD" ? "swordfish" : undefined);
  const { terminal, bin } = await open(t, { env });
  await writeFile(join(bin, "sudo"), fakeSudo("swordfish"), { mode: 0o755 });
  const { output, full_output_path } = await terminal(
    "sudo true; for i in $(seq 1000); do echo swordfish; done; seq 0 999999",
  );
  assert.match(output, /^\*\*\* is in:\n\*\*\*\n/);
  const whole: string = await readFile(full_output_path, "utf8");
  const [before = "", after = ""] = whole.split(/\n\n\.\.\. \[\d+ chars were not kept\] \.\.\.\n\n/);
  assert.doesNotMatch(whole, /swordfish/);
  const numbers = (text: string) => text.split("\n").filter((line) => /^\d+$/.test(line));
  assert.deepEqual(
    numbers(before),
    Array.from({ length: numbers(before).length }, (_, index) => String(index)),
  );
  const last = numbers(after);
  assert.deepEqual(
    last,
    Array.from({ length: last.length }, (_, index) => String(1_000_000 - last.length + index)),
  );
});

test("a user is asked for the sudo password once, and again only after a wrong one", async (t) => {
  const answers = ["wrong", "right", "never asked"];
  let asked = 0;
  const ask = (async () => ({ text: answers[asked++] ?? null })) as ToolContext["ask"]; // only sudo asks here
  const { terminal, bin } = await open(t, { ask });
  await writeFile(join(bin, "sudo"), fakeSudo("right"), { mode: 0o755 });
  assert.match((await terminal("sudo true")).output, /try again/);
  assert.equal((await terminal("sudo echo in")).output, "*** is in:\nin");
  assert.equal((await terminal("sudo echo in")).output, "*** is in:\nin");
  assert.equal(asked, 2);
});

test("without a password sudo stays as it was written, and a tip says what to do", async (t) => {
  const { terminal, bin } = await open(t, { interactive: false });
  await writeFile(join(bin, "sudo"), fakeSudo("x"), { mode: 0o755 });
  assert.match((await terminal("sudo true")).output, /a password is required\s+Tip: .*SUDO_PASSWORD/);
});

test("a background process is started, named, and told how to follow", async (t) => {
  const { terminal } = await open(t);
  const result = await terminal("sleep 60", { background: true });
  assert.match(result.session_id, /^proc_[0-9a-f]{12}$/);
  assert.deepEqual(
    { ...result, session_id: "", pid: 0, hint: "" },
    { output: "Background process started", session_id: "", pid: 0, exit_code: 0, error: null, hint: "" },
  );
  assert.match(result.hint, /poll or wait/);
});

test("notify wins over watch, and a session that cannot be told says so", async (t) => {
  const { terminal } = await open(t);
  const both = await terminal("true", { background: true, notify_on_complete: true, watch_patterns: ["x"] });
  assert.equal(both.notify_on_complete, true);
  assert.ok(both.watch_patterns_ignored);
  assert.ok(both.notify_unsupported);
  const watched = await terminal("true", { background: true, watch_patterns: ["x"] });
  assert.deepEqual(watched.watch_patterns, ["x"]);
});

test("gh gets its token on standard input, without a pty", async (t) => {
  const { terminal } = await open(t);
  assert.match((await terminal("gh auth login --with-token < t", { background: true, pty: true })).pty_note, /token/);
  assert.match((await terminal("true", { pty: true })).pty_note, /background=true/);
});

test("somebody who watches sees the last lines while a command runs, without secrets", async (t) => {
  const shown: string[] = [];
  const seen = Promise.withResolvers<void>();
  const showOutput = (lines: string) => {
    shown.push(lines);
    if (lines.includes("waiting")) seen.resolve();
  };
  const redact = (text: string) => text.replaceAll("hunter2", "***");
  const { terminal, project } = await open(t, { showOutput, redact });
  const running = terminal(
    'for i in 1 2 3 4 5 6; do echo "line $i"; done; echo hunter2; echo waiting; until [ -e go ]; do sleep 0.05; done',
  );
  await seen.promise;
  await writeFile(join(project, "go"), "");
  assert.equal((await running).exit_code, 0);
  assert.deepEqual(shown.at(-1)?.split("\n").slice(-3), ["line 6", "***", "waiting"]);
  assert.ok(shown.every((lines) => lines.split("\n").length <= 5 && !lines.includes("hunter2")));
});
