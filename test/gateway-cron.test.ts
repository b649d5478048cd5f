// Scheduled jobs in a gateway: from a chat to its answer, by hand, silent, and over kill -9.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { answerTurns, lastSaid, ModelServer, startGateway, typed, until } from "./support/gateway-rig.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import type { TempHome } from "./support/temp-home.ts";

describe("scheduled jobs of a gateway", () => {
  let model: ModelServer;
  let paper: PaperServer;
  let home: TempHome;
  before(async () => {
    model = await ModelServer.start();
    paper = await PaperServer.start();
    home = await paperHome(model, paper, {
      config: "cron:\n  tick_seconds: 1\n",
      env: { PAPER_HOME_CHANNEL: "club", PAPER_CRON_THREAD_ID: "jobs" },
    });
  });
  after(async () => {
    await paper.close();
    await model.close();
    await home[Symbol.asyncDispose]();
  });
  const stored = async (): Promise<Record<string, unknown>[]> =>
    JSON.parse(await readFile(home.at("cron", "jobs.json"), "utf8")).jobs;
  const makeDue = async () => {
    const at = new Date(Math.floor(Date.now() / 1000) * 1000 - 3000).toISOString();
    const jobs = (await stored()).map((job) => ({ ...job, next_run_at: at }));
    await writeFile(home.at("cron", "jobs.json"), JSON.stringify({ jobs }));
  };
  const said = (chat: string) => paper.textsOf(chat).join("\n---\n");

  test("F255: a job made in a chat answers there, silence is kept, a run by hand is taken, and a kill is told, once each", async () => {
    const held = Promise.withResolvers<void>();
    let isHeld = false;
    answerTurns(model, async (request) => {
      const text = lastSaid(request);
      if (isHeld) await held.promise;
      return { text: /whisper/.test(text) ? "[SILENT]" : /news/.test(text) ? "Rain at noon." : `heard: ${text}` };
    });
    let gateway = await startGateway(home);
    try {
      assert.ok(gateway.lines.includes("[Cron] no jobs"), gateway.lines.join("\n"));
      paper.say("bob", "/cron add every day at 9 Tell me the news --name news");
      await until("the job is echoed", () => /0 9 \* \* \* \(forever\)[\s\S]*origin/.test(said("bob")));
      await makeDue();
      await until("its answer came", () => said("bob").includes("Rain at noon."));
      assert.match(said("bob"), /Cron job 'news' \([0-9a-f]{12}\)\n\nRain at noon\.\n\nTo stop it: \/cron remove/);
      assert.equal(rowsOf(home, "SELECT cause FROM outbox WHERE cause LIKE 'cron:%'").length, 1);
      const { cron } = JSON.parse((await typed(home, ["gateway", "status", "--json"])).stdout);
      assert.equal(cron.ticking, true);
      assert.match(String(cron.next_run_at), /T/);

      await typed(home, ["cron", "add", "every 1d", "whisper", "--name", "quiet", "--deliver", "paper:bob"]);
      const ran = await typed(home, ["cron", "run", "quiet"]);
      assert.match(ran.stdout, /The gateway runs "quiet" now/);
      const quietRuns = async () => JSON.parse((await typed(home, ["cron", "list", "--json"])).stdout);
      await until("it ran", async () => (await quietRuns()).jobs[1].last_run?.state === "completed");
      const { ticker } = await quietRuns();
      assert.deepEqual([ticker.running, ticker.by, ticker.pid], [true, "gateway", gateway.pid]);
      assert.ok(!said("bob").includes("SILENT"));

      isHeld = true;
      const before = model.requests.length;
      await makeDue();
      await until("both are running", () => model.requests.length >= before + 2);
      await gateway.kill();
      isHeld = false;
      held.resolve();
      gateway = await startGateway(home);
      await until("both kills are told", () => (said("bob").match(/was interrupted/g) ?? []).length === 2);
      assert.equal(said("bob").match(/Rain at noon\./g)?.length, 1, "no slot was run again");
      const states = rowsOf(home, "SELECT state FROM cron_runs ORDER BY id").map((row) => row.state);
      assert.deepEqual(states, ["completed", "completed", "unknown", "unknown"]);
      for (const job of await stored()) assert.ok(Date.parse(String(job.next_run_at)) > Date.now(), "planned anew");

      const club = {
        id: "club",
        name: "club",
        prompt: "news",
        deliver: "paper",
        schedule: { kind: "interval", minutes: 60 },
      };
      await writeFile(home.at("cron", "jobs.json"), JSON.stringify({ jobs: [club] }));
      await makeDue();
      const target = () => rowsOf(home, "SELECT target FROM outbox WHERE cause LIKE 'cron:club:%'")[0]?.target;
      await until("the home channel is written to", () => target() !== undefined);
      assert.deepEqual(JSON.parse(String(target())), { chatId: "club", threadId: "jobs" });
    } finally {
      await gateway.stop();
    }
  });

  test("a thousand jobs that are due start in their order, four at a time, and a chat is answered meanwhile", async () => {
    const MOST = 4;
    await using crowded = await paperHome(model, paper, {
      config: `cron: {tick_seconds: 1, max_parallel_jobs: ${MOST}}\n`,
      env: { PAPER_ALLOW_ALL_USERS: "true" },
    });
    const due = Math.floor(Date.now() / 1000) * 1000 - 30_000;
    const jobs = Array.from({ length: 1000 }, (_, at) => ({
      ...{ id: `job${at}`, name: `job ${at}`, prompt: `Do piece ${at}.`, enabled: true, state: "scheduled" },
      schedule: { kind: "interval", minutes: 600, display: "every 600m" },
      next_run_at: new Date(due + at).toISOString(),
    }));
    await crowded.write("cron/jobs.json", JSON.stringify({ jobs: jobs.toReversed() }));
    const held: (() => void)[] = [];
    const begun: number[] = [];
    answerTurns(model, async (request) => {
      const piece = /Do piece (\d+)\.$/.exec(lastSaid(request))?.[1];
      if (piece === undefined) return { text: `heard: ${lastSaid(request)}` };
      begun.push(Number(piece));
      await new Promise<void>((resolve) => held.push(resolve));
      return { text: "[SILENT]" };
    });
    const gateway = await startGateway(crowded);
    try {
      for (let released = 0; released < 3 * MOST; released += MOST) {
        await until("all places are taken", () => begun.length === released + MOST);
        paper.say("carol", `round ${released}`);
        await until("the chat is answered", () => said("carol").includes(`heard: round ${released}`));
        assert.equal(begun.length, released + MOST, "no more than may");
        for (const release of held.splice(0)) release();
      }
      assert.deepEqual(
        begun.slice(0, 3 * MOST).toSorted((one, other) => one - other),
        Array.from({ length: 3 * MOST }, (_, at) => at),
      );
    } finally {
      await gateway.kill();
      for (const release of held.splice(0)) release();
    }
  });
});
