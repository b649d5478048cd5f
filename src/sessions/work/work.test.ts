import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
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
