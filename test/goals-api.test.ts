// Standing goals in streams of API sessions: each turn in the same stream, for as long as it is open.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { type ApiRig, apiRig, KEY, lastText } from "./support/api-rig.ts";
import type { RecordedRequest, Reply } from "./support/model-server/script.ts";

const isJudge = ({ body }: RecordedRequest) => String(body.messages[0]?.content).startsWith("You judge whether");
const verdict = (word: string, reason: string) => ({ text: JSON.stringify({ verdict: word, reason }) });
const never = () => new Promise<Reply>(() => undefined);
const CONTINUING = "[Continuing toward your standing goal]";

describe("a goal in a stream of a session", () => {
  let rig: ApiRig;
  let judge: (asked: number) => Reply | Promise<Reply>;
  let work: (turn: number) => Reply | Promise<Reply>;
  /** What the agent was told, turn by turn: the first line. */
  let turns: string[];
  let asked: number;
  let sessions = 0;
  let id: string;

  before(async () => {
    rig = await apiRig();
    rig.model.otherwise((request) => {
      if (isJudge(request)) return judge(++asked);
      if (!request.body.tools?.length) return { text: "A title" };
      turns.push(lastText(request.body.messages).split("\n")[0] ?? "");
      return work(turns.length);
    });
  });
  beforeEach(async () => {
    turns = [];
    asked = 0;
    judge = () => verdict("continue", "not yet");
    work = (turn) => ({ text: `step ${turn}` });
    id = `goal-${++sessions}`;
    await rig.store.create({ id, source: "api_server" });
  });
  after(() => rig[Symbol.asyncDispose]());

  const stream = async (message: string) =>
    (await rig.events("POST", `/api/sessions/${id}/chat/stream`, { message })).map(({ data }) =>
      JSON.parse(data ?? "{}"),
    );
  const contents = (events: readonly { event: string; content?: string }[]) =>
    events.filter(({ event }) => event === "assistant.completed").map(({ content }) => content);
  const status = async () => contents(await stream("/goal"))[0] ?? "";
  /** A client that can hang up; resolves when its connection is gone for the server too. */
  const leaving = (message: string) => {
    const client = new AbortController();
    const over = fetch(`${rig.url}/api/sessions/${id}/chat/stream`, {
      ...{ method: "POST", body: JSON.stringify({ message }), headers: { authorization: `Bearer ${KEY}` } },
      signal: client.signal,
    })
      .then((response) => response.text())
      .catch(() => "gone");
    return { hangUp: () => client.abort(), over };
  };
  const paused = async () => {
    for (;;) {
      const stored = await rig.store.getMeta(`goal:${id}`);
      if (stored !== null && JSON.parse(stored).status === "paused") return JSON.parse(stored);
      await new Promise(setImmediate);
    }
  };

  test("is reached in one stream: one run, a message for each turn, and one for each line about the goal", async () => {
    judge = (count) => (count < 3 ? verdict("continue", "a wall is left") : verdict("done", "all walls"));
    const events = await stream("/goal paint the walls");
    assert.deepEqual(turns, ["paint the walls", CONTINUING, CONTINUING]);
    assert.deepEqual(contents(events).slice(1), [
      "step 1",
      "↻ Continuing toward goal (1/20): a wall is left",
      "step 2",
      "↻ Continuing toward goal (2/20): a wall is left",
      "step 3",
      "✓ Goal achieved: all walls",
    ]);
    const named = events.map(({ event }) => event);
    assert.equal(named.filter((name) => name === "run.started").length, 1);
    assert.deepEqual(named.slice(-2), ["run.completed", "done"]);
    assert.equal(events.at(-2)?.output, "step 3");
    const begun = events.filter(({ event }) => event === "message.started");
    assert.equal(new Set(begun.map(({ message_id }) => message_id)).size, 7);
    assert.deepEqual(
      begun.map(({ role }) => role),
      ["system", "assistant", "system", "assistant", "system", "assistant", "system"],
    );
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, at) => at),
    );
  });

  test("pauses when its turns are spent, and a command alone runs no turn", async () => {
    const events = await stream("/goal --max 2 count the stars");
    assert.match(contents(events).at(-1) ?? "", /^⏸ Goal paused — 2\/2 turns used\. turn budget exhausted/);
    const told = await stream("/subgoal of the south");
    assert.deepEqual(contents(told), ["1. of the south"]);
    assert.equal(told.at(-2)?.event, "run.completed");
    assert.equal(turns.length, 2);
    judge = () => verdict("done", "counted");
    assert.equal(contents(await stream("/goal resume")).at(-1), "✓ Goal achieved: counted");
    assert.equal(turns.at(-1), CONTINUING);
  });

  test("a client that hangs up in the middle of a turn, or while the judge thinks, pauses it", async () => {
    const reached = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    work = (turn) => {
      if (turn > 1) return { text: "step" };
      reached[0].resolve();
      return never();
    };
    judge = () => {
      reached[1].resolve();
      return never();
    };
    for (const [at, typed] of ["/goal dig a hole", "/goal resume"].entries()) {
      const client = leaving(typed);
      await reached[at]?.promise;
      client.hangUp();
      await client.over;
      assert.equal((await paused()).paused_reason, "user-interrupted (in the API)");
    }
    assert.deepEqual([turns.length, asked], [2, 1]);
  });

  test("a message in another stream comes first, and that stream goes on with the goal", async () => {
    const thinking = Promise.withResolvers<void>();
    judge = (count) => {
      thinking.resolve();
      return count === 1 ? never() : verdict(count === 2 ? "continue" : "done", "step");
    };
    const first = stream("/goal walk the dog");
    await thinking.promise;
    const second = await stream("and feed it");
    assert.deepEqual(contents(await first).slice(1), ["step 1"]);
    assert.deepEqual(turns, ["walk the dog", "and feed it", CONTINUING]);
    assert.deepEqual(contents(second), [
      "step 2",
      "↻ Continuing toward goal (1/20): step",
      "step 3",
      "✓ Goal achieved: step",
    ]);
  });

  test("/goal pause during a turn lets that turn end and no other begin", async () => {
    const working = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    work = async () => {
      working.resolve();
      await held.promise;
      return { text: "a sleeve" };
    };
    const said = stream("/goal knit a pullover");
    await working.promise;
    assert.match(contents(await stream("/goal another"))[0] ?? "", /not set during a turn/);
    await stream("/goal pause");
    held.resolve();
    assert.equal(contents(await said).at(-1), "a sleeve");
    assert.deepEqual([turns.length, asked], [1, 0]);
    assert.match(await status(), /^⏸ Goal paused, by you \(0\/20 turns\): knit a pullover/);
  });

  test("a plain call judges nothing, and the goal stays for the next stream", async () => {
    await stream("/goal --max 1 sail home");
    await stream("/goal resume");
    const before = [asked, await status()];
    const { status: code, json } = await rig.call("POST", `/api/sessions/${id}/chat`, { message: "hello" });
    assert.deepEqual([code, json.message.content], [200, "step 3"]);
    assert.deepEqual([asked, await status()], before);
  });

  test("a server that stops while the judge thinks leaves it active, for the next stream to go on with", async () => {
    const thinking = Promise.withResolvers<void>();
    judge = () => {
      thinking.resolve();
      return never();
    };
    const said = stream("/goal sail on");
    await thinking.promise;
    await rig.stop();
    assert.deepEqual(contents(await said).slice(1), ["step 1"]);
    const { status: stored, turns_used } = JSON.parse((await rig.store.getMeta(`goal:${id}`)) ?? "{}");
    assert.deepEqual([stored, turns_used], ["active", 0]);
  });
});
