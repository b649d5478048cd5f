// How long until something happens: the version, the first request of a one-shot run, a usable input line.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { NEW_CONFIG } from "../src/home/config/schema.ts";
import { ModelServer } from "../test/support/model-server/server.ts";
import { environmentFor, repository } from "../test/support/run-hermes.ts";
import { modelConfig, tempHome } from "../test/support/temp-home.ts";
import { childrenMs, median, peakMb, repeat, row } from "./measure.ts";

const ROUNDS = 15;
const launcher = join(repository, "bin", "hermes.mjs");
const server = await ModelServer.start();
await using home = await tempHome({ "config.yaml": modelConfig(server) });
await using sandboxed = await tempHome({ "config.yaml": `${NEW_CONFIG}${modelConfig(server)}` });
const envOf = (of: typeof home) => environmentFor({ home: of, env: { HERMES_FROM_SOURCE: "0" } });
const env = envOf(home);

async function wall(args: readonly string[], program = process.execPath): Promise<number> {
  const begin = performance.now();
  const child = spawn(program, args, { env, cwd: home.project, stdio: "ignore" });
  await once(child, "exit");
  return performance.now() - begin;
}

let peaks: number[] = [];
const BUILT = [process.execPath, launcher, "-z", "ping"] as const;
async function oneShot(of = home, [program, ...args]: readonly [string, ...string[]] = BUILT): Promise<number> {
  const arrived = Promise.withResolvers<number>();
  server.otherwise(async () => {
    arrived.resolve(performance.now());
    if (of === home && program === process.execPath) peaks.push((await peakMb(child.pid ?? 0)) ?? 0);
    return { text: "pong" };
  });
  const begin = performance.now();
  const child = spawn(program, args, { env: envOf(of), cwd: of.project, stdio: "ignore" });
  const exited = once(child, "exit");
  const at = await Promise.race([arrived.promise, exited.then(() => Promise.reject(new Error("no request was sent")))]);
  await exited;
  return at - begin;
}

/** CPU milliseconds of one child, all its threads, from start to end. */
async function cpu(once: () => Promise<unknown>): Promise<number> {
  const before = childrenMs();
  for (let round = 0; round < ROUNDS; round++) await once();
  return (childrenMs() - before) / ROUNDS;
}

await wall([launcher, "--version"]); // fills the compile cache
await oneShot();
await oneShot(sandboxed);
peaks = []; // the first runs have no code kept yet
// Turn and turn about: the load of the machine is the same for all.
const [bares, versions, inside]: [number[], number[], number[]] = [[], [], []];
const first = await repeat(ROUNDS, async () => {
  bares.push(await wall(["-e", "0"]));
  versions.push(await wall([launcher, "--version"]));
  inside.push(await oneShot(sandboxed));
  return oneShot();
});
const [bare, version] = [median(bares), median(versions)];
row("bare node start", `${bare.toFixed(1)} ms`, null, null, "");
row("hermes --version", `${version.toFixed(1)} ms`, version / bare, 2, "bare node");
const bareCpu = await cpu(() => wall(["-e", "0"]));
const askedCpu = await cpu(() => oneShot());
row("hermes -z: launch to first request", `${first.toFixed(1)} ms`, first / bare, 4, "bare node");
row(
  "hermes -z: CPU of the whole run",
  `${askedCpu.toFixed(0)} ms`,
  askedCpu / bareCpu,
  5,
  `bare node (${bareCpu.toFixed(0)} ms)`,
);
row("the same in a home with a sandbox", `${median(inside).toFixed(1)} ms`, median(inside) / first, 1.5, "no sandbox");
row("hermes -z: peak RSS at first request", `${median(peaks).toFixed(0)} MB`, median(peaks) / 70, 1, "70 MB");

// As a newcomer starts it, in a clone. npm's own start: a package whose script is nothing.
await writeFile(join(home.project, "package.json"), JSON.stringify({ scripts: { start: "true" } }));
const npm = ["npm", "--prefix", repository, "start", "--silent", "--", "-z", "ping"] as const;
await oneShot(home, npm); // builds where a source is newer
const [started, own] = [[] as number[], [] as number[]];
for (let round = 0; round < 7; round++) {
  own.push(await wall(["start", "--silent"], "npm"));
  started.push(await oneShot(home, npm));
}
const beyond = median(started) - median(own);
row("npm start: launch to first request", `${median(started).toFixed(0)} ms`, null, null, "");
row("the same without npm's own start", `${beyond.toFixed(0)} ms`, beyond / first, 1.3, "the built program");
await server.close();
