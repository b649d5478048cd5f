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
