// What happens to servers over time: they change, hang, crash, come back and end.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../src/kit/clock.ts";
import { pauseBefore } from "../src/mcp/server.ts";
import { descendantsOf, isAlive } from "../src/sandbox/process-tree.ts";
import { hubRig, shellServer, tinyServer } from "./support/mcp/hub-rig.ts";

async function until(what: () => boolean | Promise<boolean>, message: string): Promise<void> {
  for (let n = 0; n < 500; n++) {
    if (await what()) return;
    await sleep(20);
  }
  assert.fail(message);
}

test("a changed list waits for the next turn; then new tools are there and removed ones are gone", async () => {
  await using rig = await hubRig({ tiny: tinyServer() });
  const names = () => rig.server("tiny").tools.map(({ tool }) => tool);
  await rig.call("tiny", "grow");
  await rig.call("tiny", "env");
  assert.ok(names().includes("echo") && !names().includes("extra"));
  await until(() => {
    rig.hub.applyChanges();
    return names().includes("extra");
  }, "the change was never taken over");
  assert.ok(!names().includes("echo"));
  assert.equal(await rig.call("tiny", "extra"), '{"result":"new"}');
  assert.ok(
    rig.lines.includes('MCP server "tiny" changed its tools: added mcp_tiny_extra; removed mcp_tiny_echo'),
    rig.lines.join("\n"),
  );
});

test("names that collide are left out with a warning, and suspicious descriptions are kept with one", async () => {
  await using rig = await hubRig({ tiny: tinyServer("evil") });
  const { tools, status } = rig.server("tiny");
  assert.equal(tools.filter(({ name }) => name === "mcp_tiny_a_b").length, 1);
  assert.ok(tools.some(({ tool }) => tool === "echo"));
  assert.match(status.warnings.join("\n"), /"a\.b" is left out, its name mcp_tiny_a_b is taken by "a-b"/);
  assert.match(status.warnings.join("\n"), /description of "echo" reads like an attack/);
});

test("two servers whose names look alike do not answer for each other", async () => {
  await using rig = await hubRig({ "a-b": tinyServer(), a_b: tinyServer() });
  assert.match(rig.lines.join("\n"), /its name mcp_a_b_echo is taken by server/);
});

test("a server that never answers delays nobody and is told about", async () => {
  await using rig = await hubRig(
    { hang: { ...tinyServer("hang"), connect_timeout: 0.3 }, tiny: tinyServer() },
    {},
    5000,
  );
  assert.equal(await rig.call("tiny", "echo", { text: "hi" }), '{"result":"echo hi"}');
  await until(() => rig.server("hang").status.reason !== null, "no reason was given");
  assert.match(rig.server("hang").status.reason ?? "", /no answer within 0\.3 s.*connect_timeout/);
});

test("settled waits no longer than it is told to", async () => {
  const began = performance.now();
  await using rig = await hubRig({ hang: tinyServer("hang") }, {}, 200);
  assert.ok(performance.now() - began < 5000);
  assert.equal(rig.server("hang").status.state, "connecting");
});

test("a crash in the middle of a call is an error that names the server, and the server comes back", async () => {
  // The pauses between tries are skipped.
  const clock = { ...systemClock, sleep: (_ms: number, signal?: AbortSignal) => systemClock.sleep(1, signal) };
  await using rig = await hubRig({ tiny: tinyServer() }, { clock });
  const before = rig.server("tiny").pid;
  const answer = await rig.call("tiny", "crash");
  assert.match(answer, /MCP server "tiny": its process ended with code 3: something broke: token=\[REDACTED\]/);
  assert.equal(await rig.call("tiny", "echo", { text: "again" }), '{"result":"echo again"}');
  assert.notEqual(rig.server("tiny").pid, before);
});

test("an error of the server carries no secrets", async () => {
  await using rig = await hubRig({ tiny: tinyServer() }, { redact: (text) => text.replace(/abc\.def\.ghi/g, "***") });
  assert.equal(await rig.call("tiny", "fail"), '{"error":"refused with Bearer ***"}');
});

