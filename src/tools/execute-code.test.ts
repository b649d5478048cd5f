import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { allowingGuard, cleared } from "../../test/support/cleared.ts";
import { dispatch } from "../../test/support/dispatch.ts";
import { shellContext } from "../../test/support/shell-context.ts";
import { CODE_RUNNER } from "../safety/guard.ts";
import { openLocalEnvironment } from "../sandbox/local.ts";
import { runCode } from "./execute-code/run.ts";
import { SCRIPT_TOOLS } from "./execute-code.ts";
import type { ToolContext } from "./toolset/context.ts";
import { loadTools } from "./toolset/discover.ts";

import { registry } from "./toolset/registry.ts";

interface Result {
  readonly status: string;
  readonly output: string;
  readonly tool_calls_made: number;
  readonly duration_seconds: number;
  readonly error?: string;
  readonly [more: string]: unknown;
}

/** A context whose scripts call real tools. */
async function scripts(t: TestContext, given: Partial<ToolContext> = {}) {
  const place = await shellContext(t, {
    toolNames: new Set(["read_file", "write_file", "terminal", "todo"]),
    ...given,
  });
  const { log } = place.ctx;
  await loadTools(log);
  const called: string[] = [];
  const ctx: ToolContext = {
    ...place.ctx,
    callTool: async (name, args, signal = place.ctx.signal) => {
      called.push(`${name} ${JSON.stringify(args)}`);
      return String(await dispatch(registry, name, args, { ...ctx, signal, forScript: true }));
    },
    ...given,
  };
  const run = async (code: string, timeoutMs = 60_000): Promise<Result> =>
    JSON.parse(await runCode(code, ctx, { timeoutMs, tools: SCRIPT_TOOLS }));
  return { ...place, ctx, run, called };
}

test("a script prints, and its errors stand behind a line of their own", async (t) => {
  const { run, project, ctx } = await scripts(t);
  const good = await run("import os\nprint('ünï', os.getcwd())");
  assert.equal(good.status, "success", JSON.stringify(good));
  assert.equal(good.output, `ünï ${project}`);
  assert.deepEqual([good.tool_calls_made, good.error], [0, undefined]);
  assert.ok(good.duration_seconds >= 0);

  const bad = await run("import sys\nprint('before')\nprint('hint', file=sys.stderr)\nraise ValueError('broken here')");
  assert.equal(bad.status, "error");
  assert.match(bad.output, /^before\n--- stderr ---\nhint\nTraceback[\s\S]*line 4[\s\S]*ValueError: broken here$/);
  assert.equal(bad.error, "The script ended with exit code 1.");
  assert.deepEqual(
    (await readdir(ctx.environment.tempDir)).filter((name) => name.startsWith("hermes-code-")),
    [],
  );
});

test("a script calls the tools of the session and gets their results as data", async (t) => {
  const { run, project, called } = await scripts(t);
  await writeFile(join(project, "a.txt"), "one\ntwo\n");
  const result = await run(
    [
      "from hermes_tools import read_file, write_file, terminal, json_parse, shell_quote, retry",
      "lines = read_file('a.txt')['total_lines']",
      "write_file('b.txt', 'x' * lines)",
      "print(lines, terminal('cat b.txt; pwd', timeout=5)['output'])",
      `print(json_parse('{"a": 1}')['a'], shell_quote("it's"))`,
      "tries = []",
      "def flaky():",
      "    tries.append(1)",
      "    if len(tries) < 2: raise OSError('no')",
      "    return len(tries)",
      "print(retry(flaky, delay=0))",
    ].join("\n"),
  );
  assert.equal(result.output, `2 xx${project}\n1 'it'"'"'s'\n2`, JSON.stringify(result));
  assert.equal(result.tool_calls_made, 3);
  assert.deepEqual(called, [
    'read_file {"path":"a.txt"}',
    'write_file {"path":"b.txt","content":"xx"}',
    'terminal {"command":"cat b.txt; pwd","timeout":5}',
  ]);
});

