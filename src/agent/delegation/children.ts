// The children an agent has at the moment: who they are, how many may run at once, and how they are stopped.

import type { ModelGate } from "../../llm/gate.ts";
import type { SkillVariables } from "../../skills/variables.ts";
import type { StateKey } from "../../tools/toolset/context.ts";
import type { WorkMode } from "../../tools/toolset/work-mode.ts";
import type { OpenRequest } from "../open-request.ts";
import type { Parent } from "./spawn.ts";

export interface ActiveChild {
  readonly id: string;
  readonly goal: string;
  readonly model: string;
  /** Where what it says is stored. */
  readonly sessionId: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Stops its turn; its report says so. */
  interrupt(): void;
  /** Settles when nothing of it runs any more. */
  readonly gone: Promise<void>;
}

export class ChildTable {
  readonly #active = new Map<string, ActiveChild>();
  readonly #waiting: (() => void)[] = [];
  #slots = 0;
  /** While it is on, no further child is started. */
  paused = false;

  listActiveSubagents(): readonly ActiveChild[] {
    return [...this.#active.values()];
  }

  /** False when no such child runs. */
  interruptSubagent(id: string): boolean {
    const child = this.#active.get(id);
    child?.interrupt();
    return child !== undefined;
  }

  setSpawnPaused(paused: boolean): void {
    this.paused = paused;
  }

  add(child: ActiveChild): void {
    this.#active.set(child.id, child);
    const remove = () => this.#active.delete(child.id);
    child.gone.then(remove, remove);
  }

  /** Waits until fewer than `most` run; the result gives the place back. Rejects with the signal's reason when it aborts first. */
  async takeSlot(most: number, signal: AbortSignal): Promise<() => void> {
    while (this.#slots >= most) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const leave = () => reject(signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(resolve);
      await promise.finally(() => signal.removeEventListener("abort", leave));
    }
    this.#slots++;
    return () => {
      this.#slots--;
      for (const wake of this.#waiting.splice(0)) wake();
    };
  }

  async dispose(): Promise<void> {
    const children = this.listActiveSubagents();
    for (const child of children) child.interrupt();
    await Promise.allSettled(children.map((child) => child.gone));
  }
}

export const childTable: StateKey<ChildTable> = {
  name: "children",
  create: () => new ChildTable(),
  dispose: (table) => table.dispose(),
};

// What a conversation hands to the children it sends out.

/** Children are opened like the conversation itself, with their own history, tools and shell, and nobody to ask. */
export function delegatingParent(
  request: OpenRequest,
  openChild: (request: OpenRequest) => ReturnType<Parent["open"]>,
  {
    guard,
    mode,
    gate,
    variables,
    jobId,
    ...parts
  }: Omit<Parent, "depth" | "subagentId" | "open"> & {
    readonly guard: { readonly yolo: boolean };
    readonly mode: { readonly mode: WorkMode };
    readonly gate: ModelGate;
    readonly variables: SkillVariables;
    /** Who pays. */
    readonly jobId?: string | undefined;
  },
): Parent {
  const skills = request.start ? request.start.skills === true : true;
  const { resume: _resume, model: _model, provider: _provider, reasoning: _reasoning, ...inherited } = request;
  // A child begins a conversation of its own: under another id, and with nothing said in it.
  const { sessionId: _sessionId, history: _history, ...own } = inherited;
  return {
    ...parts,
    depth: request.start?.depth ?? 0,
    subagentId: request.start?.subagentId ?? null,
    open: (start, cwd) =>
      openChild({
        ...own,
        cwd,
        start: {
          ...start,
          gate,
          skills,
          variables,
          hints: wantsHints(request),
          ...(jobId ? { jobId } : {}),
        },
        source: "subagent",
        // They belong to the conversation that brought them along; a child would start each of them once more.
        mcpServers: undefined,
        interactive: false,
        ignoreRules: true,
        yolo: guard.yolo,
        workMode: () => mode.mode,
        maxTurns: request.home.config().delegation.max_iterations,
      }),
  };
}

/** A child reads no rules at its start; whether it meets them on its way is for its first parent to say. */
export const wantsHints = ({ start, ignoreRules }: OpenRequest) => start?.hints ?? !ignoreRules;
