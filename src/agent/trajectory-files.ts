// Keeps what a conversation did as training data beside it, for those who want it: one line per turn, the whole talk up to there.
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../kit/clock.ts";
import { textOf } from "../llm/messages.ts";
import type { ToolDefinition } from "../llm/wire.ts";
import type { TurnOutcome } from "./events.ts";
import { type TrajectoryLine, toTrajectory } from "./trajectory.ts";

export interface TrajectoryPlace {
  /** The folder of the files. */
  readonly dir: string;
  readonly clock: Clock;
  /** The tool list as it is sent. */
  definitions(): readonly ToolDefinition[];
  /** Masks secrets for what is kept. */
  redact(text: string): string;
  onTrouble(error: unknown): void;
}

export class TrajectoryFiles {
  readonly #place: TrajectoryPlace;
  #writing: Promise<void> = Promise.resolve();

  constructor(place: TrajectoryPlace) {
    this.#place = place;
  }

  /** Nothing waits for it; a turn without a finished answer goes into a file of its own. */
  turnEnded({ messages, model, completed }: TurnOutcome): void {
    const { dir, clock, definitions, redact, onTrouble } = this.#place;
    const first = messages.find(({ role }) => role === "user");
    if (!first) return;
    const line: TrajectoryLine = {
      conversations: toTrajectory(messages, textOf(first.content), definitions()).map(({ from, value }) => ({
        from,
        value: redact(value),
      })),
      timestamp: new Date(clock.now()).toISOString(),
      model,
      completed,
    };
    const path = join(dir, completed ? "trajectory_samples.jsonl" : "failed_trajectories.jsonl");
    this.#writing = this.#writing
      .then(() => appendFile(path, `${JSON.stringify(line)}\n`, { mode: 0o600 }))
      .catch(onTrouble);
  }

  settled(): Promise<void> {
    return this.#writing;
  }
}
