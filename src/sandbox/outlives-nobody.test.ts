import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
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
