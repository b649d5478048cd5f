// Prompts that run next to a conversation, each in an agent and a session of its own. Whoever shows conversations owns them.

import type { Clock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import { newSessionId } from "../sessions/session-id.ts";
import type { TurnOutcome } from "./events.ts";
import type { OpenRequest } from "./open-request.ts";
import type { OpenAgent } from "./opened.ts";

export interface BackgroundTask {
  /** Also the id of its session. */
  readonly id: string;
  readonly prompt: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
}

export interface BackgroundReport extends BackgroundTask {
  readonly status: "done" | "failed" | "stopped";
  /** Its answer, or why there is none. */
  readonly text: string;
  readonly ms: number;
}

interface BackgroundOptions {
  readonly clock: Clock;
  /** Called once for every task that ended by itself or was stopped; not about those that end with the program. */
  onReport(report: BackgroundReport): void;
  /** The number of running tasks changed. */
  onChange?(): void;
}

interface Running extends BackgroundTask {
  readonly stop: AbortController;
  readonly over: Promise<void>;
}

export class BackgroundTasks {
  readonly #options: BackgroundOptions;
  readonly #running = new Map<string, Running>();
  #closed = false;

  constructor(options: BackgroundOptions) {
    this.#options = options;
  }

  get running(): readonly BackgroundTask[] {
    return [...this.#running.values()];
  }

  /** Starts a prompt with the model and tools of a conversation, without its history. It asks nobody anything. */
  start(prompt: string, request: OpenRequest, parent: OpenAgent): BackgroundTask {
    const { clock } = this.#options;
    const id = newSessionId(clock, "background");
    const stop = new AbortController();
    const task = { id, prompt, startedAt: clock.now() };
    const over = this.#run(task, request, parent, stop.signal);
    this.#running.set(id, { ...task, stop, over });
    this.#options.onChange?.();
    return task;
  }

  /** False when no such task runs. */
  stop(id: string): boolean {
    const task = this.#running.get(id);
    task?.stop.abort();
    return task !== undefined;
  }

  /** Stops all of them and waits until they are put away. */
  async close(): Promise<void> {
    this.#closed = true;
    const tasks = [...this.#running.values()];
    for (const task of tasks) task.stop.abort();
    await Promise.all(tasks.map((task) => task.over));
  }

  async #run(task: BackgroundTask, request: OpenRequest, parent: OpenAgent, signal: AbortSignal): Promise<void> {
    const report = await this.#play(task, request, parent, signal).catch((error: unknown) => ({
      status: "failed" as const,
      text: messageOf(error),
    }));
    this.#running.delete(task.id);
    if (!this.#closed) this.#options.onReport({ ...task, ...report, ms: this.#options.clock.now() - task.startedAt });
    this.#options.onChange?.();
  }

  async #play(task: BackgroundTask, request: OpenRequest, parent: OpenAgent, signal: AbortSignal) {
    const { openAgent } = await import("./open.ts");
    const { resume: _resume, ...own } = request;
    const conversation = await openAgent({
      ...own,
      interactive: false,
      yolo: parent.yolo,
      workMode: () => parent.workMode,
      start: {
        origin: "background",
        sessionId: task.id,
        model: parent.agent.model,
        skills: !request.ignoreRules,
      },
    });
    try {
      let outcome: TurnOutcome | null = null;
      for await (const event of conversation.agent.run({ text: task.prompt, from: "person" }, { signal }))
        if (event.type === "done") outcome = event.outcome;
      if (outcome === null) throw new Error("the turn ended without a result");
      return verdict(outcome);
    } finally {
      await conversation.close("cli_close");
    }
  }
}

function verdict(outcome: TurnOutcome): Pick<BackgroundReport, "status" | "text"> {
  if (outcome.interrupted) return { status: "stopped", text: "stopped before it was done" };
  if (outcome.failed || !outcome.finalText)
    return { status: "failed", text: outcome.finalText ?? outcome.error ?? "it gave no answer" };
  return { status: "done", text: outcome.finalText };
}
