// Where the main thread is between launch and end of `hermes -z`: a flame graph in one column. HERMES_BENCH_BEFORE names another checkout
// with a build of its own, which is shown beside it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { ModelServer } from "../test/support/model-server/server.ts";
import { environmentFor, repository } from "../test/support/run-hermes.ts";
import { modelConfig, tempHome } from "../test/support/temp-home.ts";
import { row } from "./measure.ts";

const ROUNDS = 10;
const WARM_UP = 3;

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** By the name of the innermost function, or of the file it stands in; the first that fits. */
const PLACES: readonly (readonly [place: string, name: RegExp | null, url: RegExp | null])[] = [
  ["waiting", /^\(idle\)$/, null],
  ["garbage", /^\(garbage collector\)$/, null],
  ["V8 and Node outside of JavaScript", /^\(program\)$/, null],
  [
    "compiling and linking",
    /^(compileFunction|Script|createCachedData|compileForInternalLoader|link|instantiate)/,
    null,
  ],
  ["compiling and linking", null, /^node:(vm|internal\/(modules|bootstrap|vm|process\/esm))/],
  ["Node: files", null, /^node:(fs|internal\/fs|path|os)/],
  ["Node: network", null, /^node:(net|http|_http|dns|internal\/(stream|dns|http|net))/],
  ["Node: the rest", null, /^node:/],
  ["natives (files, SQLite, hashes)", null, /^$/],
  ["our first script", null, /main\.c?js$/],
  ["our code", null, null],
];

const server = await ModelServer.start();
server.otherwise(async () => ({ text: "pong" }));
const now = await summary(repository);
const other = process.env.HERMES_BENCH_BEFORE;
const before = other ? await summary(other) : null;
await server.close();
const total = sum(now);
for (const place of [...new Set(PLACES.map(([name]) => name))].filter((name) => name !== "waiting")) {
  const ms = now.get(place) ?? 0;
  const then = before ? ` (before: ${(before.get(place) ?? 0).toFixed(1)} ms)` : "";
  row(`start: ${place}`, `${ms.toFixed(1)} ms`, ms / total, null, `the run${then}`);
}
row("start: all of it", `${total.toFixed(1)} ms`, before && total / sum(before), null, before ? "before" : "");

function sum(places: ReadonlyMap<string, number>): number {
  return [...places].reduce((all, [place, ms]) => (place === "waiting" ? all : all + ms), 0);
}

/** Milliseconds at each place, of a run in the middle. */
async function summary(checkout: string): Promise<ReadonlyMap<string, number>> {
  await using home = await tempHome({ "config.yaml": modelConfig(server) });
  const folder = join(home.project, "profiles");
  await mkdir(folder);
  const env = environmentFor({ home, env: { HERMES_FROM_SOURCE: "0" } });
  const run = async (...flags: readonly string[]) => {
    const args = [...flags, join(checkout, "bin", "hermes.mjs"), "-z", "ping"];
    const child = spawn(process.execPath, args, { env, cwd: home.project, stdio: "ignore" });
    const [code] = await once(child, "exit");
    if (code !== 0) throw new Error(`the program of ${checkout} ended with ${code}`);
  };
  const profiled = ["--cpu-prof", "--cpu-prof-interval", "200", "--cpu-prof-dir", folder];
  // Compiled code is kept apart for processes with other flags.
  for (let round = 0; round < WARM_UP; round++) await run(...profiled);
  await rm(folder, { recursive: true });
  for (let round = 0; round < ROUNDS; round++) await run(...profiled);
  const runs = await Promise.all(
    (await readdir(folder)).map(async (name) => placesOf(await profileAt(join(folder, name)))),
  );
  const sorted = runs.sort((a, b) => sum(a) - sum(b));
  return sorted[Math.floor(sorted.length / 4)] ?? new Map(); // a quiet one: what else runs lengthens them
}

async function profileAt(path: string): Promise<Profile> {
  return JSON.parse(await readFile(path, "utf8")) as Profile; // as V8 writes it
}

function placesOf({ nodes, samples, timeDeltas }: Profile): ReadonlyMap<string, number> {
  const places = new Map(nodes.map(({ id, callFrame: { functionName, url } }) => [id, placeOf(functionName, url)]));
  const found = new Map<string, number>();
  for (const [at, id] of samples.entries()) {
    const place = places.get(id) ?? "our code";
    found.set(place, (found.get(place) ?? 0) + (timeDeltas[at] ?? 0) / 1000);
  }
  return found;
}

function placeOf(name: string, url: string): string {
  const fits = PLACES.find(([, byName, byUrl]) => (byName ? byName.test(name) : !byUrl || byUrl.test(url)));
  return fits?.[0] ?? "our code";
}
