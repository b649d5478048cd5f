// An agent over real parts and a scripted model, for tests of the loop.
import { tmpdir } from "node:os";
import { Agent, type RunOptions } from "../../../src/agent/agent.ts";
import type { AgentEvent, TurnOutcome } from "../../../src/agent/events.ts";
import type { AgentOptions, AgentPorts, ToolRunnerPort } from "../../../src/agent/options.ts";
import { defaultConfig } from "../../../src/home/config/schema.ts";
import { homePaths } from "../../../src/home/paths.ts";
import type { ModelGate } from "../../../src/llm/gate.ts";
import type { UserInput } from "../../../src/llm/messages.ts";
import type { SessionStore } from "../../../src/sessions/store.ts";
import type { ToolContext } from "../../../src/tools/toolset/context.ts";
import type { ToolOutput } from "../../../src/tools/toolset/registry.ts";
import { createToolState } from "../../../src/tools/toolset/session-tools.ts";
import { allowingGuard } from "../cleared.ts";
import { aTarget } from "../model-target.ts";
import { manualClock, recordedLog } from "../session-store.ts";

export type RigTool = (args: Readonly<Record<string, unknown>>, ctx: ToolContext) => Promise<ToolOutput> | ToolOutput;

export interface RigOptions {
  readonly gate: ModelGate;
  readonly tools?: Readonly<Record<string, RigTool>>;
  readonly port?: Partial<ToolRunnerPort>;
  readonly session?: Partial<AgentOptions["session"]>;
  readonly model?: Partial<AgentOptions["model"]>;
  readonly prompt?: Partial<AgentOptions["prompt"]>;
  readonly limits?: Partial<AgentOptions["limits"]>;
  readonly ports?: Partial<AgentPorts>;
  readonly store?: SessionStore | null;
}

export function rigOptions(rig: RigOptions): AgentOptions {
  const tools = rig.tools ?? {};
  const names = Object.keys(tools).sort();
  const home = tmpdir();
  return {
    session: {
      id: "session-1",
      source: "cli",
      platform: "cli",
      profile: "default",
      store: rig.store ?? null,
      interactive: true,
      ...rig.session,
    },
    model: { target: aTarget("chat_completions"), ...rig.model },
    prompt: { system: async () => "You are a test.", ...rig.prompt },
    tools: {
      definitions: names.map((name) => ({
        type: "function",
        function: { name, description: name, parameters: { type: "object", properties: {} } },
      })),
      names: new Set(names),
      call: async (name, args, ctx) =>
        (await tools[name]?.(args, ctx)) ?? JSON.stringify({ error: `Unknown tool: ${name}` }),
      state: createToolState(),
      ...rig.port,
    },
    limits: {
      maxIterations: 20,
      apiMaxRetries: 3,
      toolTimes: { heartbeatMs: 5_000, graceMs: 100, overtimeMs: 30_000 },
      ...rig.limits,
    },
    ports: {
      gate: rig.gate,
      clock: manualClock(),
      log: recordedLog(),
      home: homePaths(home, home, "default"),
      config: () => defaultConfig(),
      environment: {
        kind: "none",
        cwd: "/project",
        tempDir: home,
        home: "/home/test",
        isolated: false,
        execute: () => Promise.reject(new Error("this test has no environment")),
        spawn: () => Promise.reject(new Error("this test has no environment")),
        setCwd: () => undefined,
        cleanup: async () => undefined,
      },
      guardFor: () => allowingGuard(),
      redact: (text) => text,
      ...rig.ports,
    },
  };
}

export function rigAgent(rig: RigOptions): Agent {
  return new Agent(rigOptions(rig));
}

/** Plays one turn to its end: every event, and the outcome. */
export async function play(
  agent: Agent,
  input: string | UserInput,
  options: RunOptions & { readonly onEvent?: (event: AgentEvent) => void } = {},
): Promise<{ readonly events: AgentEvent[]; readonly outcome: TurnOutcome }> {
  const { onEvent, ...run } = options;
  const events: AgentEvent[] = [];
  for await (const event of agent.run(typeof input === "string" ? { text: input } : input, run)) {
    events.push(event);
    onEvent?.(event);
  }
  const last = events.at(-1);
  if (last?.type !== "done") throw new Error("the turn did not end with done");
  return { events, outcome: last.outcome };
}

export function typesOf(events: readonly AgentEvent[]): string[] {
  return events.map((event) => event.type);
}
