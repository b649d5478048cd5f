// Keeps everybody from writing into the store of a home, as a slow disk would: what is acknowledged meanwhile was not stored.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { TempHome } from "../temp-home.ts";

const LONG_ENOUGH = 700;

/** Sends something while nobody can write, sees that no answer comes, lets the store go. Resolves to the answer and the ids stored by then. */
export async function sendWhileHeld<T>(home: TempHome, platform: string, send: () => Promise<T>) {
  const store = new DatabaseSync(home.at("state.db"), { timeout: 10_000 });
  try {
    store.exec("PRAGMA busy_timeout = 3000; BEGIN IMMEDIATE");
    let isAnswered = false;
    const answer = send().finally(() => {
      isAnswered = true;
    });
    await sleep(LONG_ENOUGH);
    assert.equal(isAnswered, false, "acknowledged although nobody could write");
    store.exec("COMMIT");
    const reply = await answer;
    const rows = store.prepare("SELECT update_id FROM inbox WHERE platform = ? ORDER BY id").all(platform);
    return { reply, stored: rows.map((row) => String(row.update_id)) };
  } finally {
    store.close();
  }
}
