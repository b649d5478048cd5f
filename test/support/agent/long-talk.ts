// A stored conversation that fills its window, and an agent that goes on with it.
import type { TestContext } from "node:test";
import { SUMMARY_MARKER } from "../../../src/agent/compression/summary-text.ts";
import type { AgentEvent } from "../../../src/agent/events.ts";
import { defaultConfig } from "../../../src/home/config/schema.ts";
import { type HistoryMessage, type Message, textOf } from "../../../src/llm/messages.ts";
import type { SessionStore } from "../../../src/sessions/store.ts";
import { aTarget } from "../model-target.ts";
import { recordedLog, temporaryStore } from "../session-store.ts";
import { type RigOptions, rigAgent } from "./agent-rig.ts";
import { ScriptedGate, type ScriptedStep } from "./scripted-gate.ts";

export const WINDOW = 20_000; // shortened from 15,000 on
export const words = (chars: number) => "word ".repeat(Math.ceil(chars / 5)).slice(0, chars);
export const call = (id: string, content: string): HistoryMessage[] => [
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id, type: "function", function: { name: "read_file", arguments: `{"path":"/f/${id}"}` } }],
  },
  { role: "tool", tool_call_id: id, tool_name: "read_file", name: "read_file", content },
];
export function talk(turns: number, chars: number): HistoryMessage[] {
  return Array.from({ length: turns }, (_, i): HistoryMessage[] => [
    { role: "user", content: `ask ${i}: ${words(chars)}` },
    { role: "assistant", content: `answer ${i}: ${words(chars)}` },
  ]).flat();
}
/** About so many tokens of talk. */
export const talkOf = (tokens: number) => talk(20, (tokens / 40 - 13) * 4);

export async function longTalkRig(
  t: TestContext,
  history: readonly HistoryMessage[],
  options: Partial<RigOptions> & { steps?: ScriptedStep[] } = {},
) {
  const { store } = await temporaryStore(t);
  await store.create({ id: "session-1", source: "cli" });
  await store.setTitle("session-1", "my talk");
  if (history.length > 0) await store.append("session-1", history);
  const gate = new ScriptedGate(...(options.steps ?? []));
  const log = recordedLog();
  const make = (more: Partial<RigOptions> = {}) =>
    rigAgent({
      gate,
      store,
      model: { target: aTarget("chat_completions", { contextLength: WINDOW }) },
      ...options,
      ...more,
      ports: { log, ...options.ports, ...more.ports },
    });
  return { store, gate, log, make, agent: make() };
}

export const tasks = (gate: ScriptedGate) => gate.purposes.map((purpose) => purpose.task);
export const summarised = (messages: readonly Message[] = []) =>
  messages.some((one) => textOf(one.content).includes(SUMMARY_MARKER));
export const eventsOf = <T extends AgentEvent["type"]>(events: readonly AgentEvent[], type: T) =>
  events.filter((event): event is Extract<AgentEvent, { type: T }> => event.type === type);
export const rowsOf = async (store: SessionStore, id: string) =>
  (await store.load(id)).map(({ role, content }) => ({ role, content }));
export const compressionConfig = (change: Partial<ReturnType<typeof defaultConfig>["compression"]>) => {
  const defaults = defaultConfig();
  return () => ({ ...defaults, compression: { ...defaults.compression, ...change } });
};
