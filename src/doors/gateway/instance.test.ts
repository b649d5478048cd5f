import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { tempTree } from "../../../test/support/temp-tree.ts";
import { type OpenHome, openHome } from "../../home/open.ts";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { isSameProcess, processFacts } from "../../kit/pid.ts";
import {
  endGateway,
  isGoneWithin,
  isoTime,
  lockBot,
  noteRestart,
  plannedEnd,
  runningGatewayOf,
  stateDirOf,
  takeInstance,
  takeRestartNote,
} from "./instance.ts";

const script = fileURLToPath(new URL("../../../test/support/gateway-holder.ts", import.meta.url));
const clock = systemClock;
/** Where all tests together keep compiled code. */
const compiled = process.env.NODE_COMPILE_CACHE ? { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE } : {};

interface Holder {
  readonly child: ChildProcess;
  readonly pid: number;
  /** The next line that begins so. */
  said(word: string): Promise<string>;
  readonly code: Promise<number | null>;
}

function start(t: TestContext, dir: string, args: readonly string[] = [], env: Record<string, string> = {}): Holder {
  const child = spawn(process.execPath, [script, dir, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env.PATH, ...compiled, HERMES_GATEWAY_DETACHED: "1", ...env },
  });
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  const code = once(child, "close").then(([number]: (number | null)[]) => number ?? null);
  const late = setTimeout(() => child.kill("SIGKILL"), 60_000);
  t.after(async () => {
    clearTimeout(late);
    child.kill("SIGKILL");
    await code;
  });
  const said = async (word: string) => {
    for (const until = Date.now() + 20_000; Date.now() < until; await clock.sleep(20)) {
      const found = text.split("\n").find((line) => line.startsWith(word));
      if (found !== undefined) return found;
    }
    throw new Error(`${word} was never said, but: ${text}`);
  };
  return { child, pid: child.pid ?? 0, said, code };
}

async function home(t: TestContext): Promise<{ dir: string; home: OpenHome; at(name: string): string }> {
  const tree = await tempTree(t);
  const dir = tree.at("home");
  await mkdir(dir);
  const opened = await openHome({ argv: [], env: { HERMES_HOME: dir }, osHome: dir, cwd: dir });
  t.after(() => opened.close());
  return { dir, home: opened, at: (name) => join(dir, name) };
}

const json = async (path: string) => JSON.parse(await readFile(path, "utf8"));
const isThere = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

test("a gateway names itself in gateway.pid, and a second one is refused with that number", async (t) => {
  const { dir, home: mine, at } = await home(t);
  const first = start(t, dir);
  assert.equal(await first.said("took"), "took false");
  const named = await json(at("gateway.pid"));
  assert.deepEqual(Object.keys(named), ["pid", "kind", "argv", "start_time"]);
  assert.deepEqual([named.pid, named.kind], [first.pid, "hermes-gateway"]);
  assert.equal(named.start_time, (await processFacts(first.pid))?.startTime);
  const second = start(t, dir);
  assert.match(await second.said("refused"), new RegExp(`already running \\(process ${first.pid}\\).*--replace`));
  assert.equal(await second.code, 1);
  assert.deepEqual(await runningGatewayOf(mine), { pid: first.pid, startTime: named.start_time });
});

test("of many gateways that start at once exactly one runs, and the others name it", async (t) => {
  const { dir } = await home(t);
  const all = Array.from({ length: 4 }, () => start(t, dir));
  const lines = await Promise.all(all.map(({ said }) => Promise.race([said("took"), said("refused")])));
  const winners = all.filter((_, at) => lines[at]?.startsWith("took"));
  assert.equal(winners.length, 1, lines.join("\n"));
  for (const line of lines.filter((one) => one.startsWith("refused")))
    assert.match(line, new RegExp(`process ${winners[0]?.pid}\\)`));
});

