// An agent over real parts and a scripted model, for tests of the loop.
import { tmpdir } from "node:os";
import { Agent, type RunOptions } from "../../../src/agent/agent.ts";
import type { Assembly } from "../../../src/agent/assembly.ts";
import type { AgentEvent, TurnOutcome } from "../../../src/agent/events.ts";
import { defaultConfig } from "../../../src/home/config/schema.ts";
import { homePaths } from "../../../src/home/paths.ts";
import type { ModelGate } from "../../../src/llm/gate.ts";
import type { UserInput } from "../../../src/llm/messages.ts";
import { Lane } from "../../../src/sessions/lanes.ts";
import type { SessionStore } from "../../../src/sessions/store.ts";
import { AvailabilityCache } from "../../../src/tools/toolset/availability.ts";
import type { ToolContext } from "../../../src/tools/toolset/context.ts";
import { type ForeignToolSpec, type ToolOutput, ToolRegistry } from "../../../src/tools/toolset/registry.ts";
import { SessionTools } from "../../../src/tools/toolset/session-tools.ts";
import { allowingGuard } from "../cleared.ts";
import { aTarget } from "../model-target.ts";
import { manualClock, recordedLog } from "../session-store.ts";
import { recordingLog } from "../tool-context.ts";

export type RigTool = (args: Readonly<Record<string, unknown>>, ctx: ToolContext) => Promise<ToolOutput> | ToolOutput;

export interface RigOptions {
  readonly gate: ModelGate;
  readonly tools?: Readonly<Record<string, RigTool>>;
  /** Of every tool. */
  readonly traits?: Partial<ForeignToolSpec>;
  /** Of one tool. */
  readonly traitsOf?: Readonly<Record<string, Partial<ForeignToolSpec>>>;
  readonly session?: Partial<Assembly["session"]>;
  readonly model?: Partial<Assembly["model"]>;
  readonly prompt?: Partial<Assembly["prompt"]>;
  readonly limits?: Partial<Assembly["limits"]>;
  readonly ports?: Partial<Assembly>;
  readonly store?: SessionStore | null;
}

/** What an assembly holds beside session, model, prompt, tools and limits. */
type RigParts = Omit<Assembly, "session" | "model" | "prompt" | "tools" | "limits">;

export function rigOptions(rig: RigOptions): Assembly {
  const home = tmpdir();
  const config = defaultConfig();
  const ports: RigParts = {
    gate: rig.gate,
    clock: manualClock(),
    log: recordedLog(),
    paths: homePaths(home, home, "default"),
    config: () => config,
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
  };
  const lane = rig.store ? new Lane(rig.store, ports.log) : null;
  return {
    ...ports,
    session: {
      id: "session-1",
      source: "cli",
      platform: "cli",
      profile: "default",
      store: lane?.store ?? null,
      lane,
      interactive: true,
      ...rig.session,
    },
    model: { target: aTarget("chat_completions"), ...rig.model },
    prompt: { system: async () => "You are a test.", ...rig.prompt },
    tools: rigTools(rig, ports),
    limits: {
      maxIterations: 20,
      apiMaxRetries: 3,
      toolTimes: { heartbeatMs: 5_000, graceMs: 100, overtimeMs: 30_000 },
      ...rig.limits,
    },
  };
}

/** The session's tools over a registry of their own. */
function rigTools({ tools = {}, traits, traitsOf, model }: RigOptions, ports: RigParts): SessionTools {
  const registry = new ToolRegistry();
  const parameters = { type: "object", properties: {} };
  for (const [name, handler] of Object.entries(tools))
    registry.register({
      ...{ name, toolset: "rig", description: name, parameters, ...traits, ...traitsOf?.[name] },
      handler: async (args, ctx) => handler(args, ctx),
    });
  const definitions = registry
    .names()
    .map((name) => ({ type: "function" as const, function: { name, description: name, parameters } }));
  return SessionTools.of(
    {
      ...{ registry, platform: "cli", toolsets: ["rig"], environment: ports.environment },
      availability: new AvailabilityCache(ports.clock),
      config: ports.config(),
      contextLength: model?.target?.contextLength ?? 200_000,
      log: recordingLog(),
      env: () => undefined,
    },
    definitions,
  );
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
