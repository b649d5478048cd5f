// Find and replace in a file of 20,000 lines, one row per strategy. Budget: 200 ms of the main thread each.
import { fuzzyReplace } from "../src/kit/fuzzy/replace.ts";
import { row } from "./measure.ts";

const BUDGET_MS = 200;

const lines = Array.from(
  { length: 20_000 },
  (_, n) => `${" ".repeat((n % 5) * 2)}const value${n} = compute(input${n % 97}, ${n * 7}); // “note” ${n % 13}`,
);
const at = 15_000;
for (const [offset, word] of ["parse", "merge", "split", "score", "fetch", "close"].entries())
  lines[at + offset] = `    await ${word}AllOf(compute, “${word}ed”, ${word}Options); // ${word} it first`;
const text = `${lines.join("\n")}\n`;
const block = lines.slice(at, at + 6);

const asked: Record<string, string> = {
  exact: block.join("\n"),
  line_trimmed: block.map((line) => line.trim()).join("\n"),
  whitespace_normalized: (block[1] ?? "").replaceAll(", ", ",  "),
  escape_normalized: block.join("\\n"),
  unicode_normalized: block.join("\n").replaceAll(/[“”]/g, '"'),
  block_anchor: [block[0], ...block.slice(1, 5).map((line) => line.replace("compute", "compuet")), block[5]].join("\n"),
  context_aware: block.map((line) => line.replace("compute", "compuet")).join("\n"),
  not_found: "function somethingElse(entirely) {\n  return input42 + value;\n}",
};

const baseline = measure(() => text.split("\n").map((line) => line.trim()).length);
for (const [name, old] of Object.entries(asked)) {
  const result = fuzzyReplace(text, old, "x");
  const decided = result.ok ? result.strategy : result.code;
  const ms = measure(() => fuzzyReplace(text, old, "x"));
  const note = decided === name ? "" : ` (decided by ${decided})`;
  row(
    `${name}${note}`,
    `${ms.toFixed(1)} ms, ${(ms / baseline).toFixed(0)} x split`,
    ms / BUDGET_MS,
    1,
    `${BUDGET_MS} ms`,
  );
}

function measure(run: () => unknown): number {
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const start = process.threadCpuUsage();
    run();
    const { user, system } = process.threadCpuUsage(start);
    times.push((user + system) / 1000);
  }
  return times.sort((a, b) => a - b)[2] ?? 0;
}
