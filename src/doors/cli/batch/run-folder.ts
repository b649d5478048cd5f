// The files of one run. A sample's line is on the disk before the checkpoint says it is done, so a run that was killed at any point goes on
// with nothing done twice and nothing lost.
import { mkdir, open, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { isFailedResult } from "../../../agent/tool-runner.ts";
import type { TrajectoryLine } from "../../../agent/trajectory.ts";
import { messageOf, UserError } from "../../../kit/errors.ts";
import { writeFileAtomic } from "../../../kit/files.ts";
import { type HistoryMessage, textOf } from "../../../llm/messages.ts";

export interface Sample extends TrajectoryLine {
  readonly prompt_index: number;
  readonly partial: boolean;
  readonly api_calls: number;
  readonly toolsets_used: readonly string[];
  readonly tool_stats: Readonly<Record<string, ToolStats>>;
  readonly reasoning_stats: ReasoningStats;
}

/** A prompt that needs no further run, by its text and the line it stood on. */
interface DonePrompt {
  readonly index: number;
  readonly prompt: string;
}

interface Checkpoint {
  readonly run_name: string;
  readonly completed_prompts: readonly DonePrompt[];
  /** Done, but without any reasoning: not worth keeping. */
  readonly discarded_prompts: readonly DonePrompt[];
  readonly last_updated: string;
}

export class RunFolder {
  readonly dir: string;
  readonly #runName: string;
  readonly #now: () => number;
  #completed: DonePrompt[] = [];
  #discarded: DonePrompt[] = [];
  /** Files whose last line is known to be whole. */
  readonly #sound = new Set<string>();
  #writing: Promise<void> = Promise.resolve();
  #corrupt = 0;

  constructor(dir: string, runName: string, now: () => number) {
    this.dir = dir;
    this.#runName = runName;
    this.#now = now;
  }

  get corruptLines(): number {
    return this.#corrupt;
  }

  get discarded(): number {
    return this.#discarded.length;
  }

  get completed(): number {
    return this.#completed.length;
  }

  /** False when there is no earlier run here. */
  async hasRun(): Promise<boolean> {
    return (await filesIn(this.dir)).some((name) => name === "checkpoint.json" || /^batch_\d+\.jsonl$/.test(name));
  }

  /** Finds out what an earlier run has done. Its sample lines are the truth; the checkpoint adds what was discarded. */
  async load(): Promise<void> {
    await mkdir(this.dir, { recursive: true });
    const { samples, corrupt } = await this.#samples();
    this.#corrupt = corrupt;
    this.#completed = samples.map((sample) => ({ index: sample.prompt_index, prompt: promptOf(sample) }));
    const checkpoint = await readCheckpoint(join(this.dir, "checkpoint.json"));
    this.#discarded = checkpoint?.discarded_prompts.filter(isDone) ?? [];
  }

  /** How often each prompt is done already; the order of the dataset does not matter. */
  doneByText(): Map<string, number> {
    const done = new Map<string, number>();
    for (const { prompt } of [...this.#completed, ...this.#discarded]) done.set(prompt, (done.get(prompt) ?? 0) + 1);
    return done;
  }

  /** Resolves when the sample is safe on the disk. */
  keep(batch: number, sample: Sample): Promise<void> {
    return this.#inOrder(async () => {
      await this.#append(`batch_${batch}.jsonl`, sample);
      this.#completed.push({ index: sample.prompt_index, prompt: promptOf(sample) });
      await this.#saveCheckpoint();
    });
  }

  discard(index: number, prompt: string): Promise<void> {
    return this.#inOrder(async () => {
      this.#discarded.push({ index, prompt });
      await this.#saveCheckpoint();
    });
  }

  /** For whoever looks into it; the prompt stays to be done. */
  keepFailure(line: TrajectoryLine & { readonly prompt_index: number; readonly error: string }): Promise<void> {
    return this.#inOrder(() => this.#append("failed_trajectories.jsonl", line));
  }

  /** All samples as one file, by their place in the dataset, and the numbers of the whole run. */
  async finish(facts: {
    readonly failed: number;
    readonly total: number;
    readonly seconds: number;
  }): Promise<Statistics> {
    await this.#writing;
    const { samples, corrupt } = await this.#samples();
    const sorted = samples.toSorted((one, other) => one.prompt_index - other.prompt_index);
    await writeFileAtomic(
      join(this.dir, "trajectories.jsonl"),
      sorted.map((sample) => `${JSON.stringify(sample)}\n`).join(""),
    );
    const statistics = this.#statistics(sorted, corrupt, facts);
    await writeFileAtomic(join(this.dir, "statistics.json"), `${JSON.stringify(statistics, null, 2)}\n`);
    return statistics;
  }

  #statistics(samples: readonly Sample[], corrupt: number, facts: Parameters<RunFolder["finish"]>[0]): Statistics {
    const tools: Record<string, ToolStats> = {};
    let turns = 0;
    let thinking = 0;
    for (const sample of samples) {
      for (const [name, stats] of Object.entries(sample.tool_stats)) tools[name] = addStats(tools[name], stats);
      turns += sample.reasoning_stats.total_assistant_turns;
      thinking += sample.reasoning_stats.turns_with_reasoning;
    }
    return {
      run_name: this.#runName,
      total_prompts: facts.total,
      samples: samples.length,
      completed: samples.filter((sample) => sample.completed).length,
      discarded_without_reasoning: this.#discarded.length,
      failed: facts.failed,
      corrupt_lines: corrupt,
      duration_seconds: Math.round(facts.seconds * 100) / 100,
      tool_statistics: Object.fromEntries(
        Object.entries(tools)
          .sort(([one], [other]) => (one < other ? -1 : 1))
          .map(([name, stats]) => [name, { ...stats, success_rate: rate(stats.success, stats.count) }]),
      ),
      reasoning_statistics: {
        total_assistant_turns: turns,
        turns_with_reasoning: thinking,
        coverage: rate(thinking, turns),
      },
    };
  }

  async #samples(): Promise<{ samples: readonly Sample[]; corrupt: number }> {
    const names = (await filesIn(this.dir)).filter((name) => /^batch_\d+\.jsonl$/.test(name)).sort();
    const samples: Sample[] = [];
    let corrupt = 0;
    for (const name of names) {
      for (const line of (await readFile(join(this.dir, name), "utf8")).split("\n")) {
        if (line.trim() === "") continue;
        const value = parseLine(line);
        if (isSample(value)) samples.push(value);
        else corrupt++;
      }
    }
    return { samples, corrupt };
  }

  async #append(name: string, value: object): Promise<void> {
    const file = await open(join(this.dir, name), "a+");
    try {
      const whole = this.#sound.has(name) || (await endsWithNewline(file));
      // What a killed run left half-written stays a line of its own, so that it spoils no other.
      await file.appendFile(`${whole ? "" : "\n"}${JSON.stringify(value)}\n`);
      await file.datasync();
      this.#sound.add(name);
    } finally {
      await file.close();
    }
  }

  async #saveCheckpoint(): Promise<void> {
    const checkpoint: Checkpoint = {
      run_name: this.#runName,
      completed_prompts: this.#completed,
      discarded_prompts: this.#discarded,
      last_updated: new Date(this.#now()).toISOString(),
    };
    await writeFileAtomic(join(this.dir, "checkpoint.json"), `${JSON.stringify(checkpoint)}\n`);
  }

  #inOrder(write: () => Promise<void>): Promise<void> {
    const next = this.#writing.then(write);
    this.#writing = next.catch(() => undefined); // whoever asked for the write hears of it
    return next;
  }
}

