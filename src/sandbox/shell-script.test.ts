import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { commandScript } from "./shell-script.ts";

/** The state letter of each child of a process. */
async function childStates(parent: number): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")));
  return stats.flatMap((stat) => {
    const [state = "", of] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(of) === parent ? [state] : [];
  });
}

test("a shell that outlives its child on the way to its end says nothing about it", {
  skip: process.platform !== "linux" && "needs /proc",
}, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "hermes-script-"));
  t.after(() => rm(folder, { recursive: true }));
  const command = "echo ready; sleep 60";
  const snapshot = join(folder, "state");
  const script = commandScript({ command, cwd: folder, marker: "MARK", snapshot, carry: { save: true } });
  const shell = spawn("bash", ["-c", script], { detached: true, stdio: ["ignore", "pipe", "inherit"] });
  const pid = shell.pid ?? 0;
  let output = "";
  shell.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
  });
  const closed = new Promise((resolve) => shell.on("close", resolve));
  const states = async (wanted: RegExp) => {
    while (!wanted.test((await childStates(pid)).join(""))) await pause(5);
  };
  while (!output.includes("ready")) await pause(5);
  await states(/S/);
  // The child dies while its shell cannot look.
  process.kill(pid, "SIGSTOP");
  while (!/\) T /.test(await readFile(`/proc/${pid}/stat`, "utf8"))) await pause(5);
  process.kill(-pid, "SIGTERM");
  await states(/^Z$/);
  process.kill(pid, "SIGCONT");
  await closed;
  assert.equal(output, `ready\n\nMARK${folder}MARK\n`);
});
