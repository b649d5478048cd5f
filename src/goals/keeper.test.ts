// A goal under everything that may happen to it, on a real store; the door is as simple as one can be.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { Config } from "../home/config/schema.ts";
import type { AuxCall, AuxiliaryClient } from "../llm/auxiliary/contract.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { fenced } from "../prompt/fence.ts";
import type { SessionStore } from "../sessions/store.ts";
import { continued } from "./decide.ts";
import { following, type GoalStep, Goals, keyOf } from "./keeper.ts";
import { cleared, type GoalState, isOpen, NO_CONTRACT, newGoal, parseGoal, paused, resumed } from "./state.ts";

const TURN: readonly HistoryMessage[] = [
  { role: "user", content: "go" },
  { role: "assistant", content: "I did something." },
];
const settings = { goals: { max_turns: 4, max_usd: null }, auxiliary: { goal_judge: { max_tokens: 0 } } };

/** One conversation and its door; a restart is another of them on the same store. */
class World {
  readonly store: SessionStore;
  readonly sessionId: string;
  verdicts: string[];
  userWaits = false;
  queued = false;
  /** How many continuations were queued since the last turn began. */
  sinceTurn = 0;
  /** What happens while the judge thinks. */
  meanwhile: () => unknown = () => undefined;
  goals: Goals;
  readonly lines: string[] = [];
  /** Who was to pay, each time it was said. */
  readonly accounts: (string | null)[] = [];
  /** Of the judge that is asked. */
  judging: AbortSignal | undefined;
  /** What the judge was told last. */
  told = "";

  constructor(store: SessionStore, sessionId: string, verdicts: readonly string[]) {
    this.store = store;
    this.sessionId = sessionId;
    this.verdicts = [...verdicts];
    this.goals = this.#open();
  }

  restart(): void {
    this.goals.close();
    this.queued = false;
    this.goals = this.#open();
  }

  async state(): Promise<GoalState | null> {
    return parseGoal(await this.store.getMeta(keyOf(this.sessionId)));
  }

  #open(): Goals {
    const take = async ({ meta, next, line, unlessBusy }: GoalStep) => {
      if (unlessBusy && this.userWaits) return "busy";
      if (!(await this.store.setMeta(meta.key, meta.value, meta.expected))) return "changed";
      if (line !== null) this.lines.push(line);
      if (next === undefined) return "done";
      this.queued = next !== null;
      if (next !== null) this.sinceTurn++;
      return "done";
    };
    const auxiliary = {
      callAux: async ({ signal, messages }: AuxCall) => {
        this.judging = signal;
        this.told = String(messages.at(-1)?.content);
        await this.meanwhile();
        return { text: `{"verdict":"${this.verdicts.shift() ?? "continue"}","reason":"r"}` };
      },
    } as unknown as AuxiliaryClient; // what is used of it
    return new Goals({
      door: { isBusy: () => this.userWaits, take },
      clock: { now: () => 5_000, random: () => 0, sleep: () => new Promise(() => undefined) },
      config: () => settings as unknown as Config, // what is read of it
      subject: () => ({
        ...{ store: this.store, sessionId: this.sessionId, auxiliary, processes: () => [] },
        pays: (account) => void this.accounts.push(account),
      }),
      onError: assert.fail,
    });
  }
}

const ended = { interrupted: null, failed: null };
const goalOf = (maxTurns: number) => newGoal({ goal: "paint", contract: NO_CONTRACT }, { now: 1, maxTurns });

async function storeFor(t: TestContext) {
  const { store } = await temporaryStore(t);
  let serial = 0;
  return async (verdicts: readonly string[] = []) => {
    const id = `s-${serial++}`;
    await store.create({ id });
    return new World(store, id, verdicts);
  };
}

test("whatever happens in whatever order: turns stay in the budget, one continuation a turn, none after a stop", async (t) => {
  const world = await storeFor(t);
  const step = fc.constantFrom(
    "text",
    "pause",
    "stop",
    "clear",
    "resume",
    "turn",
    "interrupted",
    "failed",
    "restart",
    "subgoal",
  );
  const verdicts = fc.array(fc.constantFrom("continue", "continue", "continue", "done", "odd"), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), verdicts, async (steps, said) => {
      const w = await world(said);
      await w.goals.change(() => ({ state: goalOf(4), next: { text: "paint", from: "person" } }));
      w.queued = false;
      w.sinceTurn = 0;
      const edit = (change: (state: GoalState) => Parameters<typeof following>[0] | GoalState) =>
        w.goals.change((state) => {
          if (!isOpen(state)) return "none";
          const to = change(state);
          return "line" in to ? following(to) : { state: to, next: null };
        });
      for (const what of steps) {
        if (what === "text") w.userWaits = true;
        if (what === "pause" || what === "stop") await edit((state) => paused(state, what));
        if (what === "clear") await edit(cleared);
        if (what === "resume") {
          await edit((state) => (state.status === "paused" ? continued(resumed(state), "resumed") : state));
          w.sinceTurn = 0;
        }
        if (what === "subgoal")
          await w.goals.change((state) => (isOpen(state) ? { state: { ...state, subgoals: ["x"] } } : "none"));
        if (what === "restart") w.restart();
        if (["turn", "interrupted", "failed"].includes(what)) {
          // The user's text comes first, then what is queued; without either the user says something now.
          const isGoals = !w.userWaits && w.queued;
          if (isGoals) assert.ok((await w.goals.nextText()) !== null, "what runs is still wanted");
          w.userWaits = false;
          w.queued = false;
          w.sinceTurn = 0;
          w.goals.turnBegins();
          const end = what === "turn" ? ended : { ...ended, [what]: "by hand" };
          await w.goals.turnEnded(end, TURN);
        }
        const state = await w.state();
        assert.ok(state && state.turns_used <= state.max_turns, `${state?.turns_used} of ${state?.max_turns}`);
        assert.ok(w.sinceTurn <= 1, `${w.sinceTurn} continuations after one turn`);
        if (state.status !== "active") assert.equal(w.queued, false, `nothing is queued while ${state.status}`);
      }
    }),
    { numRuns: 60 },
  );
});

