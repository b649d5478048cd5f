import assert from "node:assert/strict";
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { manualClock, recordedLog, temporaryStore } from "../../../test/support/session-store.ts";
import { tempTree } from "../../../test/support/temp-tree.ts";
import { CHINESE_CHATS } from "../../home/language/chinese-chats.ts";
import { openHome } from "../../home/open.ts";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { createRedactor } from "../../safety/redact.ts";
import { takeInstance } from "./instance.ts";
import { readStatus, StateFile, savedState } from "./state-file.ts";
import { statusPage } from "./status-page.ts";

const TOKEN = "TELEGRAM_BOT_TOKEN=123456:abcdefghijklmnopqrstuvwxyz\n";

async function rig(t: TestContext, files: Readonly<Record<string, string>> = {}) {
  const tree = await tempTree(t);
  const dir = tree.at("home");
  await mkdir(dir);
  for (const [name, text] of Object.entries(files)) await writeFile(tree.at("home", name), text);
  const home = await openHome({
    ...{ argv: [], env: { HERMES_HOME: dir }, osHome: tree.root, cwd: tree.root },
    redactorFor: (settings) => createRedactor(settings),
  });
  t.after(() => home.close());
  const { store } = await temporaryStore(t);
  const status = () => readStatus(home, store);
  const onDisk = async () => JSON.parse(await readFile(tree.at("home", "gateway_state.json"), "utf8"));
  return { home, store, dir, status, onDisk, at: (name: string) => tree.at("home", name) };
}

/** As a gateway that runs in this process. */
async function running(t: TestContext, parts: Awaited<ReturnType<typeof rig>>) {
  const instance = await takeInstance(parts.home, { clock: systemClock });
  t.after(() => instance.release());
  const file = await StateFile.open(parts.home, { clock: systemClock, log: recordedLog() });
  return { instance, file };
}

const EXACT = {
  "": "running pid profile home version state started_at updated_at exit_reason restart_requested turns inbox outbox cron platforms service warnings",
  turns: "running waiting max",
  inbox: "queued oldest_seconds dead",
  outbox: "pending sending oldest_seconds dead",
  cron: "ticking last_tick_at next_run_at running lag_seconds",
  service: "manager installed active",
} as const;
const PLATFORM =
  "enabled state account since error_code error_message retry_at listening last_inbound_at last_outbound_at queued pending";

function assertExact(status: Readonly<Record<string, unknown>>): void {
  for (const [part, keys] of Object.entries(EXACT)) {
    const of = part === "" ? status : (status[part] as object);
    assert.deepEqual(Object.keys(of), keys.split(" "), part);
  }
  for (const [name, row] of Object.entries(status.platforms as object))
    assert.deepEqual(Object.keys(row), PLATFORM.split(" "), name);
}

test("without a gateway the status is the same object: stopped, with the counts of the store", async (t) => {
  const { store, status, dir } = await rig(t, { ".env": TOKEN });
  const work = await store.work();
  const event = { platform: "telegram", account: "a", updateId: "1", kind: "user" as const, event: {} };
  await work.accept([{ ...event, sessionKey: "k" }]);
  await work.promise([{ cause: "c", part: 0, platform: "telegram", account: "a", target: {}, payload: {} }]);
  const found = await status();
  assertExact({ ...found });
  assert.deepEqual(
    [found.running, found.pid, found.state, found.exit_reason, found.profile, found.home],
    [false, null, "stopped", null, "default", dir],
  );
  assert.deepEqual([found.inbox.queued, found.outbox.pending, found.turns.max], [1, 1, 8]);
  assert.ok(found.inbox.oldest_seconds !== null && found.inbox.oldest_seconds < 60);
  const { enabled, state, queued, pending } = found.platforms.telegram ?? assert.fail("telegram is set up");
  assert.deepEqual([enabled, state, queued, pending], [true, "disconnected", 1, 1]);
});

