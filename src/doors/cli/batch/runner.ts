// Runs the prompts of a dataset side by side and keeps what comes of them.
import type { AgentEvent } from "../../../agent/events.ts";
import { openGate } from "../../../agent/open-gate.ts";
import type { OpenHome } from "../../../home/open.ts";
import type { Clock } from "../../../kit/clock.ts";
import { UserError } from "../../../kit/errors.ts";
import type { SessionStore } from "../../../sessions/store.ts";
import { type DatasetItem, readDataset } from "./dataset.ts";
import { distributionNamed, drawToolsets } from "./distributions.ts";
import { RunFolder, type Statistics } from "./run-folder.ts";
import { runPrompt } from "./run-prompt.ts";

export interface BatchWish {
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

export interface BatchPorts {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly store: SessionStore;
  readonly cwd: string;
  readonly signal: AbortSignal;
  /** A line for whoever watches. */
  say(line: string): void;
  onEvent?(index: number, event: AgentEvent): void;
}

export interface BatchResult {
  readonly statistics: Statistics;
  readonly interrupted: boolean;
  /** Prompts that are still to be done. */
  readonly left: number;
}

export async function runBatch(wish: BatchWish, ports: BatchPorts): Promise<BatchResult> {
  const distribution = distributionNamed(wish.distribution);
  const { items: all, corrupt } = await readDataset(wish.datasetFile);
  if (corrupt > 0)
    ports.say(`${corrupt} ${corrupt === 1 ? "line" : "lines"} of the dataset without a readable prompt skipped.`);
  const items = all.slice(0, wish.maxSamples ?? all.length);
  if (items.length === 0) throw new UserError(`The dataset ${wish.datasetFile} holds no prompts.`);
  const folder = new RunFolder(wish.dir, wish.runName, () => ports.clock.now());
  if (!wish.resume && (await folder.hasRun())) {
    throw new UserError(
      `A run called "${wish.runName}" is there already. --resume goes on with it; another --run_name starts a new one.`,
    );
  }
  await folder.load();
  if (folder.corruptLines > 0)
    ports.say(
      `${folder.corruptLines} damaged ${folder.corruptLines === 1 ? "line" : "lines"} of the earlier run skipped.`,
    );
  const todo = without(items, folder.doneByText());
  if (wish.resume) ports.say(`${items.length - todo.length} of ${items.length} prompts are done already.`);

  const began = ports.clock.now();
  const run = { wish, ports, folder, distribution, items, todo };
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
  readonly wish: BatchWish;
  readonly ports: BatchPorts;
  readonly folder: RunFolder;
  readonly distribution: Readonly<Record<string, number>>;
  readonly items: readonly DatasetItem[];
  readonly todo: readonly DatasetItem[];
}

/** Resolves to how many prompts failed. */
async function work({ wish, ports, folder, distribution, items, todo }: Run): Promise<number> {
  const { clock, signal, home, store, cwd } = ports;
  const gate = openGate(home, store, clock, (message) => ports.say(message));
  const waiting = [...todo];
  const told = new Set<string>();
  const tell = (note: string) => {
    if (!told.has(note)) ports.say(note);
    told.add(note);
  };
  const started = clock.now();
  let failed = 0;
  let done = items.length - todo.length;
  const worker = async () => {
    for (let item = waiting.shift(); item && !signal.aborted; item = waiting.shift()) {
      const { index, prompt } = item;
      const began = clock.now();
      const result = await runPrompt(item, drawToolsets(distribution, clock), {
        ...{ home, clock, store, gate, cwd, signal, model: wish.model, maxTurns: wish.maxTurns },
        onNote: tell,
        jobId: `batch:${wish.runName}:${index}:${started}`,
        ...(ports.onEvent ? { onEvent: (event: AgentEvent) => ports.onEvent?.(index, event) } : {}),
      });
      if (result.type === "interrupted") return;
      if (result.type === "sample") await folder.keep(Math.floor(index / wish.batchSize), result.sample);
      if (result.type === "discarded") await folder.discard(index, prompt);
      if (result.type === "failed") {
        failed++;
        if (result.sample) await folder.keepFailure({ ...result.sample, error: result.error });
        // Nothing leaves any more today; the rest would only fail one by one.
        if (result.dayIsSpent) waiting.length = 0;
      } else done++;
      const seconds = ((clock.now() - began) / 1000).toFixed(1);
      ports.say(`[${done}/${items.length}] ${WORDS[result.type]}${why(result)}  ${seconds}s  ${oneLine(prompt)}`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(wish.workers, todo.length) }, worker));
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
