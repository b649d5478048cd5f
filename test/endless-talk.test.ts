// Two thousand turns in a whole run, a quarter of them else, against a window of 128 K; the benchmark of the same name measures their time and memory.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FACTS, factOf, talkFor } from "./support/agent/endless-talk.ts";
import { fewer } from "./support/sample.ts";
import { temporaryStore } from "./support/session-store.ts";

const TURNS = fewer(2000, 4);

test(`after ${TURNS} turns every pinned fact is still sent, and no compression followed another without growth`, async (t) => {
  const { store } = await temporaryStore(t);
  const { compressions, lastText } = await talkFor(TURNS, { store, perTurn: 600 });
  const sent = lastText();
  const missing = Array.from({ length: FACTS }, (_, index) => factOf(index)).filter((fact) => !sent.includes(fact));
  assert.deepEqual(missing, []);
  assert.ok(compressions.length >= fewer(15, 5), `it was shortened ${compressions.length} times`);
  compressions.forEach((one, index) => {
    const before = compressions[index - 1];
    assert.ok(one.after < one.before, `compression ${index} made nothing shorter`);
    if (before) assert.ok(one.before > before.after + 1_000, `compression ${index} came without growth`);
  });
});
