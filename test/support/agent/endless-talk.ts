// A conversation of thousands of turns against a window of 128 K: facts are planted and pinned on the way, the model is instant.
import { performance } from "node:perf_hooks";
import type { Agent } from "../../../src/agent/agent.ts";
import type { AgentEvent } from "../../../src/agent/events.ts";
import type { CallPurpose, ModelGate } from "../../../src/llm/gate.ts";
import { textOf } from "../../../src/llm/messages.ts";
import { estimateRequest } from "../../../src/llm/usage.ts";
import type { ModelEvent, ModelRequest } from "../../../src/llm/wire.ts";
import type { SessionStore } from "../../../src/sessions/store.ts";
import { aTarget } from "../model-target.ts";
import { play, rigAgent } from "./agent-rig.ts";

export const FACTS = 60;
export const factOf = (index: number) =>
  `Fact ${index}: the key of locker ${index} hangs behind picture ${(index * 37) % 101}.`;

/** Answers at once and keeps nothing but the last request. Every third turn it calls a tool first. */
class InstantModel implements ModelGate {
  last: ModelRequest | null = null;
  calls = 0;
  /** Milliseconds spent in here. */
  spentMs = 0;

  expectNewPrefix(): void {
    // nobody watches prefixes here
  }

  pay = (): Promise<never> => Promise.reject(new Error("nothing is bought here"));

  async *stream(request: ModelRequest, { task }: CallPurpose): AsyncIterable<ModelEvent> {
    const begin = performance.now();
    const serial = ++this.calls;
    const promptTokens = estimateRequest(request.messages, request.tools);
    if (task === "main") this.last = request;
    const newest = request.messages.at(-1);
    const wantsTool = task === "main" && serial % 3 === 0 && newest?.role === "user";
    const content =
      task === "compression" ? `## Summary\nThey went through lists, part ${serial}.` : `Noted, number ${serial}.`;
    const call = {
      id: `call_${serial}`,
      type: "function",
      function: { name: "list", arguments: `{"page":${serial}}` },
    } as const;
    this.spentMs += performance.now() - begin;
    if (wantsTool) yield { type: "tool_call", call };
    const outputTokens = 20;
    yield {
      type: "usage",
      usage: {
        inputTokens: promptTokens,
        outputTokens,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        reasoningTokens: 0,
        promptTokens,
        totalTokens: promptTokens + outputTokens,
      },
    };
    yield wantsTool
      ? { type: "done", finishReason: "tool_calls", message: { role: "assistant", content: null, tool_calls: [call] } }
      : { type: "done", finishReason: "stop", message: { role: "assistant", content } };
  }
}

export interface Talk {
  readonly agent: Agent;
  readonly compressions: readonly Extract<AgentEvent, { type: "compressed" }>[];
  /** Milliseconds of each turn outside the model. */
  readonly turnMs: readonly number[];
  /** What the model was sent last. */
  lastText(): string;
}

export async function talkFor(
  turns: number,
  { store, perTurn, onTurn }: { store: SessionStore; perTurn: number; onTurn?: (turn: number) => void },
): Promise<Talk> {
  const model = new InstantModel();
  const agent = rigAgent({
    gate: model,
    store,
    model: { target: aTarget("chat_completions", { contextLength: 128_000 }) },
    tools: { list: ({ page }) => `Page ${page}: ${"item ".repeat(perTurn / 2)}` },
  });
  const compressions: Extract<AgentEvent, { type: "compressed" }>[] = [];
  const turnMs: number[] = [];
  const plantEvery = Math.max(1, Math.floor(turns / (FACTS + 1)));
  let planted = 0;
  for (let turn = 0; turn < turns; turn++) {
    const fact = turn % plantEvery === 0 && planted < FACTS ? factOf(planted++) : null;
    const begin = performance.now();
    const inModel = model.spentMs;
    const { events, outcome } = await play(agent, `${fact ?? `Turn ${turn}.`} ${"word ".repeat(perTurn)}`);
    if (outcome.failed) throw new Error(`turn ${turn}: ${outcome.finalText}`);
    for (const event of events) if (event.type === "compressed") compressions.push(event);
    if (fact) await agent.pins.add(fact);
    turnMs.push(performance.now() - begin - (model.spentMs - inModel));
    onTurn?.(turn);
  }
  const lastText = () => (model.last?.messages ?? []).map((message) => textOf(message.content)).join("\n");
  return { agent, compressions, turnMs, lastText };
}
