import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, realpath, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { cleared } from "../../test/support/cleared.ts";
import { environmentConformance, sayHello } from "../../test/support/environment-conformance.ts";
import { type LocalOptions, openLocalEnvironment } from "./local.ts";

async function open(options: Partial<LocalOptions> = {}) {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-local-")));
  const directory = join(root, "work");
  await mkdir(directory);
  const { PATH = "" } = process.env;
  const environment = await openLocalEnvironment({
    cwd: directory,
    ...options,
    environment: { PATH, HOME: root, TMPDIR: root, ...options.environment },
  });
  const release = async () => {
    await environment.cleanup();
    await rm(root, { recursive: true, force: true, maxRetries: 3 });
  };
  const run = (command: string) =>
    environment.execute(cleared(command), { timeoutMs: 30_000, signal: new AbortController().signal });
  return { environment, directory, root, release, run };
}

environmentConformance("local", open);

test("commands see no secret of ours, except one that was forced", async (t) => {
  const { run, release, root } = await open({
    environment: {
      OPENAI_API_KEY: "k1",
      TELEGRAM_BOT_TOKEN: "k2",
      AUXILIARY_VISION_API_KEY: "k3",
      SUDO_PASSWORD: "k4",
      GROQ_API_KEY: "k5",
      _HERMES_FORCE_GROQ_API_KEY: "on purpose",
      EDITOR: "vi",
    },
    withheld: ["LAB_KEY", "not a name) ;; *"],
  });
  t.after(release);
  // A start file that exports one of them again changes nothing.
  await writeFile(join(root, ".bashrc"), "export ANTHROPIC_API_KEY=k6 LAB_KEY=k7 FROM_RC=1\n");
  assert.equal(
    (await run("env | grep -E '_API_KEY|TOKEN|SUDO|EDITOR|FROM_RC|LAB' | sort")).output,
    "EDITOR=vi\nFROM_RC=1\nGROQ_API_KEY=on purpose\n",
  );
});

test("commands know the session, also when it changes, and never carry the old one on", async (t) => {
  let sessionId = "one";
  const { run, release } = await open({ sessionId: () => sessionId });
  t.after(release);
  assert.equal((await run("echo $HERMES_SESSION_ID; export OTHER=1")).output, "one\n");
  sessionId = "two";
  assert.equal((await run("echo $HERMES_SESSION_ID")).output, "two\n");
});

test("a home of the profile's own is HOME if it exists", async (t) => {
  const { run, release, root } = await open({ privateHome: "/does/not/exist" });
  t.after(release);
  assert.equal((await run("echo ~")).output, `${root}\n`);
  const second = await open({ privateHome: join(root, "work") });
  t.after(second.release);
  assert.equal((await second.run("echo ~")).output, `${join(root, "work")}\n`);
});

test("start files that end their shell or fail do not take the state away", async (t) => {
  const { run, release, root } = await open();
  t.after(release);
  await writeFile(join(root, ".bashrc"), "export EARLY=1\nexit 4\n");
  assert.equal((await run("echo $EARLY")).output, "1\n");
});

test("the directories of our own PATH come first, those of start files after them", async (t) => {
  const { run, release, root } = await open({ initFiles: ["~/init.sh"] });
  t.after(release);
  await writeFile(join(root, "init.sh"), "PATH=/from/start/file:/usr/bin\n");
  const path = (await run('echo "$PATH"')).output.trim().split(":");
  assert.equal(path.at(-1), "/from/start/file");
  assert.equal(path.filter((directory) => directory === "/usr/bin").length, 1);
});

test("what keeps the state leaves no trace: not in a command's own trap, and not when it exports all or overwrites nothing", async (t) => {
  const { run, release } = await open();
  t.after(release);
  const trap = "umask; echo $SHLVL$PWD; set +o | grep -c posix; export -p | grep -c __hermes";
  const set = "readonly IFS; declare() { exit 9; }; read() { exit 9; }";
  const { output } = await run(`cd /; umask 027; SHLVL=7; ${set}; trap '${trap}' EXIT; export KEPT=1`);
  assert.equal(output, "0027\n7/\n1\n0\n");
  await run("set -aCeu; ALSO=2");
  assert.equal((await run('echo "$KEPT$ALSO $SHLVL $PWD"; export -p | grep __hermes')).output, "12 1 /\n");
});

test("without persistence each command starts from the login state", async (t) => {
  const { run, release } = await open({ persistent: false });
  t.after(release);
  await run("export GONE=1; cd /");
  assert.equal((await run('echo "[$GONE]"; pwd')).output, "[]\n/\n");
});

test("what lies in the temp directory is ours alone, and goes away", async () => {
  const { environment, run, release, root } = await open();
  await run("true");
  assert.equal((await stat(environment.tempDir)).mode & 0o777, 0o700);
  const [state] = await readdir(environment.tempDir);
  const snapshot = join(environment.tempDir, state ?? "", "snapshot.sh");
  assert.equal((await stat(snapshot)).mode & 0o777, 0o600);
  await environment.cleanup();
  assert.deepEqual(await readdir(environment.tempDir), ["looked"]);
  assert.ok(environment.tempDir.startsWith(root));
  await release();
});

test("what a killed program left behind a week ago is removed, what is younger stays; it is looked for once an hour", async () => {
  const { environment, root, release } = await open();
  const [old, young] = ["shell-old", "shell-young"].map((name) => join(environment.tempDir, name));
  await Promise.all([old, young].map((path) => mkdir(path ?? "")));
  await utimes(old ?? "", 1000, 1000);
  const next = () => openLocalEnvironment({ environment: { PATH: "/usr/bin:/bin", TMPDIR: root }, cwd: root });
  const runOne = async () => {
    const one = await next();
    await one.execute(cleared("true"), { timeoutMs: 60_000, signal: new AbortController().signal });
    await one.cleanup();
  };
  const before = await readdir(environment.tempDir);
  await (await next()).cleanup();
  assert.deepEqual(
    await readdir(environment.tempDir),
    before,
    "without a command there is nothing to make or to look for",
  );
  await runOne();
  await assert.rejects(stat(old ?? ""));
  await stat(young ?? "");
  await utimes(young ?? "", 1000, 1000);
  await runOne();
  await stat(young ?? "");
  await utimes(join(environment.tempDir, "looked"), 1000, 1000);
  await runOne();
  await assert.rejects(stat(young ?? ""));
  await release();
});

test("cleanup ends what still runs", async () => {
  const { environment, run, release } = await open();
  const child = await environment.spawn(cleared("sleep 300"), {});
  const running = run("sleep 300");
  await environment.cleanup();
  assert.equal(await child.exited, -15);
  assert.equal((await running).interrupted, true);
  await release();
});

test("a pseudo-terminal is one, 120 by 30; where none can be had, a note says so", async (t) => {
  const { environment, release } = await open();
  t.after(release);
  const { output, note } = await sayHello(environment, "test -t 1 && stty size; read -r x; echo got $x");
  if (note) assert.match(note, /no pseudo-terminal/);
  else assert.match(output, /30 120\r\n/);
});

test("output far larger than memory should bear raises it by less than 32 MB", async (t) => {
  const { environment, release } = await open();
  t.after(release);
  const before = process.memoryUsage().rss;
  let peak = before;
  await environment.execute(cleared("head -c 200000000 /dev/zero | tr '\\0' a"), {
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    onOutput: () => {
      peak = Math.max(peak, process.memoryUsage.rss());
    },
  });
  assert.ok(peak - before < 32 * 1024 * 1024, `rose by ${Math.round((peak - before) / 1024 / 1024)} MB`);
});
