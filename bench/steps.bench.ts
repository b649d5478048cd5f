// Steps of the built program as a user has them: real wire, real store, a file that is read. Held against pi and against the first steps
// of the same conversation.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { environmentFor, repository } from "../test/support/run-hermes.ts";
import { modelConfig, tempHome } from "../test/support/temp-home.ts";
import { median, row } from "./measure.ts";
import { onPath, pi, piAsked, piKnows } from "./peer.ts";

const STEPS = 200;
const ROUNDS = 3;
const FILES = 50;

const hasStrace = onPath("strace") !== null;
let steps = STEPS;
/** The model asks for shell commands instead of files. */
let commands = false;
let answered = 0;
let arrivals: { readonly at: number; readonly cpu: number }[] = [];
let pid = 0;

const server = createServer((request, response) => {
  if (request.method !== "POST") return void response.writeHead(404).end("{}");
  arrivals.push({ at: performance.now(), cpu: cpuOf(pid) });
  const ours = running === "hermes";
  const tool = commands ? (ours ? "terminal" : "bash") : ours ? "read_file" : "read";
  request.resume().on("end", () => {
    const step = answered++;
    const page = { path: `f${step % FILES}.txt`, offset: 1 + Math.floor(step / FILES), limit: 5 };
    const args = JSON.stringify(commands ? { command: `echo step ${step}` } : page);
    const call = { index: 0, id: `call_${step}`, type: "function", function: { name: tool, arguments: args } };
    const delta = step < steps ? { content: null, tool_calls: [call] } : { content: "done" };
    const chunk = (fields: object, finish: string | null) =>
      `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", choices: [{ index: 0, delta: fields, finish_reason: finish }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })}\n\n`;
    response.setHeader("content-type", "text/event-stream");
    response.end(
      `${chunk({ role: "assistant", ...delta }, null)}${chunk({}, step < steps ? "tool_calls" : "stop")}data: [DONE]\n\n`,
    );
  });
}).listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
await using home = await tempHome({
  "config.yaml": `${modelConfig({ url, origin: url }, "chat_completions", 1_000_000)}agent:\n  max_turns: 5000\n`,
});
for (let file = 0; file < FILES; file++) {
  const lines = Array.from({ length: 40 }, (_, line) => `line ${line} of file ${file}`);
  await writeFile(join(home.project, `f${file}.txt`), lines.join("\n"));
}
const env = environmentFor({ home, env: { HERMES_FROM_SOURCE: "0" } });
await piKnows(String(env.HOME), url);

let running = "";
/** Clock and CPU milliseconds of a step, all threads; and the CPU of the last fifty beside the first. */
async function talk(program: "hermes" | "pi", before: readonly string[] = []) {
  running = program;
  answered = 0;
  arrivals = [];
  const args = program === "pi" ? piAsked : [join(repository, "bin", "hermes.mjs"), "-z", "go"];
  const [command = process.execPath, ...rest] = [...before, process.execPath];
  const child = spawn(command, [...rest, ...args], { env, cwd: home.project, stdio: "ignore" });
  pid = child.pid ?? 0;
  await once(child, "exit");
  if (arrivals.length !== steps + 1) throw new Error(`${program} made ${arrivals.length} of ${steps + 1} requests`);
  const each = arrivals.slice(1).map(({ cpu }, index) => cpu - (arrivals[index]?.cpu ?? 0));
  const [first, last] = [arrivals[0], arrivals.at(-1)];
  return {
    ms: ((last?.at ?? 0) - (first?.at ?? 0)) / steps,
    cpu: ((last?.cpu ?? 0) - (first?.cpu ?? 0)) / steps,
    growth: median(each.slice(-50)) / median(each.slice(2, 52)),
  };
}

async function compare(tool: string, budget: number) {
  await talk("hermes"); // keeps compiled code
  if (pi) await talk("pi");
  const ours: Awaited<ReturnType<typeof talk>>[] = [];
  const theirs: typeof ours = [];
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(await talk("hermes"));
    if (pi) theirs.push(await talk("pi"));
  }
  for (const [kind, name] of [
    ["ms", `step with ${tool}, clock`],
    ["cpu", `step with ${tool}, CPU of all threads`],
  ] as const) {
    const own = median(ours.map((one) => one[kind]));
    const other = pi ? median(theirs.map((one) => one[kind])) : null;
    row(name, `${own.toFixed(2)} ms`, other && own / other, budget, other ? `pi (${other.toFixed(2)} ms)` : "");
  }
  return ours;
}

const ours = await compare("read_file", 0.6);
if (!pi) row("pi is not installed, nothing to compare", "", null, null, "");
const growth = median(ours.map((one) => one.growth));
row(`CPU of steps ${STEPS - 50} to ${STEPS} beside the first 50`, "", growth, 1.2, "first steps");
if (hasStrace) {
  const { calls, frames } = await systemCalls();
  row("system calls of a step", calls.toFixed(0), calls / 120, 1, "120");
  row("WAL frames of a step", frames.toFixed(1), frames / 8, 1, "8");
} else row("system calls of a step: no strace here", "", null, null, "");
steps = 60;
commands = true;
await compare("a shell command", 0.8);
server.close();

/** What more steps cost, each: the start does not count. A frame of the write-ahead log is its head of 24 bytes and a page. */
async function systemCalls() {
  const file = join(home.project, "calls");
  const [few, many] = [20, 116];
  const counted = async (count: number) => {
    steps = count;
    await talk("hermes", ["strace", "-f", "-e", "signal=none", "-o", file]);
    const calls = readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => !line.includes("<... "));
    return { calls: calls.length, frames: calls.filter((line) => /pwrite64\(.*, 24, \d+( <|\) )/.test(line)).length };
  };
  const [late, early] = [await counted(many), await counted(few)];
  const each = (what: "calls" | "frames") => (late[what] - early[what]) / (many - few);
  return { calls: each("calls"), frames: each("frames") };
}

function cpuOf(process: number): number {
  try {
    const threads = readdirSync(`/proc/${process}/task`);
    return threads.reduce(
      (sum, id) => sum + Number.parseInt(readFileSync(`/proc/${process}/task/${id}/schedstat`, "utf8"), 10) / 1e6,
      0,
    );
  } catch {
    return 0; // it is over, or this is not Linux
  }
}
