// Real dispatchers and real processes on one board, ended by kill -9 anywhere: each card is done once, or blocked with a reason.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createCard, eventsSince, listCards, openParents, runsOf } from "../src/kanban/cards.ts";
import { archive } from "../src/kanban/moves.ts";
import { BoardFile } from "../src/kanban/schema.ts";
import { isAlive } from "../src/kit/pid.ts";
import type { DispatcherArguments } from "./support/kanban/dispatcher.ts";
import { type FastTime, fastClock } from "./support/kanban/fast-clock.ts";
import { oneOf, whole } from "./support/sample.ts";
import { recordedLog } from "./support/session-store.ts";
import { type TempHome, tempHome } from "./support/temp-home.ts";

const POSIX = process.platform !== "win32";

interface World {
  readonly home: TempHome;
  readonly board: BoardFile;
  readonly traces: string;
  dispatch(how: Pick<DispatcherArguments, "fate" | "diesAt">): ChildProcess;
  lines(name: string): Promise<readonly string[]>;
  [Symbol.asyncDispose](): Promise<void>;
}

async function world(most: number): Promise<World> {
  const home = await tempHome({ "config.yaml": `kanban: {max_in_progress: ${most}}\n` });
  const time: FastTime = { base: Date.now(), times: 20 };
  const traces = home.at("traces");
  await mkdir(traces);
  const board = await BoardFile.open(home.at("kanban.db"), { clock: fastClock(time), log: recordedLog() });
  const children: ChildProcess[] = [];
  return {
    ...{ home, board, traces },
    dispatch(how) {
      const script = join(import.meta.dirname, "support", "kanban", "dispatcher.ts");
      const given: DispatcherArguments = { dir: home.dir, osHome: home.osHome, time, traces, ...how };
      const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", script, JSON.stringify(given)], {
        env: { ...process.env, HERMES_KANBAN_RATE_LIMIT_COOLDOWN_SECONDS: "10" },
        stdio: ["ignore", "ignore", process.env.HERMES_TEST_LOUD ? "inherit" : "ignore"],
      });
      children.push(child);
      return child;
    },
    lines: async (name) =>
      (await readFile(join(traces, name), "utf8").catch(() => "")).split("\n").filter((line) => line !== ""),
    async [Symbol.asyncDispose]() {
      for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      for (const name of await readdir(traces))
        if (name.startsWith("at-")) {
          const pid = Number((await readFile(join(traces, name), "utf8")).split(" ")[0]);
          const isWorker = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).includes(traces); // gone
          if (isWorker && isAlive(pid)) process.kill(pid, "SIGKILL");
        }
      board.close();
      await home[Symbol.asyncDispose]();
    },
  };
}

