// A stub of a worker: it does what its fate says, and tells where another one works on the same card.
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { complete, heartbeat } from "../../../src/kanban/moves.ts";
import { BoardFile } from "../../../src/kanban/schema.ts";
import { isSameProcess, processFacts } from "../../../src/kit/pid.ts";
import { recordedLog } from "../session-store.ts";
import { fastClock } from "./fast-clock.ts";

const { time, fate, traces } = JSON.parse(process.argv[2] ?? "");
const { HERMES_KANBAN_TASK: id = "", HERMES_KANBAN_DB: path = "", HERMES_KANBAN_RUN_ID: run } = process.env;
const STEPS = ["begun", "heartbeat", "completing", "completed"];
const drawn = Math.random();
const ends =
  fate !== "random"
    ? fate
    : drawn < 0.25
      ? STEPS[Math.floor(Math.random() * STEPS.length)]
      : drawn < 0.45
        ? ["exit 1", "exit 0", "exit 75", "exit 1"][Math.floor(Math.random() * 4)]
        : "work";
const die = (point: string) => void (point === ends && process.kill(process.pid, "SIGKILL"));

const mark = join(traces, `at-${id}`);
const before = await readFile(mark, "utf8").catch(() => "");
const [pid, start] = before.split(" ").map(Number);
if (pid && (await isSameProcess(pid, start ?? null)))
  await appendFile(join(traces, "overlaps"), `${id} ${before} ${process.pid}\n`);
await writeFile(mark, `${process.pid} ${(await processFacts(process.pid))?.startTime}`);
await appendFile(join(traces, "begun"), `${id} ${run}\n`);
die("begun");
if (ends === "hang") {
  process.on("SIGTERM", () => undefined);
  await new Promise(() => setInterval(() => undefined, 1000));
}
const board = await BoardFile.open(path, { clock: fastClock(time), log: recordedLog() });
await board.change((change) => heartbeat(change, id, undefined));
die("heartbeat");
if (ends?.startsWith("exit")) process.exit(Number(ends.slice(5)));
await new Promise((done) => setTimeout(done, Math.random() * 20));
die("completing");
await board.change((change) => complete(change, id, { summary: "done", run: Number(run) }));
die("completed");
board.close();
