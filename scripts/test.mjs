// npm test [-- --only PATTERN]: set-up, npm run check, then every test with the project's own Node.
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { projectNode, root, run, setup } from "./setup.mjs";

setup();
const only = process.argv[2] === "--only" ? process.argv.slice(3) : null;
if (!only) {
  const checked = await run(projectNode(), [join(root, "scripts", "check.mjs")]);
  if (checked !== 0) process.exit(checked);
}
const patterns = only ?? ["src/**/*.test.ts", "test/**/*.test.ts"];
// Many files wait for other programs, so no core is kept free; each module's types are stripped once, not once per file.
const env = {
  ...process.env,
  HERMES_FROM_SOURCE: "1",
  NO_COLOR: "1",
  NODE_COMPILE_CACHE: join(root, "node_modules", ".cache", "tests"),
};
const flags = ["--test", `--test-concurrency=${Math.max(2, availableParallelism())}`, "--test-timeout=120000"];
process.exitCode = await run(projectNode(), [...flags, ...patterns], { env });