test("a running gateway says what it is doing, with times and offsets", async (t) => {
  const parts = await rig(t, { ".env": TOKEN });
  const { file } = await running(t, parts);
  assert.equal((await parts.status()).state, "starting");
  file.update({
    gateway_state: "running",
    active_agents: 2,
    waiting: 1,
    warnings: ["no cron: run hermes gateway setup"],
    platforms: { telegram: { state: "connected", account: "@bot", last_inbound_at: 1_700_000_000 } },
  });
  await file.flush();
  const found = await parts.status();
  assertExact({ ...found });
  assert.deepEqual([found.running, found.pid, found.state], [true, process.pid, "running"]);
  assert.deepEqual(found.turns, { running: 2, waiting: 1, max: 8 });
  assert.deepEqual(found.warnings.slice(0, 1), ["no cron: run hermes gateway setup"]);
  assert.match(found.warnings[1] ?? "", /^nobody may use the bot on telegram yet/, "looked at when it is asked");
  assert.equal(found.warnings.length, 2);
  const telegram = found.platforms.telegram ?? assert.fail("no telegram");
  assert.deepEqual([telegram.state, telegram.account], ["connected", "@bot"]);
  assert.equal(Date.parse(telegram.last_inbound_at ?? ""), 1_700_000_000_000);
  for (const time of [found.started_at, found.updated_at, telegram.since])
    assert.match(time ?? "", /^\d{4}-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d$/);
  assert.deepEqual(await savedState(parts.home), { pid: process.pid, state: "running", platforms: ["telegram"] });
});

test("the file keeps the names that the original reads", async (t) => {
  const parts = await rig(t);
  const { file } = await running(t, parts);
  file.update({
    gateway_state: "degraded",
    active_agents: 3,
    platforms: { slack: { state: "retrying", error_code: "x" } },
  });
  await file.flush();
  const found = await parts.onDisk();
  assert.deepEqual([found.pid, found.kind, found.gateway_state], [process.pid, "hermes-gateway", "degraded"]);
  assert.deepEqual([found.exit_reason, found.restart_requested, found.active_agents], [null, false, 3]);
  const { state, error_code, error_message, updated_at } = found.platforms.slack;
  assert.deepEqual([state, error_code, error_message], ["retrying", "x", null]);
  assert.ok(Date.parse(updated_at) <= Date.parse(found.updated_at));
  file.update({ platforms: { slack: { state: "connected" } } });
  await file.flush();
  assert.equal((await parts.onDisk()).gateway_state, "running", "with its first connection it is whole");
});

test("a gateway that is gone although its file says otherwise has crashed, and nothing is connected", async (t) => {
  for (const state of ["starting", "running", "degraded", "draining"]) {
    const { at, status } = await rig(t);
    const telegram = { state: "connected", account: "@bot", retry_at: "2026-01-01T00:00:00+00:00" };
    const slack = { state: "fatal", error_code: "slack_lock", error_message: "held by process 7" };
    await writeFile(
      at("gateway_state.json"),
      JSON.stringify({ pid: 4_000_000, start_time: 1, gateway_state: state, platforms: { telegram, slack } }),
    );
    const found = await status();
    assert.deepEqual([found.running, found.pid, found.state, found.exit_reason], [false, null, "stopped", "crashed"]);
    assert.deepEqual([found.platforms.telegram?.state, found.platforms.telegram?.retry_at], ["disconnected", null]);
    assert.deepEqual(
      [found.platforms.slack?.state, found.platforms.slack?.error_message],
      ["fatal", "held by process 7"],
    );
  }
});

test("one that ended says why", async (t) => {
  for (const state of ["stopped", "startup_failed"]) {
    const { at, status } = await rig(t);
    const file = { pid: 4_000_000, gateway_state: state, exit_reason: "no platform is set up" };
    await writeFile(at("gateway_state.json"), JSON.stringify(file));
    const found = await status();
    assert.deepEqual([found.running, found.state, found.exit_reason], [false, state, "no platform is set up"]);
  }
});

test("a gateway that has just started is starting, whatever the file of the last one says", async (t) => {
  const parts = await rig(t);
  await writeFile(parts.at("gateway_state.json"), JSON.stringify({ pid: 4_000_000, gateway_state: "running" }));
  const instance = await takeInstance(parts.home, { clock: systemClock });
  t.after(() => instance.release());
  const found = await parts.status();
  assert.deepEqual([found.running, found.state, found.exit_reason], [true, "starting", null]);
});