test("killed with -9 it leaves its files, and the next one starts all the same", async (t) => {
  const { dir, home: mine, at } = await home(t);
  const first = start(t, dir);
  await first.said("took");
  first.child.kill("SIGKILL");
  await first.code;
  assert.ok(await isThere(at("gateway.pid")));
  assert.equal(await runningGatewayOf(mine), null);
  const second = start(t, dir);
  await second.said("took");
  assert.equal((await json(at("gateway.pid"))).pid, second.pid);
});

const strange: readonly (readonly [what: string, pid: () => unknown])[] = [
  ["is empty", () => ""],
  ["is not JSON", () => "{half"],
  ["names a process that is gone", () => ({ pid: 4_000_000, start_time: 5 })],
  ["has the id of a process that began at another time", () => ({ pid: process.ppid, start_time: 1 })],
  ["has the id of a living process and no start time, while nobody holds the lock", () => ({ pid: process.ppid })],
];
for (const [what, content] of strange)
  test(`a gateway.pid that ${what} is stale and replaced`, async (t) => {
    const { home: mine, at } = await home(t);
    const value = content();
    await writeFile(at("gateway.pid"), typeof value === "string" ? value : JSON.stringify(value));
    const instance = await takeInstance(mine, { clock });
    assert.equal((await json(at("gateway.pid"))).pid, process.pid);
    await instance.release();
    assert.ok(!(await isThere(at("gateway.pid"))));
  });

test("a living gateway that takes no lock of ours, as the original's, is refused by its start time", async (t) => {
  const { home: mine, at } = await home(t);
  const other = start(t, at(".."), ["bot"], { HERMES_GATEWAY_LOCK_DIR: at("locks") });
  await other.said("bot taken");
  await writeFile(at("gateway.lock"), '{"pid": 1}');
  const startTime = (await processFacts(other.pid))?.startTime;
  await writeFile(at("gateway.pid"), JSON.stringify({ pid: other.pid, start_time: startTime }));
  await assert.rejects(takeInstance(mine, { clock }), new RegExp(`process ${other.pid}`));
  other.child.kill("SIGKILL");
  await other.code;
  await (await takeInstance(mine, { clock })).release();
});

test("a gateway whose pid file was removed is found by its lock and its state file", async (t) => {
  const { dir, home: mine, at } = await home(t);
  const first = start(t, dir);
  await first.said("took");
  const named = await json(at("gateway.pid"));
  await rm(at("gateway.pid"));
  await assert.rejects(takeInstance(mine, { clock }), /another process holds its lock/);
  await writeFile(at("gateway_state.json"), JSON.stringify({ ...named, gateway_state: "running" }));
  await assert.rejects(takeInstance(mine, { clock }), new RegExp(`process ${first.pid}`));
  await writeFile(at("gateway_state.json"), JSON.stringify({ ...named, gateway_state: "stopped" }));
  assert.equal(await runningGatewayOf(mine), null);
});

test("--replace ends the running gateway as planned: it exits 0, and the new one knows that nothing was cut off", async (t) => {
  const { dir, at } = await home(t);
  const first = start(t, dir);
  await first.said("took");
  const second = start(t, dir, ["replace"]);
  assert.equal(await second.said("took"), "took true");
  assert.equal(await first.said("ending"), `ending stop 0 replaced by process ${second.pid}`);
  assert.equal(await first.code, 0);
  assert.equal((await json(at("gateway.pid"))).pid, second.pid);
  assert.ok(!(await isThere(at(".gateway-takeover.json"))));
  assert.ok(!(await isThere(at(".clean_shutdown"))), "read once");
});

