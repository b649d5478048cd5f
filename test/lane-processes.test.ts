// Real processes that write one conversation: stopped past their lease, killed, started again. What the store's lanes promise holds.
// A long run: node test/lane-processes.test.ts --rounds=100
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { systemClock } from "../src/kit/clock.ts";
import { openSessionStore } from "../src/sessions/open.ts";
import { assertOneWriterPerToken } from "./support/lane-conformance.ts";
import { recordedLog, temporaryFolder } from "./support/session-store.ts";

const script = fileURLToPath(new URL("support/lane-holder.ts", import.meta.url));
const rounds = Number(
  process.argv.find((argument) => argument.startsWith("--rounds="))?.slice("--rounds=".length) ?? 8,
);
const SESSION = "talk";

type Kind = "waits" | "took" | "wrote" | "moved";

interface Holder {
  readonly child: ChildProcess;
  lines(kind: Kind): readonly string[];
  kill(): Promise<void>;
}

function startHolder(t: TestContext, path: string, seconds: number): Holder {
  const child = spawn(process.execPath, [script, path, SESSION, String(seconds)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_COMPILE_CACHE: join(path, "..", "compiled") },
  });
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  const lines: Holder["lines"] = (kind) =>
    text
      .split("\n")
      .slice(0, -1) // an unfinished last line was never said
      .filter((line) => line.startsWith(kind));
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, "close");
    child.kill("SIGKILL");
    await closed;
  };
  t.after(kill);
  return { child, lines, kill };
}

/** True once one of them said more such lines than now; false when that takes too long. */
async function more(holders: readonly Holder[], kind: Kind, ms = 60_000): Promise<boolean> {
  const count = () => holders.reduce((sum, { lines }) => sum + lines(kind).length, 0);
  const before = count();
  for (const until = Date.now() + ms; Date.now() < until; await delay(10)) {
    if (count() > before) return true;
    for (const { child } of holders) assert.equal(child.exitCode, null, "a holder gave up");
  }
  return false;
}

/** Every row that was acknowledged is there, each token has one writer, and none wrote behind a later one. */
async function assertWhole(path: string, holders: readonly Holder[]): Promise<number> {
  const store = await openSessionStore({ path, journalMode: "auto", log: recordedLog(), clock: systemClock });
  const rows = await store.load(SESSION);
  const health = await store.health();
  await store.close();
  assertOneWriterPerToken(rows);
  const stored = new Set(rows.map(({ id, content }) => `wrote ${content} ${id}`));
  const lost = holders.flatMap(({ lines }) => lines("wrote")).filter((line) => !stored.has(line));
  assert.deepEqual(lost, [], "an acknowledged row is missing");
  for (const fact of health) assert.ok(fact.ok, fact.text);
  return rows.length;
}

test("a process that was stopped past its lease writes nothing when it goes on, and is told that it lost the lane", async (t) => {
  const path = join(await temporaryFolder(t), "state.db");
  const first = startHolder(t, path, 2);
  assert.ok(await more([first], "wrote"));
  const second = startHolder(t, path, 2);
  assert.ok(await more([second], "waits"));
  for (let attempt = 0; attempt < 8 && second.lines("took").length === 0; attempt++) {
    first.child.kill("SIGSTOP");
    if (await more([second], "took", 5000)) break;
    // It was stopped in the middle of a transaction: then nobody can write until it goes on.
    first.child.kill("SIGCONT");
    await delay(attempt);
  }
  assert.equal(second.lines("took")[0], "took 2");
  assert.ok(await more([second], "wrote"));
  const withOldToken = () => first.lines("wrote").filter((line) => line.split(" ")[2] === "1").length;
  const written = withOldToken();
  first.child.kill("SIGCONT");
  assert.ok(first.lines("moved").length > 0 || (await more([first], "moved")));
  assert.equal(first.lines("moved")[0], "moved 1");
  // A row that was committed as it was stopped is told afterwards; which rows there are is looked at below.
  assert.ok(withOldToken() <= written + 1);
  await Promise.all([first.kill(), second.kill()]);
  await assertWhole(path, [first, second]);
});

test("the lane of a process that was killed is free at once, long before its lease is over", async (t) => {
  const path = join(await temporaryFolder(t), "state.db");
  const first = startHolder(t, path, 600);
  assert.ok(await more([first], "wrote"));
  const second = startHolder(t, path, 600);
  assert.ok(await more([second], "waits"));
  assert.equal(second.lines("took").length, 0);
  const taken = more([second], "took");
  await first.kill();
  assert.ok(await taken);
  assert.ok(await more([second], "wrote"));
  await second.kill();
  await assertWhole(path, [first, second]);
});

test(`three processes that are stopped and killed at any moment (${rounds} times) never write over each other`, async (t) => {
  const path = join(await temporaryFolder(t), "state.db");
  const all: Holder[] = [];
  const start = () => {
    const holder = startHolder(t, path, 0.5);
    all.push(holder);
    return holder;
  };
  const running = [start(), start(), start()];
  assert.ok(await more(running, "wrote"));
  for (let round = 0; round < rounds; round++) {
    const newest = (holder: Holder) => Number(holder.lines("took").at(-1)?.split(" ")[1] ?? 0);
    const victim = running.toSorted((a, b) => newest(b) - newest(a))[0];
    assert.ok(victim);
    await delay(Math.random() * 60);
    if (round % 2 === 0) {
      victim.child.kill("SIGSTOP");
      await delay(700 + Math.random() * 300);
      victim.child.kill("SIGCONT");
    } else {
      await victim.kill();
      running[running.indexOf(victim)] = start();
    }
    assert.ok(await more(running, "wrote"), "somebody goes on");
  }
  await Promise.all(running.map((holder) => holder.kill()));
  assert.ok((await assertWhole(path, all)) > rounds);
  const tokens = all.flatMap(({ lines }) => lines("took"));
  assert.ok(tokens.length > rounds / 2, "the lane went from hand to hand");
  assert.equal(new Set(tokens).size, tokens.length, "a token was given twice");
});
