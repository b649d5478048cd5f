import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { RecordedRequest } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes, startHermes } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";

const promptOf = (request: RecordedRequest): string =>
  String(request.body.messages.find((message: { role: string }) => message.role === "user").content);
const jsonLines = async (path: string) =>
  (await readFile(path, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("hermes batch", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  async function place(prompts: readonly unknown[], config = ""): Promise<TempHome & { readonly run: string }> {
    const home = await tempHome({ "config.yaml": modelConfig(server) + config });
    await writeFile(
      join(home.project, "prompts.jsonl"),
      `${prompts.map((prompt) => JSON.stringify(typeof prompt === "string" ? { prompt } : prompt)).join("\n")}\n`,
    );
    return Object.assign(home, { run: join(home.project, "data", "first") });
  }
  const args = (...more: string[]) => [
    ...["batch", "--dataset_file", "prompts.jsonl", "--run_name", "first", "--batch_size", "2"],
    ...more,
  ];

  test("prompts become trajectories, with the tools they used, in the order of the dataset", async () => {
    await using at = await place(["read it", "just talk", { prompt: "elsewhere", cwd: "/" }]);
    await at.write("SOUL.md", "I am a soul.\n");
    await writeFile(join(at.project, "note.txt"), "heron\n");
    server.otherwise((request) => {
      const { role } = request.body.messages.at(-1);
      if (role === "user" && promptOf(request) === "read it")
        return { thinking: "a file", toolCalls: [{ name: "read_file", arguments: { path: "note.txt" } }] };
      return { thinking: "hm", text: `answer to ${promptOf(request)}` };
    });
    const { code, stdout, stderr } = await runHermes(args(), { home: at });
    assert.equal(code, 0, stderr);
    assert.deepEqual((await readdir(at.run)).sort(), [
      ...[".lock", "batch_0.jsonl", "batch_1.jsonl", "checkpoint.json", "statistics.json", "trajectories.jsonl"],
    ]);
    const lines = await jsonLines(join(at.run, "trajectories.jsonl"));
    assert.deepEqual(
      lines.map((line) => [line.prompt_index, line.model, line.completed, line.conversations[1]]),
      [
        [0, "fake-model", true, { from: "human", value: "read it" }],
        [1, "fake-model", true, { from: "human", value: "just talk" }],
        [2, "fake-model", true, { from: "human", value: "elsewhere" }],
      ],
    );
    assert.match(lines[0].timestamp, /^\d{4}-\d\d-\d\dT/);
    assert.deepEqual(
      lines[0].conversations.map((entry: { from: string }) => entry.from),
      ["system", "human", "gpt", "tool", "gpt"],
    );
    assert.equal(
      lines[0].conversations[2].value,
      '<think>\na file\n</think>\n<tool_call>\n{"name":"read_file","arguments":{"path":"note.txt"}}\n</tool_call>',
    );
    assert.match(
      lines[0].conversations[3].value,
      /^<tool_response>\n\{"tool_call_id":.*heron.*\}\n<\/tool_response>$/s,
    );
    assert.equal(lines[1].conversations[2].value, "<think>\nhm\n</think>\nanswer to just talk");
    const statistics = JSON.parse(stdout);
    assert.deepEqual(statistics, JSON.parse(await readFile(join(at.run, "statistics.json"), "utf8")));
    assert.deepEqual(statistics.tool_statistics, { read_file: { count: 1, success: 1, failure: 0, success_rate: 1 } });
    assert.deepEqual(statistics.reasoning_statistics, {
      total_assistant_turns: 4,
      turns_with_reasoning: 4,
      coverage: 1,
    });
    assert.doesNotMatch(server.requests[0]?.raw ?? "", /I am a soul/);
    const listed = await runHermes(["sessions", "list"], { home: at });
    assert.match(listed.stdout + listed.stderr, /No sessions found/);
  });

  test("a run that was killed goes on: nothing is done twice, nothing is lost", async () => {
    const prompts = Array.from({ length: 9 }, (_, i) => `prompt ${i}`);
    await using at = await place(prompts);
    let block = true;
    const answered: string[] = [];
    server.otherwise(async (request) => {
      const prompt = promptOf(request);
      if (block && answered.length >= 4) return { fault: "stall", after: 0, answer: { text: "never" } };
      answered.push(prompt);
      return { thinking: "hm", text: `done ${prompt}` };
    });
    const first = startHermes(args("--num_workers", "2"), { home: at });
    await until(async () => (await linesIn(at.run)) >= 4 && server.requests.length >= 6);
    first.kill("SIGKILL");
    await first.result;
    // A kill in the middle of a write leaves half a line.
    await writeFile(join(at.run, "batch_2.jsonl"), '{"conversations": [{"from": "hum', { flag: "a" });

    const refused = await runHermes(args(), { home: at });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /already exists.*--resume/);

    block = false;
    await writeFile(
      join(at.project, "prompts.jsonl"),
      prompts
        .toReversed()
        .map((prompt) => `${JSON.stringify({ prompt })}\n`)
        .join(""),
    );
    const second = await runHermes(args("--resume"), { home: at });
    assert.equal(second.code, 0, second.stderr);
    assert.match(second.stderr, /4 of 9 prompts are already done/);
    assert.match(second.stderr, /1 damaged line/);
    assert.deepEqual(answered.toSorted(), prompts, "each was answered once");
    const lines = await jsonLines(join(at.run, "trajectories.jsonl"));
    assert.deepEqual(lines.map((line) => line.conversations[1].value).sort(), prompts);

    const third = await runHermes(args("--resume"), { home: at });
    assert.equal(third.code, 0);
    assert.equal(answered.length, 9);
  });

  test("samples without reasoning are discarded and not asked again; failures are, and the exit code says so", async () => {
    await using at = await place(["no thoughts", "broken", "good", "good"]);
    let broken = true;
    server.otherwise((request) => {
      const prompt = promptOf(request);
      if (prompt === "broken" && broken) return { fault: "status", status: 401, body: { error: { message: "no" } } };
      return { ...(prompt === "no thoughts" ? {} : { thinking: "hm" }), text: "x" };
    });
    const first = await runHermes(args(), { home: at });
    assert.equal(first.code, 1);
    assert.match(first.stderr, /1 of 4 prompts are left.*--resume/);
    const statistics = JSON.parse(first.stdout);
    assert.deepEqual([statistics.samples, statistics.discarded_without_reasoning, statistics.failed], [2, 1, 1]);
    assert.equal((await jsonLines(join(at.run, "failed_trajectories.jsonl")))[0].completed, false);
    broken = false;
    server.requests.length = 0;
    const second = await runHermes(args("--resume"), { home: at });
    assert.equal(second.code, 0, second.stderr);
    assert.deepEqual(server.requests.map(promptOf), ["broken"]);
  });

  test("a cap on one prompt stops that prompt alone", async () => {
    await using at = await place(["greedy", "modest"], "budget:\n  job:\n    tokens: 20000\n");
    server.otherwise((request) => {
      if (promptOf(request) === "modest") return { thinking: "hm", text: "ok" };
      return {
        thinking: "more",
        toolCalls: [{ name: "todo", arguments: {} }],
        usage: { input: 15_000, output: 100 },
      };
    });
    const { stderr, code } = await runHermes(args(), { home: at });
    assert.equal(code, 1);
    assert.match(stderr, /✗ .*budget\.job.*greedy/);
    assert.match(stderr, /✓ {2}.*modest/);
  });

  test("a prompt whose folder is not there is not asked; a folder may be named from where the batch runs", async () => {
    await using at = await place([
      { prompt: "lost", cwd: "/nowhere/at/all" },
      { prompt: "number", cwd: 5 },
      { prompt: "below", cwd: "sub" },
    ]);
    await mkdir(join(at.project, "sub"));
    server.script({ thinking: "hm", toolCalls: [{ name: "terminal", arguments: { command: "pwd" } }] });
    const { stderr, code } = await runHermes(args(), { home: at });
    assert.equal(code, 1);
    assert.match(stderr, /1 line of the dataset .*skipped/);
    assert.match(stderr, /✗ The cwd of this prompt is not a folder: \/nowhere\/at\/all\..*lost/);
    assert.deepEqual([...new Set(server.requests.map(promptOf))], ["below"]);
    assert.ok(server.requests.at(-1)?.raw.includes(join(at.project, "sub")));
  });

  test("wrong input is said in one line", async () => {
    await using at = await place(["a"]);
    await mkdir(join(at.project, "empty"), { recursive: true });
    await writeFile(join(at.project, "bad.jsonl"), "nonsense\n{}\n");
    const unusable = [
      [["batch"], 2, /--dataset_file is missing/],
      [["batch", "--dataset_file", "prompts.jsonl"], 2, /--run_name/],
      [["batch", "--dataset_file", "prompts.jsonl", "--run_name", "../x"], 2, /--run_name/],
      [["batch", "--dataset_file", "gone.jsonl", "--run_name", "a"], 1, /gone\.jsonl cannot be read/],
      [["batch", "--dataset_file", "bad.jsonl", "--run_name", "b"], 1, /2 lines .*skipped\.\n.*contains no prompts/],
      [args("--distribution", "none"), 1, /no distribution "none".*default/],
      [args("--num_workers", "0"), 2, /whole number/],
    ] as const;
    // Of each kind one: a word that is missing or wrong, a file, a value of an option.
    for (const [words, code, pattern] of [
      ...oneOf(unusable.slice(0, 3), "wrong words of a batch"),
      ...oneOf(unusable.slice(3, 5), "a wrong file of a batch"),
      ...oneOf(unusable.slice(5), "a wrong value of a batch"),
    ]) {
      const result = await runHermes(words, { home: at });
      assert.equal(result.code, code, `${words.join(" ")}: ${result.stderr}`);
      assert.match(result.stderr, pattern);
    }
    const listed = await runHermes(["batch", "--list_distributions"], { home: at });
    assert.match(listed.stdout, /^default +web 100%/m);
  });
});

async function linesIn(dir: string): Promise<number> {
  const names = (await readdir(dir).catch(() => [])).filter((name) => name.startsWith("batch_"));
  const texts = await Promise.all(names.map((name) => readFile(join(dir, name), "utf8")));
  return texts.join("").split("\n").length - 1;
}

async function until(done: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1200; tries++) {
    if (await done()) return;
    await pause(25);
  }
  throw new Error("it never happened");
}
