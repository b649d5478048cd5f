import assert from "node:assert/strict";
import { appendFile, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemClock } from "../kit/clock.ts";
import { followLog, type LogFilter, lastLines, listLogs, logFilter, parseAge } from "./log-reader.ts";

const LINES = [
  "2026-01-02 03:00:00,000 INFO hermes: up",
  "2026-01-02 03:00:01,000 WARNING [20260102_030000_aaaaaa] agent.loop: slow",
  "    Error: it took long",
  "        at one (file.ts:1)",
  "2026-01-02 03:00:02,000 INFO [20260102_030000_bbbbbb] tools: ran",
  "2026-01-02 03:00:03,000 ERROR mcp.files: gone",
  "    Error: gone",
];
const numbers = (filter: LogFilter, lines = LINES) => {
  const wanted = logFilter(filter);
  return lines.flatMap((line, at) => (wanted(line) ? [at] : []));
};

test("a stack trace is shown with its entry and never without it", () => {
  assert.deepEqual(numbers({}), [0, 1, 2, 3, 4, 5, 6]);
  assert.deepEqual(numbers({ level: "WARNING" }), [1, 2, 3, 5, 6]);
  assert.deepEqual(numbers({ level: "ERROR" }), [5, 6]);
  assert.deepEqual(numbers({ session: "aaaaaa" }), [1, 2, 3]);
  assert.deepEqual(numbers({ component: "tools" }), [4, 5, 6]);
  assert.deepEqual(numbers({ component: "agent" }), [1, 2, 3]);
  assert.deepEqual(numbers({ component: "cli" }), [0]);
  assert.deepEqual(numbers({ since: new Date("2026-01-02T03:00:02").getTime() }), [4, 5, 6]);
});

test("a trace whose entry was rotated away has neither level nor session", () => {
  const lines = LINES.slice(2);
  assert.deepEqual(numbers({ level: "ERROR" }, lines), [0, 1, 3, 4]);
  assert.deepEqual(numbers({ session: "bbbbbb" }, lines), [2]);
});

test("an age is a whole number and one unit", () => {
  const ages: readonly (readonly [string, number | null])[] = [
    ["30s", 30_000],
    ["5m", 300_000],
    ["1 H", 3_600_000],
    [" 2d ", 172_800_000],
    ["1w", null],
    ["-1h", null],
    ["1.5h", null],
    ["h", null],
    ["", null],
    ["10", null],
  ];
  for (const [text, ms] of ages) assert.equal(parseAge(text), ms, text);
});

async function folder(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "hermes-logs-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

test("the last lines reach back into rotated files and begin with an entry", async (t) => {
  const path = join(await folder(t), "agent.log");
  await writeFile(`${path}.1`, `${LINES.slice(0, 3).join("\n")}\n`);
  await writeFile(path, `${LINES.slice(3).join("\n")}\n`);
  assert.deepEqual(await lastLines(path, 1, {}), LINES.slice(5));
  assert.deepEqual(await lastLines(path, 4, {}), LINES.slice(1));
  assert.deepEqual(await lastLines(path, 100, {}), LINES);
  assert.deepEqual(await lastLines(path, 100, { session: "aaaaaa" }), LINES.slice(1, 4));
  assert.deepEqual(await lastLines(join(await folder(t), "none.log"), 5, {}), []);
});

test("following goes on through rotations, also several between two looks", async (t) => {
  const dir = await folder(t);
  const path = join(dir, "agent.log");
  await writeFile(path, "old\n");
  const looks: (() => void)[] = [];
  // Each look waits until the test lets it happen.
  const clock = { ...systemClock, sleep: () => new Promise<void>((resolve) => looks.push(resolve)) };
  const stop = new AbortController();
  const seen: string[] = [];
  const following = (async () => {
    for await (const line of followLog(path, { clock, signal: stop.signal })) seen.push(line);
  })();
  const look = async () => {
    while (looks.length === 0) await new Promise(setImmediate);
    looks.pop()?.();
    while (looks.length === 0) await new Promise(setImmediate);
  };
  while (looks.length === 0) await new Promise(setImmediate);

  await appendFile(path, "one\nhal");
  await look();
  assert.deepEqual(seen, ["one"]);
  await appendFile(path, "f\n");
  await rename(path, `${path}.1`);
  await writeFile(path, "two\n");
  await look();
  assert.deepEqual(seen, ["one", "half", "two"]);
  await rename(`${path}.1`, `${path}.3`);
  await rename(path, `${path}.2`);
  await writeFile(`${path}.1`, "three\n");
  await writeFile(path, "four\n");
  await look();
  assert.deepEqual(seen, ["one", "half", "two", "three", "four"]);
  stop.abort();
  looks.pop()?.();
  await following;
});

test("the list names log files and nothing else", async (t) => {
  const dir = await folder(t);
  for (const name of ["agent.log", "agent.log.1", ".lock.db", "notes.txt"]) await writeFile(join(dir, name), "x");
  assert.deepEqual(
    (await listLogs(dir)).map(({ name, bytes }) => [name, bytes]),
    [
      ["agent.log", 1],
      ["agent.log.1", 1],
    ],
  );
  assert.deepEqual(await listLogs(join(dir, "nowhere")), []);
});