test("a file of other bytes is none", async (t) => {
  for (const text of ["", "{half", "[]", "null", '{"platforms": 7, "gateway_state": 1, "warnings": "x"}']) {
    const { at, status } = await rig(t);
    await writeFile(at("gateway_state.json"), text);
    const found = await status();
    assertExact({ ...found });
    assert.deepEqual([found.running, found.state, found.warnings], [false, "stopped", []], text);
  }
});

test("messages that were given up are warned about with their reasons", async (t) => {
  const { store, status } = await rig(t);
  const work = await store.work();
  const bot = await work.takeBot("b", "north:1:x");
  assert.ok(bot.type === "taken");
  for (const [cause, platform, error] of [
    ["a", "telegram", "chat not found"],
    ["b", "telegram", "chat not found"],
    ["c", "slack", "too large"],
  ] as const) {
    const [id = 0] = await work.promise([{ cause, part: 0, platform, account: "a", target: { cause }, payload: {} }]);
    await work.sending(id, bot.lease);
    await work.settleSend(id, { type: "dead", error }, bot.lease);
  }
  const { warnings, outbox } = await status();
  assert.equal(outbox.dead, 3);
  assert.deepEqual(warnings, ["3 messages could not be sent: slack: too large; telegram: chat not found"]);
});

test("a platform that is enabled and cannot be used is named before the gateway is started", async (t) => {
  const { status } = await rig(t, { "config.yaml": "platforms:\n  telegram:\n    enabled: true\n" });
  const { warnings, platforms } = await status();
  assert.match(warnings.join("\n"), /^Telegram: it is enabled but not set up; set TELEGRAM_BOT_TOKEN/);
  assert.equal(platforms.telegram?.enabled, true);
});

test("for every series of updates the flushed file is what they add up to", async (t) => {
  const parts = await rig(t);
  const platform = fc.option(
    fc.record(
      {
        state: fc.constantFrom("connecting", "connected", "retrying", "fatal"),
        account: fc.option(fc.string()),
        error_message: fc.option(fc.string()),
      },
      { requiredKeys: [] },
    ),
    { freq: 5 },
  );
  const update = fc.record({ name: fc.constantFrom("a", "b"), platform, agents: fc.nat(9), wait: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(update, { maxLength: 15 }), async (updates) => {
      const clock = manualClock();
      const file = await StateFile.open(parts.home, { clock, log: recordedLog() });
      const expected: Record<string, Record<string, unknown>> = {};
      for (const { name, platform: change, agents, wait } of updates) {
        file.update({ active_agents: agents, platforms: { [name]: change } });
        if (change === null) delete expected[name];
        else expected[name] = { ...expected[name], ...change };
        if (wait) await new Promise(setImmediate);
      }
      await file.flush();
      const found = await parts.onDisk();
      assert.equal(found.active_agents, updates.at(-1)?.agents ?? 0);
      assert.deepEqual(Object.keys(found.platforms).sort(), Object.keys(expected).sort());
      for (const [name, { state = "disconnected", account = null, error_message = null }] of Object.entries(expected)) {
        const row = found.platforms[name];
        assert.deepEqual([row.state, row.account, row.error_message], [state, account, error_message]);
      }
    }),
    { numRuns: 25 },
  );
});

test("a busy gateway writes its file a few times a second, not with every message", async (t) => {
  const parts = await rig(t);
  const file = await StateFile.open(parts.home, { clock: systemClock, log: recordedLog() });
  const seen = new Set<string>();
  const begun = Date.now();
  let last = 0;
  for (; Date.now() - begun < 1500; await systemClock.sleep(5)) {
    file.update({ platforms: { telegram: { last_inbound_at: ++last } } });
    seen.add((await parts.onDisk()).updated_at);
  }
  const seconds = (Date.now() - begun) / 1000;
  assert.ok(seen.size <= 4 * seconds + 2, `${seen.size} writes in ${seconds} s`);
  await file.flush();
  assert.equal(Date.parse((await parts.onDisk()).platforms.telegram.last_inbound_at), last * 1000);
});

