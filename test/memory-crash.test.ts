// Several processes on one memory, and processes that are killed in the middle of writing.
// A longer run: node test/memory-crash.test.ts --kills=2000
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { parseEntries } from "../src/memory/entries.ts";
import { memoryHome } from "./support/memory.ts";

const source = fileURLToPath(new URL("support/memory-writer.ts", import.meta.url));
const kills = Number(process.argv.find((argument) => argument.startsWith("--kills="))?.slice("--kills=".length) ?? 300);
/** Homes that are written to side by side: most of a round is waiting for a process to start. */
const LANES = 4;

/** As one file the writer starts four times as fast, and hundreds of starts are what this takes. */
let writer: string;
before(async () => {
  const folder = await mkdtemp(join(tmpdir(), "hermes-writer-"));
  writer = join(folder, "writer.mjs");
  await build({ entryPoints: [source], outfile: writer, bundle: true, platform: "node", format: "esm" });
});
after(() => rm(join(writer, ".."), { recursive: true, force: true }));

function startWriter(dir: string, name: string, count: number): { child: ChildProcess; said: () => number } {
  const child = spawn(process.execPath, [writer, dir, name, String(count)], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  // An unfinished last line was never said.
  return { child, said: () => Number(text.split("\n").at(-2) ?? 0) };
}

test("two processes that add fifty entries each lose none", async (t) => {
  const box = await memoryHome(t);
  const writers = ["a", "b"].map((name) => startWriter(box.home.dir, name, 50));
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

/** Kills writers one after the other in the middle of their work, and looks at what each of them left. */
async function killWriters(t: TestContext, lane: number, rounds: number): Promise<void> {
  const box = await memoryHome(t, { files: { "MEMORY.md": "kept by hand" } });
  for (let round = 0; round < rounds; round++) {
    const name = `r${lane}.${round}.`;
    const { child, said } = startWriter(box.home.dir, name, 0);
    const closed = once(child, "close");
    await once(child.stdout ?? child, "data");
    await delay(Math.random() * 12);
    child.kill("SIGKILL");
    await closed;
    const entries = parseEntries(await readFile(box.at("MEMORY.md"), "utf8"));
    const last = said();
    const own = entries.filter((entry) => entry.startsWith(name));
    assert.ok(
      own.length === 1 && [`${name}${last}`, `${name}${last + 1}`].includes(own[0] ?? ""),
      `${own} after ${last}`,
    );
    assert.ok(entries.includes("kept by hand"));
    const result = await box.memory.write({ action: "remove", old_text: own[0] }, { origin: "user" });
    assert.equal(result.success, true, JSON.stringify(result));
  }
  assert.deepEqual(parseEntries(await readFile(box.at("MEMORY.md"), "utf8")), ["kept by hand"]);
  const records = await box.memory.history();
  assert.deepEqual(records.at(-1)?.after, ["kept by hand"]);
  for (const [index, record] of records.entries())
    if (index > 0) assert.deepEqual(record.before, records[index - 1]?.after);
  const left = (await readdir(box.at("."))).filter((file) => file.endsWith(".tmp"));
  assert.ok(left.every((file) => file.startsWith(".mem_")));
}

test(`${kills} killed writers leave a file with every other entry and their own last or next one`, async (t) => {
  const rounds = Math.ceil(kills / LANES);
  await Promise.all(Array.from({ length: LANES }, (_, lane) => killWriters(t, lane, rounds)));
});
