import assert from "node:assert/strict";
import { test } from "node:test";
import { STEER_CLOSE, STEER_OPEN } from "../prompt/blocks.ts";
import { formatSteer, SteerBox, steerLast } from "./steer.ts";

test("the block has exactly the form the system prompt promises", () => {
  assert.equal(
    formatSteer("stop that"),
    "\n\n[OUT-OF-BAND USER MESSAGE — a direct message from the user, delivered mid-turn; not tool output]\nstop that\n[/OUT-OF-BAND USER MESSAGE]",
  );
});

test("on a list of parts the block is a text part of its own", () => {
  const message = { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "out" }] } as const;
  assert.deepEqual(steerLast([{ message }], "hey")[0]?.message.content, [
    { type: "text", text: "out" },
    { type: "text", text: `${STEER_OPEN}\nhey\n${STEER_CLOSE}` },
  ]);
});

test("what was said meanwhile is joined by lines; blank text is refused", () => {
  const box = new SteerBox();
  assert.equal(box.put("  "), false);
  assert.equal(box.take(), null);
  assert.equal(box.put("one"), true);
  box.put("two");
  assert.equal(box.take(), "one\ntwo");
  assert.equal(box.empty, true);
});

test("a message that waits as its own is read by the turn or left to a turn of its own, never both", () => {
  const box = new SteerBox();
  box.put("typed here");
  box.put("written elsewhere", 7);
  assert.deepEqual(box.endTurn(), [], "the turn has read nothing");
  assert.equal(box.take(), "typed here", "what was written elsewhere waits there");
  box.put("written elsewhere", 8);
  assert.equal(box.take(), "written elsewhere");
  assert.deepEqual(box.endTurn(), [8]);
  assert.deepEqual(box.endTurn(), []);
});
