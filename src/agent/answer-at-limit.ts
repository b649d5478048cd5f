import { type Asking, askModel } from "./ask-model.ts";
import type { IterationBudget } from "./budget.ts";
import type { AnswerJudge } from "./judge.ts";
import { answerAtLimit as note } from "./loop-notes.ts";
import { type Ending, interruptedWaiting, partialEnding } from "./outcome.ts";

/** The budget is used up: one last call without tools, asked once more if nothing comes. */
export async function answerAtLimit(
  asking: Asking,
  judge: AnswerJudge,
  { apiCalls, budget }: { readonly apiCalls: number; readonly budget: IterationBudget },
): Promise<Ending> {
  const { limits, session } = asking.conversation.options;
  const exitReason = `max_iterations_reached(${apiCalls}/${budget.max})`;
  if (limits.lastAnswer === false) return partialEnding(exitReason, "The limit was reached.");
  const scaffold = [...judge.scaffold, note(budget.max)];
  for (let attempt = 1; attempt <= 2; attempt++) {
    const asked = await askModel(asking, { scaffold, toolChoice: "none" });
    if (asked.type === "interrupted") return interruptedWaiting(asked.seconds);
    if (asked.type !== "answer") break;
    const { tool_calls: _, ...message } = asked.message;
    const verdict = judge.judge({ ...asked, message, finishReason: "stop" }, []);
    if (verdict.type === "end" && verdict.ending.message) return { ...verdict.ending, exitReason, kind: "partial" };
  }
  const sentence = `I reached the limit of ${budget.max} model calls for one turn before I could finish.`;
  const advice =
    session.task === "subagent"
      ? "Give the rest to another sub-agent, or raise delegation.max_iterations."
      : 'Say "continue" to go on, or raise agent.max_turns.';
  return partialEnding(exitReason, `${sentence} ${advice}`);
}
