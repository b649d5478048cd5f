// Several processes on one memory, and processes that are killed in the middle of writing.
// A longer run: node test/memory-crash.test.ts --kills=2000
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { parseEntries } from "../src/memory/entries.ts";
import { bundledScript } from "./support/bundled-script.ts";
import { type MemoryHome, memoryHome } from "./support/memory.ts";
import { fewer } from "./support/sample.ts";

const kills = Number(
  process.argv.find((argument) => argument.startsWith("--kills="))?.slice("--kills=".length) ?? fewer(40, 6),
);
/** Homes that are written to side by side: most of a round is waiting for a process to start. */
const LANES = 4;

const writer = bundledScript("memory-writer.ts");

function startWriter(dir: string, ...args: readonly (string | number)[]): { child: ChildProcess; said: () => number } {
  const child = spawn(process.execPath, [writer, dir, ...args.map(String)], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  // An unfinished last line was never said.
  return { child, said: () => Number(text.split("\n").at(-2) ?? 0) };
}

test("two processes that add fifty entries each lose none", async (t) => {
  const box = await memoryHome(t);
  const writers = ["a", "b"].map((name) => startWriter(box.home.dir, name, "add", 50));
  const codes = await Promise.all(writers.map(async ({ child }) => (await once(child, "close"))[0]));
  assert.deepEqual(codes, [0, 0]);
  const entries = parseEntries(await readFile(box.at("MEMORY.md"), "utf8"));
  const expected = ["a", "b"].flatMap((name) => Array.from({ length: 50 }, (_, index) => `${name}${index + 1}`));
  assert.deepEqual([...entries].sort(), expected.sort());
  const records = await box.memory.history();
  assert.equal(records.length, 100);
  assert.deepEqual(records.at(-1)?.after, entries);
  for (const [index, record] of records.entries()) assert.deepEqual(record.before, records[index - 1]?.after ?? []);
});

/** What a killed writer left: every other entry, and of its own the last it spoke of or the next. Takes that away again. */
async function assertWhole(box: MemoryHome, name: string, last: number): Promise<void> {
  const entries = parseEntries(await readFile(box.at("MEMORY.md"), "utf8"));
  const own = entries.filter((entry) => entry.startsWith(name));
  const expected = [...(last === 0 ? [""] : [`${name}${last}`]), `${name}${last + 1}`];
  assert.ok(own.length <= 1 && expected.includes(own[0] ?? ""), `${own} after ${last}`);
  assert.ok(entries.includes("kept by hand"));
  if (own.length === 0) return;
  const result = await box.memory.write({ action: "remove", old_text: own[0] }, { origin: "user" });
  assert.equal(result.success, true, JSON.stringify(result));
}

/** The history tells every change, and how the file came to be what it is. */
async function assertTold(box: MemoryHome): Promise<void> {
  assert.deepEqual(parseEntries(await readFile(box.at("MEMORY.md"), "utf8")), ["kept by hand"]);
  const records = await box.memory.history();
  assert.deepEqual(records.at(-1)?.after, ["kept by hand"]);
  for (const [index, record] of records.entries())
    if (index > 0) assert.deepEqual(record.before, records[index - 1]?.after);
  const left = (await readdir(box.at("."))).filter((file) => file.endsWith(".tmp"));
  assert.ok(left.every((file) => file.startsWith(".mem_")));
}

test("a writer that dies before any of its steps on disk, or in the middle of a write, leaves a whole memory", async (t) => {
  const box = await memoryHome(t, { files: { "MEMORY.md": "kept by hand" } });
  let step = 1;
  for (let alive = false; !alive; step++) {
    const name = `s${step}.`;
    const { child, said } = startWriter(box.home.dir, name, "replace", 2, step);
    const [code, signal] = await once(child, "close");
    alive = code === 0;
    assert.ok(alive || signal === "SIGKILL", `step ${step} ended with ${code ?? signal}`);
    await assertWhole(box, name, said());
  }
  assert.ok(step > 10, `only ${step} steps`);
  await assertTold(box);
});

test(`${kills} writers killed at any moment leave a whole memory`, async (t) => {
  const lane = async (_: unknown, lane: number) => {
    const box = await memoryHome(t, { files: { "MEMORY.md": "kept by hand" } });
    for (let round = 0; round < Math.ceil(kills / LANES); round++) {
      const name = `r${lane}.${round}.`;
      const { child, said } = startWriter(box.home.dir, name, "replace", 0);
      const closed = once(child, "close");
      await once(child.stdout ?? child, "data");
      await delay(Math.random() * 12);
      child.kill("SIGKILL");
      await closed;
      await assertWhole(box, name, said());
    }
    await assertTold(box);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
});
