// Starts the children of one call, side by side, and puts their reports together in the order of the tasks.

import { realpath } from "node:fs/promises";
import type { Config } from "../../home/config/schema.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import type { ModelSpec } from "../../llm/auxiliary/contract.ts";
import { borrowKey } from "../../llm/keys/ring.ts";
import { legalMode } from "../../llm/providers/hosts.ts";
import type { Environment } from "../../sandbox/environment.ts";
import { fileActivity } from "../../tools/files/workspace.ts";
import { pathsOfBatch } from "../../tools/toolset/batch-plan.ts";
import type { ChildReport, ChildrenAnswer, ChildTask } from "../../tools/toolset/context.ts";
import { registry } from "../../tools/toolset/registry.ts";
import { environmentResultStore, limitResult } from "../../tools/toolset/results.ts";
import type { SessionTools } from "../../tools/toolset/session-tools.ts";
import { hasTools, resolveToolset } from "../../tools/toolset/toolsets.ts";
import type { Agent } from "../agent.ts";
import type { ModelChoice, ParentCall } from "../assembly.ts";
import type { StartRequest } from "../open-request.ts";
import type { OpenAgent } from "../opened.ts";
import { childTable } from "./children.ts";
import { runChild } from "./run-child.ts";

const SUMMARY_CHARS = 12_000;
const DEEPEST = 3;

/** Who starts children, and with what. */
export interface Parent {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly agent: Agent;
  readonly environment: Environment;
  readonly tools: Pick<SessionTools, "names" | "state">;
  /** 0 for a conversation that a person opened. */
  readonly depth: number;
  readonly subagentId: string | null;
  /** Called for every child that is done. */
  onReport?(task: string, summary: string, childSessionId: string): void;
  /** Opens a conversation like this one, in `cwd`, for a child. */
  open(start: StartRequest, cwd: string): Promise<OpenAgent>;
}

export async function spawnChildren(
  parent: Parent,
  tasks: readonly ChildTask[],
  call: ParentCall,
): Promise<ChildrenAnswer> {
  const settings = parent.home.config().delegation;
  const deepest = Math.min(DEEPEST, Math.max(1, settings.max_spawn_depth));
  const table = parent.tools.state.of(childTable);
  if (parent.depth >= deepest)
    return { error: `This agent stands at depth ${parent.depth}; at most ${deepest} (delegation.max_spawn_depth).` };
  if (table.paused) return { error: "Starting sub-agents is paused by the user. Do the work yourself, or ask." };
  let model: ModelChoice;
  try {
    model = await childModel(parent.home, parent.agent.model, parent.clock);
  } catch (error) {
    return { error: `The model for sub-agents (delegation.* in config.yaml) cannot be used: ${messageOf(error)}` };
  }
  const began = parent.clock.now();
  const changed = new Set<string>();
  const reports = await Promise.all(
    tasks.map((task, index) =>
      oneChild({ parent, task, index, count: tasks.length, model, levels: deepest - parent.depth - 1, changed }, call),
    ),
  );
  const note = await staleReads(changed, parent.tools);
  return {
    results: reports,
    total_duration_seconds: Math.round((parent.clock.now() - began) / 10) / 100,
    ...(note ? { note } : {}),
  };
}

interface Birth {
  readonly parent: Parent;
  readonly task: ChildTask;
  readonly index: number;
  readonly count: number;
  readonly model: ModelChoice;
  /** How many levels of children it may have below it. */
  readonly levels: number;
  /** Files that children changed. */
  readonly changed: Set<string>;
}

