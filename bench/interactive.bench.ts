// From launch to an input line that takes keys, and to an open conversation, in a real pseudo-terminal.
import { spawn as spawnChild } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import pty from "@lydell/node-pty";
import { ModelServer } from "../test/support/model-server/server.ts";
import { environmentFor, repository, runHermes, sourceLauncher } from "../test/support/run-hermes.ts";
import { modelConfig, tempHome } from "../test/support/temp-home.ts";
import { median, repeat, row } from "./measure.ts";

const ROUNDS = 11;
/** Drops what was typed, then ends the program. */
const LEAVING: readonly [key: string, afterMs: number][] = [
  ["\u0003", 700],
  ["\u0004", 1000],
];
await using home = await tempHome();
const env = { ...environmentFor({ home, env: { HERMES_FROM_SOURCE: "0" } }), TERM: "xterm-256color" };

async function bareStart(): Promise<number> {
  const begin = performance.now();
  await once(spawnChild(process.execPath, ["-e", "0"], { stdio: "ignore" }), "exit");
  return performance.now() - begin;
}

/** Milliseconds until the screen shows a typed word, which it can only do when the input line is alive. */
function usableInput({ leave = false } = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const child = pty.spawn(process.execPath, [join(repository, "bin", "hermes.mjs")], {
      cols: 100,
      rows: 30,
      cwd: home.project,
      env,
    });
    let seen = "";
    let usable = false;
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`no input line within 20 s; the screen showed: ${seen.slice(-500)}`));
    }, 20_000);
    // Typed before anything is there; it appears with the first frame of the input line.
    child.write("zebra");
    child.onData((data) => {
      seen += data;
      if (usable || (!seen.includes("zebra\u001b") && !/zebra.*[─╭│]/s.test(seen))) return;
      usable = true;
      clearTimeout(timer);
      const took = performance.now() - begin;
      child.onExit(() => resolve(took));
      if (!leave) return child.kill("SIGKILL");
      // As a user leaves it: only such a run keeps the code that was compiled.
      for (const [key, ms] of LEAVING) setTimeout(() => child.write(key), ms);
      setTimeout(() => child.kill("SIGKILL"), 5000).unref();
    });
  });
}

await usableInput({ leave: true });
await usableInput({ leave: true });
// Turn and turn about: the load of the machine is the same for both.
const bares: number[] = [];
async function besideBare(once: () => Promise<number>): Promise<number> {
  return repeat(ROUNDS, async () => {
    bares.push(await bareStart());
    return once();
  });
}
const ready = await besideBare(usableInput);
const bare = median(bares);
row("interactive: launch to usable input", `${ready.toFixed(1)} ms`, ready / bare, 4.5, "bare node");

const server = await ModelServer.start();
await using talking = await tempHome({ "config.yaml": modelConfig(server) });
await runHermes(["trust", "add", talking.project], { home: talking, launcher: sourceLauncher });

/** Milliseconds until a message that was typed at once, with its Enter, is at the model. */
async function firstRequest({ leave = false } = {}): Promise<number> {
  const arrived = Promise.withResolvers<number>();
  server.otherwise(async () => {
    arrived.resolve(performance.now());
    return { text: "pong" };
  });
  const begin = performance.now();
  const child = pty.spawn(process.execPath, [join(repository, "bin", "hermes.mjs")], {
    ...{ cols: 100, rows: 30, cwd: talking.project },
    env: { ...environmentFor({ home: talking, env: { HERMES_FROM_SOURCE: "0" } }), TERM: "xterm-256color" },
  });
  const ended = new Promise<void>((resolve) => child.onExit(() => resolve()));
  child.write("ping\r");
  const limit = setTimeout(() => arrived.reject(new Error("no request within 20 s")), 20_000);
  try {
    const took = (await arrived.promise) - begin;
    for (const [key, ms] of leave ? LEAVING : []) setTimeout(() => child.write(key), ms);
    setTimeout(() => child.kill("SIGKILL"), leave ? 5000 : 0).unref();
    await ended;
    return took;
  } finally {
    clearTimeout(limit);
  }
}

await firstRequest({ leave: true });
await firstRequest({ leave: true });
bares.length = 0;
const first = await besideBare(firstRequest);
row("interactive: launch to first request", `${first.toFixed(1)} ms`, first / median(bares), 6.5, "bare node");
await server.close();
