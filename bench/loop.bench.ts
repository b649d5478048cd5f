// One loop iteration of our own: the answer is already there, the tool does nothing, every row is really stored.
// The budget is 2 ms and flatness: the same work must not grow with the history.
import { performance } from "node:perf_hooks";
import { systemClock } from "../src/kit/clock.ts";
import type { HistoryMessage } from "../src/llm/messages.ts";
import { play, rigAgent } from "../test/support/agent/agent-rig.ts";
import { ScriptedGate, type ScriptedStep } from "../test/support/agent/scripted-gate.ts";
import { benchStore, median, row } from "./measure.ts";

const STEPS = 60;
const ROUNDS = 7;
const BUDGET_MS = 2;

const { store, discard } = await benchStore();

function talk(messages: number): HistoryMessage[] {
  return Array.from({ length: messages / 2 }, (_, i): HistoryMessage[] => [
    { role: "user", content: `question ${i} about the state of the house` },
    { role: "assistant", content: `answer ${i}: all rooms are in order, the lights are off` },
  ]).flat();
}

/** Milliseconds per iteration of a turn with STEPS tool calls after a history of that size. */
async function perIteration(messages: number, id: string): Promise<number> {
  await store.create({ id });
  if (messages > 0) await store.append(id, talk(messages));
  const steps: ScriptedStep[] = Array.from({ length: STEPS }, (_, i) => ({ calls: [{ name: "noop", args: { i } }] }));
  const agent = rigAgent({
    gate: new ScriptedGate(...steps, { text: "done" }),
    tools: { noop: () => "ok" },
    session: { id },
    store,
    limits: { maxIterations: STEPS + 10 },
    ports: { clock: systemClock },
  });
  const begin = performance.now();
  await play(agent, "go");
  const took = (performance.now() - begin) / (STEPS + 1);
  await agent.close();
  return took;
}

async function measure(messages: number): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) times.push(await perIteration(messages, `bench-${messages}-${round}`));
  return median(times);
}

await measure(0);
const short = await measure(0);
const long = await measure(1000);
row("loop iteration, new conversation", `${short.toFixed(2)} ms`, short / BUDGET_MS, 1, `${BUDGET_MS} ms`);
row("loop iteration, 1,000 messages before", `${long.toFixed(2)} ms`, long / BUDGET_MS, 1, `${BUDGET_MS} ms`);
row("growth over 1,000 messages", `${(long - short).toFixed(2)} ms`, null, null, "");
await discard();
