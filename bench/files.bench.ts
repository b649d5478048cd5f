// search_files over a thousand files with a line that all of them have, beside ripgrep alone: CPU of both, with their children.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { findRipgrep } from "../src/tools/files/ripgrep.ts";
import { searchFiles } from "../src/tools/search-files.ts";
import { fileRig } from "../test/support/file-workspace.ts";
import { childrenMs, row } from "./measure.ts";

const FILES = 1000;
const PER_FILE = 12;
const TIMES = 20;
const ROUNDS = 3;

const rg = await findRipgrep();
if (!rg) {
  row("search_files: no ripgrep here", "", null, null, "");
} else {
  const rig = await fileRig();
  for (let file = 0; file < FILES; file++) {
    const lines = Array.from({ length: 60 }, (_, n) =>
      n % 5 === 0 && n < 5 * PER_FILE ? `common line ${n}` : `const value${n} = compute(${file}, ${n});`,
    );
    await writeFile(rig.at(`file${file}.ts`), lines.join("\n"));
  }
  for (const [what, pattern] of [
    ["a common line", "common line"],
    ["a rare line", "compute\\(777, 31\\)"],
  ] as const) {
    const alone = async () => {
      const child = spawn(rg, ["--no-config", "--line-number", "--", pattern, "."], {
        cwd: rig.at("."),
        stdio: "pipe",
      });
      child.stdout.resume();
      await once(child, "close");
    };
    const ours = async () => void (await searchFiles({ pattern, path: "." }, rig.context()));
    await ours();
    const [base, own] = [await least(alone), await least(ours)];
    row(
      `search_files, ${what} in ${FILES} files`,
      `${own.toFixed(0)} ms`,
      own / base,
      1.5,
      `rg (${base.toFixed(0)} ms)`,
    );
  }
  await rig.close();
}

/** CPU milliseconds of one, the least of some rounds. */
async function least(work: () => Promise<void>): Promise<number> {
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const [begin, children] = [process.cpuUsage(), childrenMs()];
    for (let time = 0; time < TIMES; time++) await work();
    const { user, system } = process.cpuUsage(begin);
    rounds.push(((user + system) / 1000 + childrenMs() - children) / TIMES);
  }
  return Math.min(...rounds);
}
