// What a script does by itself is judged as if a tool did it, whatever way the script takes.
import assert from "node:assert/strict";
import { access, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { allowingGuard } from "../../../test/support/cleared.ts";
import { sampleOf } from "../../../test/support/sample.ts";
import { shellContext } from "../../../test/support/shell-context.ts";
import type { CommandGuard } from "../../safety/decision.ts";
import type { ToolContext } from "../toolset/context.ts";
import { runCode } from "./run.ts";

/** Scripts under a guard that refuses every command, and what it was asked. */
async function refusing(t: TestContext, given: Partial<ToolContext> = {}) {
  const asked: string[] = [];
  const guard: CommandGuard = {
    ...allowingGuard(),
    decide: async (command) => {
      asked.push(command);
      return { approved: false, message: "no, said the guard", description: "x", patternKey: "x" };
    },
  };
  const place = await shellContext(t, { guard, ...given });
  const run = async (code: string) =>
    JSON.parse(await runCode(code, place.ctx, { timeoutMs: 60_000, tools: [] })) as { status: string; output: string };
  return { ...place, asked, run };
}

const effects: readonly [way: string, code: string, line: string | RegExp][] = [
  ["a shell", "os.system('touch marker')", "touch marker"],
  ["words only known at run time", "os.system('tou' + chr(99) + 'h marker')", "touch marker"],
  ["another name", "getattr(os, 'sys' + 'tem')('touch marker')", "touch marker"],
  ["a list of words", "subprocess.run(['touch', 'a marker'])", "touch 'a marker'"],
  ["a folder it went to", "os.chdir('/'); os.system('touch marker')", "cd / && touch marker"],
  ["another folder", "subprocess.run(['touch', 'marker'], cwd='/')", "cd / && touch marker"],
  ["a shell of subprocess", "subprocess.run('touch marker; true', shell=True)", "touch marker; true"],
  ["a pipe", "os.popen('touch marker').read()", "touch marker"],
  ["the place of the script", "os.execv('/usr/bin/env', ['env', 'touch', 'marker'])", "/usr/bin/env touch marker"],
  ["posix_spawn", "os.posix_spawn('/usr/bin/env', ['env', 'touch', 'marker'], {})", "/usr/bin/env touch marker"],
  ["asyncio", "asyncio.run(asyncio.create_subprocess_exec('touch', 'marker'))", "touch marker"],
  ["a tree of files", "shutil.rmtree('kept')", "rm -r -- kept"],
  ["a file elsewhere", "os.remove(os.path.join(os.environ['HOME'], 'elsewhere'))", /^rm -- \/.*elsewhere$/],
  ["rights for everybody", "os.chmod('kept', 0o777)", "chmod 777 kept"],
  ["a start file", "open(os.path.expanduser('~/.bashrc'), 'a').write('x')", "tee ~/.bashrc"],
  ["a start file behind a link", "os.symlink('..', 'up'); open('up/.bashrc', 'w').write('x')", "tee ~/.bashrc"],
  ["a file moved there", "open('n', 'w').close(); os.replace('n', os.path.expanduser('~/.zshrc'))", "tee ~/.zshrc"],
];
test("a script that does by itself what would be asked about is asked about, and does not do it when refused", async (t) => {
  const { run, asked, project, root } = await refusing(t);
  await mkdir(join(project, "kept"));
  await writeFile(join(root, "elsewhere"), "x");
  for (const [way, code, line] of sampleOf(effects, 3, "effects")) {
    asked.length = 0;
    const { status, output } = await run(`import asyncio, os, shutil, subprocess\n${code}\nprint('went on')`);
    assert.match(asked.join("|"), typeof line === "string" ? new RegExp(`^${RegExp.escape(line)}$`) : line, way);
    assert.equal(status, "error", way);
    assert.match(output, /PermissionError: no, said the guard/, way);
    assert.doesNotMatch(output, /went on|hermes_start/, way);
    await assert.rejects(access(join(project, "marker")), way);
  }
  await access(join(project, "kept"));
  await access(join(root, "elsewhere"));
  await assert.rejects(access(join(root, ".bashrc")));
  await assert.rejects(access(join(root, ".zshrc")));
});

test("places no tool may write to are closed to scripts, and libraries are no way around", async (t) => {
  const { run, asked } = await refusing(t);
  const { output } = await run(`import ctypes, os
def tell(work):
    try: work(); print("done")
    except PermissionError as error: print(error)
home = os.environ["HOME"]
os.makedirs(home + "/.ssh")
tell(lambda: open(home + "/.ssh/config", "w"))
tell(lambda: open(home + "/config.yaml", "w"))
tell(lambda: ctypes.CDLL(None).system(b"true"))`);
  assert.match(
    output,
    /^Write denied: .*credentials.*\nWrite denied: .*settings.*\nstart programs with subprocess, or with terminal/,
  );
  assert.deepEqual(asked, []);
});

test("a second name, a moved folder or a database library is no way to a guarded file", async (t) => {
  const { run, asked, root } = await refusing(t);
  await writeFile(join(root, "config.yaml"), "mine");
  const { output } = await run(`import os, sqlite3
def tell(work):
    try: work(); print("done")
    except PermissionError as error: print(error)
home = os.environ["HOME"]
tell(lambda: os.link(home + "/config.yaml", "x"))
tell(lambda: os.rename(home, home + "-away"))
tell(lambda: sqlite3.connect(home + "/state.db"))
tell(lambda: sqlite3.connect("file:" + home + "/state.db?mode=rwc", uri=True))
tell(lambda: sqlite3.connect("own.db").close())
tell(lambda: sqlite3.connect(":memory:").close())`);
  assert.deepEqual(
    output
      .trim()
      .split("\n")
      .map((line) => (/^Write denied/.test(line) ? "denied" : line)),
    ["denied", "denied", "denied", "denied", "done", "done"],
    output,
  );
  assert.deepEqual(asked, []);
});

test("work on files of its own is nobody's business", async (t) => {
  const { run, asked } = await refusing(t);
  const result = await run(`import os, shutil, tempfile, pathlib
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "a").mkdir(); pathlib.Path(folder, "a", "b").write_text("x")
with tempfile.NamedTemporaryFile() as file: file.write(b"x")
os.makedirs("out/deep"); open("out/deep/x", "w").close(); shutil.rmtree("out")
open("report.txt", "w").write("x"); os.rename("report.txt", "final.txt"); os.remove("final.txt")
open("keep.txt", "w").write("x"); os.chmod("keep.txt", 0o755); open(os.devnull, "w").close()
print(os.listdir())`);
  assert.deepEqual([result.status, result.output], ["success", "['keep.txt']"], JSON.stringify(result));
  assert.deepEqual(asked, []);
});

test("what was allowed is done, and asked about once", async (t) => {
  const guard = allowingGuard();
  const { run, project } = await refusing(t, { guard });
  const result = await run(
    "import subprocess\nsubprocess.run(['touch', 'marker'], close_fds=False)\nprint(subprocess.getoutput('ls'))",
  );
  assert.equal(result.output, "marker", JSON.stringify(result));
  assert.deepEqual(guard.asked.slice(1), ["touch marker", "ls"]);
  await access(join(project, "marker"));
});

test("outside HERMES_WRITE_SAFE_ROOT a script writes nothing", async (t) => {
  const { project, ctx } = await refusing(t);
  await mkdir(join(project, "free"));
  const narrow = { ...ctx, writeSafeRoots: [join(project, "free")] };
  const code = "open('free/a', 'w').write('x')\nopen('b', 'w').write('x')";
  const { output } = JSON.parse(await runCode(code, narrow, { timeoutMs: 60_000, tools: [] }));
  assert.match(output, /PermissionError: Write denied: .*HERMES_WRITE_SAFE_ROOT/);
  await access(join(project, "free/a"));
  await assert.rejects(access(join(project, "b")));
});

test("where nobody can be harmed nothing is asked", async (t) => {
  const { ctx, asked } = await refusing(t);
  // The getters of an environment live on its prototype.
  const environment = Object.create(ctx.environment, { isolated: { value: true } });
  for (const name of ["execute", "spawn", "setCwd", "cleanup"] as const)
    environment[name] = ctx.environment[name].bind(ctx.environment);
  const code = "import os\nos.system('echo free')";
  const { output } = JSON.parse(await runCode(code, { ...ctx, environment }, { timeoutMs: 60_000, tools: [] }));
  assert.equal(output, "free");
  assert.deepEqual(asked, []);
});
