// One child from its first word to its report: what it does is passed on, how long it may take is watched, and every end is a result.

import type { Config } from "../../home/config/schema.ts";
import { type Clock, withGrace } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { childTimeoutSeconds } from "../../tools/delegate-task.ts";
import type { ChildReport, ChildTask } from "../../tools/toolset/context.ts";
import type { Agent } from "../agent.ts";
import type { ParentCall } from "../assembly.ts";
import type { AgentEvent, SubagentEvent, TurnOutcome } from "../events.ts";

const GRACE_MS = 5_000;
const HEARTBEAT_MS = 30_000;
/** Heartbeats without progress after which the parent gets no more signs of life. */
const STALE = { idle: 15, inTool: 40 };
const TOOLS_PER_PROGRESS = 5;

interface ChildFacts {
  readonly id: string;
  readonly parentId: string | null;
  readonly depth: number;
  readonly taskIndex: number;
  readonly taskCount: number;
  readonly task: ChildTask;
  readonly model: string;
}

interface ChildRun {
  readonly agent: Agent;
  readonly facts: ChildFacts;
  readonly call: ParentCall;
  /** Stops the child on its own account, without an end of the parent's call. */
  readonly stop: AbortSignal;
  readonly clock: Clock;
  readonly settings: Config["delegation"];
  readonly graceMs?: number;
  /** Called for every finished call. */
  onTool?(event: Extract<AgentEvent, { type: "tool_end" }>): void;
}

interface FinishedChild {
  readonly report: ChildReport;
  /** Settles when the turn is really over, also when it was given up. */
  readonly over: Promise<unknown>;
}

export async function runChild(run: ChildRun): Promise<FinishedChild> {
  const { agent, call, clock, settings } = run;
  const began = clock.now();
  const timeout = new AbortController();
  const ended = new AbortController();
  const stop = AbortSignal.any([call.signal, run.stop, timeout.signal]);
  const watch = new ChildWatch(run);
  watch.say("start");
  const over = drive(run, stop, watch);
  const seconds = childTimeoutSeconds(settings.child_timeout_seconds);
  if (seconds > 0) void clock.sleep(seconds * 1000, ended.signal).then(() => timeout.abort(), ignore);
  void watch.beat(ended.signal).catch(ignore);
  let end: Ended;
  try {
    const settled = await withGrace(over, stop, run.graceMs ?? GRACE_MS);
    end = settled.done ? { type: "outcome", outcome: settled.value } : { type: "abandoned" };
  } catch (error) {
    end = { type: "thrown", message: messageOf(error) };
  } finally {
    ended.abort();
  }
  const verdict = judge(end, agent, timeout.signal.aborted ? seconds : null);
  const { totals } = agent;
  const ms = clock.now() - began;
  const report: ChildReport = {
    task_index: run.facts.taskIndex,
    ...verdict,
    api_calls: totals.apiCalls,
    duration_seconds: Math.round(ms / 10) / 100,
    model: agent.model.target.model,
    tokens: {
      input: totals.inputTokens + totals.cacheReadTokens + totals.cacheWriteTokens,
      output: totals.outputTokens,
    },
    ...(totals.costUsd === null ? {} : { cost_usd: totals.costUsd }),
    tool_trace: watch.trace,
  };
  call.used(totals);
  const { status, error, summary } = report;
  watch.say("complete", { status, ms, text: error ?? summary ?? "", ...(summary === null ? {} : { summary }) });
  return { report, over: over.then(ignore, ignore) };
}

type Ended =
  | { readonly type: "outcome"; readonly outcome: TurnOutcome }
  | { readonly type: "abandoned" }
  | { readonly type: "thrown"; readonly message: string };
type Verdict = Pick<ChildReport, "status" | "summary" | "exit_reason" | "error">;

function judge(end: Ended, agent: Agent, lateAfter: number | null): Verdict {
  if (lateAfter !== null) {
    const error = `stopped after ${lateAfter} s (delegation.child_timeout_seconds): ${lastSign(agent)}`;
    return { status: "timeout", exit_reason: "timeout", summary: null, error };
  }
  if (end.type === "thrown") return { status: "error", exit_reason: "error", summary: null, error: end.message };
  if (end.type === "abandoned" || end.outcome.interrupted)
    return { status: "interrupted", exit_reason: "interrupted", summary: null, error: "stopped before it was done" };
  const { failed, partial, error, finalText, exitReason } = end.outcome;
  if (failed || !finalText)
    return { status: "failed", exit_reason: "error", summary: null, error: finalText ?? error ?? "it gave no answer" };
  if (exitReason.startsWith("max_iterations")) {
    const limit = `stopped at its limit of ${agent.activity().maxIterations} model calls (delegation.max_iterations)`;
    return { status: "max_iterations", exit_reason: "max_iterations", summary: keptAnswer(end.outcome), error: limit };
  }
  if (partial && error !== undefined)
    return { status: "failed", exit_reason: "error", summary: keptAnswer(end.outcome), error };
  return { status: "completed", exit_reason: "completed", summary: finalText };
}

