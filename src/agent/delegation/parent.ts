// What a conversation hands to the children it sends out.
import type { ModelGate } from "../../llm/gate.ts";
import type { AgentWish } from "../wish.ts";
import type { Parent } from "./spawn.ts";

/** Children are opened like the conversation itself, with their own history, tools and shell, and nobody to ask. */
export function delegatingParent(
  wish: AgentWish,
  openChild: (wish: AgentWish) => ReturnType<Parent["open"]>,
  {
    guard,
    gate,
    ...parts
  }: Omit<Parent, "depth" | "subagentId" | "open"> & {
    readonly guard: { readonly yolo: boolean };
    readonly gate: ModelGate;
  },
): Parent {
  const skills = wish.start ? wish.start.skills === true : true;
  const { resume: _resume, model: _model, provider: _provider, reasoning: _reasoning, ...own } = wish;
  return {
    ...parts,
    depth: wish.start?.depth ?? 0,
    subagentId: wish.start?.subagentId ?? null,
    open: (start, cwd) =>
      openChild({
        ...own,
        cwd,
        start: {
          ...start,
          gate,
          skills,
          hints: wantsHints(wish),
          ...(wish.start?.jobId ? { jobId: wish.start.jobId } : {}),
        },
        source: "subagent",
        interactive: false,
        ignoreRules: true,
        yolo: guard.yolo,
        maxTurns: wish.home.config().delegation.max_iterations,
      }),
  };
}

/** A child reads no rules at its start; whether it meets them on its way is its first parent's wish. */
export const wantsHints = ({ start, ignoreRules }: AgentWish) => start?.hints ?? !ignoreRules;
