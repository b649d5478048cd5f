// npm test: set-up, then npm run check and every test with the project's own Node, side by side.
// npm test -- --only PATTERN ...: those files alone, without the checks, each in a process of its own and hermes from source.
// --times before that: at the end also a table of what each file took. --whole: every case of the laws that otherwise draw a sample.
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import fs from "node:fs"; // an older Node, which only gets as far as the set-up, has not all of its names
import { availableParallelism, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { projectNode, root, run, setup } from "./setup.mjs";
import { cpuSeconds } from "./test-batch.mjs";

/** Ends what hangs. Nothing that works comes near it, on a busy machine neither. */
const TIMEOUT_MS = 600_000;
/** A file that waits before it has tests: in a process with others, their tests and hooks would run meanwhile. */
const WAITS_FIRST = /^(?:await\b|(?:const|let|for|if)\b(?:(?!async).)*\bawait\b|const\b.*\(\n\s+await\b)/m;
/** Containers, sandboxes and other machines are mostly waited for. */
const WAITS_MOST = /\/sandbox-(?:container|ssh|bubblewrap)\.test\.ts$/;

/** Takes the place of the folder $1 for what is run here: in memory, with this clone ($2) in it where it lies below. */
const IN_MEMORY = `set -e
mount -t tmpfs -o mode=1777 tmpfs "$3"
case "$2" in "$1"/*) mkdir -p "$3\${2#"$1"}"; mount --bind "$2" "$3\${2#"$1"}" ;; esac
mount --move "$3" "$1"
cd "$2"
shift 3
exec "$@"`;
const MEMORY_BYTES = 8e9;

setup();
const self = fileURLToPath(import.meta.url);
if (process.execPath !== projectNode()) process.exit(await run(projectNode(), [self, ...process.argv.slice(2)]));
if (!process.env.HERMES_TEST_TEMP) process.exit(await withTemp());

const args = process.argv.slice(2);
const takes = (flag) => args[0] === flag && args.shift() !== undefined;
if (takes("--whole")) process.env.HERMES_TEST_WHOLE = "1";
const timed = takes("--times");
// The script that a version manager puts in front of Python starts a hundred processes each time; the real one is asked directly.
process.env.PATH = [...pythonFolder(), process.env.PATH].join(delimiter);
process.env.HERMES_TEST_SEED ??= String(randomInt(2 ** 31));
const only = args[0] === "--only" ? args.slice(1) : null;
const work = fs.mkdtempSync(join(tmpdir(), "hermes-tests-"));
const timesFile = join(work, "times");
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort());
try {
  process.exitCode = only ? await runFiles(only.flatMap(find)) : await everything();
} finally {
  fs.rmSync(work, { recursive: true, force: true });
}

/**
 * Runs the tests with a temporary folder in memory where that is allowed (root on Linux), in a view of the file system that nobody else has:
 * they make and remove a hundred thousand files, which takes a disk a tenth of the whole time.
 */
async function withTemp() {
  const temp = fs.realpathSync(tmpdir());
  const place = fs.mkdtempSync(join(temp, "hermes-memory-"));
  const inside = (...command) => [
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-c",
    IN_MEMORY,
    "sh",
    temp,
    root,
    place,
    ...command,
  ];
  const mayMount = process.platform === "linux" && process.getuid() === 0 && process.availableMemory() > MEMORY_BYTES;
  const canMount = mayMount && spawnSync("unshare", inside("true"), { stdio: "ignore" }).status === 0;
  const env = { ...process.env, HERMES_TEST_TEMP: canMount ? "memory" : "disk" };
  const command = [projectNode(), self, ...process.argv.slice(2)];
  const [program, ...rest] = canMount ? ["unshare", ...inside(...command)] : command;
  try {
    return await run(program, rest, { env });
  } finally {
    fs.rmdirSync(place);
  }
}

async function everything() {
  const checks = check();
  const program = join(work, "program");
  const built = await buildProgram(program);
  process.env.HERMES_TEST_PROGRAM = program;
  if (built === 0) process.env.HERMES_TEST_STARTED = await startOnce(program);
  const startsProgram = (file) => file.startsWith(join(root, "test", "e2e"));
  const across = find("test/**/*.test.ts");
  // The long ones first, above all those that wait for other programs: the short ones fill what is left of the time.
  const others = across.filter((file) => !startsProgram(file));
  const slow = others.filter((file) => WAITS_MOST.test(file));
  const tested =
    built ||
    (await runFiles([
      ...slow,
      ...across.filter(startsProgram),
      ...batches(
        others.filter((file) => !slow.includes(file)),
        7,
      ),
      ...batches(find("src/**/*.test.ts"), 45),
    ]));
  const checked = await checks;
  if (checked.code === 0) return tested;
  process.stdout.write(checked.text);
  return checked.code;
}

/** The checks run beside the tests, which leave a core idle now and then. Where they fail the tests are stopped, and what they say comes last. */
async function check() {
  const log = join(work, "check.log");
  const output = fs.openSync(log, "w");
  const code = await run(projectNode(), [join(root, "scripts", "check.mjs")], { stdio: ["ignore", output, output] });
  fs.closeSync(output);
  const text = fs.readFileSync(log, "utf8");
  if (code === 0) process.stdout.write("check: passed\n");
  else stop.abort();
  return { code, text };
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

/** A home in which the program has been started once. */
async function startOnce(program) {
  const home = join(work, "home");
  fs.mkdirSync(home, { mode: 0o700 });
  const env = { PATH: process.env.PATH, HOME: home, HERMES_HOME: home, HERMES_FROM_SOURCE: "0" };
  const code = await run(projectNode(), [join(program, "bin", "hermes.mjs"), "-z", "hello"], { env, stdio: "ignore" });
  if (code !== 0) throw new Error(`hermes -z ended with code ${code}`);
  return home;
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
  // Each module's types are stripped once, not once per process.
  process.env.NODE_COMPILE_CACHE = join(root, "node_modules", ".cache", "tests");
  // Many tests wait for other programs: more files than there are cores keep all of them busy.
  const concurrency = availableParallelism() * 2 + 1;
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
  if (timed && fs.existsSync(timesFile)) process.stdout.write(tableOfTimes());
  const drawn = process.env.HERMES_TEST_WHOLE ? "" : ` (sample HERMES_TEST_SEED=${process.env.HERMES_TEST_SEED})`;
  process.stdout.write(`${counts.passed} passed, ${counts.failed + counts.cancelled} failed${drawn}\n`);
  return failed ? 1 : 0;
}

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
