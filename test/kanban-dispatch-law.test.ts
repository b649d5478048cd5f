// Two dispatchers, workers that do anything, people who step in, and a clock that runs: no card has two workers, none is lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { openHome } from "../src/home/open.ts";
import { Boards } from "../src/kanban/boards.ts";
import {
  assign,
  BoardError,
  cardOf,
  createCard,
  eventsOf,
  eventsSince,
  isForced,
  link,
  listCards,
  openParents,
} from "../src/kanban/cards.ts";
import { Dispatcher } from "../src/kanban/dispatch.ts";
import { archive, block, complete, heartbeat, promoteByHand, reclaim, unblock } from "../src/kanban/moves.ts";
import type { Action } from "../src/kanban/plan.ts";
import type { WorkerIdentity } from "../src/kanban/runs.ts";
import type { BoardFile, CardEvent, CardRun } from "../src/kanban/schema.ts";
import type { WorkerTask } from "../src/kanban/workers.ts";
import { fewer, whole } from "./support/sample.ts";
import { manualClock } from "./support/session-store.ts";
import { tempHome } from "./support/temp-home.ts";

const MOST = 3;
const MOST_OF_ONE = 2;

interface Process {
  readonly card: string;
  readonly run: number;
  isAlive: boolean;
  /** It outlives SIGKILL, as one that waits for a disk does. */
  isStubborn: boolean;
  /** It completes its card while a dispatcher looks at it, and ends. */
  isHasty: boolean;
  exit: { readonly code: number | null; readonly signal: string | null } | null;
  /** Whose child it is. */
  readonly parent: number;
}

/** The processes of a machine. A dispatcher knows how its own children ended, until it is started anew. */
class Machine {
  readonly processes: Process[] = [];
  readonly #board: BoardFile;
  #lives = 0;
  /** A look goes on, and no dry run. */
  isLooking = false;
  /** Something happened during it. */
  wasHasty = false;

  constructor(board: BoardFile) {
    this.#board = board;
  }

  async #hurry(process: Process | undefined): Promise<void> {
    if (!process?.isAlive || !process.isHasty || !this.isLooking) return;
    this.wasHasty = true;
    this.end(process, { code: 0, signal: null });
    await this.#board
      .change((change) => complete(change, process.card, { summary: "done", run: process.run }))
      .catch((error) => assert.ok(error instanceof BoardError));
  }

  dispatcher() {
    const me = ++this.#lives;
    const at = ({ pid }: WorkerIdentity) => this.processes[pid - 1];
    return {
      start: async (command: readonly string[]) => {
        if (command[0] === "broken") throw new Error("spawn ENOENT");
        const [, card = "", run = ""] = command;
        const process: Process = {
          card,
          run: Number(run),
          isAlive: true,
          isStubborn: false,
          isHasty: false,
          exit: null,
          parent: me,
        };
        const pid = this.processes.push(process);
        return { pid, startTime: pid, go: () => undefined, cancel: () => this.end(process, { code: 1, signal: null }) };
      },
      lives: async (who: WorkerIdentity) => {
        await this.#hurry(at(who));
        return at(who)?.isAlive ?? false;
      },
      exitOf: (who: WorkerIdentity) => (at(who)?.parent === me ? (at(who)?.exit ?? null) : null),
      forget: () => undefined,
      stop: async (who: WorkerIdentity) => {
        const process = at(who);
        await this.#hurry(process);
        if (process && !process.isStubborn) this.end(process, { code: null, signal: "SIGTERM" });
        return !process?.isAlive;
      },
    };
  }

  end(process: Process, exit: NonNullable<Process["exit"]>): void {
    if (!process.isAlive) return;
    process.isAlive = false;
    process.exit = exit;
  }
}

const step = fc.record({
  act: fc.constantFrom(
    ...["look", "look", "look", "look", "look", "wait", "later", "complete", "complete", "block", "beat"],
    ...["exit0", "exit1", "exit75", "kill", "stubborn", "hasty", "hasty", "yields", "restart", "create", "create"],
    ...["unblock", "archive", "reclaim", "force", "link", "assign", "doneByHand", "breaks"],
  ),
  hand: fc.nat(1),
  a: fc.nat(7),
  b: fc.nat(7),
});