/** Never rejects: a child that cannot even begin is a report too. */
async function oneChild(birth: Birth, call: ParentCall): Promise<ChildReport> {
  const { parent, task, index, count, model } = birth;
  const { clock, tools } = parent;
  const settings = parent.home.config().delegation;
  const id = `sa-${index}-${hex(clock)}`;
  const facts = {
    id,
    parentId: parent.subagentId,
    depth: parent.depth + 1,
    taskIndex: index,
    taskCount: count,
    task,
    model: model.target.model,
  };
  const { task: _task, ...ids } = facts;
  call.emit({ type: "subagent", phase: "spawn_requested", ...ids, goal: task.goal.trim() });
  const table = tools.state.of(childTable);
  const began = clock.now();
  let release: (() => void) | null = null;
  let reborrowKey: (() => void) | null = null;
  try {
    release = await table.takeSlot(Math.max(1, settings.max_concurrent_children), call.signal);
    const { target, release: giveBack } = await borrowKey(parent.home, clock, model.target);
    reborrowKey = giveBack;
    const { child, unknown } = await openChild({ ...birth, model: { ...model, target } }, id, call);
    const stop = new AbortController();
    const gone = Promise.withResolvers<void>();
    table.add({
      id,
      goal: task.goal,
      model: model.target.model,
      get sessionId() {
        return child.agent.sessionId;
      },
      startedAt: began,
      interrupt: () => stop.abort(),
      gone: gone.promise,
    });
    const finished = await runChild({
      agent: child.agent,
      facts,
      call,
      stop: stop.signal,
      clock,
      settings,
      onTool: ({ call: { name, args }, failed }) => {
        if (failed || (name !== "write_file" && name !== "patch")) return;
        const planned = [{ name, arguments: JSON.stringify(args) }];
        for (const path of pathsOfBatch(planned, parent.environment.cwd, { home: parent.environment.home }))
          birth.changed.add(path);
      },
    });
    const read = child.agent.foreignText.sources.filter((from) => !call.foreign?.sources.includes(from));
    await call.foreign?.add(read.map((from) => ({ call: call.callId, from: `sub-agent: ${from}` })));
    const { summary, error: trouble } = finished.report;
    parent.onReport?.(task.goal, summary ?? trouble ?? "", child.agent.sessionId);
    void finished.over
      .finally(giveBack)
      .then(() => child.close("cli_close"))
      .catch((error) => parent.home.log.warn(`sub-agent ${id} could not be put away`, error))
      .finally(gone.resolve);
    return await shorten(withUnknown(finished.report, unknown), birth, call);
  } catch (error) {
    reborrowKey?.();
    const interrupted = call.signal.aborted;
    const report: ChildReport = {
      task_index: index,
      status: interrupted ? "interrupted" : "error",
      summary: null,
      api_calls: 0,
      duration_seconds: Math.round((clock.now() - began) / 10) / 100,
      model: model.target.model,
      exit_reason: interrupted ? "interrupted" : "error",
      tokens: { input: 0, output: 0 },
      tool_trace: [],
      error: interrupted ? "stopped before it began" : messageOf(error),
    };
    call.emit({
      ...{ type: "subagent", phase: "complete", ...ids, goal: task.goal.trim(), status: report.status },
      ...(report.error === undefined ? {} : { text: report.error }),
    });
    return report;
  } finally {
    release?.();
  }
}

async function openChild(birth: Birth, id: string, call: ParentCall) {
  const { parent, task, model, levels } = birth;
  const settings = parent.home.config().delegation;
  const mayDelegate = task.role === "orchestrator" && levels > 0 && settings.orchestrator_enabled;
  const { only, unknown } = childTools(parent.tools.names, task.toolsets, { mayDelegate, settings });
  const { cwd } = parent.environment;
  const start: StartRequest = {
    origin: "subagent",
    delegatedFrom: call.sessionId,
    task: "subagent",
    taskId: id,
    subagentId: id,
    model,
    only,
    depth: parent.depth + 1,
    ...(call.foreign && { foreign: call.foreign.sources }),
    systemMessage: childPrompt(task, {
      cwd,
      mayDelegate: mayDelegate ? { atOnce: settings.max_concurrent_children, levels } : null,
    }),
  };
  return { child: await parent.open(start, cwd), unknown };
}

function withUnknown(report: ChildReport, unknown: readonly string[]): ChildReport {
  if (unknown.length === 0) return report;
  const note = `unknown toolsets were left out: ${unknown.join(", ")}`;
  return { ...report, error: report.error === undefined ? note : `${report.error}; ${note}` };
}

/** A report that would fill the parent's window goes to a file, with its beginning left here. */
async function shorten(report: ChildReport, { parent, index }: Birth, call: ParentCall): Promise<ChildReport> {
  if (report.summary === null || report.summary.length <= SUMMARY_CHARS) return report;
  const store = environmentResultStore(parent.environment, call.sessionId);
  const summary = await limitResult(`${call.callId}_child${index}`, report.summary, SUMMARY_CHARS, store);
  return { ...report, summary };
}

/** The parent may still believe in what it read before. */
async function staleReads(changed: ReadonlySet<string>, { state }: Parent["tools"]): Promise<string | null> {
  const activity = state.of(fileActivity);
  const real = await Promise.all([...changed].map((path) => realpath(path).catch(() => path)));
  const read = real.filter((path) => activity.seen(path) !== undefined).sort();
  if (read.length === 0) return null;
  return `Sub-agents changed files you had read; read them again before you rely on them: ${read.join(", ")}`;
}

function hex(clock: Clock): string {
  return Math.floor(clock.random() * 2 ** 32)
    .toString(16)
    .padStart(8, "0");
}

