// One prompt of a batch: an agent of its own, unattended, without memory and project files; what it did becomes a sample.
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { AgentEvent, TurnOutcome } from "../../../agent/events.ts";
import { openAgent } from "../../../agent/open.ts";
import { hasReasoning, toTrajectory } from "../../../agent/trajectory.ts";
import type { OpenHome } from "../../../home/open.ts";
import type { Clock } from "../../../kit/clock.ts";
import { UserError } from "../../../kit/errors.ts";
import type { ModelGate } from "../../../llm/gate.ts";
import type { SessionStore } from "../../../sessions/store.ts";
import type { DatasetItem } from "./dataset.ts";
import type { Sample } from "./run-folder.ts";
import { reasoningStatsOf, toolStatsOf } from "./tool-stats.ts";

export interface PromptPlace {
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

export type PromptResult =
  | { readonly type: "sample"; readonly sample: Sample }
  | { readonly type: "discarded" }
  | { readonly type: "interrupted" }
  | { readonly type: "failed"; readonly error: string; readonly sample: Sample | null; readonly dayIsSpent: boolean };

/** Never rejects. */
export async function runPrompt(
  item: DatasetItem,
  toolsets: readonly string[],
  place: PromptPlace,
): Promise<PromptResult> {
  try {
    return await play(item, toolsets, place);
  } catch (error) {
    if (place.signal.aborted) return { type: "interrupted" };
    return {
      type: "failed",
      error: error instanceof Error ? error.message : String(error),
      sample: null,
      dayIsSpent: false,
    };
  }
}

async function play(item: DatasetItem, toolsets: readonly string[], place: PromptPlace): Promise<PromptResult> {
  const { clock, signal } = place;
  const home = item.image ? inContainer(place.home, item.image) : place.home;
  const conversation = await openAgent({
    home,
    clock,
    store: async () => place.store,
    cwd: await folderOf(item, home, place.cwd),
    platform: "cli",
    source: "tool",
    interactive: false,
    model: place.model,
    toolsets,
    maxTurns: place.maxTurns,
    ignoreRules: true,
    start: {
      origin: "foreground",
      jobId: place.jobId,
      skills: true,
      ...(place.gate ? { gate: place.gate } : {}),
    },
  });
  try {
    for (const note of conversation.notes) place.onNote?.(note);
    let outcome: TurnOutcome | null = null;
    for await (const event of conversation.agent.run({ text: item.prompt, from: "person" }, { signal })) {
      place.onEvent?.(event);
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
      const error = outcome.finalText ?? outcome.error ?? "it gave no answer";
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
  if (!HERE.has(home.config().terminal.backend)) return item.cwd;
  const folder = resolve(fallback, item.cwd);
  const found = await stat(folder).catch(() => null);
  if (!found?.isDirectory()) throw new UserError(`The cwd of this prompt is not a folder: ${folder}.`);
  return folder;
}

const HERE: ReadonlySet<string> = new Set(["local", "auto", "bubblewrap"]);

function inContainer(home: OpenHome, image: string): OpenHome {
  return Object.assign(Object.create(home) as OpenHome, {
    config: () => {
      const config = home.config();
      return { ...config, terminal: { ...config.terminal, backend: "docker" as const, docker_image: image } };
    },
  });
}