test("whatever workers and people do, a card has one worker at most, limits hold, and what is ready runs or says why not", async () => {
  await using files = await tempHome({
    "config.yaml": `kanban: {max_in_progress: ${MOST}, max_in_progress_per_profile: ${MOST_OF_ONE}, default_assignee: ann}\n`,
    "profiles/ann/config.yaml": "{}\n",
    "profiles/bob/config.yaml": "{}\n",
  });
  const { dir, osHome, project: cwd } = files;
  const home = await openHome({ argv: [], osHome, cwd, env: { HERMES_HOME: dir, HOME: osHome } });
  const clock = manualClock();
  const boards = new Boards(home, clock);
  let count = 0;
  const seen = new Map<string, number>();
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 90, size: "max" }), async (steps) => {
        const slug = `b${count++}`;
        await boards.create(slug, {});
        const files: readonly BoardFile[] = [await boards.open(slug), await boards.open(slug)];
        const [board, other] = files;
        assert.ok(board && other);
        const machine = new Machine(other);
        const ids = await board.change((at) =>
          ["ann", "bob", "ann"].map((assignee) => createCard(at, { title: `card of ${assignee}`, assignee }).id),
        );
        const broken = new Set<string>();
        const command = ({ card, run }: WorkerTask) =>
          broken.delete(card.id) ? ["broken"] : ["worker", card.id, String(run)];
        const fresh = () => new Dispatcher({ home, boards, workers: machine.dispatcher(), command });
        const hands = [fresh(), fresh()];
        let events: readonly CardEvent[] = [];
        for (const { act, hand, a, b } of steps) {
          const id = ids[a % Math.max(1, ids.length)] ?? "t_none";
          const second = ids[b % Math.max(1, ids.length)] ?? "t_none";
          const alive = machine.processes.filter((one) => one.isAlive);
          const worker = alive[a % Math.max(1, alive.length)];
          const change = async (work: Parameters<BoardFile["change"]>[0]) => {
            await board.change(work).catch((error) => {
              if (!(error instanceof BoardError)) throw error;
            });
          };
          switch (act) {
            case "look": {
              const [dispatcher, file] = [hands[hand], files[hand]];
              assert.ok(dispatcher && file);
              const told = await dispatcher.wouldDo(slug, file);
              Object.assign(machine, { isLooking: true, wasHasty: false });
              const look = await dispatcher.look(slug, file);
              machine.isLooking = false;
              if (!machine.wasHasty) assert.deepEqual(look.actions, told, "a dry run says what a look does");
              for (const action of look.actions) {
                const name =
                  action.type === "end" || action.type === "stop"
                    ? `${action.type} ${action.event ?? action.outcome}`
                    : action.type;
                seen.set(name, (seen.get(name) ?? 0) + 1);
              }
              followed(file, look.actions, machine);
              break;
            }
            case "wait":
              clock.ms += 40_000 * (1 + a);
              break;
            case "later":
              clock.ms += 1_000_000 * (1 + a * 3);
              break;
            case "complete":
              if (worker) await change((at) => complete(at, worker.card, { summary: "done", run: worker.run }));
              if (worker && b % 2) machine.end(worker, { code: 0, signal: null });
              break;
            case "block":
              if (worker)
                await change((at) =>
                  block(at, worker.card, { kind: b % 2 ? "needs_input" : undefined, run: worker.run }),
                );
              break;
            case "beat":
              if (worker) await change((at) => heartbeat(at, worker.card, undefined));
              break;
            case "exit0":
            case "exit1":
            case "exit75":
              if (worker) machine.end(worker, { code: Number(act.slice(4)), signal: null });
              break;
            case "kill":
              if (worker) machine.end(worker, { code: null, signal: "SIGKILL" });
              break;
            case "stubborn":
              if (worker) worker.isStubborn = true;
              break;
            case "hasty":
              for (const one of alive) one.isHasty = true;
              break;
            case "yields":
              for (const one of machine.processes) one.isStubborn = false;
              break;
            case "restart":
              hands[hand] = fresh();
              break;
            case "create":
              if (ids.length < 7)
                await change((at) => {
                  const parents = ids.length > 0 && b % 3 === 0 ? [id] : [];
                  const assignee = [undefined, "ann", "ann", "bob", "nobody"][b % 5];
                  const limit = a % 2 ? { maxRuntimeSeconds: 500 } : {};
                  ids.push(
                    createCard(at, { title: `card ${ids.length}`, parents, assignee, priority: a % 3, ...limit }).id,
                  );
                });
              break;
            case "breaks":
              broken.add(id);
              break;
            case "unblock":
              await change((at) => unblock(at, id, undefined));
              break;
            case "archive":
              await change((at) => archive(at, id));
              break;
            case "reclaim":
              await change((at) => reclaim(at, id, undefined));
              break;
            case "force":
              await change((at) => promoteByHand(at, id, { actor: "ann", force: true }));
              break;
            case "link":
              await change((at) => link(at, id, second));
              break;
            case "assign":
              await change((at) => assign(at, id, b % 2 ? "bob" : "ann"));
              break;
            case "doneByHand":
              await change((at) => complete(at, id, { result: "by hand" }));
          }
          events = holds(board, machine, events, act);
        }
        for (const file of files) file.close();
      }),
      { numRuns: fewer(300, 10) },
    );
    if (whole) assert.ok(seen.size >= 14, `the law met too little: ${[...seen.keys()].join(", ")}`);
  } finally {
    await home.close();
  }
});