/** As long as something happens; `steps` counts what did. */
async function until(what: string, holds: () => boolean | Promise<boolean>, steps = () => 0): Promise<void> {
  let last = { steps: steps(), at: Date.now() };
  while (!(await holds())) {
    const now = steps();
    if (now !== last.steps) last = { steps: now, at: Date.now() };
    assert.ok(Date.now() < last.at + 240_000, `never: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

const ended = (child: ChildProcess) =>
  child.exitCode !== null || child.signalCode !== null ? Promise.resolve() : once(child, "exit").then(() => undefined);

describe("a kill -9", { skip: !POSIX }, () => {
  const dispatcher = [
    ["claimed", ["reclaimed", "completed"]],
    ["spawned", ["reclaimed", "completed"]],
    ["stored", ["crashed", "completed"]],
  ] as const;
  for (const [diesAt, outcomes] of oneOf(dispatcher, "dispatcher killed"))
    test(`of the dispatcher, where the card is ${diesAt}: one worker begins, and completes it`, async () => {
      await using at = await world(4);
      const { id } = await at.board.change((change) => createCard(change, { title: "card", assignee: "default" }));
      await ended(at.dispatch({ fate: "work", diesAt }));
      assert.equal(listCards(at.board.db)[0]?.status, "running");
      const next = at.dispatch({ fate: "work" });
      await until("it is done", () => listCards(at.board.db, { status: "done" }).length === 1);
      next.kill("SIGTERM");
      await ended(next);
      assert.deepEqual(
        runsOf(at.board.db, id).map(({ outcome }) => outcome),
        outcomes,
      );
      assert.equal((await at.lines("begun")).length, 1, "what was never written down never began");
    });
  const worker = [
    ["begun", ["crashed", "crashed"], "blocked"],
    ["heartbeat", ["crashed", "crashed"], "blocked"],
    ["completing", ["crashed", "crashed"], "blocked"],
    ["completed", ["completed"], "done"],
  ] as const;
  for (const [fate, outcomes, status] of oneOf(worker, "worker killed"))
    test(`of the worker, where it has ${fate}: the card is ${status}`, async () => {
      await using at = await world(4);
      const { id } = await at.board.change((change) => createCard(change, { title: "card", assignee: "default" }));
      const child = at.dispatch({ fate });
      await until(`it is ${status}`, () => listCards(at.board.db, { status }).length === 1);
      child.kill("SIGTERM");
      await ended(child);
      const runs = runsOf(at.board.db, id);
      assert.deepEqual(
        runs.map(({ outcome }) => outcome),
        outcomes,
      );
      if (status === "blocked") assert.match(runs[0]?.error ?? "", /was ended by SIGKILL/);
      assert.equal((await at.lines("begun")).length, outcomes.length);
      assert.deepEqual(await at.lines("overlaps"), []);
    });
});

test("a worker that takes too long is stopped although it ignores SIGTERM; so is one whose card was archived", {
  skip: !POSIX,
}, async () => {
  await using at = await world(4);
  const cards = await at.board.change((change) => [
    createCard(change, { title: "slow", assignee: "default", maxRuntimeSeconds: 40, maxRetries: 1 }),
    createCard(change, { title: "unwanted", assignee: "default" }),
  ]);
  const [slow, unwanted] = cards;
  assert.ok(slow && unwanted);
  const child = at.dispatch({ fate: "hang" });
  await until("both hang", async () => (await at.lines("begun")).length === 2);
  const pids = await Promise.all(
    cards.map(async ({ id }) => Number((await readFile(join(at.traces, `at-${id}`), "utf8")).split(" ")[0])),
  );
  await at.board.change((change) => archive(change, unwanted.id));
  await until("both are gone", () => pids.every((pid) => !isAlive(pid)));
  await until("it is blocked", () => listCards(at.board.db, { status: "blocked" }).length === 1);
  assert.equal(runsOf(at.board.db, slow.id)[0]?.outcome, "timed_out");
  child.kill("SIGTERM");
  await ended(child);
});

const CARDS = whole ? 1000 : 24;

test(`3 dispatchers that are killed, ${CARDS} cards, workers that die at random: each is done once or blocked with a reason`, {
  skip: !POSIX,
}, async () => {
  await using at = await world(whole ? 12 : 6);
  const { db } = at.board;
  await at.board.change((change) => {
    const ids: string[] = [];
    for (let number = 0; number < CARDS; number++) {
      const parents = number % 4 === 3 ? ids.slice(-1) : [];
      const maxRetries = number % 5 === 0 ? 1 : 60;
      ids.push(createCard(change, { title: `card ${number}`, assignee: "default", parents, maxRetries }).id);
    }
  });
  const start = () => at.dispatch({ fate: "random" });
  const dispatchers = [start(), start(), start()];
  const open = () => {
    const cards = listCards(db);
    const held = new Set(cards.filter(({ status }) => status === "blocked").map(({ id }) => id));
    return cards.filter(
      ({ id, status }) => !["done", "blocked"].includes(status) && !openParents(db, id).some((one) => held.has(one)),
    );
  };
  let kills = 0;
  let nextKill = Date.now() + 600;
  const finished = () => listCards(db, { status: "done" }).length + listCards(db, { status: "blocked" }).length;
  const isOver = () => {
    if (Date.now() > nextKill && kills < (whole ? 60 : 3)) {
      const place = kills++ % dispatchers.length;
      dispatchers[place]?.kill("SIGKILL");
      dispatchers[place] = start();
      nextKill = Date.now() + 600 + Math.random() * 600;
    }
    return open().length === 0;
  };
  await until("nothing is left to do", isOver, finished);
  for (const child of dispatchers) child.kill("SIGTERM");
  await Promise.all(dispatchers.map(ended));
  assert.deepEqual(await at.lines("overlaps"), [], "two workers of one card at a time");
  const events = eventsSince(db, 0, 1_000_000);
  for (const card of listCards(db)) {
    const of = (kind: string) => events.filter((event) => event.task_id === card.id && event.kind === kind).length;
    assert.equal(of("completed"), card.status === "done" ? 1 : 0, `${card.title} is ${card.status}`);
    if (card.status === "blocked") assert.equal(of("gave_up"), 1, `${card.title} is blocked, and nobody says why`);
    assert.equal(
      runsOf(db, card.id).filter(({ ended_at }) => ended_at === null).length,
      0,
      `${card.title} has an open run`,
    );
  }
  const begun = await at.lines("begun");
  assert.equal(new Set(begun).size, begun.length, "no attempt began twice");
});