test("only script tools of the session can be imported, and asking for others by hand is answered with an error", async (t) => {
  const { run, called } = await scripts(t);
  const missing = await run("from hermes_tools import web_search");
  assert.match(missing.output, /cannot import name 'web_search'/);
  const forced = await run(
    "import hermes_tools as h\nfor n in ('todo', 'web_search', 'execute_code', 5): print(h._call(n, {}))",
  );
  assert.equal(forced.output.match(/cannot be called from a script here/g)?.length, 4, forced.output);
  assert.equal(forced.tool_calls_made, 0);
  assert.deepEqual(called, []);
});

test("where the session has none of the script tools, none is offered", async (t) => {
  const { run } = await scripts(t, { toolNames: new Set(["todo"]) });
  assert.match((await run("from hermes_tools import read_file")).output, /cannot import name 'read_file'/);
  assert.equal((await run("import hermes_tools; print('ok')")).output, "ok");
});

test("terminal in a script has no background, pty, notices or watching", async (t) => {
  const { run, called } = await scripts(t);
  const result = await run(
    "import hermes_tools as h\nprint(h._call('terminal', {'command': 'echo hi', 'background': True, 'pty': True, 'notify_on_complete': True, 'watch_patterns': ['x']})['output'])",
  );
  assert.equal(result.output, "hi", JSON.stringify(result));
  assert.deepEqual(called, ['terminal {"command":"echo hi"}']);
});