test("--replace kills a gateway that is stopped and cannot hear, after 10 seconds, and frees its bots", async (t) => {
  const { dir, at } = await home(t);
  const env = { HERMES_HOME: dir, HERMES_GATEWAY_LOCK_DIR: at("locks") };
  const mine = await openHome({ argv: [], env, osHome: dir, cwd: dir });
  t.after(() => mine.close());
  const first = start(t, dir);
  await first.said("took");
  await lockOf("token", at("locks"), first.pid);
  await lockOf("another", at("locks"), process.ppid);
  first.child.kill("SIGSTOP");
  let waited = 0;
  const hurried: Clock = {
    ...clock,
    now: () => Date.now() + waited,
    async sleep(ms) {
      waited += ms * 19;
      await clock.sleep(ms);
    },
  };
  const instance = await takeInstance(mine, { replace: true, clock: hurried });
  t.after(() => instance.release());
  assert.ok(waited >= 9000, String(waited));
  assert.equal(await isSameProcess(first.pid, null), false);
  assert.deepEqual(await locksIn(at("locks")), [basename(lockFile("another", ""))]);
});

const endings: readonly (readonly [signal: NodeJS.Signals, planned: boolean, line: RegExp, code: number])[] = [
  ["SIGTERM", false, /^ending stop 1 SIGTERM$/, 1],
  ["SIGTERM", true, /^ending stop 0 hermes gateway stop$/, 0],
  ["SIGINT", false, /^ending stop 0 Ctrl\+C$/, 0],
  ["SIGUSR2", false, /^ending restart 0 restart$/, 0],
];
for (const [signal, planned, line, code] of endings)
  test(`${planned ? "a planned" : "a"} ${signal} ends with ${code}`, async (t) => {
    const { dir, home: mine, at } = await home(t);
    const gateway = start(t, dir);
    await gateway.said("took");
    if (planned) {
      const target = (await runningGatewayOf(mine)) ?? assert.fail("not found");
      assert.equal(await endGateway(mine, target, { note: "stop", waitMs: 10_000, clock }), "ended");
      assert.ok(!(await isThere(at(".gateway-planned-stop.json"))));
    } else gateway.child.kill(signal);
    assert.match(await gateway.said("ending"), line);
    assert.equal(await gateway.code, code);
  });

test("a restart is left to whoever started the gateway: systemd, launchd, a container", async (t) => {
  for (const [name, value] of [
    ["INVOCATION_ID", "abc"],
    ["XPC_SERVICE_NAME", "ai.hermes.gateway"],
    ["HERMES_CONTAINER", "1"],
  ] as const) {
    const { dir } = await home(t);
    const gateway = start(t, dir, [], { [name]: value, HERMES_GATEWAY_DETACHED: "" });
    await gateway.said("took");
    gateway.child.kill("SIGUSR2");
    assert.equal(await gateway.said("ending"), "ending restart 75 restart");
    assert.equal(await gateway.code, 75);
  }
});

test("where signals cannot be caught, the note of a planned stop is enough", async (t) => {
  const { dir, home: mine, at } = await home(t);
  const gateway = start(t, dir, [], { POLLS: "1" });
  await gateway.said("took");
  const { pid, startTime } = (await runningGatewayOf(mine)) ?? assert.fail("not found");
  const note = { target_pid: pid, target_start_time: startTime, replacer_pid: 1, written_at: isoTime(Date.now()) };
  await writeFile(at(".gateway-planned-stop.json"), JSON.stringify(note));
  assert.equal(await gateway.code, 0);
});

test("a gateway that does not end when asked is killed when the time is up", async (t) => {
  const { dir, home: mine } = await home(t);
  const gateway = start(t, dir, [], { STUBBORN: "1" });
  await gateway.said("took");
  const target = (await runningGatewayOf(mine)) ?? assert.fail("not found");
  assert.equal(await endGateway(mine, target, { note: "stop", waitMs: 300, clock }), "killed");
  assert.ok(await isGoneWithin(target, 0, clock));
});

