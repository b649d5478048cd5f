// Standing goals in an editor, through the program: the goal's turns are played inside the prompt, until it is reached, spent or stopped.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { type Editor, startEditor } from "./support/editor.ts";
import type { RecordedRequest, Reply } from "./support/model-server/script.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

const isJudge = ({ body }: RecordedRequest) => String(body.messages[0]?.content).startsWith("You judge whether");
const verdict = (word: string, reason: string, more: object = {}) => ({
  text: JSON.stringify({ verdict: word, reason, ...more }),
});
const lastSaid = ({ body }: RecordedRequest) => String(body.messages.at(-1)?.content);
const never = () => new Promise<Reply>(() => undefined);

describe("a goal in an editor", () => {
  let model: ModelServer;
  let home: TempHome;
  let editor: Editor;
  let judge: (asked: number) => Reply | Promise<Reply>;
  let work: (turn: number) => Reply | Promise<Reply>;
  /** What the agent was told, turn by turn: the first line. */
  let turns: string[];
  let asked: number;

  before(async () => {
    model = await ModelServer.start();
    home = await tempHome({ "config.yaml": modelConfig(model) });
    model.otherwise((request) => {
      if (isJudge(request)) return judge(++asked);
      if (!request.body.tools?.length) return { text: "A title" };
      turns.push(lastSaid(request).split("\n")[0] ?? "");
      return work(turns.length);
    });
    editor = await startEditor({ home });
  });
  beforeEach(() => {
    turns = [];
    asked = 0;
    judge = () => verdict("continue", "not yet");
    work = (turn) => ({ text: `step ${turn}` });
  });
  after(async () => {
    await editor[Symbol.asyncDispose]();
    await model.close();
    await home[Symbol.asyncDispose]();
  });

  const CONTINUING = "[Continuing toward your standing goal]";
  const paragraphs = (id: string) => editor.text(id).split(/\n+/).filter(Boolean);
  const status = async (id: string) => {
    const before = editor.text(id).length;
    await editor.say(id, "/goal");
    return editor.text(id).slice(before).trim();
  };

  test("is reached within one prompt, each continuation told behind the answer before it", async () => {
    judge = (count) => (count < 3 ? verdict("continue", "a wall is left") : verdict("done", "all walls"));
    const id = await editor.begin();
    assert.deepEqual(await editor.say(id, "/goal paint the walls"), { stopReason: "end_turn" });
    assert.deepEqual(turns, ["paint the walls", CONTINUING, CONTINUING]);
    assert.deepEqual(paragraphs(id).slice(1), [
      "step 1",
      "↻ Continuing toward goal (1/20): a wall is left",
      "step 2",
      "↻ Continuing toward goal (2/20): a wall is left",
      "step 3",
      "✓ Goal achieved: all walls",
    ]);
    assert.match(await status(id), /^✓ Goal achieved \(3\/20 turns/);
    await editor.say(id, "thanks");
    assert.equal(asked, 3, "a goal that was reached is judged no more");
  });

  test("pauses when its turns are spent; /goal resume goes on inside its own prompt", async () => {
    const id = await editor.begin();
    await editor.say(id, "/goal --max 2 count the stars");
    assert.match(editor.text(id), /⏸ Goal paused — 2\/2 turns used\. turn budget exhausted \(2\/2\)/);
    assert.equal(turns.length, 2);
    judge = () => verdict("done", "counted");
    await editor.say(id, "/goal resume");
    assert.deepEqual(turns, ["count the stars", CONTINUING, CONTINUING]);
    assert.match(editor.text(id), /✓ Goal achieved: counted/);
  });

  test("cancel in the middle of a turn pauses it", async () => {
    const id = await editor.begin();
    const working = Promise.withResolvers<void>();
    work = (turn) => {
      if (turn === 1) return { text: "begun" };
      working.resolve();
      return never();
    };
    const said = editor.say(id, "/goal dig a hole");
    await working.promise;
    await editor.agent.notify("session/cancel", { sessionId: id });
    assert.deepEqual(await said, { stopReason: "cancelled" });
    assert.match(await status(id), /^⏸ Goal paused, user-interrupted \(in the editor\) \(1\/20 turns/);
    assert.equal(turns.length, 2, "nothing went on by itself");
  });

  test("cancel while the judge thinks pauses it too", async () => {
    const id = await editor.begin();
    const thinking = Promise.withResolvers<void>();
    judge = () => {
      thinking.resolve();
      return never();
    };
    const said = editor.say(id, "/goal fill the hole");
    await thinking.promise;
    await editor.agent.notify("session/cancel", { sessionId: id });
    assert.deepEqual(await said, { stopReason: "cancelled" });
    assert.match(await status(id), /^⏸ Goal paused, user-interrupted/);
    assert.deepEqual(turns, ["fill the hole"]);
  });

  test("a prompt of the person comes first, stops the judge, and is judged instead", async () => {
    const id = await editor.begin();
    const thinking = Promise.withResolvers<void>();
    judge = (count) => {
      thinking.resolve();
      return count === 1 ? never() : verdict(count === 2 ? "continue" : "done", "step");
    };
    const first = editor.say(id, "/goal walk the dog");
    await thinking.promise;
    const second = editor.say(id, "and feed it");
    assert.deepEqual(await first, { stopReason: "end_turn" });
    assert.deepEqual(await second, { stopReason: "end_turn" });
    assert.deepEqual(turns, ["walk the dog", "and feed it", CONTINUING]);
    assert.match(editor.text(id), /step 2\s+↻ Continuing toward goal \(1\/20\): step\s+step 3\s+✓ Goal achieved: step/);
  });

  test("/goal pause during a turn lets that turn end and no other begin; a subgoal is taken along", async () => {
    const id = await editor.begin();
    const working = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    work = async (turn) => {
      working.resolve();
      await held.promise;
      return { text: `step ${turn}` };
    };
    const said = editor.say(id, "/goal knit a hat");
    await working.promise;
    await editor.say(id, "/subgoal with a bobble");
    await editor.say(id, "/goal pause");
    held.resolve();
    assert.deepEqual(await said, { stopReason: "end_turn" });
    assert.deepEqual([turns.length, asked], [1, 0]);
    assert.match(await status(id), /^⏸ Goal paused, by you \(0\/20 turns, 1 subgoal/);
  });

  test("that waits ends the prompt, and the next message judges it again", async () => {
    const id = await editor.begin();
    judge = (count) =>
      count === 1 ? verdict("wait", "in the oven", { wait_for_seconds: 3600 }) : verdict("done", "bread");
    await editor.say(id, "/goal bake bread");
    assert.match(editor.text(id), /⏳ Goal parked for another .*: in the oven/);
    assert.deepEqual(turns, ["bake bread"]);
    await editor.say(id, "how is it?");
    assert.deepEqual([turns.length, asked], [2, 1], "it still waits: no judge, no further turn");
    await editor.say(id, "/goal unwait");
    assert.match(editor.text(id), /✓ Goal achieved: bread/);
    assert.equal(turns.length, 3);
  });

  test("is there after the editor was started again, rests until something is said, and then goes on", async () => {
    const id = await editor.begin();
    const thinking = Promise.withResolvers<void>();
    judge = () => {
      thinking.resolve();
      return never();
    };
    const gone = editor.say(id, "/goal sail home").catch(() => "gone");
    await thinking.promise;
    editor.child.kill("SIGKILL");
    assert.equal(await gone, "gone");
    editor = await startEditor({ home });
    await editor.agent.request("session/load", { sessionId: id, cwd: home.project, mcpServers: [] });
    assert.match(await status(id), /^⊙ Goal active \(0\/20 turns\): sail home/);
    asked = 0;
    judge = (count) => (count < 2 ? verdict("continue", "wind") : verdict("done", "arrived"));
    assert.equal(turns.length, 1);
    await editor.say(id, "go on");
    assert.deepEqual(turns.slice(1), ["go on", CONTINUING]);
    assert.match(editor.text(id), /✓ Goal achieved: arrived/);
  });
});
