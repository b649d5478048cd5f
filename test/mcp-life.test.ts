// What happens to servers over time: they change, hang, crash, come back and end.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../src/kit/clock.ts";
import { isAlive } from "../src/kit/pid.ts";
import { pauseBefore } from "../src/mcp/server.ts";
import { parseServers } from "../src/mcp/settings.ts";
import { descendantsOf } from "../src/sandbox/processes.ts";
import { bodyOf, json, smallServer } from "./support/mcp/http-server.ts";
import { hubRig, shellServer, tinyServer } from "./support/mcp/hub-rig.ts";
import { jumpingClock } from "./support/memory-provider.ts";
import { isRunning } from "./support/running.ts";

async function until(what: () => boolean | Promise<boolean>, message: string): Promise<void> {
  for (let n = 0; n < 3000; n++) {
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

test("names that collide are left out with a warning, and a description that reads like an attack is withheld with one", async () => {
  await using rig = await hubRig({ tiny: tinyServer("evil") });
  const { tools, status } = rig.server("tiny");
  assert.equal(tools.filter(({ name }) => name === "mcp_tiny_a_b").length, 1);
  const echo = tools.find(({ tool }) => tool === "echo");
  assert.match(echo?.description ?? "", /^\[Description withheld: it reads like an attack \(/);
  assert.deepEqual(echo?.parameters, { type: "object", properties: {} });
  assert.match(status.warnings.join("\n"), /"a\.b" is skipped: its name mcp_tiny_a_b is already used by "a-b"/);
  assert.match(
    status.warnings.join("\n"),
    /description of echo reads like an attack and is withheld\. hermes mcp review tiny/,
  );
});

test("two servers whose names look alike do not answer for each other", async () => {
  await using rig = await hubRig({ "a-b": tinyServer(), a_b: tinyServer() });
  assert.match(rig.lines.join("\n"), /its name mcp_a_b_echo is already used by server/);
});

test("a server that never answers delays nobody and is told about", async () => {
  await using rig = await hubRig(
    { hang: { ...tinyServer("hang"), connect_timeout: 0.3 }, tiny: tinyServer() },
    {},
    5000,
  );
  assert.equal(await rig.call("tiny", "echo", { text: "hi" }), '{"result":"echo hi"}');
  await until(() => rig.server("hang").status.reason !== null, "no reason was given");
  assert.match(rig.server("hang").status.reason ?? "", /no response within 0\.3 s.*connect_timeout/);
});

test("settled waits no longer than it is told to", async () => {
  await using rig = await hubRig({ hang: tinyServer("hang") }, {}, 200);
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

test("an error of the server carries no secrets, neither known ones nor what looks like one", async () => {
  await using rig = await hubRig({ tiny: tinyServer() }, { redact: (text) => text.replace("refused", "***") });
  assert.equal(await rig.call("tiny", "fail"), '{"error":"*** with Bearer [REDACTED]"}');
});

test("three failures in a row, and the server is not asked for a minute", async () => {
  let now = 0;
  const clock = { ...systemClock, now: () => now };
  await using rig = await hubRig({ tiny: { ...tinyServer(), timeout: 0.3 } }, { clock });
  for (let n = 0; n < 3; n++) assert.match(await rig.call("tiny", "slow"), /did not respond within 0\.3 s/);
  assert.match(
    await rig.call("tiny", "echo"),
    /failed three times in a row and is paused for another 60 s.*Last reason/s,
  );
  now += 60_000;
  assert.equal(await rig.call("tiny", "echo", { text: "x" }), '{"result":"echo x"}');
});

test("the first call after that minute is a trial: if it fails, the minute begins anew; if it does not, all is forgotten", async () => {
  let now = 0;
  const clock = { ...systemClock, now: () => now };
  await using rig = await hubRig({ tiny: { ...tinyServer(), timeout: 0.3 } }, { clock });
  const fails = async () => assert.match(await rig.call("tiny", "slow"), /did not respond within 0\.3 s/);
  for (let n = 0; n < 3; n++) await fails();
  now += 60_000;
  await fails();
  now += 59_000;
  assert.match(await rig.call("tiny", "echo"), /is paused for another 1 s/);
  now += 1000;
  assert.equal(await rig.call("tiny", "echo", { text: "x" }), '{"result":"echo x"}');
  for (let n = 0; n < 2; n++) await fails();
  assert.equal(await rig.call("tiny", "echo", { text: "y" }), '{"result":"echo y"}');
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

test("servers that will not go are asked to, then ended", async () => {
  const rig = await hubRig({ one: tinyServer("stubborn"), two: tinyServer("stubborn"), polite: tinyServer() });
  const pids = ["one", "two", "polite"].map((name) => rig.server(name).pid ?? 0);
  assert.ok(pids.every(isRunning));
  await rig[Symbol.asyncDispose]();
  assert.deepEqual(pids.filter(isRunning), []);
  assert.deepEqual(rig.stderr.filter((line) => line.endsWith("not now")).sort(), ["one: not now", "two: not now"]);
});

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

test("a server that stays away is tried three times at the start, then every five minutes, and is there when it comes", async () => {
  await using place = await hubRig({});
  const program = join(place.dir, "late-server");
  const clock = jumpingClock();
  const pauses: number[] = [];
  const told = {
    ...clock,
    sleep: (ms: number, signal?: AbortSignal) => {
      pauses.push(ms);
      return clock.sleep(ms, signal);
    },
  };
  await writeFile(program, "#!/bin/sh\necho not today >&2\nexit 3\n", { mode: 0o755 });
  await using rig = await hubRig({ late: { command: program } }, { clock: told }, 0);
  const pass = async (ms: number, pausesBefore: number) => {
    await until(() => pauses.length > pausesBefore, `no pause number ${pausesBefore + 1}: ${pauses}`);
    await clock.pass(ms);
  };
  await pass(1000, 0);
  await pass(2000, 1);
  await until(() => rig.server("late").status.state === "parked", "it was never parked");
  assert.match(rig.server("late").status.reason ?? "", /its process ended with code 3: not today/);
  await pass(299_999, 2);
  assert.equal(pauses.length, 3);
  const { command, args } = tinyServer();
  await writeFile(program, `#!/bin/sh\nexec ${command} ${args.join(" ")}\n`, { mode: 0o755 });
  await clock.pass(1);
  await until(() => rig.server("late").status.state === "connected", "it was not tried again");
  assert.deepEqual(pauses, [1000, 2000, 300_000]);
  assert.equal(await rig.call("late", "echo", { text: "hi" }), '{"result":"echo hi"}');
});

test("a server that was lost is tried five times, then parked; meanwhile its tools say when it is tried again", async () => {
  await using place = await hubRig({});
  const program = join(place.dir, "falling-server");
  const { command, args } = tinyServer();
  await writeFile(program, `#!/bin/sh\nexec ${command} ${args.join(" ")}\n`, { mode: 0o755 });
  const pauses: number[] = [];
  const clock = {
    ...systemClock,
    random: () => 0.5,
    sleep: (ms: number, signal?: AbortSignal) => {
      pauses.push(ms);
      return systemClock.sleep(ms === 300_000 ? ms : 1, signal);
    },
  };
  await using rig = await hubRig({ falls: { command: program } }, { clock });
  await writeFile(program, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  process.kill(rig.server("falls").pid ?? 0, "SIGKILL");
  await until(() => rig.server("falls").status.state === "parked", "it was never parked");
  assert.deepEqual(pauses, [1000, 2000, 4000, 8000, 16_000, 300_000]);
  assert.match(await rig.call("falls", "echo"), /its process ended with code 1.* Retrying in (?:299|300) s\./);
});

test("a quiet connection is asked for a sign of life, and one that gives none is replaced", async () => {
  const server = await smallServer();
  const asked: string[] = [];
  let deaf = false;
  server.intercept = async (request, response) => {
    if (deaf) {
      response.destroy();
      return true;
    }
    asked.push(request.method ?? "");
    return false;
  };
  {
    const { servers } = parseServers({ small: { url: server.url } });
    await using rig = await hubRig({});
    rig.hub.start(servers.map((one) => ({ ...one, keepaliveMs: 30 })));
    await rig.hub.settled(5000);
    const before = asked.length;
    await until(() => asked.length > before + 2, "nobody asked");
    assert.equal(rig.server("small").status.state, "connected");
    deaf = true;
    await until(() => rig.server("small").status.state === "reconnecting", "the loss was not noticed");
    deaf = false;
    await until(() => rig.server("small").status.state === "connected", "it did not come back");
  }
  await server.close();
});

test("a package with a malware notice is never started", async () => {
  const queries: unknown[] = [];
  const osv = createServer(async (request, response) => {
    queries.push(JSON.parse(await bodyOf(request)));
    json(response, 200, { vulns: [{ id: "GHSA-1" }, { id: "MAL-2026-1" }, { id: "MAL-2026-2" }] });
  });
  await new Promise<void>((done) => osv.listen(0, "127.0.0.1", done));
  const osvUrl = `http://127.0.0.1:${(osv.address() as AddressInfo).port}/v1/query`;
  {
    await using rig = await hubRig({ bad: { command: "uvx", args: ["--from", "evil[x]==1.2", "run-it"] } }, { osvUrl });
    const { state, reason } = rig.server("bad").status;
    assert.equal(state, "blocked");
    assert.equal(
      reason,
      "MCP server \"bad\": BLOCKED: Package 'evil' (PyPI) has known malware advisories: MAL-2026-1, MAL-2026-2. Remove it: hermes mcp remove bad",
    );
    assert.deepEqual(queries, [{ package: { name: "evil", ecosystem: "PyPI" }, version: "1.2" }]);
  }
  osv.closeAllConnections();
  await new Promise((done) => osv.close(done));
});
