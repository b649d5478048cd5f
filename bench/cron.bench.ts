// A chat beside 1,000 jobs that are all due: what its turns wait for them, against the same turns in a gateway that has nothing else to do.
// Every job is an agent with a model on loopback; the run ends with the last chat turn, however many jobs are left.
import { performance } from "node:perf_hooks";
import { answerTurns, lastSaid, ModelServer, startGateway, until } from "../test/support/gateway-rig.ts";
import { paperHome, rowsOf } from "../test/support/paper-home.ts";
import { PaperServer } from "../test/support/platforms/paper-server.ts";
import { median, row } from "./measure.ts";

const TURNS = 20;
const JOBS = 1000;
/** A model of today answers no sooner. */
const MODEL_MS = 700;
const MOST_RATIO = 2;

const model = await ModelServer.start();
const paper = await PaperServer.start();
answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request).slice(-20)}`, delay: MODEL_MS }));

async function turns(name: string, jobs: number) {
  const due = Math.floor(Date.now() / 1000) * 1000 - 30_000;
  const list = Array.from({ length: jobs }, (_, at) => ({
    ...{ id: `job${at}`, name: `job ${at}`, prompt: `Do piece ${at}.`, enabled: true, state: "scheduled" },
    schedule: { kind: "interval", minutes: 600, display: "every 600m" },
    next_run_at: new Date(due + at).toISOString(),
  }));
  await using home = await paperHome(model, paper, {
    config: "cron: {tick_seconds: 1}\n",
    env: { PAPER_ALLOW_ALL_USERS: "true" },
    files: { "cron/jobs.json": JSON.stringify({ jobs: list }) },
  });
  const gateway = await startGateway(home, { timeoutMs: 600_000 });
  const waited: number[] = [];
  const say = async (text: string) => {
    const from = performance.now();
    paper.say(name, text);
    await until(text, () => paper.textsOf(name).some((said) => said === `heard: ${text}`), 60_000);
    return performance.now() - from;
  };
  await say("warm up");
  for (let at = 0; at < TURNS; at++) waited.push(await say(`turn ${at}`));
  await gateway.kill();
  const [{ done = 0 } = {}] = rowsOf(home, "SELECT COUNT(*) AS done FROM cron_runs WHERE state = 'completed'");
  return { median: median(waited), longest: Math.max(...waited), done: Number(done) };
}

const alone = await turns("alone", 0);
const beside = await turns("beside", JOBS);
row("chat alone: turn", `${alone.median.toFixed(0)} ms`, null, null, "");
row(
  `beside ${JOBS} due jobs: turn`,
  `${beside.median.toFixed(0)} ms`,
  beside.median / alone.median,
  MOST_RATIO,
  `${alone.median.toFixed(0)} ms`,
);
row(`beside ${JOBS} due jobs: longest`, `${beside.longest.toFixed(0)} ms`, null, null, "");
row("jobs run meanwhile", String(beside.done), null, null, "");
await paper.close();
await model.close();
