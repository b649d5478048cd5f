// 500 chats that talk at once, through the real gateway, a chat server and a model on loopback: nothing lost, nothing twice, and how the
// process bears it: started as `hermes gateway start` does. Delay is what others wait for it, on a busy machine also for the machine; own work is
// the time that the loop's thread itself was at work between two looks, which is the same on any machine.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import {
  answerTurns,
  gatewayHome,
  lastSaid,
  ModelServer,
  startGateway,
  typed,
  until,
} from "../test/support/gateway-rig.ts";
import { paperHome, rowsOf } from "../test/support/paper-home.ts";
import { DiscordServer } from "../test/support/platforms/discord-server.ts";
import { PaperServer } from "../test/support/platforms/paper-server.ts";
import { BOT, SlackServer } from "../test/support/platforms/slack-server.ts";
import { TelegramServer } from "../test/support/platforms/telegram-server.ts";
import { peakMb, row } from "./measure.ts";

const CHATS = Number(process.env.HERMES_BENCH_CHATS ?? 500);
const ROUNDS = 2;
const MOST_DELAY_MS = 50;
const MOST_MB = 300;

/** Runs inside the gateway: writes down how late its event loop was, four times a second. */
const WATCH = `
import { createHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { writeFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
setFlagsFromString("--optimize-for-size"); // NODE_OPTIONS does not take it
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
const work = createHistogram();
let { user, system } = process.threadCpuUsage();
setInterval(() => {
  const now = process.threadCpuUsage();
  work.record(Math.max(1, now.user + now.system - user - system));
  ({ user, system } = now);
}, 5).unref();
setInterval(() => {
  const mb = process.memoryUsage().rss / 1048576;
  writeFileSync(process.env.HERMES_BENCH_DELAY, JSON.stringify({ p50: delay.percentile(50) / 1e6, p99: delay.percentile(99) / 1e6, max: delay.max / 1e6, work: work.percentile(99) / 1e3, mb }));
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
const env = {
  HERMES_FROM_SOURCE: "0",
  NODE_OPTIONS: `--max-semi-space-size=4 --import ${script}`,
  HERMES_BENCH_DELAY: report,
};
const gateway = await startGateway(home, { env, timeoutMs: 600_000 });
await sleep(1500);
const idle = JSON.parse(await readFile(report, "utf8"));
row("gateway, idle with a plugin's platform", `${idle.mb.toFixed(0)} MB`, null, null, "");

const began = performance.now();
for (let round = 0; round < ROUNDS; round++)
  for (let chat = 0; chat < CHATS; chat++) paper.say(`c${chat}`, `c${chat}r${round}`);
const answers = () => paper.messages.filter(({ text }) => text.startsWith("heard: ")).length;
await until("all answers", () => answers() >= CHATS * ROUNDS, 500_000);
const seconds = (performance.now() - began) / 1000;
await sleep(600);
const { p50, p99, max, work, mb } = JSON.parse(await readFile(report, "utf8"));
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
row(`${CHATS} chats: own work p99`, `${work.toFixed(1)} ms`, work / MOST_DELAY_MS, 1, `${MOST_DELAY_MS} ms`);
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
await idleWithThree();

/** As users have it: `hermes gateway start` with Telegram, Discord and Slack, and nobody writes. */
async function idleWithThree(): Promise<void> {
  const ends: (() => unknown)[] = [];
  const [telegram, slack] = [await TelegramServer.start(), await SlackServer.start()];
  const discord = await DiscordServer.start({ after: (end) => ends.push(end) });
  const quiet = await ModelServer.start();
  const home = await gatewayHome(quiet, {
    env: {
      ...{ TELEGRAM_BOT_TOKEN: telegram.token, TELEGRAM_BASE_URL: telegram.url, TELEGRAM_ALLOWED_USERS: "1" },
      ...{ DISCORD_BOT_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl, DISCORD_ALLOWED_USERS: "1" },
      ...{ SLACK_BOT_TOKEN: BOT.token, SLACK_APP_TOKEN: BOT.app, SLACK_API_URL: slack.url, SLACK_ALLOWED_USERS: "U1" },
    },
    gateway: "    rest_first: 3\n    rest_every: 30\n", // as without settings
  });
  const hermes = (...args: string[]) => typed(home, args, { HERMES_FROM_SOURCE: "0" });
  await hermes("gateway", "start");
  const status = async () => JSON.parse((await hermes("gateway", "status", "--json")).stdout);
  await until("three connections", async () => JSON.stringify(await status()).split('"connected"').length > 3, 60_000);
  await sleep(15_000); // its first rest is over
  const mb = ((await residentMb((await status()).pid)) ?? 0) * 1.048576;
  row("gateway, idle with three platforms", `${mb.toFixed(0)} MB`, mb / 80, 1, "80 MB");
  await hermes("gateway", "stop");
  for (const end of ends) await end();
  await slack.close();
  await telegram[Symbol.asyncDispose]();
  await quiet.close();
  await home[Symbol.asyncDispose]();
}

async function residentMb(pid: number): Promise<number | null> {
  const text = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const resident = /VmRSS:\s+(\d+) kB/.exec(text)?.[1];
  return resident ? Number(resident) / 1024 : null;
}
