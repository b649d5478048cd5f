// npm test: set-up, npm run check, then every test with the project's own Node.
// npm test -- --only PATTERN ...: those files alone, without the checks, each in a process of its own and hermes from source.
// --times before that: at the end also a table of what each file took.
import { spawnSync } from "node:child_process";
import fs from "node:fs"; // an older Node, which only gets as far as the set-up, has not all of its names
import { availableParallelism, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { projectNode, root, run, setup } from "./setup.mjs";
import { cpuSeconds } from "./test-batch.mjs";

/** Ends what hangs. Nothing that works comes near it, on a busy machine neither. */
const TIMEOUT_MS = 300_000;
/** A file that waits before it has tests: in a process with others, their tests and hooks would run meanwhile. */
const WAITS_FIRST = /^(?:await\b|(?:const|let|for|if)\b(?:(?!async).)*\bawait\b|const\b.*\(\n\s+await\b)/m;

setup();
const self = fileURLToPath(import.meta.url);
if (process.execPath !== projectNode()) process.exit(await run(projectNode(), [self, ...process.argv.slice(2)]));

const args = process.argv.slice(2);
const timed = args[0] === "--times" && args.shift() !== undefined;
const only = args[0] === "--only" ? args.slice(1) : null;
const work = fs.mkdtempSync(join(tmpdir(), "hermes-tests-"));
const timesFile = join(work, "times");
try {
  process.exitCode = only ? await runFiles(only.flatMap(find)) : await everything();
} finally {
  fs.rmSync(work, { recursive: true, force: true });
}

async function everything() {
  const checked = await run(projectNode(), [join(root, "scripts", "check.mjs")]);
  if (checked !== 0) return checked;
  const program = join(work, "program");
  const built = await buildProgram(program);
  if (built !== 0) return built;
  process.env.HERMES_TEST_PROGRAM = program;
  const startsProgram = (file) => file.startsWith(join(root, "test", "e2e"));
  const across = find("test/**/*.test.ts");
  // The long ones first: the short ones fill what is left of the time.
  return runFiles([
    ...across.filter(startsProgram),
    ...batches(
      across.filter((file) => !startsProgram(file)),
      4,
    ),
    ...batches(find("src/**/*.test.ts"), 25),
  ]);
}

function find(pattern) {
  return fs
    .globSync(pattern, { cwd: root, exclude: ["**/node_modules"] })
    .sort()
    .map((file) => join(root, file));
}

/** The program as users install it, made once for all tests that start it: it starts in half the time of the source. */
function buildProgram(program) {
  fs.mkdirSync(program);
  for (const name of ["bin", "package.json", "skills"])
    fs.cpSync(join(root, name), join(program, name), { recursive: true });
  fs.symlinkSync(join(root, "node_modules"), join(program, "node_modules"), "junction");
  return run(projectNode(), [join(root, "scripts", "build.mjs"), join(program, "dist")]);
}

/** Files that share a process, as most cost more to load than to run; each stays a suite with its own hooks. */
function batches(all, size) {
  const [made, files] = [[], []];
  for (const file of all) (needsProcess(fs.readFileSync(file, "utf8")) ? made : files).push(file);
  for (let from = 0; from < files.length; from += size) {
    const batch = join(fs.mkdtempSync(join(work, "batch-")), "batch.mjs");
    const runner = JSON.stringify(join(root, "scripts", "test-batch.mjs"));
    const paths = JSON.stringify(files.slice(from, from + size));
    fs.writeFileSync(batch, `import { batch } from ${runner};\nbatch(${paths});\n`);
    made.push(batch);
  }
  return made;
}

/** A file that waits before it has tests, or that measures the memory of its process. */
function needsProcess(source) {
  return WAITS_FIRST.test(source) || source.includes("process.memoryUsage");
}

/** Prints what the test runner of Node prints, then one line with the totals; resolves to the exit code. */
async function runFiles(files) {
  if (files.length === 0) throw new Error("no test file has such a name");
  const { run: runTests } = await import("node:test");
  const { spec } = await import("node:test/reporters");
  process.env.NO_COLOR = "1";
  process.env.PATH = [...pythonFolder(), process.env.PATH].join(delimiter);
  // Each module's types are stripped once, not once per process.
  process.env.NODE_COMPILE_CACHE = join(root, "node_modules", ".cache", "tests");
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort());
  // Many tests wait for other programs, so no core is kept free.
  const concurrency = Math.max(2, availableParallelism());
  const execArgv = timed ? ["--import", join(root, "scripts", "test-batch.mjs")] : [];
  if (timed) process.env.HERMES_TEST_TIMES = timesFile;
  const events = runTests({ cwd: root, files, concurrency, execArgv, timeout: TIMEOUT_MS, signal: stop.signal });
  let failed = false;
  const counts = { passed: 0, failed: 0, cancelled: 0 };
  events.on("test:fail", ({ todo }) => {
    failed ||= todo === undefined || todo === false;
  });
  events.on("test:summary", (summary) => {
    if (summary.file === undefined) Object.assign(counts, summary.counts);
    failed ||= !summary.success;
  });
  for await (const text of events.compose(spec)) process.stdout.write(text);
  if (timed) process.stdout.write(tableOfTimes());
  process.stdout.write(`${counts.passed} passed, ${counts.failed + counts.cancelled} failed\n`);
  return failed ? 1 : 0;
}

/** The script that a version manager puts in front of Python starts a hundred processes each time; the real one is asked directly. */
function pythonFolder() {
  const { status, stdout } = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" });
  return status === 0 ? [dirname(stdout.trim())] : [];
}

/** The dearest first: CPU seconds with all that a file starts, seconds on the clock, the process it ran in. */
function tableOfTimes() {
  const rows = fs
    .readFileSync(timesFile, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  rows.push({ pid: process.pid, file: "all", wall: performance.now() / 1000, cpu: cpuSeconds() });
  rows.sort((a, b) => b.cpu - a.cpu);
  const line = (...cells) => `${cells.map((cell) => String(cell).padStart(8)).join(" ")}`;
  const lines = rows.map(({ cpu, wall, pid, file }) => `${line(cpu.toFixed(1), wall.toFixed(1), pid)}  ${file}\n`);
  return `${line("CPU s", "wall s", "process")}  file\n${lines.join("")}`;
}
