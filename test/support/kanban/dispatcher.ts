// A dispatcher as a process of its own, with stub workers; it looks again and again until SIGTERM, or dies by SIGKILL where it is told to.
import { join } from "node:path";
import { openHome } from "../../../src/home/open.ts";
import { Boards } from "../../../src/kanban/boards.ts";
import { Dispatcher } from "../../../src/kanban/dispatch.ts";
import { Workers } from "../../../src/kanban/workers.ts";
import { type FastTime, fastClock } from "./fast-clock.ts";

export interface DispatcherArguments {
  readonly dir: string;
  readonly osHome: string;
  readonly time: FastTime;
  /** Where it dies: behind the claim, behind the start of the process, behind the row that names it. */
  readonly diesAt?: "claimed" | "spawned" | "stored";
  /** What its workers do. */
  readonly fate: "work" | "random" | "begun" | "heartbeat" | "completing" | "completed" | "hang";
  /** Where workers leave their traces. */
  readonly traces: string;
}

const given: DispatcherArguments = JSON.parse(process.argv[2] ?? "");
const { dir, osHome, time, diesAt, fate, traces } = given;
const die = (point: string) => void (point === diesAt && process.kill(process.pid, "SIGKILL"));
const home = await openHome({ argv: [], env: { ...process.env, HERMES_HOME: dir, HOME: osHome }, osHome, cwd: osHome });
const clock = fastClock(time);
const boards = new Boards(home, clock);
const workers = new Workers(clock);
const dispatcher = new Dispatcher({
  ...{ home, boards },
  workers: {
    lives: (who, card) => workers.lives(who, card),
    exitOf: (who) => workers.exitOf(who),
    forget: (who) => workers.forget(who),
    stop: (who, card) => workers.stop(who, card),
    async start(command, options) {
      const started = await workers.start(command, options);
      die("spawned");
      return {
        ...started,
        go() {
          die("stored");
          started.go();
        },
      };
    },
  },
  command() {
    die("claimed");
    const stub = join(import.meta.dirname, "worker.ts");
    return [process.execPath, "--disable-warning=ExperimentalWarning", stub, JSON.stringify({ time, fate, traces })];
  },
});
let isOver = false;
process.on("SIGTERM", () => {
  isOver = true;
});
const board = await boards.open("default");
while (!isOver) {
  try {
    for (const problem of (await dispatcher.look("default", board)).problems) process.stderr.write(`${problem}\n`);
  } catch (error) {
    process.stderr.write(`${error}\n`);
  }
  await new Promise((done) => setTimeout(done, 40));
}
board.close();
await home.close();