/** What the model itself said at the end of a turn that was not completed; other final texts are words of the loop to a user. */
function keptAnswer({ messages, guardrail, finalText }: TurnOutcome): string | null {
  return messages.at(-1)?.role === "assistant" && !guardrail ? finalText : null;
}

/** What a timeout reports besides the time. */
function lastSign(agent: Agent): string {
  const { lastActivityDesc, secondsSinceActivity, currentTool, maxIterations } = agent.activity();
  const where = currentTool === null ? "waiting for the model" : `inside ${currentTool}`;
  return `${where}; last sign of life ${Math.round(secondsSinceActivity)} s before (${lastActivityDesc}); ${agent.totals.apiCalls} of ${maxIterations} model calls made`;
}

async function drive({ agent, facts }: ChildRun, signal: AbortSignal, watch: ChildWatch): Promise<TurnOutcome> {
  let outcome: TurnOutcome | null = null;
  for await (const event of agent.run({ text: facts.task.goal, from: "synthetic" }, { signal })) {
    watch.follow(event);
    if (event.type === "done") outcome = event.outcome;
    // Nobody is there to answer; what asks gets its refusing answer from the loop.
  }
  if (outcome === null) throw new Error("the child's turn ended without a result");
  return outcome;
}

/** Turns what a child does into events of its parent's stream. */
class ChildWatch {
  readonly trace: ChildReport["tool_trace"][number][] = [];
  readonly #run: ChildRun;
  #tools: string[] = [];
  #thought = false;
  #signs = 0;

  constructor(run: ChildRun) {
    this.#run = run;
  }

  say(phase: SubagentEvent["phase"], more: Partial<SubagentEvent> = {}): void {
    const { facts, call } = this.#run;
    const { task, ...ids } = facts;
    const text = more.text === undefined ? {} : { text: oneLine(more.text) };
    call.emit({ type: "subagent", phase, ...ids, goal: oneLine(task.goal), ...more, ...text });
  }

  follow(event: AgentEvent): void {
    if (!isHeartbeat(event)) this.#signs++;
    switch (event.type) {
      case "subagent": {
        const { sessionId: _session, turn: _turn, seq: _seq, ...body } = event;
        this.#run.call.emit(body);
        return;
      }
      case "step":
        this.#thought = false;
        return;
      case "thinking":
        if (!this.#thought) this.say("thinking");
        this.#thought = true;
        return;
      case "text_end":
        if (event.kind === "interim" && event.text.trim() !== "") this.say("thinking", { text: event.text });
        return;
      case "tool_start":
        this.say("tool", { call: event.call, text: `${event.call.name} ${event.call.preview}` });
        return;
      case "tool_end":
        return this.#finishTool(event);
    }
  }

  /** The parent lives as long as its children get on; one that hangs no longer vouches for it. */
  async beat(signal: AbortSignal): Promise<void> {
    const { clock, agent, call } = this.#run;
    let seen = -1;
    let still = 0;
    for (;;) {
      await clock.sleep(HEARTBEAT_MS, signal);
      still = seen === this.#signs ? still + 1 : 0;
      seen = this.#signs;
      if (still < (agent.activity().currentTool === null ? STALE.idle : STALE.inTool)) call.progress();
    }
  }

  #finishTool(event: Extract<AgentEvent, { type: "tool_end" }>): void {
    this.#run.onTool?.(event);
    this.trace.push({
      tool: event.call.name,
      args_bytes: Buffer.byteLength(JSON.stringify(event.call.args)),
      result_bytes: Buffer.byteLength(event.result),
      status: event.failed ? "error" : "ok",
    });
    this.#tools.push(event.call.name);
    if (this.#tools.length < TOOLS_PER_PROGRESS) return;
    this.say("progress", { text: `${this.trace.length} tool calls: ${this.#tools.join(", ")}` });
    this.#tools = [];
  }
}

/** Says that somebody waits, not that anything got on. */
const isHeartbeat = (event: AgentEvent) =>
  (event.type === "status" && event.kind === "heartbeat") ||
  (event.type === "tool_progress" && event.text === undefined);

const oneLine = (text: string) => {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 200 ? `${line.slice(0, 199)}…`.toWellFormed() : line;
};

const ignore = () => undefined;
