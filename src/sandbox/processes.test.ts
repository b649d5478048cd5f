import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { isAlive } from "../kit/pid.ts";
import { descendantsOf, settledWithin, signalEach, standStill } from "./processes.ts";

test("a program that leaves at once takes its running shells with it", async () => {
  const program = `
    import { startShell } from ${JSON.stringify(new URL("./processes.ts", import.meta.url).href)};
    const shell = await startShell({
      program: "/bin/sh",
      args: ["-c", "trap '' TERM HUP; echo ready; sleep 60"],
      env: {},
      stdin: "none",
      pipe: null,
      onBytes() {
        process.stdout.write(String(shell.pid), () => process.exit(3));
      },
    });
  `;
  const run = promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  const { code, stdout } = await run.then(
    () => assert.fail("it leaves with code 3"),
    (error: { code: number; stdout: string }) => error,
  );
  assert.equal(code, 3);
  const pid = Number(stdout);
  assert.ok(pid > 0, stdout);
  for (let i = 0; isAlive(pid) && i < 200; i++) await sleep(25);
  assert.equal(isAlive(pid), false);
});

test("a family of processes that forks without end is made to stand still, and none of it is missed", {
  skip: process.platform !== "linux",
}, async (t) => {
  // Each child forks in its turn, as fast as it can; a limit for the case that the test fails.
  const forking = "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); sh -c 'sleep 30 & wait' & done; wait";
  for (const ms of [0, 3, 10, 30]) {
    const child = spawn("/bin/sh", ["-c", forking], { detached: true, stdio: "ignore" });
    const pid = child.pid ?? 0;
    t.after(() => signalEach([-pid], "SIGKILL"));
    await sleep(ms);
    const family = await standStill(pid);
    await sleep(20);
    assert.deepEqual(await descendantsOf(pid), family);
    signalEach([-pid], "SIGKILL");
    await once(child, "exit");
  }
});

test("what came in time counts, also when this process was too busy to look before the time was over", async () => {
  const child = spawn("/bin/sh", ["-c", "echo done"], { stdio: ["ignore", "pipe", "ignore"] });
  await once(child, "spawn");
  const said = settledWithin(once(child.stdout, "data"), 20);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
  assert.equal(await said, true);
});
