import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import { sharedQuestions } from "./open-guard.ts";

test("an open question lies in the store without its secrets, can be answered once, and is gone in the end", async (t) => {
  const { store, clock } = await temporaryStore(t);
  const table = sharedQuestions(
    async () => store,
    (text) => text.replaceAll("hunter2", "***"),
  );
  const command = 'echo "hunter2"';
  const question = { kind: "approval", command, description: "d", patternKey: "d", allowAlways: true } as const;
  const asked = { sessionKey: "k", sessionId: "s", question, askedAt: clock.now() };
  await table.insert({ id: "one", ...asked, expiresAt: clock.now() + 60_000 });
  await table.insert({ id: "two", ...asked, askedAt: clock.now() + 1, expiresAt: null });
  const rows = await store.questions();
  assert.deepEqual(
    rows.map(({ id, payload }) => [id, (payload as typeof question).command]),
    [
      ["one", 'echo "***"'],
      ["two", 'echo "***"'],
    ],
  );
  assert.equal(await table.answerOf("one"), null);
  assert.equal(await store.answerQuestion("one", { choice: "once" }, "cli"), true);
  assert.equal(await store.answerQuestion("one", { choice: "deny" }, "cli"), false);
  assert.equal(await store.answerQuestion("none", { choice: "deny" }, "cli"), false);
  assert.deepEqual(await table.answerOf("one"), { choice: "once" });
  await table.remove("one");
  assert.deepEqual(
    (await store.questions()).map(({ id }) => id),
    ["two"],
  );
});