test("a note plans the end of the process it names, for a minute, once", async (t) => {
  const { home: mine, at } = await home(t);
  const startTime = (await processFacts(process.pid))?.startTime ?? null;
  const note = (more: object) =>
    writeFile(
      at(".gateway-planned-stop.json"),
      JSON.stringify({
        ...{ target_pid: process.pid, target_start_time: startTime, replacer_pid: 7, written_at: isoTime(Date.now()) },
        ...more,
      }),
    );
  await note({});
  assert.deepEqual(await plannedEnd(mine, clock), { note: "stop", by: 7 });
  assert.equal(await plannedEnd(mine, clock), null, "it counts once");
  await note({ written_at: isoTime(Date.now() - 61_000) });
  assert.equal(await plannedEnd(mine, clock), null, "too old");
  await note({ target_pid: process.ppid });
  assert.equal(await plannedEnd(mine, clock), null, "for another process");
  await note({ target_start_time: 1 });
  assert.equal(await plannedEnd(mine, clock), null, "for an earlier process with this id");
  await note({ written_at: "yesterday" });
  assert.equal(await plannedEnd(mine, clock), null, "no time");
  await writeFile(at(".gateway-planned-stop.json"), "{half");
  assert.equal(await plannedEnd(mine, clock), null, "not JSON");
});

test("who asked for a restart is told once, with the thread", async (t) => {
  const { home: mine, at } = await home(t);
  assert.equal(await takeRestartNote(mine), null);
  const who = { platform: "telegram", chat_id: "-100", thread_id: "7" };
  await noteRestart(mine, who);
  await noteRestart(mine);
  assert.deepEqual(await takeRestartNote(mine), { by: who });
  assert.equal(await takeRestartNote(mine), null);
  await writeFile(at(".restart_notify.json"), '{"platform":"telegram","chat_id":42}');
  assert.deepEqual(await takeRestartNote(mine), { by: { platform: "telegram", chat_id: "42" } });
  await noteRestart(mine);
  assert.deepEqual(await takeRestartNote(mine), { by: null });
});

// Bots.

function lockFile(identity: string, stateDir: string): string {
  const hash = createHash("sha256").update(identity).digest("hex").slice(0, 16);
  return join(stateDir, "hermes", "gateway-locks", `telegram-${hash}.lock`);
}

async function lockOf(identity: string, folder: string, pid: number): Promise<void> {
  const path = lockFile(identity, folder);
  await mkdir(join(path, ".."), { recursive: true });
  const startTime = (await processFacts(pid))?.startTime;
  await writeFile(path, JSON.stringify({ pid, start_time: startTime }));
}

const locksIn = async (folder: string) =>
  (await readdir(join(folder, "hermes", "gateway-locks")).catch(() => [])).filter((name) => name.endsWith(".lock"));

test("two homes of a machine cannot use one bot at once, and can use two", async (t) => {
  const [one, other] = [await home(t), await home(t)];
  const env = { HERMES_GATEWAY_LOCK_DIR: one.at("locks") };
  const first = start(t, one.dir, ["bot", "12:abc"], env);
  await first.said("bot taken");
  const second = start(t, other.dir, ["bot", "12:abc"], env);
  assert.equal(await second.said("bot"), `bot held ${first.pid}`);
  const third = start(t, other.dir, ["bot", "13:abc"], env);
  assert.equal(await third.said("bot"), "bot taken");
  const text = await readFile(lockFile("12:abc", one.at("locks")), "utf8");
  assert.ok(!text.includes("12:abc"), "the token is nowhere");
  first.child.kill("SIGINT");
  assert.equal(await first.code, 0);
  assert.equal((await locksIn(one.at("locks"))).length, 1);
  const fourth = start(t, other.dir, ["bot", "12:abc"], env);
  assert.equal(await fourth.said("bot"), "bot taken");
});

test("of many that reach for one bot at once exactly one has it", async (t) => {
  const { dir, at } = await home(t);
  const env = { HERMES_GATEWAY_LOCK_DIR: at("locks") };
  const all = Array.from({ length: 4 }, () => start(t, dir, ["bot"], env));
  const lines = await Promise.all(all.map(({ said }) => said("bot")));
  assert.equal(lines.filter((line) => line === "bot taken").length, 1, lines.join("\n"));
});