test("three failures in a row, and the server is not asked for a minute", async () => {
  let now = 0;
  const clock = { ...systemClock, now: () => now };
  await using rig = await hubRig({ tiny: { ...tinyServer(), timeout: 0.05 } }, { clock });
  for (let n = 0; n < 3; n++) assert.match(await rig.call("tiny", "slow"), /did not answer within 0\.05 s/);
  assert.match(
    await rig.call("tiny", "echo"),
    /failed three times in a row and is not asked for another 60 s.*Last reason/s,
  );
  now += 60_000;
  assert.equal(await rig.call("tiny", "echo", { text: "x" }), '{"result":"echo x"}');
});

test("a hundred forced reconnects leave exactly one process", async () => {
  await using rig = await hubRig({ sh: shellServer() });
  const seen = new Set<number | null>();
  for (let n = 0; n < 100; n++) {
    await rig.server("sh").reconnect();
    seen.add(rig.server("sh").pid);
  }
  assert.equal(seen.size, 100);
  const alive = [...seen].filter((pid) => pid !== null && isAlive(pid));
  assert.deepEqual(alive, [rig.server("sh").pid]);
  assert.equal(await rig.call("sh", "pid"), JSON.stringify({ result: String(rig.server("sh").pid) }));
});

test("helpers that a server started end with it", async () => {
  const rig = await hubRig({ tiny: tinyServer(), other: tinyServer() });
  const helper = Number(JSON.parse(await rig.call("tiny", "helper")).result);
  const orphan = Number(JSON.parse(await rig.call("other", "helper")).result);
  assert.ok(isAlive(helper) && isAlive(orphan));
  // One server is closed, the other dies by itself and leaves its helper behind.
  process.kill(rig.server("other").pid ?? 0, "SIGKILL");
  await until(() => !isRunning(orphan), "the helper of a server that died lives on");
  await rig[Symbol.asyncDispose]();
  await until(() => !isRunning(helper), "the helper lives on");
  assert.deepEqual(await descendantsOf(helper), []);
});

/** A zombie that nobody reaps (in a container without init) is dead enough. */
function isRunning(pid: number): boolean {
  if (!isAlive(pid)) return false;
  try {
    const { readFileSync } = process.getBuiltinModule("node:fs");
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

test("a lazy server is started with its first call, once its tools are known", async () => {
  const settings = { tiny: { ...tinyServer(), lazy: true } };
  await using first = await hubRig(settings);
  assert.ok(first.server("tiny").pid !== null);
  await first.hub.close();
  const cacheFile = join(first.dir, "cache", "mcp_tools.json");
  assert.doesNotMatch(await readFile(cacheFile, "utf8"), /tiny-server/);
  await using second = await hubRig(settings, { cacheFile });
  assert.equal(second.server("tiny").pid, null);
  assert.ok(second.server("tiny").tools.length > 0);
  assert.equal(await second.call("tiny", "echo", { text: "now" }), '{"result":"echo now"}');
});

test("an idle server is closed and comes back with the next call", async () => {
  await using rig = await hubRig({ tiny: { ...tinyServer(), idle_timeout_seconds: 0.1 } });
  await until(() => rig.server("tiny").status.state === "idle", "it never became idle");
  assert.equal(await rig.call("tiny", "echo", { text: "back" }), '{"result":"echo back"}');
});

test("a command the policy forbids is never started", async () => {
  await using rig = await hubRig({ tiny: tinyServer() }, { checkCommand: async () => "not today. Do something else." });
  assert.deepEqual(rig.server("tiny").status.state, "blocked");
  assert.equal(rig.server("tiny").status.reason, 'MCP server "tiny": not today. Do something else.');
  assert.equal(rig.server("tiny").pid, null);
});

test("pauses double from one second to a minute, a fifth more or less", () => {
  assert.deepEqual(
    [1, 2, 3, 7, 20].map((n) => pauseBefore(n, 0.5)),
    [1000, 2000, 4000, 60_000, 60_000],
  );
  assert.deepEqual([pauseBefore(1, 0), pauseBefore(1, 1)], [800, 1200]);
});
