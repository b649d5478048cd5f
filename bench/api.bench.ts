// The API server as it is built, with a model on loopback: short turns for eight clients beside a bare echo server, memory over many turns, and
// how far two hundred streams are behind their model.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { startHermes } from "../test/support/run-hermes.ts";
import { modelConfig, tempHome } from "../test/support/temp-home.ts";
import { row } from "./measure.ts";

const CLIENTS = 8;
const WARM_UP = 200;
const SHORT_TURNS = 1_000;
const TURNS = Number(process.env.HERMES_BENCH_TURNS ?? 5_000);
/** So long what is new in a home, as its skills are here, is looked through again for each turn. */
const FRESH_MS = 3_000;
const STREAMS = 200;
const STREAM_EVENTS = 12;
const BETWEEN_MS = 400;

const KEY = "a-key-for-the-bench";
const agent = new Agent({ keepAlive: true, maxSockets: STREAMS + CLIENTS });

/** Says little, at once; or, when it is asked for a stream, the time, again and again. */
const chunk = (content: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`;
async function model(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  let body = "";
  for await (const part of incoming) body += part;
  outgoing.writeHead(200, { "content-type": "text/event-stream" });
  if (body.includes("tell the time")) {
    await sleep(Math.random() * BETWEEN_MS);
    for (let at = 0; at < STREAM_EVENTS; at++) {
      outgoing.write(chunk(`at ${performance.now().toFixed(2)} o'clock\n`));
      await sleep(BETWEEN_MS);
    }
  } else outgoing.write(chunk("pong"));
  outgoing.end(`${chunk("", "stop")}data: [DONE]\n\n`);
}
const modelServer = createServer((incoming, outgoing) => void model(incoming, outgoing));
await new Promise<void>((resolve) => modelServer.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${(modelServer.address() as AddressInfo).port}`;

function post(url: string, body: object, read: (text: string) => void = () => undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method: "POST", agent, headers: { authorization: `Bearer ${KEY}` } }, (response) => {
      response.setEncoding("utf8");
      response.on("data", read);
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    asked.on("error", reject);
    asked.end(JSON.stringify(body));
  });
}

let said = 0;
const short = () => ({ messages: [{ role: "user", content: `ping ${++said}` }] });

/** Calls a second. */
async function rate(url: string, calls: number): Promise<number> {
  const began = performance.now();
  let left = calls;
  const client = async () => {
    while (left-- > 0) {
      const status = await post(url, short());
      if (status !== 200) throw new Error(`status ${status}`);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return (calls * 1000) / (performance.now() - began);
}

// The baseline: a server that reads a body and sends it back.
const ECHO = `const { createServer } = require("node:http");
createServer((incoming, outgoing) => { const parts = []; incoming.on("data", (part) => parts.push(part)); incoming.on("end", () => outgoing.end(Buffer.concat(parts))); })
  .listen(0, "127.0.0.1", function () { console.log(this.address().port); });`;
const echo = spawn(process.execPath, ["-e", ECHO], { stdio: ["ignore", "pipe", "inherit"] });
const port = await new Promise<string>((resolve) => echo.stdout.once("data", (text) => resolve(String(text).trim())));
const echoUrl = `http://127.0.0.1:${port}/`;
await rate(echoUrl, WARM_UP);
const echoes = await rate(echoUrl, SHORT_TURNS);
echo.kill();

await using home = await tempHome({
  "config.yaml": modelConfig({ origin, url: `${origin}/v1` }),
  ".env": `API_SERVER_KEY=${KEY}\nAPI_SERVER_PORT=0\n`,
});
const server = startHermes(["api"], { home, env: { HERMES_FROM_SOURCE: "0" }, timeoutMs: 1_800_000 });
const url = await new Promise<string>((resolve) => {
  let printed = "";
  server.stdout?.on("data", (text: string) => {
    printed += text;
    const found = /listening on (\S+)/.exec(printed)?.[1];
    if (found) resolve(found);
  });
});
const chat = `${url}/v1/chat/completions`;
const pid = server.pid ?? 0;
const facts = (name: string) => readFileSync(`/proc/${pid}/${name}`, "utf8");
const residentMb = () => Number(/VmRSS:\s+(\d+)/.exec(facts("status"))?.[1]) / 1024;
const cpuMs = () =>
  facts("stat")
    .split(" ")
    .slice(13, 15)
    .reduce((sum, ticks) => sum + Number(ticks) * 10, 0);

await rate(chat, WARM_UP);
await sleep(FRESH_MS);
const cpuBefore = cpuMs();
const turns = await rate(chat, SHORT_TURNS);
row("echo server, 8 clients", `${echoes.toFixed(0)}/s`, null, null, "");
row("API, short turns, 8 clients", `${turns.toFixed(0)}/s`, 300 / turns, 1, "300/s");
row("one turn in echoes", `${(echoes / turns).toFixed(1)}`, null, null, "");
row("CPU of one turn", `${((cpuMs() - cpuBefore) / SHORT_TURNS).toFixed(1)} ms`, null, null, "");

// Memory: the first thousand turns fill what is kept between turns.
const early = residentMb();
await rate(chat, Math.max(0, TURNS - WARM_UP - SHORT_TURNS));
const late = residentMb();
row(`RSS after ${WARM_UP + SHORT_TURNS} turns`, `${early.toFixed(0)} MB`, null, null, "");
row(`RSS after ${TURNS} turns`, `${late.toFixed(0)} MB`, late / early, 1.25, `${early.toFixed(0)} MB`);

const behind: number[] = [];
const stream = async (at: number) => {
  let rest = "";
  await post(chat, { stream: true, messages: [{ role: "user", content: `tell the time ${at}` }] }, (text) => {
    const now = performance.now();
    rest += text;
    const parts = rest.split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const stamp = /at ([\d.]+) o'clock/.exec(part)?.[1];
      if (stamp !== undefined) behind.push(now - Number(stamp));
    }
  });
};
await Promise.all(
  Array.from({ length: STREAMS }, async (_, at) => {
    await sleep(at * 10); // they do not all begin in one moment
    await stream(at);
  }),
);
behind.sort((one, other) => one - other);
const percentile = (share: number) => behind[Math.min(behind.length - 1, Math.floor(behind.length * share))] ?? 0;
row(`${STREAMS} streams: events`, `${behind.length}`, (STREAMS * STREAM_EVENTS) / Math.max(1, behind.length), 1, "all");
row(`${STREAMS} streams: behind the model, p50`, `${percentile(0.5).toFixed(1)} ms`, null, null, "");
row(
  `${STREAMS} streams: behind the model, p99`,
  `${percentile(0.99).toFixed(1)} ms`,
  percentile(0.99) / 50,
  1,
  "50 ms",
);
row(`RSS behind ${STREAMS} streams`, `${residentMb().toFixed(0)} MB`, null, null, "");

server.kill("SIGINT");
await server.result;
agent.destroy();
modelServer.closeAllConnections();
modelServer.close();
