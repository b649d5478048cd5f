// npm run check: types, format and lint, the room rules, the house rules. `--fix` formats first.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { projectNode, root, run, setup } from "./setup.mjs";

setup();
const node = projectNode();
const tool = (...parts) => join(root, "node_modules", ...parts);
const fix = process.argv.includes("--fix");

const steps = [
  ["types", tool("typescript", "bin", "tsc"), ["--noEmit", "--singleThreaded", "-p", "."]],
  [
    "format and lint",
    tool("@biomejs", "biome", "bin", "biome"),
    ["check", ...(fix ? ["--write"] : []), "--error-on-warnings", "."],
  ],
  [
    "rooms",
    tool("dependency-cruiser", "bin", "dependency-cruiser.mjs"),
    ["--config", ".dependency-cruiser.mjs", "src"],
  ],
  ["house rules", join(root, "scripts", "house-rules.mjs"), []],
];

for (const [name, script, args] of steps) {
  if (!existsSync(script)) throw new Error(`check "${name}" is missing its tool: ${script}`);
  process.stdout.write(`check: ${name}\n`);
  const code = await run(node, [script, ...args]);
  if (code !== 0) {
    process.stdout.write(`check: ${name} failed\n`);
    process.exit(code);
  }
}
