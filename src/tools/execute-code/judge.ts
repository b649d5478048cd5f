// What a script is about to do by itself, without a tool: start a program, delete, write. Judged as if a tool were to do it.

import { openWorkspace } from "../files/workspace.ts";
import type { ToolContext } from "../toolset/context.ts";

/** What the keeper is told, so that it asks about nothing else. */
export interface Watch {
  /** Files and folders a write to is asked about. */
  readonly places: readonly string[];
  /** Where not empty: every write outside of these is asked about. */
  readonly roots: readonly string[];
}

export interface ScriptDeed {
  /** A command line that does the same. */
  readonly line?: string | undefined;
  /** A file that is written, moved or changed. */
  readonly write?: string | undefined;
}

export interface ScriptJudge {
  /** Null: whatever a script does, it does to nobody. */
  readonly watch: Watch | null;
  /** Null, or why not; may ask the user. */
  refuse(deed: ScriptDeed, signal: AbortSignal): Promise<string | null>;
}

export async function openJudge(ctx: ToolContext): Promise<ScriptJudge> {
  if (ctx.environment.isolated) return { watch: null, refuse: async () => null };
  const { guard, refuseWrite } = await openWorkspace(ctx);
  return {
    watch: { places: guard.watchedForWrites, roots: ctx.writeSafeRoots ?? [] },
    async refuse({ line, write }, signal) {
      if (write !== undefined) return refuseWrite(write, false);
      if (line === undefined) return "Nothing is known about what the script wants to do.";
      const outcome = await ctx.guard.decide(line, signal);
      return outcome.approved ? null : outcome.message;
    },
  };
}
