// Building a prompt: what a session with 100 skills and a project file pays before its first request.
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { buildSystemPromptParts } from "../src/prompt/build.ts";
import { gatherPromptInputs } from "../src/prompt/gather.ts";
import { someSkills } from "../test/support/prompt-inputs.ts";
import { promptRequest } from "../test/support/prompt-request.ts";
import { repeat, row } from "./measure.ts";

const ROUNDS = 200;
const BUDGET_MS = 5;
const root = await mkdtemp(join(tmpdir(), "hermes-bench-prompt-"));
await mkdir(join(root, "home", ".hermes"), { recursive: true });
await mkdir(join(root, "w"));
await writeFile(join(root, "home", ".hermes", "SOUL.md"), "I am a helper of few words.\n".repeat(20));
await writeFile(join(root, "w", "AGENTS.md"), "- Run the tests before you say that it works.\n".repeat(200));

const { request, ports } = promptRequest(root);
const categories = someSkills(100);
const own = { ...ports, skills: async () => ({ categories, warnings: [] }) };
const timed = async (work: () => unknown) => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};

const cold = await timed(async () => buildSystemPromptParts(await gatherPromptInputs(request, own)));
const inputs = await gatherPromptInputs(request, own);
const bytes = buildSystemPromptParts(inputs).full;
const read = await repeat(ROUNDS, () => timed(() => readFile(join(root, "w", "AGENTS.md"))));
const build = await repeat(ROUNDS, () => timed(() => buildSystemPromptParts(inputs)));
const whole = await repeat(ROUNDS, () =>
  timed(async () => buildSystemPromptParts(await gatherPromptInputs(request, own))),
);

row("one file read", `${read.toFixed(3)} ms`, null, null, "");
row("prompt, first build", `${cold.toFixed(2)} ms`, cold / 40, 1, "40 ms");
row(`prompt of ${bytes.length} chars, warm`, `${build.toFixed(3)} ms`, build / BUDGET_MS, 1, `${BUDGET_MS} ms`);
row("the same with its files read", `${whole.toFixed(2)} ms`, whole / BUDGET_MS, 1, `${BUDGET_MS} ms`);
row("the same in file reads", `${whole.toFixed(2)} ms`, whole / read, null, "one file read");
await rm(root, { recursive: true, force: true });
