// An answer that comes in many small pieces: what each costs the built program, all threads, beside pi.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { environmentFor, repository } from "../test/support/run-hermes.ts";
import { modelConfig, tempHome } from "../test/support/temp-home.ts";
import { childrenMs, row } from "./measure.ts";
import { pi, piAsked, piKnows } from "./peer.ts";

const PIECES = 120_000;
const ROUNDS = 3;
const BUDGET_US = 6;

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", model: "fake-model", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const answerOf = (pieces: number) =>
  Buffer.from(
    `${chunk({ role: "assistant", content: "" })}${Array.from({ length: pieces }, (_, n) => chunk({ content: n % 12 === 11 ? "end\n" : "word" })).join("")}${chunk({}, "stop")}data: [DONE]\n\n`,
  );
let answer = answerOf(1);
const server = createServer((request, response) => {
  if (request.method !== "POST") return void response.writeHead(404).end("{}");
  request.resume().on("end", () => response.setHeader("content-type", "text/event-stream").end(answer));
}).listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
await using home = await tempHome({ "config.yaml": modelConfig({ url, origin: url }, "chat_completions", 1_000_000) });
const env = environmentFor({ home, env: { HERMES_FROM_SOURCE: "0" } });
await piKnows(String(env.HOME), url);

const ours = [join(repository, "bin", "hermes.mjs"), "-z", "go"];
await run(ours);
const [own, other] = [await piece(ours), pi ? await piece(piAsked) : null];
const shown = `${own.toFixed(1)} µs`;
row("streaming: a piece of 4 characters", shown, own / BUDGET_US, 1, `${BUDGET_US} µs`);
if (other) row("the same beside pi", shown, own / other, 0.31, `pi (${other.toFixed(1)} µs)`);
server.close();

/** Microseconds of CPU: the least of some runs with many pieces, without what a run with one costs. */
async function piece(args: readonly string[]): Promise<number> {
  const least = async (pieces: number) => {
    answer = answerOf(pieces);
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) times.push(await run(args));
    return Math.min(...times);
  };
  return ((await least(PIECES)) - (await least(1))) / (PIECES / 1000);
}

/** CPU milliseconds of a child from start to end. */
async function run(args: readonly string[]): Promise<number> {
  const before = childrenMs();
  const child = spawn(process.execPath, args, { env, cwd: home.project, stdio: "ignore" });
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`${args[0]} ended with ${code}`);
  return childrenMs() - before;
}