test("the fifty-first call is refused, and the script goes on", async (t) => {
  const { run, called } = await scripts(t, { callTool: async () => "{}" });
  const result = await run(
    "from hermes_tools import read_file\nanswers = [read_file('x') for _ in range(52)]\nprint(answers[49], answers[51])",
  );
  assert.equal(result.tool_calls_made, 50);
  assert.match(result.output, /^\{\} \{'error': 'No more calls: a script may make 50/);
  assert.equal(called.length, 0);
});

test("calls of several threads and processes are all answered", async (t) => {
  const answered: number[] = [];
  const { run } = await scripts(t, {
    callTool: async (_name, args) => {
      answered.push(Number(args.offset));
      return JSON.stringify({ n: args.offset });
    },
  });
  const result = await run(
    [
      "from concurrent.futures import ThreadPoolExecutor",
      "from hermes_tools import read_file",
      "import os, subprocess, sys",
      "read_file('first', offset=99)",
      "with ThreadPoolExecutor(8) as pool: print(sum(r['n'] for r in pool.map(lambda n: read_file('x', offset=n), range(20))))",
      'inner = \'from hermes_tools import read_file; print(read_file("x", offset=7)["n"])\'',
      "env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(__file__)))",
      "print(subprocess.run([sys.executable, '-c', inner], env=env, capture_output=True, text=True).stdout.strip())",
    ].join("\n"),
  );
  assert.equal(result.output, "190\n7", JSON.stringify(result));
  assert.equal(answered.length, 22);
});

test("a script sees no secrets of the environment", async (t) => {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-env-")));
  const given = {
    ...{
      PATH: process.env.PATH ?? "",
      HOME: root,
      TMPDIR: root,
      LC_ALL: "C.UTF-8",
      XDG_DATA_HOME: "/x",
      CONDA_PREFIX: "/c",
    },
    ...{ HERMES_PLAIN: "1", HERMES_API_KEY: "no", MY_TOKEN: "no", XDG_SESSION_AUTH: "no", UNRELATED: "no" },
  };
  const environment = await openLocalEnvironment({ environment: given, cwd: root });
  t.after(async () => {
    await environment.cleanup();
    await rm(root, { recursive: true, force: true });
  });
  const { run } = await scripts(t, { environment });
  const { output } = await run("import os\nprint('\\n'.join(sorted(os.environ)))");
  const names = output.split("\n");
  for (const name of ["PATH", "HOME", "LC_ALL", "XDG_DATA_HOME", "CONDA_PREFIX", "HERMES_PLAIN"])
    assert.ok(names.includes(name), `${name}: ${output}`);
  for (const name of ["HERMES_API_KEY", "MY_TOKEN", "XDG_SESSION_AUTH", "UNRELATED"])
    assert.ok(!names.includes(name), name);
});

test("of a long output the beginning and the end are kept", async (t) => {
  const { run } = await scripts(t);
  const { output, status } = await run(
    "import sys\nprint('A' + 'x' * 3_000_000 + 'Z')\nsys.stderr.write('B' + 'y' * 30_000 + 'Y')",
  );
  assert.equal(status, "success");
  assert.match(
    output,
    /^Ax{19999}\n\n\.\.\. \[OUTPUT TRUNCATED - 2950003 chars omitted out of 3000003 total\] \.\.\.\n\nx+Z\n--- stderr ---\nBy{3999}\n/,
  );
  assert.ok(output.length < 61_000, String(output.length));
});

test("secrets in the output are masked and control sequences are gone", async (t) => {
  const { run } = await scripts(t, { redact: (text) => text.replaceAll("hunter2", "***") });
  assert.equal((await run("print('\\033[31mpassword hunter2\\033[0m')")).output, "password ***");
});

test("no half of a secret stands where an output was cut", async (t) => {
  const secret = `sk-${"s3cr3t".repeat(10)}`;
  const { run } = await scripts(t, { redact: (text) => text.replaceAll(secret, "***") });
  // One lies across the end of what is shown first, one across the beginning of the rest; and once across what was not even kept.
  const crossing = await run(`print('a' * 19980 + '${secret}' + 'b' * 100000 + '${secret}' + 'c' * 29980)`);
  const lost = await run(`print('a' * 29980 + '${secret}' + 'b' * 100000 + '${secret}' + 'c' * 44980)`);
  const ended = await run(`import time\nprint('a' * 29980 + '${secret}', flush=True)\ntime.sleep(300)`, 2500);
  for (const { output } of [crossing, lost, ended]) {
    assert.ok(output.startsWith("aaa"), output.slice(0, 80));
    assert.doesNotMatch(output, /s3cr3t/);
  }
  assert.match(crossing.output, /OUTPUT TRUNCATED/);
});

test("a script that takes too long is stopped with everything it started, and what it printed is kept", async (t) => {
  const { run, project } = await scripts(t);
  const result = await run(
    "import subprocess, time\nprint('begun', flush=True)\nsubprocess.Popen(['sleep', '300'])\ntime.sleep(300)",
    2500,
  );
  assert.equal(result.status, "timeout");
  assert.equal(result.output, "begun");
  assert.equal(result.error, "The script was stopped after 2.5 seconds.");
  assert.ok(project);
});

test("an interrupt ends the script and the call it waits for", async (t) => {
  const controller = new AbortController();
  const { promise: calling, resolve: reached } = Promise.withResolvers<void>();
  let cancelled = false;
  const { run } = await scripts(t, {
    signal: controller.signal,
    callTool: (_name, _args, signal) =>
      new Promise((resolve) => {
        signal?.addEventListener("abort", () => {
          cancelled = true;
          resolve("{}");
        });
        reached();
      }),
  });
  const running = run("from hermes_tools import read_file\nprint('here', flush=True)\nread_file('x')");
  await calling;
  controller.abort();
  const result = await running;
  assert.deepEqual([result.status, result.output, cancelled], ["interrupted", "here", true]);
});

test("what a script leaves running is ended with it", { skip: process.platform !== "linux" }, async (t) => {
  const { run } = await scripts(t);
  const result = await run("import subprocess\nprint(subprocess.Popen(['sleep', '300']).pid)");
  assert.equal(result.status, "success");
  // A process that ended may still be listed until it is waited for; it has no command line any more.
  assert.equal(await readFile(`/proc/${result.output}/cmdline`, "utf8").catch(() => ""), "");
});

test("strict mode begins in an empty folder", async (t) => {
  const { run, ctx, project } = await scripts(t);
  const strict = { ...ctx, config: { ...ctx.config, code_execution: { mode: "strict" as const } } };
  const said = JSON.parse(
    await runCode("import os; print(os.getcwd(), os.listdir())", strict, { timeoutMs: 60_000, tools: SCRIPT_TOOLS }),
  );
  assert.match(said.output, /\/work \[\]$/);
  assert.equal((await run("import os; print(os.getcwd())")).output, project);
});

test("without Python a script is JavaScript", async (t) => {
  const bin = await mkdtemp(join(tmpdir(), "hermes-js-"));
  t.after(() => rm(bin, { recursive: true, force: true }));
  await symlink(process.execPath, join(bin, "node"));
  const outcome = { approved: true as const, message: "", description: null, patternKey: null };
  const decideCode = async () => ({ ...outcome, cleared: cleared(`export PATH=${bin} MY_TOKEN=no\n${CODE_RUNNER}`) });
  const { run, project } = await scripts(t, { guard: { ...allowingGuard(), decideCode } });
  await writeFile(join(project, "a.txt"), "one\ntwo\n");
  const good = await run(
    [
      'import { read_file, terminal, shell_quote, retry, json_parse } from "hermes_tools";',
      'const page = await read_file("a.txt");',
      'const said = await terminal({ command: "echo hi", timeout: 5 });',
      'const two = await Promise.all([read_file("a.txt"), read_file("none")]);',
      'console.log(page.total_lines, said.output, two[0].total_lines, typeof two[1].error, shell_quote("it\'s"));',
      "console.log(await retry(async () => json_parse('[1]')[0]), Object.keys(globalThis[\"process\"].env).includes('MY_TOKEN'));",
    ].join("\n"),
  );
  assert.equal(good.output, "2 hi 2 string 'it'\\''s'\n1 false", JSON.stringify(good));
  assert.equal(good.tool_calls_made, 4);
  const python = await run("def f():\n    pass");
  assert.equal(python.status, "error");
  assert.match(python.error ?? "", /There is no Python in the local environment: write JavaScript/);
  const free = await run(
    'import fs from "node:fs";\nimport { spawn } from "node:child_process";\n' +
      'fs.writeFileSync("mine.txt", "x");\nfor (const work of [() => spawn("ls"), () => fs.writeFileSync("../.bashrc", "x")])\n' +
      "try { work(); console.log('done'); } catch (error) { console.log(error.code); }",
  );
  assert.equal(free.output, "ERR_ACCESS_DENIED\nERR_ACCESS_DENIED", JSON.stringify(free));
  const long = await run("console.log('x'.repeat(100_000))");
  assert.match(long.output, /OUTPUT TRUNCATED - 50001 chars/);
  assert.equal((await run("await new Promise((r) => setTimeout(r, 300_000))", 2000)).status, "timeout");

  await rm(join(bin, "node"));
  const none = await run("1");
  assert.deepEqual([none.status, none.tool_calls_made], ["error", 0]);
  assert.match(none.error ?? "", /No script could be started in the local environment: .*neither python3 nor node/);
});

test("an interpreter that crashes is told as it is, not as missing", async (t) => {
  const bin = await mkdtemp(join(tmpdir(), "hermes-crash-"));
  t.after(() => rm(bin, { recursive: true, force: true }));
  const outcome = { approved: true as const, message: "", description: null, patternKey: null };
  const decideCode = async () => ({ ...outcome, cleared: cleared(`export PATH=${bin}\n${CODE_RUNNER}`) });
  const { run } = await scripts(t, { guard: { ...allowingGuard(), decideCode } });
  const python = async (script: string) => {
    await writeFile(join(bin, "python3"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return (await run("print(1)")).error ?? "";
  };
  assert.match(await python("kill -SEGV $$"), /could be started .*: the interpreter ended with signal 11 before/);
  assert.match(
    await python("echo 'No module named encodings' >&2; exit 1"),
    /: No module named encodings \(exit code 1\)$/,
  );
});

test("nothing runs without a decision", async (t) => {
  const refused = { approved: false as const, message: "no scripts today", description: "x", patternKey: "x" };
  const decide = async () => refused;
  for (const [guard, error] of [
    [{ decide, decideCode: decide }, "no scripts today"],
    [{ decide }, "Scripts cannot be run here."],
  ] as const) {
    const { run } = await scripts(t, { guard });
    assert.deepEqual(await run("print(1)"), {
      status: "error",
      output: "",
      tool_calls_made: 0,
      duration_seconds: 0,
      error,
    });
  }
  const { run } = await scripts(t);
  assert.equal((await run("  ")).error, "code is empty");
});
