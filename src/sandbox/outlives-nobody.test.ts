import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { isRunning } from "../../test/support/running.ts";

const module = new URL("./processes.ts", import.meta.url).href;
const program = (more: string) => `
  const { spawn } = await import("node:child_process");
  const { endWithUs } = await import(${JSON.stringify(module)});
  const child = spawn("sleep", ["100"], { detached: true, stdio: "ignore" });
  const letGo = endWithUs(child.pid);
  setTimeout(() => undefined, 60_000);
  ${more}
  console.log(child.pid);`;

async function run(more: string, signal: NodeJS.Signals | null) {
  const parent = spawn(process.execPath, ["--input-type=module", "-e", program(more)], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [text] = await once(parent.stdout, "data");
  const pid = Number(String(text));
  assert.ok(isRunning(pid));
  if (signal) parent.kill(signal);
  const [code, by] = await once(parent, "exit");
  for (let n = 0; n < 100 && isRunning(pid); n++) await new Promise((resolve) => setTimeout(resolve, 20));
  const left = isRunning(pid);
  if (left) process.kill(pid, "SIGKILL");
  return { left, code, by };
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  test(`${signal} ends the group, and the process dies of it as without us`, async () => {
    assert.deepEqual(await run("", signal), { left: false, code: null, by: signal });
  });
}

test("the end of the process and a crash end the group", async () => {
  assert.deepEqual(await run("setTimeout(() => process.exit(5), 200);", null), { left: false, code: 5, by: null });
  assert.deepEqual(await run(`setTimeout(() => { throw new Error("x"); }, 200);`, null), {
    left: false,
    code: 1,
    by: null,
  });
});

test("whoever else listens for the signal has the say, and what was let go of lives on", async () => {
  const listener = `process.on("SIGTERM", () => { console.log("mine"); setTimeout(() => process.exit(7), 50); });`;
  assert.deepEqual(await run(listener, "SIGTERM"), { left: false, code: 7, by: null });
  assert.equal((await run("letGo();", "SIGTERM")).left, true);
});

for (const signal of ["SIGKILL", "SIGQUIT"] as const) {
  test(`${signal}, which nobody can answer, ends the group too`, async () => {
    assert.equal((await run("", signal)).left, false);
  });

  test(`${signal} ends commands with their children and grandchildren`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "hermes-outlive-"));
    const parent = spawn(process.execPath, ["--input-type=module", "-e", commands(directory)], { stdio: "ignore" });
    const names = ["shell", "child", "grandchild", "stubborn", "background", "second"];
    const pids: number[] = [];
    for (const name of names) pids.push(await pidIn(join(directory, name)));
    await pidIn(join(directory, "known"));
    assert.deepEqual(pids.map(isRunning), [true, true, true, true, true, true]);
    parent.kill(signal);
    await once(parent, "exit");
    for (let n = 0; n < 200 && pids.some(isRunning); n++) await sleep(20);
    const left = names.filter((_, index) => isRunning(pids[index] as number));
    for (const pid of pids) if (isRunning(pid)) process.kill(pid, "SIGKILL");
    await rm(directory, { recursive: true });
    assert.deepEqual(left, []);
  });
}

test("what was let go of lives on also after SIGKILL", async () => {
  assert.equal((await run("letGo();", "SIGKILL")).left, true);
});

const local = new URL("./local.ts", import.meta.url).href;
const clear = new URL("../../test/support/cleared.ts", import.meta.url).href;
const commands = (directory: string) => `
  const { openLocalEnvironment } = await import(${JSON.stringify(local)});
  const { cleared } = await import(${JSON.stringify(clear)});
  const { PATH } = process.env;
  const here = ${JSON.stringify(directory)};
  const environment = await openLocalEnvironment({ cwd: here, environment: { PATH, HOME: here, TMPDIR: here } });
  const run = (command) => environment.execute(cleared(command), { timeoutMs: 60_000, signal: new AbortController().signal });
  await run("true");
  await environment.spawn(cleared("echo $$ > background; sleep 100; true"), {});
  void run("echo $$ > shell; sh -c 'echo $$ > child; sh -c \\"echo \\\\$\\\\$ > grandchild; sleep 100; true\\"; true'; true");
  void run("trap '' TERM HUP INT QUIT; echo $$ > stubborn; while :; do sleep 0.2; done");
  void run("sleep 100 & echo $! > second; wait");
  // A command is known to whoever ends it a moment after it runs.
  const { readdir, writeFile } = await import("node:fs/promises");
  const started = async () => (await readdir(here)).filter((name) => /^(shell|grandchild|stubborn|second)$/.test(name)).length;
  while ((await started()) < 4) await new Promise((resolve) => setTimeout(resolve, 20));
  await new Promise((resolve) => setTimeout(resolve, 200));
  await writeFile(here + "/known", "1");
`;

async function pidIn(file: string): Promise<number> {
  for (;;) {
    const pid = Number(await readFile(file, "utf8").catch(() => ""));
    if (pid > 0) return pid;
    await sleep(20);
  }
}
