// A process that is the gateway of a home, or wants to be, and does nothing else. Says `took CLEAN`, `refused TEXT`, `ending TYPE CODE WHY`,
// `bot taken`, `bot held PID`. Arguments: home, `run` or `replace` or `bot`; then for a bot the identity and the folder of the locks.

import { listenForEnd } from "../../src/doors/gateway/ending.ts";
import { lockBot, stateDirOf, takeInstance } from "../../src/doors/gateway/instance.ts";
import { openHome } from "../../src/home/open.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { messageOf } from "../../src/kit/errors.ts";

const [dir = "", mode = "run", identity = "token"] = process.argv.slice(2);
const home = await openHome({
  ...{ argv: [], osHome: dir, cwd: dir },
  env: { ...process.env, HERMES_HOME: dir },
});
const say = (line: string) => process.stdout.write(`${line}\n`);
const clock = systemClock;
const listener = listenForEnd({ home, clock, hasTerminal: false, polls: process.env.POLLS === "1" });

if (mode === "bot") {
  const lock = await lockBot("telegram", identity, { stateDir: stateDirOf(home) });
  say(lock.type === "taken" ? "bot taken" : `bot held ${lock.by}`);
  if (lock.type === "held") process.exit(1);
  await ended();
  await lock.release();
  process.exit(0);
}
try {
  const instance = await takeInstance(home, { replace: mode === "replace", clock });
  say(`took ${instance.lastWasClean}`);
  await ended();
  const { type, exitCode, why } = listener.ending ?? { type: "", exitCode: 1, why: "" };
  say(`ending ${type} ${exitCode} ${why}`);
  if (process.env.STUBBORN === "1") await new Promise(() => setInterval(() => undefined, 1000));
  await instance.markCleanShutdown();
  await instance.release();
  process.exit(exitCode);
} catch (error) {
  say(`refused ${messageOf(error)}`);
  process.exit(1);
}

async function ended(): Promise<void> {
  const alive = setInterval(() => undefined, 1000);
  await new Promise<void>((resolve) => listener.stop.addEventListener("abort", () => resolve(), { once: true }));
  clearInterval(alive);
}