/** What a look said is what became of the cards. */
function followed({ db, now }: BoardFile, actions: readonly Action[], { processes, wasHasty }: Machine): void {
  const stopped = new Set(actions.flatMap((action) => (action.type === "stop" ? [action.card] : [])));
  for (const action of actions) {
    const { status, claim_lock: lock, current_run_id: run, claim_expires: expires } = cardOf(db, action.card);
    if (wasHasty) continue;
    if (action.type === "stop") {
      const isAlive = processes.some((one) => one.run === action.run && one.isAlive);
      assert.equal(run === action.run, isAlive, `${action.card} is held for as long as its worker lives`);
      const held = eventsOf(db, action.card, 1)[0];
      if (isAlive) assert.equal(held?.kind, "reclaim_deferred");
      if (isAlive) assert.ok(Number(expires) > now, "and counts as long");
    }
    if (action.type === "end") {
      assert.notEqual(status, "running", `${action.card} was over`);
      assert.equal(status === "blocked", action.givesUp, `${action.card}: blocked where its limit is reached`);
    }
    if (action.type === "start")
      assert.ok(["running", "ready", "blocked"].includes(status), `${action.card} was started, or could not be`);
    if (action.type === "start" && status === "ready")
      assert.ok(cardOf(db, action.card).consecutive_failures > 0, `${action.card} could not be started, which counts`);
    if (action.type === "wait") assert.ok(["ready", "review"].includes(status), `${action.card} waits as it is`);
    if (action.type === "hold_back") assert.equal(status, "todo");
    if (status === "running") assert.notEqual(lock, null);
  }
  for (const { status, id } of listCards(db, { status: "ready" })) {
    const said = actions.some((one) => one.card === id && ["wait", "end", "start"].includes(one.type));
    assert.ok(said || stopped.has(id) || wasHasty, `${id} is ${status} and nobody says why it does not run`);
  }
}

function holds({ db }: BoardFile, machine: Machine, before: readonly CardEvent[], after: string): readonly CardEvent[] {
  const cards = listCards(db, { archived: true });
  const events = eventsSince(db, 0, 1_000_000);
  assert.deepEqual(events.slice(0, before.length), before, `events are only added behind ${after}`);
  for (const card of cards) {
    const name = `${card.title} behind ${after}`;
    const open = db.all<CardRun>("SELECT * FROM task_runs WHERE task_id = ? AND ended_at IS NULL", card.id);
    assert.deepEqual(
      open.map(({ id }) => id),
      card.current_run_id === null ? [] : [card.current_run_id],
      `one open run of ${name}`,
    );
    assert.equal(card.status === "running", card.current_run_id !== null, `a run of ${name}`);
    const workers = machine.processes.filter((one) => one.isAlive && one.card === card.id);
    assert.ok(workers.length <= 1, `${workers.length} workers of ${name}`);
    if (card.status === "running" && !isForced(db, card.id) && openParents(db, card.id).length > 0)
      assert.ok(
        events.some(
          ({ task_id, run_id, kind }) =>
            task_id === card.id && run_id === card.current_run_id && kind === "linked_while_running",
        ),
        `${name} runs and waits`,
      );
    const completed = events.filter(({ task_id, kind }) => task_id === card.id && kind === "completed").length;
    if (card.status === "done") assert.equal(completed, 1, `${name} is done, and somebody said so`);
    else if (card.status !== "archived") assert.equal(completed, 0, `${name} was done and is not any more`);
    if (card.status === "blocked") {
      const why = events.findLast(({ task_id, kind }) => task_id === card.id && ["blocked", "gave_up"].includes(kind));
      assert.ok(why, `nobody says why ${name} is blocked`);
    }
  }
  const busy = cards.filter(({ status }) => status === "running");
  assert.ok(busy.length <= MOST, `${busy.length} run behind ${after}`);
  for (const who of ["ann", "bob"])
    assert.ok(busy.filter(({ assignee }) => assignee === who).length <= MOST_OF_ONE, who);
  return events;
}
