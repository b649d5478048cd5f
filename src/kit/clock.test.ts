import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { joinSignals, systemClock } from "./clock.ts";

test("a sleep ends with the signal's reason as soon as it aborts", async () => {
  const abort = new AbortController();
  const reason = new Error("stop");
  setTimeout(() => abort.abort(reason), 5);
  await assert.rejects(systemClock.sleep(60_000, abort.signal), reason);
});

test("joined signals abort with the first one's reason, and let go of the others when they are released", () => {
  const [one, two] = [new AbortController(), new AbortController()];
  const joined = joinSignals(one.signal, two.signal);
  two.abort("second");
  one.abort("first");
  assert.equal(joined.signal.reason, "second");
  assert.equal(joinSignals(new AbortController().signal, one.signal).signal.reason, "first");
  const long = new AbortController();
  const released = joinSignals(long.signal);
  released.release();
  assert.equal(getEventListeners(long.signal, "abort").length, 0);
  long.abort();
  assert.equal(released.signal.aborted, false);
});