export interface Statistics {
  readonly run_name: string;
  readonly total_prompts: number;
  readonly samples: number;
  readonly completed: number;
  readonly discarded_without_reasoning: number;
  readonly failed: number;
  readonly corrupt_lines: number;
  readonly duration_seconds: number;
  readonly tool_statistics: Readonly<Record<string, ToolStats & { readonly success_rate: number | null }>>;
  readonly reasoning_statistics: ReasoningStats & { readonly coverage: number | null };
}

const rate = (part: number, whole: number) => (whole === 0 ? null : Math.round((part / whole) * 10_000) / 10_000);

const promptOf = (sample: Sample) => sample.conversations.find((entry) => entry.from === "human")?.value ?? "";

function isSample(
  value: Readonly<Record<string, unknown>> | null,
): value is Readonly<Record<string, unknown>> & Sample {
  return (
    value !== null &&
    Array.isArray(value.conversations) &&
    typeof value.prompt_index === "number" &&
    typeof value.tool_stats === "object" &&
    typeof value.reasoning_stats === "object"
  );
}

const isDone = (value: unknown): value is DonePrompt =>
  typeof value === "object" && value !== null && "prompt" in value && typeof value.prompt === "string";

async function readCheckpoint(path: string): Promise<Checkpoint | null> {
  const text = await readFile(path, "utf8").catch(() => null); // there is none yet
  const value = text === null ? null : parseLine(text);
  return Array.isArray(value?.discarded_prompts) ? (value as unknown as Checkpoint) : null; // lists are checked entry by entry
}

