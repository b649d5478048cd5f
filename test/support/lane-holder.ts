// A process that writes into one conversation whenever it holds its lane, and says each row once it is committed: `waits`, `took TOKEN`,
// `wrote HOLDER TOKEN ROW`, `moved TOKEN`. Arguments: path, session, seconds of a lease.
import { systemClock } from "../../src/kit/clock.ts";
import { holdLane, newHolder } from "../../src/sessions/lanes.ts";
import { openSessionStore } from "../../src/sessions/open.ts";
import { StoreError } from "../../src/sessions/store.ts";
import { recordedLog } from "./session-store.ts";

const [path = "", session = "", seconds = "60"] = process.argv.slice(2);
const log = recordedLog();
const store = await openSessionStore({ path, journalMode: "auto", log, clock: systemClock });
const holder = newHolder();
await store.ensure({ id: session });
for (;;) {
  const lane = await holdLane(store, session, { log, holder, seconds: Number(seconds) });
  if (lane.type !== "taken") {
    process.stdout.write("waits\n");
    await systemClock.sleep(50);
    continue;
  }
  const { lease } = lane;
  // Pipes are written synchronously here: what was said is out even if the next instant is the last.
  process.stdout.write(`took ${lease.token}\n`);
  try {
    for (;;) {
      const content = `${holder} ${lease.token}`;
      const [row] = await store.append(session, [{ role: "user", content }], { lease });
      process.stdout.write(`wrote ${content} ${row}\n`);
      await systemClock.sleep(5);
    }
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "moved") throw error;
    process.stdout.write(`moved ${lease.token}\n`);
    await lane.release();
  }
}
