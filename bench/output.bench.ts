// A gigabyte of output through the terminal tool: what it takes in memory, and in time against a pipe that nobody reads.
import { execFile } from "node:child_process";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createRedactor } from "../src/safety/redact.ts";
import { openLocalEnvironment } from "../src/sandbox/local.ts";
import { registry } from "../src/tools/toolset/registry.ts";
import { createToolState } from "../src/tools/toolset/session-tools.ts";
import { dispatch } from "../test/support/dispatch.ts";
import "../src/tools/terminal.ts";
import { toolContext } from "../test/support/tool-context.ts";
import { row } from "./measure.ts";

const PRINT = "yes 'a line like any other, with nothing secret in it' | head -c 1000000000";
const BUDGET_MB = 32;
const MB = 1024 * 1024;

const root = await mkdtemp(join(tmpdir(), "hermes-bench-output-"));
const { PATH = "" } = process.env;
const environment = await openLocalEnvironment({ environment: { PATH, HOME: root, TMPDIR: root }, cwd: root });
try {
  const redact = createRedactor({ enabled: true, knownSecrets: () => [] });
  const ctx = toolContext({ homeDir: root, environment, state: createToolState(), redact });
  const terminal = async (command: string) =>
    JSON.parse(String(await dispatch(registry, "terminal", { command, timeout: 300 }, ctx)));
  await terminal("yes warm | head -c 1000000");

  globalThis.gc?.();
  const start = performance.now();
  await promisify(execFile)("bash", ["-c", `${PRINT} | cat > /dev/null`], { env: { PATH } });
  const baseline = performance.now() - start;

  const before = process.memoryUsage.rss();
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 5);
  const began = performance.now();
  const result = await terminal(PRINT);
  const ms = performance.now() - began;
  clearInterval(timer);
  const rise = (peak - before) / MB;
  const saved = (await stat(result.full_output_path)).size / MB;
  row("1 GB printed: memory", `${rise.toFixed(1)} MB`, rise / BUDGET_MB, 1, `${BUDGET_MB} MB`);
  row("1 GB printed: time", `${ms.toFixed(0)} ms`, ms / baseline, 12, "a pipe to nowhere");
  row("1 GB printed: kept on disk", `${saved.toFixed(1)} MB`, null, null, "");
} finally {
  await environment.cleanup();
  await rm(root, { recursive: true, force: true });
}
