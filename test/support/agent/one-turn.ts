// One whole turn of a scripted model that has two tools; whatever it does, requests and history must stay legal.
import type { HistoryMessage } from "../../../src/llm/messages.ts";
import { play, type RigOptions, rigAgent } from "./agent-rig.ts";
import { assertLegalHistory, assertLegalRequest } from "./legal.ts";
import { ScriptedGate, type ScriptedStep } from "./scripted-gate.ts";

export const tools = {
  echo: (args: Readonly<Record<string, unknown>>) => `echo ${args.text}`,
  memory: () => '{"success":true}',
};
export const echo = (text: string) => ({ name: "echo", args: { text } });

export async function turn(steps: ScriptedStep[], rig: Partial<RigOptions> = {}, input = "go") {
  const gate = new ScriptedGate(...steps);
  const agent = rigAgent({ gate, tools, ...rig });
  const { events, outcome } = await play(agent, input);
  for (const request of gate.requests) assertLegalRequest(request.messages);
  assertLegalHistory(outcome.messages);
  return { gate, agent, events, outcome };
}

export const said = (messages: readonly HistoryMessage[]) =>
  messages.map((message) => `${message.role}: ${message.content ?? ""}`);
export const lastSent = (gate: ScriptedGate) => gate.requests.at(-1)?.messages.at(-1)?.content;