test("what waits to be said for a goal is said only while the goal is active", async (t) => {
  const world = await (await storeFor(t))();
  assert.equal(await world.goals.nextText(), null);
  await world.goals.change(() => ({ state: goalOf(4) }));
  assert.match((await world.goals.nextText()) ?? "", /^\[Continuing toward your standing goal\]\nGoal: paint/);
  for (const over of [paused(goalOf(4), "by you"), cleared(goalOf(4)), { ...goalOf(4), status: "done" as const }]) {
    await world.goals.change(() => ({ state: over }));
    assert.equal(await world.goals.nextText(), null, over.status);
  }
});

test("a pause while the judge thinks wins over its verdict", async (t) => {
  const w = await (await storeFor(t))(["done"]);
  await w.goals.change(() => ({ state: goalOf(4) }));
  w.meanwhile = () => w.goals.change((state) => (state ? { state: paused(state, "by you"), next: null } : "none"));
  await w.goals.turnEnded(ended, TURN);
  const state = await w.state();
  assert.deepEqual([state?.status, state?.turns_used, w.queued], ["paused", 0, false]);
  assert.equal(w.judging?.aborted, true, "nobody pays for what is not wanted");
});

test("the judge sees the calls of the last turn and how they ended, in a fence too, and none of earlier turns", async (t) => {
  const w = await (await storeFor(t))(["continue"]);
  await w.goals.change(() => ({ state: goalOf(4) }));
  const call = (id: string, command: string) => ({
    ...{ id, type: "function" as const, function: { name: "terminal", arguments: JSON.stringify({ command }) } },
  });
  const result = (tool_call_id: string, content: string): HistoryMessage => ({ role: "tool", tool_call_id, content });
  await w.goals.turnEnded(ended, [
    { role: "user", content: "go" },
    { role: "assistant", content: "", tool_calls: [call("0", "earlier")] },
    result("0", "{}"),
    { role: "user", content: "on" },
    { role: "assistant", content: "", tool_calls: [call("1", "first"), call("2", "second"), call("3", "third")] },
    result("1", fenced("terminal", '{"output": "1 of 7", "exit_code": 1}')),
    result("2", fenced("terminal", '{"output": "7 of 7", "exit_code": 0}')),
    { role: "assistant", content: "All read." },
  ]);
  assert.match(w.told, /- terminal .*first.*: failed\n- terminal .*second.*: ok\n- terminal .*third.*: failed\n/);
  assert.doesNotMatch(w.told, /earlier/);
});

test("what another process makes of the goal while the judge thinks wins too", async (t) => {
  const w = await (await storeFor(t))(["done"]);
  await w.goals.change(() => ({ state: goalOf(4) }));
  w.meanwhile = () => w.store.setMeta(keyOf(w.sessionId), JSON.stringify(cleared(goalOf(4))));
  await w.goals.turnEnded(ended, TURN);
  assert.equal((await w.state())?.status, "cleared");
});

test("a verdict that comes after a message of the user is dropped, and counts no turn", async (t) => {
  const w = await (await storeFor(t))([]);
  await w.goals.change(() => ({ state: goalOf(4) }));
  w.meanwhile = () => {
    w.userWaits = true;
  };
  await w.goals.turnEnded(ended, TURN);
  assert.deepEqual([(await w.state())?.turns_used, w.queued], [0, false]);
});

test("a goal that a crash of the original left before a compression is taken along, once", async (t) => {
  const w = await (await storeFor(t))();
  await w.goals.change(() => ({ state: goalOf(4) }));
  const left = await w.store.getMeta(keyOf(w.sessionId));
  const child = await w.store.continueAfterCompression(w.sessionId, []);
  // As it stands when the process died between the two writes, and when the child had one that was cleared.
  await w.store.setMeta(keyOf(w.sessionId), left ?? "");
  await w.store.setMeta(keyOf(child), JSON.stringify(cleared(goalOf(4))));
  const after = new World(w.store, child, []);
  assert.equal((await after.goals.begin())?.status, "active");
  assert.deepEqual([(await after.state())?.status, (await w.state())?.status], ["active", "cleared"]);
});

test("a compression takes the goal along in its own step, its undoing brings it back, and a branch gets it paused", async (t) => {
  const w = await (await storeFor(t))();
  const { store, sessionId } = w;
  await store.append(sessionId, TURN);
  await w.goals.change(() => ({ state: { ...goalOf(4), turns_used: 2 } }));
  const statusOf = async (id: string) => parseGoal(await store.getMeta(keyOf(id)))?.status ?? null;
  await store.branch(sessionId, "branch");
  await store.reopen(sessionId);
  assert.deepEqual([await statusOf(sessionId), await statusOf("branch")], ["active", "paused"]);
  const child = await store.continueAfterCompression(sessionId, TURN);
  assert.deepEqual([await statusOf(sessionId), await statusOf(child)], ["cleared", "active"]);
  const after = new World(store, child, []);
  await after.goals.begin();
  assert.deepEqual(after.accounts, w.accounts.slice(-1), "the same account pays on");
  await store.undoCompression(child);
  assert.deepEqual([await statusOf(sessionId), await statusOf(child)], ["active", null]);
  await store.delete("branch");
  assert.equal(await statusOf("branch"), null);
});
