import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { temporaryStore } from "../../../test/support/session-store.ts";
import { type WorkSubject, workConformance } from "../../../test/support/work-conformance.ts";
import { openSessionStore } from "../open.ts";

const TIMES = {
  lanes: ["expires", "prefer_until"],
  adapter_leases: ["expires"],
  inbox: ["received_at", "done_at"],
  outbox: ["not_before", "created_at", "sent_at"],
  controls: ["created_at", "taken_at"],
};

async function open(t: TestContext): Promise<WorkSubject> {
  const { store, path, log, clock } = await temporaryStore(t);
  const db = new DatabaseSync(path);
  t.after(() => db.close());
  return {
    store,
    async another() {
      const other = await openSessionStore({ path, journalMode: "auto", log, clock });
      t.after(() => other.close());
      return other;
    },
    passTime(seconds) {
      for (const [table, columns] of Object.entries(TIMES))
        db.prepare(`UPDATE ${table} SET ${columns.map((name) => `${name} = ${name} - ?1`).join(", ")}`).run(seconds);
    },
  };
}

workConformance("SQLite", open);

test("a file that may only be read, and never had any work, has none", async (t) => {
  const { path, log, clock } = await temporaryStore(t);
  const reader = await openSessionStore({ path, journalMode: "auto", log, clock, readOnly: true });
  t.after(() => reader.close());
  const { inbox, outbox, platforms } = await (await reader.work()).counts();
  assert.deepEqual([inbox.queued, outbox.pending, platforms], [0, 0, {}]);
});