// Which model a child talks to: what the settings name for sub-agents, else what the parent talks to now.

/** Throws `ProviderError` when the settings name something that cannot be asked; nothing else is taken in its place. */
async function childModel(home: OpenHome, parent: ModelChoice, clock: Clock): Promise<ModelChoice> {
  const settings = home.config().delegation;
  const { reasoning_effort: effort, fallback_providers: standIns } = settings;
  const { reasoning: inherited, ...rest } = parent;
  const reasoning = effort === "" ? inherited : reasoningOf(effort);
  const model: ModelChoice = {
    ...rest,
    ...(reasoning ? { reasoning } : {}),
    ...(standIns.length > 0 ? { fallbacks: standIns } : {}),
  };
  if (!settings.model && !settings.provider && !settings.base_url) return model;
  const { resolveSpec } = await import("../../llm/auxiliary/model-spec.ts");
  const target = await resolveSpec(home, specOf(settings, parent), clock);
  const { maxTokens: _cap, overrides: _own, ...general } = model;
  return { ...general, target };
}

function specOf(settings: Config["delegation"], { target }: ModelChoice): ModelSpec {
  const { model, provider, base_url: baseUrl, api_key: apiKey, api_mode } = settings;
  const apiMode = api_mode ? legalMode(api_mode) : undefined;
  if (!provider && !baseUrl) {
    const { provider: same, baseUrl: there, apiKey: key } = target;
    return { provider: same, model, baseUrl: there, apiKey: key, apiMode };
  }
  return {
    provider: provider || "custom",
    model: model || (provider === target.provider ? target.model : undefined),
    baseUrl: baseUrl || undefined,
    apiKey: apiKey || undefined,
    apiMode,
  };
}

function reasoningOf(effort: string): ModelChoice["reasoning"] {
  if (effort === "none") return { enabled: false };
  return { enabled: true, effort: effort as "medium" }; // an effort a provider does not know is its own to refuse
}

// What a child is given: its task, and that only its last words are read.

interface ChildSurroundings {
  readonly cwd: string;
  /** Children it may have at once; null when it may have none. */
  readonly mayDelegate: { readonly atOnce: number; readonly levels: number } | null;
}

function childPrompt(task: ChildTask, { cwd, mayDelegate }: ChildSurroundings): string {
  const context = task.context?.trim();
  return [
    "You are a focused worker that another agent started for one task. You see nothing of its conversation, and nobody answers questions: decide yourself, and say what you assumed.",
    `## Task\n${task.goal.trim()}`,
    ...(context ? [`## Context\n${context}`] : []),
    `## Workspace\n${cwd}`,
    ...(mayDelegate ? [orchestration(mayDelegate)] : []),
    "## Report\nWhen you are done, answer with a short report: what you did, what you found, which files you changed or made (full paths), and what went wrong or is left open. The agent that started you sees this answer and nothing else.",
  ].join("\n\n");
}

function orchestration({ atOnce, levels }: { readonly atOnce: number; readonly levels: number }): string {
  const deeper =
    levels > 1
      ? `They may delegate in turn, ${levels - 1} level${levels === 2 ? "" : "s"} deeper.`
      : "They cannot delegate in turn.";
  return `## Delegating\nYou may split the task and hand parts of it on with \`delegate_task\`, at most ${atOnce} at once. ${deeper} Put their reports together yourself.`;
}

// Which tools a child gets: never more than its parent has, and none that speak for the parent or to the user.

const NEVER = new Set(["clarify", "memory", "send_message", "cronjob"]);

interface ChildTools {
  readonly only: ReadonlySet<string>;
  /** Toolsets that were asked for and do not exist. */
  readonly unknown: readonly string[];
}

export function childTools(
  parent: ReadonlySet<string>,
  asked: readonly string[] | undefined,
  { mayDelegate, settings }: { readonly mayDelegate: boolean; readonly settings: Config["delegation"] },
): ChildTools {
  const names = (asked ?? []).map((name) => name.trim()).filter((name) => name !== "");
  const known = names.filter((name) => hasTools(name, registry));
  const chosen = known.length === 0 ? null : new Set(known.flatMap((name) => resolveToolset(name, registry)));
  const wanted = (name: string) => {
    if (NEVER.has(name)) return false;
    if (name === "delegate_task") return mayDelegate;
    const server = registry.get(name)?.toolset.startsWith("mcp-") === true;
    if (server && !settings.inherit_mcp_toolsets) return chosen?.has(name) ?? false;
    return chosen === null || server || chosen.has(name);
  };
  return {
    only: new Set([...parent].filter(wanted)),
    unknown: names.filter((name) => !hasTools(name, registry)),
  };
}
