// A request refused as too long: what the user reads while it is made shorter.
import assert from "node:assert/strict";
import { test } from "node:test";
import { play } from "../../test/support/agent/agent-rig.ts";
import { eventsOf, longTalkRig, talkOf } from "../../test/support/agent/long-talk.ts";

const REFUSALS: readonly (readonly [number, string])[] = [
  [413, "payload too large"],
  [400, "maximum context length is 16000 tokens"],
  [429, "extra usage is required for long context requests"],
];
for (const [status, message] of REFUSALS) {
  test(`HTTP ${status} ${message}: the conversation is shortened, with one line that names the refusal`, async (t) => {
    const { agent } = await longTalkRig(t, talkOf(9_000), {
      steps: [{ error: { status, message } }, { text: "## Summary\nThey talked." }, { text: "hello" }],
    });
    const { outcome, events } = await play(agent, "hi");
    assert.equal(outcome.finalText, "hello");
    const told = eventsOf(events, "status").filter((event) => event.recovery);
    assert.deepEqual(
      told.map((event) => event.message),
      [`HTTP ${status}: ${message} — the conversation was shortened; retrying`],
    );
    assert.equal(eventsOf(events, "compressed").length, 1);
  });
}
