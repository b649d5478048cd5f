// How things grow: each at n, 10 n and 100 n, in CPU milliseconds of the main thread, so that other programs of the machine do not count.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/kit/clock.ts";
import type { HistoryMessage } from "../src/llm/messages.ts";
import { play, rigAgent } from "../test/support/agent/agent-rig.ts";
import { ScriptedGate, type ScriptedStep } from "../test/support/agent/scripted-gate.ts";
import { benchStore, median, row } from "./measure.ts";
import { ownTime, promptOf, writePlace } from "./prompt-build.ts";

const WORDS =
  "walrus harbour ledger kitchen signal garden window copper lantern meadow river engine paper market".split(" ");
const PER_SESSION = 10;
const STEPS = 40;

/** The value at each size, and the last one beside the first. */
async function curve(name: string, sizes: readonly number[], at: (size: number) => Promise<number>, budget: number) {
  const values: number[] = [];
  for (const size of sizes) values.push(await at(size));
  const shown = values.map((value) => value.toFixed(2)).join(" / ");
  const [first = 1, last = 1] = [values[0], values.at(-1)];
  row(`${name} at ${sizes.join(" / ")}`, `${shown} ms`, last / first, budget, "the first");
}

/** All together: the system counts a thread's time in ticks. */
async function each(times: number, work: (time: number) => Promise<unknown>): Promise<number> {
  const all = await ownTime(async () => {
    for (let time = 0; time < times; time++) await work(time);
  });
  return all / times;
}

const text = (n: number) =>
  `${Array.from({ length: 12 }, (_, at) => WORDS[(n * 7 + at * at * 3 + n * at) % WORDS.length]).join(" ")} item${n}`;
const message = (n: number): HistoryMessage => ({ role: n % 2 === 0 ? "user" : "assistant", content: text(n) });

const messages = [1_000, 10_000, 100_000];
const { store, discard } = await benchStore();
let filled = 0;
async function fill(size: number): Promise<void> {
  for (; filled < size; filled += PER_SESSION) {
    const id = `s${filled}`;
    await store.create({ id });
    await store.append(
      id,
      Array.from({ length: PER_SESSION }, (_, at) => message(filled + at)),
    );
  }
  await store.search("item1"); // what follows the messages is level with them
}
const found: Record<"append" | "list" | "search" | "step", number[]> = { append: [], list: [], search: [], step: [] };
for (const size of messages) {
  await fill(size);
  found.list.push(await each(300, () => store.list({ limit: 20 })));
  found.search.push(await each(200, (time) => store.search(`item${time * 61}`)));
  await store.create({ id: `append-${size}` });
  found.append.push(await each(600, (time) => store.append(`append-${size}`, [message(time)])));
}
for (const [name, budget] of [
  ["append", 1.5],
  ["list", 1.5],
  ["search", 5],
] as const)
  await curve(name, messages, async (size) => found[name][messages.indexOf(size)] ?? 0, budget);
const list = found.list.at(-1) ?? 0;
row(`list of 20 among ${filled / PER_SESSION} conversations`, `${list.toFixed(2)} ms`, list / 3, 1, "3 ms");

/** One step of a turn with so many messages before it. */
async function step(history: number): Promise<number> {
  const once = async (round: number) => {
    const id = `step-${history}-${round}`;
    await store.create({ id });
    await store.append(
      id,
      Array.from({ length: history }, (_, n) => message(n)),
    );
    const steps: ScriptedStep[] = Array.from({ length: STEPS }, (_, i) => ({ calls: [{ name: "noop", args: { i } }] }));
    const gate = new ScriptedGate(...steps, { text: "done" });
    const limits = { maxIterations: STEPS + 10 };
    const agent = rigAgent({
      ...{ gate, store, limits, tools: { noop: () => "ok" }, session: { id }, ports: { clock: systemClock } },
    });
    const took = await ownTime(() => play(agent, "go"));
    await agent.close();
    return took / (STEPS + 1);
  };
  const times: number[] = [];
  for (let round = 0; round < 5; round++) times.push(await once(round));
  return median(times);
}
await step(10);
await curve("step of a turn, messages before", [10, 100, 1_000], step, 1.2);
await discard();

const root = await mkdtemp(join(tmpdir(), "hermes-bench-growth-"));
async function prompt(skills: number): Promise<number> {
  const folder = join(root, String(skills));
  await writePlace(folder, skills);
  const build = promptOf(folder);
  await build();
  return each(20, build);
}
await curve("prompt, skills", [10, 100, 1_000], prompt, 100);
const tokens = async (skills: number) => {
  const folder = join(root, String(skills));
  await writePlace(folder, skills);
  return (await promptOf(folder)()).length / 4;
};
const [some, many] = [await tokens(500), await tokens(5_000)];
row("prompt of 5,000 skills", `${many.toFixed(0)} tokens`, many / some, 1.05, `of 500 (${some.toFixed(0)} tokens)`);
await rm(root, { recursive: true });
