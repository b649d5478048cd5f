// A process that appends numbered messages and says each number once it is committed. Arguments: path, session,
// count (0 = for ever), journal mode.
import { systemClock } from "../../src/kit/clock.ts";
import { openSessionStore } from "../../src/sessions/open.ts";
import { recordedLog } from "./session-store.ts";

const [path = "", session = "", count = "0", journal = "auto"] = process.argv.slice(2);
const journalMode = journal === "delete" ? "delete" : "auto";
const store = await openSessionStore({ path, journalMode, log: recordedLog(), clock: systemClock });
await store.ensure({ id: session });
const last = Number(count) || Number.POSITIVE_INFINITY;
const pause = last === Number.POSITIVE_INFINITY ? 1 : 0;
for (let n = 1; n <= last; n++) {
  await store.append(session, [{ role: "user", content: `${session}:${process.pid}:${n} 数据库 walrus` }]);
  // Pipes are written synchronously here: what was said is out even if the next instant is the last.
  process.stdout.write(`${session}:${process.pid}:${n}\n`);
  if (pause > 0) await systemClock.sleep(pause);
}
await store.close();
