import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "./clock.ts";

test("a sleep ends with the signal's reason as soon as it aborts", async () => {
  const abort = new AbortController();
  const reason = new Error("stop");
  setTimeout(() => abort.abort(reason), 5);
  await assert.rejects(systemClock.sleep(60_000, abort.signal), reason);
});
