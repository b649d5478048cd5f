// What an agent is doing, told from its events alone.

import type { AgentEventBody } from "./events.ts";
import type { IterationBudget } from "./steer.ts";

export interface Activity {
  /** Milliseconds since the epoch. */
  readonly lastActivityTs: number;
  readonly lastActivityDesc: string;
  readonly secondsSinceActivity: number;
  /** The newest call that still runs. */
  readonly currentTool: string | null;
  /** Model calls of the running turn. */
  readonly apiCallCount: number;
  readonly maxIterations: number;
  /** Of the running turn's limit; what was given back does not count. */
  readonly budgetUsed: number;
  readonly budgetMax: number;
}

export class ActivityWatch {
  #newest: { readonly what: string; readonly at: number } | null = null;
  /** Names of running calls by their ids, in the order of their start. */
  readonly #calls = new Map<string, string>();
  readonly #children = new Set<string>();
  #apiCalls = 0;

  note(event: AgentEventBody, at: number): void {
    this.#newest = { what: event.type, at };
    switch (event.type) {
      case "turn_start":
        this.#apiCalls = 0;
        break;
      case "step":
        this.#apiCalls = event.iteration;
        break;
      case "tool_start":
        this.#calls.set(event.call.id, event.call.name);
        break;
      case "tool_end":
        this.#calls.delete(event.call.id);
        break;
      case "subagent":
        if (event.phase === "start") this.#children.add(event.id);
        if (event.phase === "complete") this.#children.delete(event.id);
        break;
      case "done":
        this.#calls.clear();
        this.#children.clear();
        break;
    }
  }

  /** Sub-agents at work for the running turn. */
  get children(): number {
    return this.#children.size;
  }

  /** `budget` is that of the running turn; without one nothing of the limit is used. */
  describe(now: number, budget: IterationBudget | null, limit: number): Activity {
    const at = this.#newest?.at ?? now;
    return {
      lastActivityTs: at,
      lastActivityDesc: this.#newest?.what ?? "idle",
      secondsSinceActivity: (now - at) / 1000,
      currentTool: [...this.#calls.values()].at(-1) ?? null,
      apiCallCount: budget ? this.#apiCalls : 0,
      maxIterations: budget?.max ?? limit,
      budgetUsed: budget?.used ?? 0,
      budgetMax: budget?.max ?? limit,
    };
  }
}