test("a bot whose holder is stopped is taken over, and the one that continues leaves it alone", async (t) => {
  const { dir, at } = await home(t);
  const env = { HERMES_GATEWAY_LOCK_DIR: at("locks") };
  const first = start(t, dir, ["bot"], env);
  await first.said("bot taken");
  first.child.kill("SIGSTOP");
  const second = start(t, dir, ["bot"], env);
  assert.equal(await second.said("bot"), "bot taken");
  first.child.kill("SIGCONT");
  first.child.kill("SIGINT");
  await first.code;
  assert.equal((await json(lockFile("token", at("locks")))).pid, second.pid);
});

test("a lock that says nothing, or names a process that is gone, another one, or an earlier machine's, is stale", async (t) => {
  const { at } = await home(t);
  const stateDir = at("locks");
  const path = lockFile("token", stateDir);
  await mkdir(join(path, ".."), { recursive: true });
  const living = process.ppid;
  const { startTime } = (await processFacts(living)) ?? assert.fail("gone");
  const cases: readonly (readonly [text: string, stale: boolean])[] = [
    ["", true],
    ["{half", true],
    ["[]", true],
    [JSON.stringify({ pid: "x" }), true],
    [JSON.stringify({ pid: 4_000_000, start_time: 1 }), true],
    [JSON.stringify({ pid: living, start_time: 1 }), true],
    [JSON.stringify({ pid: process.pid }), true],
    [JSON.stringify({ pid: living, start_time: startTime }), false],
    [JSON.stringify({ pid: living }), false],
  ];
  for (const [text, stale] of cases) {
    await writeFile(path, text);
    const lock = await lockBot("telegram", "token", { stateDir });
    assert.equal(lock.type === "taken", stale, text);
    if (lock.type === "taken") await lock.release();
  }
  await writeFile(path, JSON.stringify({ pid: living }));
  await utimes(path, 0, 0);
  assert.equal((await lockBot("telegram", "token", { stateDir })).type, "taken", "written before this machine started");
});

test("for every order of taking and releasing in one process, a bot has one holder", async (t) => {
  const { at } = await home(t);
  const step = fc.record({ take: fc.boolean(), bot: fc.integer({ min: 0, max: 2 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const held = new Map<number, () => Promise<void>>();
      for (const { take, bot } of steps) {
        if (!take) {
          await held.get(bot)?.();
          held.delete(bot);
          continue;
        }
        const lock = await lockBot("telegram", String(bot), { stateDir: at("law") });
        assert.equal(lock.type, held.has(bot) ? "held" : "taken");
        if (lock.type === "taken") held.set(bot, lock.release);
        else assert.equal(lock.by, process.pid);
      }
      assert.equal((await locksIn(at("law"))).length, held.size);
      for (const release of held.values()) await release();
    }),
    { numRuns: 15 },
  );
});

test("locks lie in HERMES_GATEWAY_LOCK_DIR, else XDG_STATE_HOME, else ~/.local/state", async (t) => {
  const { dir } = await home(t);
  const from = async (env: Record<string, string>) => {
    const opened = await openHome({ argv: [], env: { HERMES_HOME: dir, ...env }, osHome: "/home/ann", cwd: dir });
    await opened.close();
    return stateDirOf(opened);
  };
  assert.equal(await from({ HERMES_GATEWAY_LOCK_DIR: "/locks", XDG_STATE_HOME: "/state" }), "/locks");
  assert.equal(await from({ XDG_STATE_HOME: "/state" }), "/state");
  assert.equal(await from({ HERMES_GATEWAY_LOCK_DIR: " " }), "/home/ann/.local/state");
});

test("times carry the offset of their zone and read back as the same instant", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_000_000_000_000 }), (ms) => {
      assert.match(isoTime(ms), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/);
      assert.equal(Date.parse(isoTime(ms)), ms);
    }),
  );
});
