// npm run bench [-- NAME ...]: builds, then runs the benchmarks; each prints ratios against a baseline of the same run.
// npm run bench -- --table [NAME ...]: three runs each beside pi, which is installed for it, and one table of them at the end.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectNode, root, run, setup } from "./setup.mjs";

const RUNS = 3;
/** The agent that ours is held against, in the version whose screen library we use. */
const PEER = "@earendil-works/pi-coding-agent@0.87.1";

setup();
const asTable = process.argv.includes("--table");
const wanted = process.argv.slice(2).filter((name) => name !== "--table");
const built = await run(projectNode(), [join(root, "scripts", "build.mjs")]);
if (built !== 0) process.exit(built);
const files = readdirSync(join(root, "bench"))
  .filter((name) => name.endsWith(".bench.ts"))
  .filter((name) => wanted.length === 0 || wanted.some((start) => name.startsWith(start)))
  .sort();
const peer = process.env.PI ?? (asTable ? await installPeer() : undefined);
if (peer) process.env.PI = peer;
const kept = mkdtempSync(join(tmpdir(), "hermes-bench-"));
const table = [];
let failed = 0;
for (const file of files) {
  const runs = [];
  for (let round = 0; round < (asTable ? RUNS : 1); round++) {
    process.stdout.write(`\n## ${file.replace(".bench.ts", "")}\n`);
    const rows = join(kept, `${file}-${round}`);
    const env = { ...process.env, HERMES_BENCH_ROWS: rows };
    if ((await run(projectNode(), ["--expose-gc", join(root, "bench", file)], { env })) !== 0) failed++;
    runs.push(
      existsSync(rows)
        ? readFileSync(rows, "utf8")
            .trim()
            .split("\n")
            .map((line) => JSON.parse(line))
        : [],
    );
  }
  table.push(...(runs[0] ?? []).map((first, at) => [first, ...runs.slice(1).map((rows) => rows[at])]));
}
rmSync(kept, { recursive: true, force: true });
if (asTable) {
  process.stdout.write("\n| What | Measured | Ratio | Budget |\n|---|---|---|---|\n");
  for (const runs of table) {
    const [{ name, baseline, budget }] = runs;
    const ratios = runs.map((one) => (typeof one?.ratio === "number" ? one.ratio.toFixed(2) : "–")).join(" / ");
    const limit = budget === null ? "" : `≤ ${budget}${runs.some((one) => one?.over) ? ", over" : ""}`;
    const ratio = runs[0].ratio === null ? "" : `${ratios} × ${baseline}`;
    process.stdout.write(`| ${name} | ${runs.map((one) => one?.value ?? "–").join(" / ")} | ${ratio} | ${limit} |\n`);
  }
}
process.exitCode = failed > 0 ? 1 : 0;

/** Its program, or undefined: then the benchmarks look on PATH, and say so where there is none. No script of a package runs. */
async function installPeer() {
  const folder = join(root, ".cache", "bench", PEER.replace(/.*@/, "pi-"));
  const program = join(folder, "node_modules", ".bin", "pi");
  if (existsSync(program)) return program;
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", folder, PEER];
  mkdirSync(folder, { recursive: true });
  await run("npm", args, { stdio: "ignore" });
  return existsSync(program) ? program : undefined;
}
