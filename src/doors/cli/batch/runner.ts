// Runs the prompts of a dataset side by side and keeps what comes of them.

import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { AgentEvent, TurnOutcome } from "../../../agent/events.ts";
import { openAgent } from "../../../agent/open.ts";
import { openGate } from "../../../agent/open-model.ts";
import { hasReasoning, toTrajectory } from "../../../agent/trajectory.ts";
import type { OpenHome } from "../../../home/open.ts";
import type { Clock } from "../../../kit/clock.ts";
import { messageOf, UserError } from "../../../kit/errors.ts";
import { plural } from "../../../kit/formats.ts";
import type { ModelGate } from "../../../llm/gate.ts";
import { RUNS_HERE } from "../../../sandbox/open.ts";
import type { SessionStore } from "../../../sessions/store.ts";
import {
  type DatasetItem,
  RunFolder,
  readDataset,
  reasoningStatsOf,
  type Sample,
  type Statistics,
  toolStatsOf,
} from "./run-folder.ts";

interface BatchRequest {
  readonly datasetFile: string;
  readonly runName: string;
  /** Where the run's folder is. */
  readonly dir: string;
  readonly batchSize: number;
  readonly distribution: string;
  readonly model?: string | undefined;
  readonly maxTurns: number;
  readonly workers: number;
  readonly resume: boolean;
  readonly maxSamples?: number | undefined;
}

interface BatchPorts {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly store: SessionStore;
  readonly cwd: string;
  readonly signal: AbortSignal;
  /** Progress, one line each. */
  say(line: string): void;
  onEvent?(index: number, event: AgentEvent): void;
}

interface BatchResult {
  readonly statistics: Statistics;
  readonly interrupted: boolean;
  /** Prompts that are still to be done. */
  readonly left: number;
}

export async function runBatch(request: BatchRequest, ports: BatchPorts): Promise<BatchResult> {
  const distribution = distributionNamed(request.distribution);
  const { items: all, corrupt } = await readDataset(request.datasetFile);
  if (corrupt > 0) ports.say(`${plural(corrupt, "line")} of the dataset without a readable prompt skipped.`);
  const items = all.slice(0, request.maxSamples ?? all.length);
  if (items.length === 0) throw new UserError(`The dataset ${request.datasetFile} contains no prompts.`);
  const folder = new RunFolder(request.dir, request.runName, () => ports.clock.now());
  if (!request.resume && (await folder.hasRun())) {
    throw new UserError(
      `A run named "${request.runName}" already exists. Use --resume to continue it, or another --run_name.`,
    );
  }
  await folder.load();
  if (folder.corruptLines > 0) ports.say(`${plural(folder.corruptLines, "damaged line")} of the earlier run skipped.`);
  const todo = without(items, folder.doneByText());
  if (request.resume) ports.say(`${items.length - todo.length} of ${items.length} prompts are already done.`);

  const began = ports.clock.now();
  const run = { request, ports, folder, distribution, items, todo };
  const failed = await work(run);
  const statistics = await folder.finish({
    failed,
    total: items.length,
    seconds: (ports.clock.now() - began) / 1000,
  });
  const left = without(items, folder.doneByText()).length;
  return { statistics, interrupted: ports.signal.aborted, left };
}

interface Run {
  readonly request: BatchRequest;
  readonly ports: BatchPorts;
  readonly folder: RunFolder;
  readonly distribution: Readonly<Record<string, number>>;
  readonly items: readonly DatasetItem[];
  readonly todo: readonly DatasetItem[];
}

