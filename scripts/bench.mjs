// npm run bench [-- NAME ...]: builds, then runs the benchmarks; each prints ratios against a baseline of the same run.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { projectNode, root, run, setup } from "./setup.mjs";

setup();
const wanted = process.argv.slice(2);
const built = await run(projectNode(), [join(root, "scripts", "build.mjs")]);
if (built !== 0) process.exit(built);
const files = readdirSync(join(root, "bench"))
  .filter((name) => name.endsWith(".bench.ts"))
  .sort();
let failed = 0;
for (const file of files) {
  if (wanted.length > 0 && !wanted.some((name) => file.startsWith(name))) continue;
  process.stdout.write(`\n## ${file.replace(".bench.ts", "")}\n`);
  if ((await run(projectNode(), ["--expose-gc", join(root, "bench", file)])) !== 0) failed++;
}
process.exitCode = failed > 0 ? 1 : 0;
