// Building a prompt: what a session with 100 skills and a project file pays before its first request. Cold is a process that builds its
// first prompt, with the index of the skills on disk and without; warm is every later one.
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { repeat, row } from "./measure.ts";
import { lookAtFiles, ownTime, promptOf, writePlace } from "./prompt-build.ts";

const ROUNDS = 200;
const COLD_ROUNDS = 9;
const [WARM_MS, COLD_MS] = [5, 40];
const root = await mkdtemp(join(tmpdir(), "hermes-bench-prompt-"));
await writePlace(root, 100);

const run = promisify(execFile);
const script = join(import.meta.dirname, "prompt-build.ts");
const coldBuild = async () => Number((await run(process.execPath, [script, root])).stdout);
const forget = () => rm(join(root, "home", ".hermes", ".skills_prompt_snapshot.json"), { force: true });

await coldBuild();
const withIndex = await repeat(COLD_ROUNDS, coldBuild);
const without = await repeat(COLD_ROUNDS, async () => {
  await forget();
  return coldBuild();
});
const build = promptOf(root);
const chars = (await build()).length;
const look = await repeat(ROUNDS, () => ownTime(() => lookAtFiles(root)));
const warm = await repeat(ROUNDS, () => ownTime(build));

const ms = (value: number) => `${value.toFixed(2)} ms`;
row("look at 100 skills, read two files", ms(look), null, null, "");
row("prompt, first of a process", ms(withIndex), withIndex / COLD_MS, 1, `${COLD_MS} ms`);
row("the same, skills never read before", ms(without), without / withIndex, 6, "with the index");
row(`prompt of ${chars} chars, warm`, ms(warm), warm / WARM_MS, 1, `${WARM_MS} ms`);
row("the same in looks at the files", ms(warm), warm / look, 6, "looking");
await rm(root, { recursive: true, force: true });