/** Resolves to how many prompts failed. */
async function work({ request, ports, folder, distribution, items, todo }: Run): Promise<number> {
  const { clock, signal, home, store, cwd } = ports;
  const gate = openGate(home, store, clock, (message) => ports.say(message));
  const waiting = [...todo];
  const shown = new Set<string>();
  const notify = (note: string) => {
    if (!shown.has(note)) ports.say(note);
    shown.add(note);
  };
  const started = clock.now();
  let failed = 0;
  let done = items.length - todo.length;
  const worker = async () => {
    for (let item = waiting.shift(); item && !signal.aborted; item = waiting.shift()) {
      const { index, prompt } = item;
      const began = clock.now();
      const result = await runPrompt(item, drawToolsets(distribution, clock), {
        ...{ home, clock, store, gate, cwd, signal, model: request.model, maxTurns: request.maxTurns },
        onNote: notify,
        jobId: `batch:${request.runName}:${index}:${started}`,
        onEvent: (event) => ports.onEvent?.(index, event),
      });
      if (result.type === "interrupted") return;
      if (result.type === "sample") await folder.keep(Math.floor(index / request.batchSize), result.sample);
      if (result.type === "discarded") await folder.discard(index, prompt);
      if (result.type === "failed") {
        failed++;
        if (result.sample) await folder.keepFailure({ ...result.sample, error: result.error });
        // The daily cap is reached: every further prompt would fail too.
        if (result.dayIsSpent) waiting.length = 0;
      } else done++;
      const seconds = ((clock.now() - began) / 1000).toFixed(1);
      ports.say(`[${done}/${items.length}] ${WORDS[result.type]}${why(result)}  ${seconds}s  ${oneLine(prompt)}`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(request.workers, todo.length) }, worker));
  return failed;
}

const WORDS = { sample: "✓", discarded: "– no reasoning, discarded", failed: "✗" } as const;

const why = (result: { readonly type: string; readonly error?: string }) =>
  result.error === undefined ? "" : ` ${oneLine(result.error, 400)}`;

/** What is still to be done: a prompt that stands in the dataset several times is done as often. */
function without(items: readonly DatasetItem[], done: Map<string, number>): readonly DatasetItem[] {
  return items.filter(({ prompt }) => {
    const times = done.get(prompt) ?? 0;
    if (times > 0) done.set(prompt, times - 1);
    return times === 0;
  });
}