async function filesIn(dir: string): Promise<readonly string[]> {
  try {
    return await readdir(dir);
  } catch {
    return []; // not made yet
  }
}

async function endsWithNewline(file: Awaited<ReturnType<typeof open>>): Promise<boolean> {
  const { size } = await file.stat();
  if (size === 0) return true;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === 0x0a;
}

// The prompts of a batch: one JSON object per line.

export interface DatasetItem {
  /** Number of its line among the readable ones, from 0. */
  readonly index: number;
  readonly prompt: string;
  /** Commands of this prompt run in a container of this image. */
  readonly image?: string;
  readonly cwd?: string;
}

interface Dataset {
  readonly items: readonly DatasetItem[];
  /** Lines that hold no prompt, or a `cwd` or image that is not a text. */
  readonly corrupt: number;
}

export async function readDataset(path: string): Promise<Dataset> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new UserError(
      `The dataset ${path} cannot be read: ${messageOf(error)}. --dataset_file takes a file with one {"prompt": "..."} per line.`,
    );
  }
  const items: DatasetItem[] = [];
  let corrupt = 0;
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const item = parseItem(line, items.length);
    if (item) items.push(item);
    else corrupt++;
  }
  return { items, corrupt };
}

function parseItem(line: string, index: number): DatasetItem | null {
  const value = parseLine(line);
  const prompt = value?.prompt;
  if (typeof prompt !== "string" || prompt.trim() === "") return null;
  // An unreadable image or folder must not fall back to the default one.
  if (![value?.image, value?.docker_image, value?.cwd].every(isTextOrAbsent)) return null;
  const image = textIn(value?.image) ?? textIn(value?.docker_image);
  const cwd = textIn(value?.cwd);
  return { index, prompt, ...(image ? { image } : {}), ...(cwd ? { cwd } : {}) };
}

/** One line of a JSONL file; null when it is damaged. */
function parseLine(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>) // read field by field
      : null;
  } catch {
    return null; // counted by whoever reads the file
  }
}

const textIn = (value: unknown) => (typeof value === "string" && value.trim() !== "" ? value.trim() : undefined);
const isTextOrAbsent = (value: unknown) => value === undefined || value === null || typeof value === "string";

// What the tools of a run were used for, and how often the models showed their reasoning.

interface ToolStats {
  readonly count: number;
  readonly success: number;
  readonly failure: number;
}

interface ReasoningStats {
  readonly total_assistant_turns: number;
  readonly turns_with_reasoning: number;
}

export function toolStatsOf(messages: readonly HistoryMessage[]): Readonly<Record<string, ToolStats>> {
  const names = new Map<string, string>();
  const stats: Record<string, ToolStats> = {};
  for (const message of messages) {
    if (message.role === "assistant")
      for (const call of message.tool_calls ?? []) names.set(call.id, call.function.name);
    if (message.role !== "tool") continue;
    const name = message.name ?? message.tool_name ?? names.get(message.tool_call_id) ?? "unknown";
    const failed = isFailedResult(name, textOf(message.content));
    const one = { count: 1, success: failed ? 0 : 1, failure: failed ? 1 : 0 };
    stats[name] = addStats(stats[name], one);
  }
  return stats;
}

function addStats(one: ToolStats | undefined, other: ToolStats): ToolStats {
  if (!one) return other;
  return {
    count: one.count + other.count,
    success: one.success + other.success,
    failure: one.failure + other.failure,
  };
}

export function reasoningStatsOf(messages: readonly HistoryMessage[]): ReasoningStats {
  const turns = messages.filter((message) => message.role === "assistant");
  const thinking = turns.filter(
    ({ reasoning, reasoning_content, content }) =>
      (reasoning ?? reasoning_content ?? "").trim() !== "" || /<(?:think|REASONING_SCRATCHPAD)>/.test(content ?? ""),
  );
  return { total_assistant_turns: turns.length, turns_with_reasoning: thinking.length };
}
