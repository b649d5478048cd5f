// The threat scan of a mebibyte, near misses of the costly patterns. Budget: 500 ms for the first row.
import { performance } from "node:perf_hooks";
import { scanForThreats } from "../src/safety/threats/scan.ts";

const MIB = 1 << 20;
// The tail completes no pattern; it only keeps the cheap look at single words from ending the search.
const fill = (unit: string) =>
  `${unit.repeat(Math.ceil(MIB / unit.length)).slice(0, MIB)}\n; instructions; limits; -->`;
const texts: Record<string, string> = {
  "one start, long filler": `ignore ${"filler ".repeat(150_000)}\n; instructions`,
  "a start at every word": fill("ignore all "),
  "three gaps": fill("act as if you you have no "),
  "open comments": fill("<!-- ignore system "),
  "open tags": fill("<div style= "),
  "chains on one line": fill("translate into and "),
  prose: fill("The build runs on every push; answer in German, keep the log short.\n"),
  "Chinese prose": fill("用户喜欢简短的回答，项目使用 TypeScript。\n"),
};

for (const [name, text] of Object.entries(texts)) {
  const baseline = measure(() => text.normalize("NFKC").toLowerCase().split("\n").length);
  const ms = measure(() => scanForThreats(text, "strict"));
  process.stdout.write(
    `threats ${name.padEnd(24)} ${ms.toFixed(1).padStart(7)} ms  ${(ms / baseline).toFixed(1).padStart(6)} x normalise and split\n`,
  );
}

function measure(run: () => unknown): number {
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const start = performance.now();
    run();
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b)[2] ?? 0;
}
