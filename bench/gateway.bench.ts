// 500 chats that talk at once, through the real gateway, a chat server and a model on loopback: nothing lost, nothing twice, and how the
// process bears it. Event-loop delay is a ratio against an idle Node of the same run.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { answerTurns, lastSaid, ModelServer, startGateway, until } from "../test/support/gateway-rig.ts";
import { paperHome, rowsOf } from "../test/support/paper-home.ts";
import { PaperServer } from "../test/support/platforms/paper-server.ts";
import { peakMb, row } from "./measure.ts";

const CHATS = Number(process.env.HERMES_BENCH_CHATS ?? 500);
const ROUNDS = 2;
const MOST_DELAY_MS = 50;
const MOST_MB = 300;

/** Runs inside the gateway: writes down how late its event loop was, four times a second. */
const WATCH = `
import { monitorEventLoopDelay } from "node:perf_hooks";
import { writeFileSync } from "node:fs";
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
setInterval(() => {
  const mb = process.memoryUsage().rss / 1048576;
  writeFileSync(process.env.HERMES_BENCH_DELAY, JSON.stringify({ p50: delay.percentile(50) / 1e6, p99: delay.percentile(99) / 1e6, max: delay.max / 1e6, mb }));
}, 250).unref();
`;

const model = await ModelServer.start();
const paper = await PaperServer.start();
paper.knowsKeys = true;
answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request).match(/c\d+r\d+/)?.[0]}`, delay: 20 }));
const home = await paperHome(model, paper, {
  repeatIsSafe: true,
  config: "display:\n  busy_input_mode: queue\n  busy_ack_enabled: false\n",
  gateway: "  max_concurrent_turns: 16\n",
});
const [script, report] = [home.at("watch.mjs"), home.at("delay.json")];
await writeFile(script, WATCH);
const env = { HERMES_FROM_SOURCE: "0", NODE_OPTIONS: `--import ${script}`, HERMES_BENCH_DELAY: report };
const gateway = await startGateway(home, { env, timeoutMs: 600_000 });
await sleep(1500);
const idle = JSON.parse(await readFile(report, "utf8"));
row("gateway, idle: memory", `${idle.mb.toFixed(0)} MB`, idle.mb / 80, 1, "80 MB");

const began = performance.now();
for (let round = 0; round < ROUNDS; round++)
  for (let chat = 0; chat < CHATS; chat++) paper.say(`c${chat}`, `c${chat}r${round}`);
const answers = () => paper.messages.filter(({ text }) => text.startsWith("heard: ")).length;
await until("all answers", () => answers() >= CHATS * ROUNDS, 500_000);
const seconds = (performance.now() - began) / 1000;
await sleep(600);
const { p50, p99, max, mb } = JSON.parse(await readFile(report, "utf8"));
const heard = paper.messages.flatMap(({ text }) => /^heard: (c\d+r\d+)$/.exec(text)?.[1] ?? []);
const twice = heard.length - new Set(heard).size;
const lost = CHATS * ROUNDS - new Set(heard).size;
const disorder = Array.from({ length: CHATS }, (_, chat) => paper.textsOf(`c${chat}`)).filter(
  (texts, chat) =>
    texts.findIndex((text) => text.includes(`c${chat}r0`)) > texts.findIndex((text) => text.includes(`c${chat}r1`)),
).length;
row(
  `${CHATS} chats: lost, twice, out of order`,
  `${lost}, ${twice}, ${disorder}`,
  lost + twice + disorder,
  0,
  "messages",
);
row(`${CHATS} chats: turns a second`, (heard.length / seconds).toFixed(1), null, null, "");
row(`${CHATS} chats: event-loop delay p50`, `${p50.toFixed(1)} ms`, null, null, "");
row(`${CHATS} chats: event-loop delay p99`, `${p99.toFixed(1)} ms`, p99 / MOST_DELAY_MS, 1, `${MOST_DELAY_MS} ms`);
row(`${CHATS} chats: longest delay`, `${max.toFixed(0)} ms`, null, null, "");
const peak = (await peakMb(gateway.pid)) ?? mb;
row(`${CHATS} chats: peak memory`, `${peak.toFixed(0)} MB`, peak / MOST_MB, 1, `${MOST_MB} MB`);
const [second] = model.requests.filter(
  ({ body }) => body.tools?.length && JSON.stringify(body.messages).includes("c0r1"),
);
const usage = rowsOf(
  home,
  "SELECT SUM(input_tokens) AS fresh, SUM(cache_read_tokens) AS cached FROM model_calls WHERE turn = 2 AND task = 'main'",
);
const { fresh = 0, cached = 0 } = usage[0] ?? {};
const share = Number(cached) / (Number(fresh) + Number(cached));
row("second message: prompt read from the cache", `${(share * 100).toFixed(1)} %`, 0.9 / share, 1, "90 %");
if (!second) process.exitCode = 1;
const end = spawn("kill", ["-INT", String(gateway.pid)]);
await once(end, "close");
await gateway.result;
await paper.close();
await model.close();
await home[Symbol.asyncDispose]();
