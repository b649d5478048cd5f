import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { RunFolder, type Sample } from "./run-folder.ts";

async function folderFor(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "hermes-batch-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

const open = async (dir: string) => {
  const folder = new RunFolder(dir, "run", () => 0);
  await folder.load();
  return folder;
};

const sample = (index: number, prompt: string): Sample => ({
  conversations: [
    { from: "system", value: "" },
    { from: "human", value: prompt },
  ],
  ...{ prompt_index: index, timestamp: "2026-01-01T00:00:00.000Z", model: "m", completed: true, partial: false },
  ...{ api_calls: 1, toolsets_used: ["file"], tool_stats: { read_file: { count: 2, success: 1, failure: 1 } } },
  reasoning_stats: { total_assistant_turns: 2, turns_with_reasoning: 1 },
});

test("wherever a write was cut off, what was whole before it is done and nothing else is", async (t) => {
  const dir = await folderFor(t);
  const folder = await open(dir);
  await folder.keep(0, sample(0, "a"));
  await folder.keep(0, sample(1, "b"));
  const file = join(dir, "batch_0.jsonl");
  const text = await readFile(file, "utf8");
  const firstEnd = text.indexOf("\n");
  for (let at = text.length - 1; at > firstEnd; at -= 7) {
    await writeFile(file, text);
    await truncate(file, at);
    const again = await open(dir);
    // A line without its end is whole all the same when all of it is there.
    const done = at >= text.length - 1 ? ["a", "b"] : ["a"];
    assert.deepEqual([...again.doneByText().keys()], done, `cut at ${at}`);
    await again.keep(0, sample(1, "b again"));
    assert.deepEqual([...(await open(dir)).doneByText().keys()], [...done, "b again"]);
  }
});

test("a checkpoint that claims more than the samples show does not hide a prompt", async (t) => {
  const dir = await folderFor(t);
  const folder = await open(dir);
  await folder.keep(0, sample(0, "a"));
  await folder.discard(1, "quiet");
  await rm(join(dir, "batch_0.jsonl"));
  assert.deepEqual([...(await open(dir)).doneByText()], [["quiet", 1]]);
  await writeFile(join(dir, "checkpoint.json"), "{broken");
  assert.deepEqual([...(await open(dir)).doneByText()], []);
});

test("the numbers of a run are summed over all its samples", async (t) => {
  const folder = await open(await folderFor(t));
  await folder.keep(1, sample(5, "later"));
  await folder.keep(0, sample(0, "first"));
  const statistics = await folder.finish({ failed: 0, total: 2, seconds: 1 });
  assert.deepEqual(statistics.tool_statistics, { read_file: { count: 4, success: 2, failure: 2, success_rate: 0.5 } });
  assert.equal(statistics.reasoning_statistics.coverage, 0.5);
  const lines = (await readFile(join(folder.dir, "trajectories.jsonl"), "utf8")).trimEnd().split("\n");
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).prompt_index),
    [0, 5],
  );
});
