import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type CommandRig, commandRig } from "../../test/support/command-rig.ts";

const SET = "⊙ Goal set, up to 20 turns. /goal pause stops it after the turn, /goal shows where it is.";

/** Types lines one after the other; resolves to what the last one brought. */
async function typed(rig: CommandRig, ...lines: readonly string[]): Promise<string> {
  for (const line of lines) {
    rig.text();
    assert.equal(await rig.type(line), true, line);
  }
  return rig.text();
}

const state = async ({ ctx }: CommandRig) => (await ctx.goals?.state()) ?? assert.fail("no goal");

describe("/goal", () => {
  test("sets a goal with its budget, and its words are the first turn", async (t) => {
    const rig = await commandRig(t);
    assert.equal(await typed(rig, "/goal"), "No goal is set. /goal <text> sets one.");
    assert.equal(await typed(rig, "/goal paint the wall"), `first turn: paint the wall\n${SET}`);
    assert.equal(await typed(rig, "/goal"), "⊙ Goal active (0/20 turns): paint the wall");
    await typed(rig, "/goal --max 3 paint the door");
    assert.deepEqual([(await state(rig)).goal, (await state(rig)).max_turns], ["paint the door", 3]);
    await typed(rig, "/goal --max=5");
    assert.equal((await state(rig)).max_turns, 5);
  });

  for (const [line, goal] of [
    ["/goal drafting x", "drafting x"],
    ["/goal stop the memory leak", "stop the memory leak"],
    ["/goal pause the music", "pause the music"],
    ["/goal done is better than perfect", "done is better than perfect"],
    ["/goal waiting room", "waiting room"],
  ] as const)
    test(`${line} is a goal: sub-words are whole, and count alone`, async (t) => {
      const rig = await commandRig(t);
      await typed(rig, line);
      assert.equal((await state(rig)).goal, goal);
    });

  test("shows its contract, which its lines made", async (t) => {
    const rig = await commandRig(t);
    const said = await typed(rig, "/goal paint\nverify: it is red\nscope: the wall");
    assert.match(said, /\n- Verification: it is red\n- Boundaries: the wall$/);
    await typed(rig, "/subgoal the door too");
    assert.equal(
      await typed(rig, "/goal show"),
      "⊙ Goal active (0/20 turns, 1 subgoal, contract): paint\n- Verification: it is red\n- Boundaries: the wall\n1. the door too",
    );
  });

  test("pauses, resumes at once with a fresh budget, and clears", async (t) => {
    const rig = await commandRig(t);
    await typed(rig, "/goal paint");
    assert.equal(await typed(rig, "/goal pause"), "⏸ Goal paused, by you (0/20 turns): paint");
    assert.match(await typed(rig, "/goal pause"), /^warning: The goal is paused already/);
    assert.equal(await typed(rig, "/goal resume"), "the goal goes on\n⊙ Goal active (0/20 turns): paint");
    assert.equal(await typed(rig, "/goal resume"), "warning: The goal is active already.");
    for (const line of ["/goal pause", "/stop", "/goal clear"]) {
      await typed(rig, "/goal paint", "/goal pause", "/goal resume");
      assert.equal(rig.goalWaits, true);
      await typed(rig, line);
      assert.equal(rig.goalWaits, false, `${line} takes the next turn back`);
    }
    await typed(rig, "/goal paint");
    assert.equal(await typed(rig, "/goal stop"), "Goal cleared.");
    assert.equal((await state(rig)).status, "cleared");
  });

  test("does not revive a goal that is over: it says what it is, and how to set it again", async (t) => {
    const rig = await commandRig(t);
    await typed(rig, "/goal paint");
    await rig.ctx.goals?.change((present) => (present ? { state: { ...present, status: "done" } } : "none"));
    for (const line of ["/goal pause", "/goal resume", "/goal clear", "/subgoal more", "/goal wait 7"])
      assert.match(await typed(rig, line), /^warning: The goal was achieved: paint\. \/goal <text> sets it/, line);
    await typed(rig, "/goal paint", "/goal clear");
    for (const line of ["/goal pause", "/goal resume", "/subgoal more"])
      assert.equal(await typed(rig, line), "warning: No goal is set. /goal <text> sets one.", line);
  });

  test("during a turn everything is allowed but to set another", async (t) => {
    const rig = await commandRig(t);
    await typed(rig, "/goal paint");
    rig.busy = true;
    assert.match(await typed(rig, "/goal another"), /^warning: A goal is not set during a turn\. .*\/stop/);
    assert.equal((await state(rig)).goal, "paint");
    for (const line of ["/subgoal door", "/goal", "/goal show", "/goal pause", "/goal clear"])
      assert.doesNotMatch(await typed(rig, line), /warning/, line);
  });

  test("waits for a process, and says of what is none what it needs", async (t) => {
    const rig = await commandRig(t);
    await typed(rig, "/goal paint");
    assert.match(
      await typed(rig, `/goal wait ${process.pid} it dries`),
      /^⏳ Goal parked until process \d+ ends, .*: it dries \(/,
    );
    assert.equal(await typed(rig, "/goal unwait"), "the goal goes on\n⊙ Goal active (0/20 turns): paint");
    for (const line of ["/goal wait", "/goal wait soon", "/goal wait 1.5", "/goal wait -3"])
      assert.match(await typed(rig, line), /^warning: \/goal wait needs a process/, line);
  });

  test("/stop pauses it", async (t) => {
    const rig = await commandRig(t);
    await typed(rig, "/goal paint");
    assert.match(await typed(rig, "/stop"), /^⏸ Goal paused\. \/goal resume continues/);
    assert.equal((await state(rig)).paused_reason, "user-interrupted (/stop)");
    assert.doesNotMatch(await typed(rig, "/stop"), /Goal/);
  });

  for (const line of ["/goal --max", "/goal --max 0 x", "/goal --max many x", "/goal --max 1.5 x"])
    test(`${line} is refused`, async (t) => {
      const rig = await commandRig(t);
      assert.equal(await typed(rig, line), "warning: --max takes a number of turns, 1 or more.");
    });

  test("keys in a goal are masked before it is stored", async (t) => {
    const rig = await commandRig(t, {}, { masked: true });
    await typed(rig, "/goal deploy with sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD");
    assert.doesNotMatch((await state(rig)).goal, /abcdefghijklmnop/);
  });
});

test("/subgoal lists, adds, removes by number and empties; clear counts only alone", async (t) => {
  const rig = await commandRig(t);
  assert.equal(await typed(rig, "/subgoal x"), "warning: No goal is set. /goal <text> sets one.");
  await typed(rig, "/goal paint");
  assert.equal(await typed(rig, "/subgoal"), "No subgoals. /subgoal <text> adds one.");
  assert.equal(await typed(rig, "/subgoal the door", "/subgoal clear the floor"), "1. the door\n2. clear the floor");
  assert.equal(await typed(rig, "/subgoal remove 3"), "warning: There is no subgoal 3. /subgoal lists them.");
  assert.equal(await typed(rig, "/subgoal remove 1"), "1. clear the floor");
  assert.equal(await typed(rig, "/subgoal clear"), "No subgoals. /subgoal <text> adds one.");
});
