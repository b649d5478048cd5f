// What runs inside a test process: several test files as one, and with `npm test -- --times` the measuring of them.
import { appendFileSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { relative } from "node:path";
import { after, before, describe } from "node:test";
import { root } from "./setup.mjs";

const require = createRequire(import.meta.url);
const times = process.env.HERMES_TEST_TIMES;
delete process.env.HERMES_TEST_TIMES; // what the tests start is part of their own time
const measured = { wall: 0, cpu: 0 };
if (times) {
  const file = relative(root, process.argv[1] ?? "");
  // Of a batch it is what its files share, above all the modules they load.
  process.on("exit", () => note(file, performance.now() - measured.wall, cpuSeconds() - measured.cpu));
}

/** None of them waits at its top level: what is loaded at once knows which suite it stands in. */
export function batch(files) {
  for (const path of files) {
    const file = relative(root, path);
    describe(file, () => {
      if (times) measure(file);
      require(path);
    });
  }
}

/** CPU time of this process and of all it has started and seen end; on systems without /proc of this process alone. */
export function cpuSeconds() {
  try {
    // utime, stime, cutime and cstime in hundredths of a second; the name before them may hold blanks.
    const fields = readFileSync("/proc/self/stat", "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) / 100, 0);
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  }
}

function measure(file) {
  let [wall, cpu] = [0, 0];
  before(() => {
    [wall, cpu] = [performance.now(), cpuSeconds()];
  });
  after(() => {
    [wall, cpu] = [performance.now() - wall, cpuSeconds() - cpu];
    measured.wall += wall;
    measured.cpu += cpu;
    note(file, wall, cpu);
  });
}

function note(file, wallMs, cpu) {
  appendFileSync(times, `${JSON.stringify({ pid: process.pid, file, wall: wallMs / 1000, cpu })}\n`);
}
