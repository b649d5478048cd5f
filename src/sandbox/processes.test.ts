import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { isAlive } from "./processes.ts";

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