test("another state is in the file at once: who reads that the gateway is ready finds it running", async (t) => {
  const parts = await rig(t);
  const never: Clock = {
    ...manualClock(),
    sleep: (_, signal) =>
      new Promise((_done, fail) => {
        signal?.addEventListener("abort", () => fail(signal.reason));
        if (signal?.aborted) fail(signal.reason);
      }),
  };
  const file = await StateFile.open(parts.home, { clock: never, log: recordedLog() });
  const becomes = async (state: string) => {
    while ((await parts.onDisk()).gateway_state !== state) await systemClock.sleep(5);
  };
  file.update({ platforms: { telegram: { last_inbound_at: 1 } } });
  file.update({ gateway_state: "running" });
  await becomes("running");
  file.update({ platforms: { telegram: { last_inbound_at: 2 } } });
  file.update({ platforms: { telegram: { state: "connected" } } });
  while ((await parts.onDisk()).platforms.telegram?.state !== "connected") await systemClock.sleep(5);
  file.update({ gateway_state: "draining" });
  file.update({ gateway_state: "stopped" });
  await becomes("stopped");
});

test("no key of the home gets into the file, whatever a platform says", async (t) => {
  const parts = await rig(t, { ".env": TOKEN });
  const { file } = await running(t, parts);
  const said = `cannot reach https://example.org/bot${TOKEN.trim().split("=")[1]}/getMe`;
  file.update({
    exit_reason: said,
    warnings: [said],
    platforms: { telegram: { state: "retrying", error_message: said } },
  });
  await file.flush();
  const text = JSON.stringify([await parts.onDisk(), await parts.status()]);
  assert.ok(text.includes("cannot reach") && !text.includes("abcdefghijklmnopqrstuvwxyz"));
});

test("a file that cannot be written is told in the log and disturbs nobody", async (t) => {
  const parts = await rig(t);
  const log = recordedLog();
  const file = await StateFile.open(parts.home, { clock: manualClock(), log });
  await rm(parts.at("gateway_state.json"));
  await mkdir(parts.at("gateway_state.json"));
  await chmod(parts.at("gateway_state.json"), 0o500);
  file.update({ gateway_state: "running" });
  await file.flush();
  assert.match(log.lines.join("\n"), /^ERROR the state of the gateway is not written/);
});

test("the page for people names platforms, queues, and what to do", async (t) => {
  const parts = await rig(t, { ".env": TOKEN });
  const stopped = statusPage(await parts.status(), Date.now());
  assert.match(stopped, /^Gateway +stopped\n/);
  assert.match(stopped, /^telegram +set up$/m);
  assert.match(stopped, /hermes gateway start/);
  const chinese = statusPage(await parts.status(), Date.now(), (text) => CHINESE_CHATS[text] ?? text);
  assert.match(chinese, /^网关 {6}已停止\n.*^telegram {2}set up$/ms, "columns line up by cells");
  const failed = { state: "disconnected", error_message: "the token is refused" };
  await writeFile(
    parts.at("gateway_state.json"),
    JSON.stringify({ gateway_state: "startup_failed", exit_reason: "none connected", platforms: { telegram: failed } }),
  );
  const after = statusPage(await parts.status(), Date.now());
  assert.match(after, /^Gateway +startup failed \(none connected\)$/m);
  assert.match(after, /^telegram +set up, last error: the token is refused$/m);
  const { file } = await running(t, parts);
  const now = Date.now() / 1000;
  file.update({
    gateway_state: "running",
    active_agents: 1,
    warnings: ["the key is weak"],
    platforms: {
      telegram: { state: "connected", account: "@bot", last_inbound_at: now - 120 },
      slack: { state: "retrying", error_message: "no route", retry_at: now + 31 },
      sms: { state: "connected", account: "+49", listening: "http://127.0.0.1:8080" },
    },
  });
  await file.flush();
  const page = statusPage(await parts.status(), now * 1000);
  assert.match(page, /^Gateway +running \(process \d+\), started just now, 1 turn of at most 8 running$/m);
  assert.match(page, /^telegram +connected as @bot, last message 2m ago$/m);
  assert.match(page, /^slack +retrying, next try in 31s: no route$/m);
  assert.match(page, /^sms +connected as \+49, listening on http:\/\/127\.0\.0\.1:8080$/m);
  assert.match(page, /^⚠ the key is weak$/m);
});