function oneLine(text: string, most = 100): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…`.toWellFormed() : line;
}

// One prompt of a batch: an agent of its own, unattended, without memory and project files; what it did becomes a sample.

interface PromptRun {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly store: SessionStore;
  readonly gate?: ModelGate;
  readonly cwd: string;
  readonly model?: string | undefined;
  readonly maxTurns: number;
  readonly jobId: string;
  readonly signal: AbortSignal;
  onEvent?(event: AgentEvent): void;
  /** What a user should know about the agents of this run, such as that no model is configured. */
  onNote?(note: string): void;
}

type PromptResult =
  | { readonly type: "sample"; readonly sample: Sample }
  | { readonly type: "discarded" }
  | { readonly type: "interrupted" }
  | { readonly type: "failed"; readonly error: string; readonly sample: Sample | null; readonly dayIsSpent: boolean };

async function runPrompt(item: DatasetItem, toolsets: readonly string[], run: PromptRun): Promise<PromptResult> {
  try {
    return await play(item, toolsets, run);
  } catch (error) {
    if (run.signal.aborted) return { type: "interrupted" };
    return {
      type: "failed",
      error: messageOf(error),
      sample: null,
      dayIsSpent: false,
    };
  }
}

async function play(item: DatasetItem, toolsets: readonly string[], run: PromptRun): Promise<PromptResult> {
  const { clock, signal } = run;
  const home = item.image ? inContainer(run.home, item.image) : run.home;
  const conversation = await openAgent({
    home,
    clock,
    store: async () => run.store,
    cwd: await folderOf(item, home, run.cwd),
    platform: "cli",
    source: "tool",
    interactive: false,
    model: run.model,
    toolsets,
    maxTurns: run.maxTurns,
    ignoreRules: true,
    start: {
      origin: "foreground",
      jobId: run.jobId,
      skills: true,
      gate: run.gate,
    },
  });
  try {
    for (const note of conversation.notes) run.onNote?.(note);
    let outcome: TurnOutcome | null = null;
    for await (const event of conversation.agent.run({ text: item.prompt, from: "person" }, { signal })) {
      run.onEvent?.(event);
      if (event.type === "done") outcome = event.outcome;
    }
    if (outcome === null) throw new Error("the turn ended without a result");
    if (outcome.interrupted) return { type: "interrupted" };
    const sample: Sample = {
      prompt_index: item.index,
      conversations: toTrajectory(outcome.messages, item.prompt, conversation.definitions),
      timestamp: new Date(clock.now()).toISOString(),
      model: outcome.model,
      completed: outcome.completed,
      partial: outcome.partial,
      api_calls: outcome.apiCalls,
      toolsets_used: toolsets,
      tool_stats: toolStatsOf(outcome.messages),
      reasoning_stats: reasoningStatsOf(outcome.messages),
    };
    if (outcome.failed) {
      const error = outcome.finalText ?? outcome.error ?? "no answer";
      const dayIsSpent = outcome.exitReason === "budget_cap" && error.includes("budget.day");
      return { type: "failed", error, sample, dayIsSpent };
    }
    return hasReasoning(outcome.messages) ? { type: "sample", sample } : { type: "discarded" };
  } finally {
    await conversation.close("cli_close");
  }
}

/** On this machine the folder must be there: a shell without one would run in the nearest that is. */
async function folderOf(item: DatasetItem, home: OpenHome, fallback: string): Promise<string> {
  if (item.cwd === undefined) return fallback;
  if (!RUNS_HERE.has(home.config().terminal.backend)) return item.cwd;
  const folder = resolve(fallback, item.cwd);
  const found = await stat(folder).catch(() => null);
  if (!found?.isDirectory()) throw new UserError(`The cwd of this prompt is not a folder: ${folder}.`);
  return folder;
}

function inContainer(home: OpenHome, image: string): OpenHome {
  return Object.assign(Object.create(home) as OpenHome, {
    config: () => {
      const config = home.config();
      return { ...config, terminal: { ...config.terminal, backend: "docker" as const, docker_image: image } };
    },
  });
}

// Which toolsets a prompt gets: each is drawn by its own percentage, so that the data shows agents with different tools.

/** Toolset -> percent. */
type Distribution = Readonly<Record<string, number>>;

export const DISTRIBUTIONS: Readonly<Record<string, Distribution>> = {
  default: {
    web: 100,
    browser: 100,
    vision: 100,
    terminal: 100,
    file: 100,
    code_execution: 100,
    skills: 100,
    todo: 100,
  },
  research: { web: 90, browser: 70, vision: 50, terminal: 10, file: 40 },
  development: { terminal: 90, file: 90, code_execution: 60, web: 40, todo: 60, vision: 20 },
  balanced: { web: 50, browser: 50, vision: 50, terminal: 50, file: 50, code_execution: 50, todo: 50 },
  minimal: { web: 100 },
  terminal_only: { terminal: 100, file: 100 },
  safe: { web: 80, browser: 70, vision: 60 },
};

export function distributionNamed(name: string): Distribution {
  const found = Object.hasOwn(DISTRIBUTIONS, name) ? DISTRIBUTIONS[name] : undefined;
  if (found) return found;
  throw new UserError(`There is no distribution "${name}". There are: ${Object.keys(DISTRIBUTIONS).join(", ")}.`);
}

/** At least one: when nothing was drawn, the likeliest. */
export function drawToolsets(distribution: Distribution, clock: Pick<Clock, "random">): readonly string[] {
  const entries = Object.entries(distribution);
  const drawn = entries.filter(([, percent]) => clock.random() * 100 < percent).map(([name]) => name);
  if (drawn.length > 0) return drawn;
  const [likeliest] = entries.toSorted(([, one], [, other]) => other - one);
  return likeliest ? [likeliest[0]] : [];
}
