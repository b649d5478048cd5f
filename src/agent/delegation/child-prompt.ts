// What a child is told: its task, and that only its last words are read.
import type { ChildTask } from "../../tools/toolset/context.ts";

export interface ChildPlace {
  readonly cwd: string;
  /** Children it may have at once; null when it may have none. */
  readonly mayDelegate: { readonly atOnce: number; readonly levels: number } | null;
}

export function childPrompt(task: ChildTask, { cwd, mayDelegate }: ChildPlace): string {
  const context = task.context?.trim();
  return [
    "You are a focused worker that another agent started for one task. You see nothing of its conversation, and nobody answers questions: decide yourself, and say what you assumed.",
    `## Task\n${task.goal.trim()}`,
    ...(context ? [`## Context\n${context}`] : []),
    `## Workspace\n${cwd}`,
    ...(mayDelegate ? [orchestration(mayDelegate)] : []),
    "## Report\nWhen you are done, answer with a short report: what you did, what you found, which files you changed or made (full paths), and what went wrong or is left open. The agent that started you sees this answer and nothing else.",
  ].join("\n\n");
}

function orchestration({ atOnce, levels }: { readonly atOnce: number; readonly levels: number }): string {
  const deeper =
    levels > 1
      ? `They may delegate in turn, ${levels - 1} level${levels === 2 ? "" : "s"} deeper.`
      : "They cannot delegate in turn.";
  return `## Delegating\nYou may split the task and hand parts of it on with \`delegate_task\`, at most ${atOnce} at once. ${deeper} Put their reports together yourself.`;
}
