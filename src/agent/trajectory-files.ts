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

  /** Nothing waits for it, and no turn fails for it. */
  turnEnded(outcome: TurnOutcome): void {
    this.#writing = this.#writing.then(() => this.#write(outcome)).catch(this.#place.onTrouble);
  }

  /** A turn without a finished answer goes into a file of its own. */
  async #write({ messages, model, completed }: TurnOutcome): Promise<void> {
    const { dir, clock, definitions, redact } = this.#place;
    const first = messages.find(({ role }) => role === "user");
    if (!first) return;
    const said = toTrajectory(messages, textOf(first.content), definitions());
    const line: TrajectoryLine = {
      conversations: said.map(({ from, value }) => ({ from, value: redact(value) })),
      timestamp: new Date(clock.now()).toISOString(),
      model,
      completed,
    };
    const path = join(dir, completed ? "trajectory_samples.jsonl" : "failed_trajectories.jsonl");
    await appendFile(path, `${JSON.stringify(line)}\n`, { mode: 0o600 });
  }

  settled(): Promise<void> {
    return this.#writing;
  }
}
