// What tools, hooks and guards are told about the run they belong to. Made by the loop; no tool argument can change it.
import { randomUUID } from "node:crypto";
import type { AuxiliaryClient } from "../llm/auxiliary/contract.ts";
import type { PaidCost, PaidUsage } from "../llm/gate.ts";
import type { Ask } from "../safety/questions.ts";
import type { RunContext, ToolContext } from "../tools/toolset/context.ts";
import type { SessionTotals } from "./events.ts";
import type { AgentOptions, ParentCall } from "./options.ts";

export interface RunFacts {
  readonly sessionId: string;
  readonly turn: number;
  readonly signal: AbortSignal;
}

export function makeRunContext({ session, ports }: AgentOptions, facts: RunFacts): RunContext {
  return {
    // A compression in mid-turn goes on under another id.
    get sessionId() {
      return facts.sessionId;
    },
    turn: facts.turn,
    signal: facts.signal,
    home: ports.home,
    config: ports.config(),
    profile: session.profile,
    ...(session.sessionKey === undefined ? {} : { sessionKey: session.sessionKey }),
    taskId: session.taskId ?? randomUUID(),
    platform: session.platform,
    source: session.source,
    ...(session.chat === undefined ? {} : { chat: session.chat }),
    origin: session.origin ?? "foreground",
    interactive: session.interactive,
    clock: ports.clock,
    log: ports.log,
  };
}

export interface CallFacts {
  readonly callId: string;
  readonly signal: AbortSignal;
  readonly progress: (text?: string) => void;
  readonly showDiff?: (diff: string) => void;
  readonly callTool?: ToolContext["callTool"];
  readonly forScript?: boolean;
}

/** Makes the contexts of one turn's calls. */
export function toolContexts(
  { session, ports, tools }: AgentOptions,
  run: RunContext,
  shared: {
    readonly ask: Ask;
    readonly contextLength: number;
    readonly seesImages?: boolean;
    readonly notify: (text: string) => void;
    readonly auxiliary: AuxiliaryClient;
  } & Pick<ParentCall, "emit" | "used">,
): (call: CallFacts) => ToolContext {
  const guard = ports.guardFor(run, shared.ask, shared.auxiliary);
  const { delegation } = ports;
  const { emit, used } = shared;
  return (call) => ({
    ...run,
    ...call,
    environment: ports.environment,
    guard,
    ask: shared.ask,
    sessions: session.store,
    state: tools.state,
    contextLength: shared.contextLength,
    ...(shared.seesImages === undefined ? {} : { seesImages: shared.seesImages }),
    async askAside(question) {
      const { sessionId, turn } = run;
      return (await shared.auxiliary.callAux({ ...question, signal: call.signal, sessionId, turn })).text;
    },
    async pay(task, paid, send) {
      const { sessionId, turn } = run;
      const { jobId } = session;
      const purpose = { task, sessionId, turn, ...(jobId === undefined ? {} : { jobId }) };
      const { value, usage, cost } = await ports.gate.pay(paid, purpose, send, call.signal);
      used(oneCall(usage, cost));
      return value;
    },
    toolNames: tools.names,
    redact: (text) => ports.redact(text),
    notify: shared.notify,
    ...ports.toolPorts,
    ...(ports.memory ? { memory: ports.memory } : {}),
    ...(delegation
      ? { spawnChildren: (tasks) => delegation.spawn(tasks, { ...call, sessionId: run.sessionId, emit, used }) }
      : {}),
  });
}

function oneCall(usage: PaidUsage | null, { usd, status }: PaidCost): SessionTotals {
  return {
    inputTokens: usage?.inputTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    apiCalls: 1,
    costUsd: usd,
    costStatus: status,
  };
}
