// Many short turns on the screen of the built program: what one of them leaves behind in memory, and what the last ones take.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pty from "@lydell/node-pty";
import { ModelServer } from "../test/support/model-server/server.ts";
import { environmentFor, repository, runHermes, sourceLauncher } from "../test/support/run-hermes.ts";
import { modelConfig, tempHome } from "../test/support/temp-home.ts";
import { row } from "./measure.ts";

const END = "nothing is left to do";
const TURNS = 500;
/** Memory goes up and down between two rests, so many turns are looked at. */
const EARLY = [50, 150] as const;
const LATE = [400, 500] as const;

const server = await ModelServer.start();
let asked = 0;
server.otherwise(async () => ({
  text: `Answer ${++asked}: all is well in the house, and ${END}.`,
}));
await using home = await tempHome({ "config.yaml": modelConfig(server, "chat_completions", 1_000_000) });
await runHermes(["trust", "add", home.project], { home, launcher: sourceLauncher });
const child = pty.spawn(process.execPath, [join(repository, "bin", "hermes.mjs")], {
  ...{ cols: 100, rows: 30, cwd: home.project },
  env: { ...environmentFor({ home, env: { HERMES_FROM_SOURCE: "0" } }), TERM: "xterm-256color" },
});
let seen = "";
child.onData((data) => {
  seen = (seen + data).slice(-20_000);
});
await delay(3000);
const kilobytes: number[] = [];
const cpu: number[] = [];
for (let turn = 1; turn <= TURNS; turn++) {
  seen = "";
  const before = asked;
  child.write(`question ${turn}: a hundred letters or so of plain talk about this and that, to see what a turn costs`);
  await delay(3);
  child.write("\r");
  const limit = performance.now() + 60_000;
  while (asked === before || !seen.includes(END)) {
    if (performance.now() > limit) throw new Error(`no answer in turn ${turn}; the screen showed: ${seen.slice(-500)}`);
    await delay(5);
  }
  await delay(25);
  kilobytes[turn] = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]);
  cpu[turn] = ticks(child.pid);
}
child.kill("SIGKILL");
await server.close();
const mean = ([from, to]: readonly [number, number]) =>
  kilobytes.slice(from, to).reduce((sum, one) => sum + one, 0) / (to - from);
const [early, late] = [mean(EARLY), mean(LATE)];
const each = (late - early) / ((LATE[0] + LATE[1] - EARLY[0] - EARLY[1]) / 2);
row(`memory of a turn, ${TURNS} turns`, `${each.toFixed(1)} KB`, each / 20, 1, "20 KB");
row(
  "RSS beside the first turns",
  `${(late / 1024).toFixed(0)} MB`,
  late / early,
  null,
  `${(early / 1024).toFixed(0)} MB`,
);
const cost = ([from, to]: readonly [number, number]) => ((cpu[to] ?? 0) - (cpu[from] ?? 0)) / (to - from);
row("CPU of a late turn", `${cost(LATE).toFixed(1)} ms`, cost(LATE) / cost(EARLY), null, "an early one");

/** CPU milliseconds so far, all threads. */
function ticks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
