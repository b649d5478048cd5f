// What `execute_code` owes in every environment: scripts run where commands run. Each environment runs this suite over its own factory.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Environment } from "../../src/sandbox/environment.ts";
import { runCode } from "../../src/tools/execute-code/run.ts";
import { SCRIPT_TOOLS } from "../../src/tools/execute-code.ts";
import type { ToolContext } from "../../src/tools/toolset/context.ts";
import { loadTools } from "../../src/tools/toolset/discover.ts";
import { registry } from "../../src/tools/toolset/registry.ts";
import { createToolState } from "../../src/tools/toolset/session-tools.ts";
import { allowingGuard, cleared } from "./cleared.ts";
import { dispatch } from "./dispatch.ts";
import { toolContext } from "./tool-context.ts";

export interface ScriptsSubject {
  readonly environment: Environment;
  release(): Promise<void>;
}

export function scriptsConformance(kind: string, open: () => Promise<ScriptsSubject>): void {
  let subject: ScriptsSubject;
  const guard = allowingGuard();
  before(async () => {
    subject = await open();
    await command("mkdir -p scripts-of-test && cd scripts-of-test");
  });
  after(() => subject?.release());

  const command = async (line: string) =>
    (await subject.environment.execute(cleared(line), { timeoutMs: 30_000, signal: new AbortController().signal }))
      .output;
  const run = async (code: string, { timeoutMs = 60_000, ...given }: Partial<ToolContext> & { timeoutMs?: number }) => {
    const { environment } = subject;
    const toolNames = new Set(["read_file", "write_file", "terminal"]);
    const state = createToolState();
    const ctx: ToolContext = {
      ...toolContext({ environment, guard, state, toolNames, homeDir: "/nowhere/.hermes", ...given }),
      callTool: async (name, args, signal = ctx.signal) =>
        String(await dispatch(registry, name, args, { ...ctx, signal, forScript: true })),
    };
    await loadTools(ctx.log);
    const result = JSON.parse(await runCode(code, ctx, { timeoutMs, tools: SCRIPT_TOOLS }));
    await state.dispose();
    return result;
  };
  const leftovers = () => command(`ls -A ${subject.environment.tempDir} | grep hermes-code-`);

  test(`${kind}: a script runs where commands run, and its calls act there`, async () => {
    await command("printf 'one\\ntwo\\n' > a.txt; export MY_TOKEN=no XDG_NOTE=yes");
    const code = `import os, stat
from hermes_tools import read_file, write_file, terminal
rpc = os.environ["HERMES_RPC_SOCKET"]
write_file("b.txt", "x" * read_file("a.txt")["total_lines"])
print(os.getcwd(), open("b.txt").read(), terminal("cat b.txt; pwd")["output"])
print(sorted(n for n in os.environ if n in ("MY_TOKEN", "XDG_NOTE")), oct(stat.S_IMODE(os.stat(rpc).st_mode)))`;
    const result = await run(code, {});
    const { cwd } = subject.environment;
    assert.equal(result.output, `${cwd} xx xx${cwd}\n['XDG_NOTE'] 0o600`, JSON.stringify(result));
    assert.deepEqual([result.status, result.tool_calls_made], ["success", 3]);
    assert.equal(await leftovers(), "");
  });

  test(`${kind}: errors, long output and odd bytes of a script arrive as they are`, async () => {
    const result = await run(
      "import sys\nsys.stdout.buffer.write(b'\\xff' + 'ünï 漢字\\n'.encode())\nsys.stdout.flush()\nprint('x' * 300_000)\nraise ValueError('here')",
      {},
    );
    assert.equal(result.status, "error");
    assert.match(result.output, /^\ufffdünï 漢字\nx+\n\n\.\.\. \[OUTPUT TRUNCATED/);
    assert.match(result.output, /--- stderr ---\nTraceback[\s\S]*line 5, in <module>\n[\s\S]*ValueError: here$/);
    assert.equal(result.error, "The script ended with exit code 1.");
  });

  test(`${kind}: what a script does by itself is asked about, unless nobody can be harmed`, async () => {
    const asked: string[] = [];
    const decide = async (line: string) => {
      asked.push(line);
      return { approved: false as const, message: "no, said the guard", description: null, patternKey: null };
    };
    const { output } = await run("import subprocess\nprint(subprocess.getoutput('echo done'))", {
      guard: { ...guard, decide },
    });
    if (subject.environment.isolated || subject.environment.confinement)
      assert.deepEqual([output, asked], ["done", []]);
    else assert.deepEqual([output.endsWith("PermissionError: no, said the guard"), asked], [true, ["echo done"]]);
  });

  test(`${kind}: a script out of time is ended with what it started, and an interrupt ends it at once`, async () => {
    const endless =
      "import subprocess, time\nopen('child.pid', 'w').write(str(subprocess.Popen(['sleep', '300']).pid))";
    const code = `${endless}\nprint('begun', flush=True)\ntime.sleep(300)`;
    const late = await run(code, { timeoutMs: 2500 });
    assert.deepEqual([late.status, late.output], ["timeout", "begun"], JSON.stringify(late));
    const gone = "while kill -0 $(cat child.pid) 2>/dev/null; do sleep 0.05; done; echo gone";
    assert.equal(await command(gone), "gone\n");
    const abort = new AbortController();
    const calling = Promise.withResolvers<void>();
    const waiting = run("from hermes_tools import terminal\nterminal('sleep 300')", {
      signal: abort.signal,
      progress: () => undefined,
      guard: {
        ...guard,
        decide: (line, signal) => {
          calling.resolve();
          return guard.decide(line, signal);
        },
      },
    });
    await calling.promise;
    abort.abort();
    assert.equal((await waiting).status, "interrupted");
  });
}
