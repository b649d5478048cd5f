// The threat scan of a mebibyte: prose, the near miss that was promised 500 ms, and for every pattern the text that begins it at every
// place and never ends it, once and twice as long.
import { THREAT_PATTERNS } from "../src/safety/threats/patterns.ts";
import { scanForThreats } from "../src/safety/threats/scan.ts";
import { nearMiss } from "../test/fixtures/threat-examples.ts";
import { row } from "./measure.ts";

const MIB = 1 << 20;
const BUDGET_MS = 500;
/** What passes for nothing. */
const NOISE_MS = 12;
const fill = (unit: string) => unit.repeat(Math.ceil(MIB / unit.length)).slice(0, MIB);
const texts: Readonly<Record<string, string>> = {
  "one start, long filler": `ignore ${"filler ".repeat(150_000)}\n; instructions`,
  "open comments": `${fill("<!-- ignore system ")}-->`,
  "open tags": fill("<div style= "),
  prose: fill("The build runs on every push; answer in German, keep the log short.\n"),
  "Markdown prose": fill("- **Build** on `main`: see _docs_, ~~not~~ the wiki.\n> quoted\n"),
  "Chinese prose": fill("用户喜欢简短的回答，项目使用 TypeScript。\n"),
  "mixed alphabets": fill("thе buіld оf thіs "),
  "one word, one foreign letter": `${fill("a")} ж`,
};

for (const [name, text] of Object.entries(texts)) {
  const baseline = measure(() => text.normalize("NFKC").toLowerCase().split("\n").length);
  const ms = measure(() => scanForThreats(text, "strict"));
  row(name, `${ms.toFixed(1)} ms`, ms / BUDGET_MS, 1, `${BUDGET_MS} ms`);
  row("", "", ms / baseline, null, "normalise and split");
}

for (const { id } of THREAT_PATTERNS) {
  const [half, whole] = [nearMiss(id, MIB / 2), nearMiss(id, MIB)].map((text) =>
    measure(() => scanForThreats(text, "strict")),
  );
  row(`nearly ${id}`, `${(whole ?? 0).toFixed(1)} ms`, (whole ?? 0) / Math.max(half ?? 0, NOISE_MS), 2.5, "half of it");
}

/** The best of five, in time of this thread: whatever else runs on the machine only ever adds. */
function measure(run: () => unknown): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    const start = process.threadCpuUsage();
    run();
    best = Math.min(best, process.threadCpuUsage(start).user / 1000);
  }
  return best;
}
