// Hands work to agents of their own. Who they are and how they run is the agent's affair; here is what a model may ask for.
import { z } from "zod";
import type { ChildTask, ToolContext } from "./toolset/context.ts";
import { toolError, toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

const OVERTIME_SECONDS = 10;

const role = z.enum(["leaf", "orchestrator"]).optional();
const task = z.object({
  goal: z.string(),
  context: z.string().optional(),
  toolsets: z.array(z.string()).optional(),
  role,
});
const parameters = z.object({
  goal: z.string().optional().describe("One task"),
  context: z.string().optional().describe("All it must know: it sees nothing of this conversation"),
  toolsets: z.array(z.string()).optional().describe("Default: yours"),
  role: role.describe("orchestrator may delegate in turn"),
  // A list that comes as text has been parsed by the time it gets here.
  tasks: z.array(task).optional().describe("Several at once, instead of goal"),
});

register({
  name: "delegate_task",
  toolset: "delegation",
  emoji: "🔀",
  description:
    "Give self-contained work to sub-agents, several side by side; you get only their reports. " +
    "For research or work that would fill this conversation, not for a single call.",
  parameters,
  textOrigin: "local",
  showsLife: true,
  timeoutMs: (_args, { delegation }) => {
    const seconds = childTimeoutSeconds(delegation.child_timeout_seconds);
    return seconds === 0 ? undefined : (seconds + OVERTIME_SECONDS) * 1000;
  },
  handler: delegate,
});

/** At least half a minute; 0 = no limit. */
export function childTimeoutSeconds(configured: number): number {
  return configured === 0 ? 0 : Math.max(30, configured);
}

async function delegate(args: z.infer<typeof parameters>, ctx: ToolContext): Promise<string> {
  if (!ctx.spawnChildren) return toolError("delegate_task must be handled by the agent loop");
  const tasks = tasksOf(args);
  if (typeof tasks === "string") return toolError(tasks);
  const most = ctx.config.delegation.max_concurrent_children;
  if (tasks.length > most) {
    return toolError(
      `tasks: ${tasks.length} given, at most ${most} at once (delegation.max_concurrent_children). Send the rest in another call.`,
    );
  }
  return toolResult(await ctx.spawnChildren(tasks));
}

/** The tasks of a call, or what is wrong with it. */
function tasksOf(args: z.infer<typeof parameters>): readonly ChildTask[] | string {
  const goal = args.goal?.trim() ?? "";
  const list = args.tasks;
  if (list === undefined) {
    if (goal === "") return "goal: say what the sub-agent shall do, or give several in tasks.";
    return [{ goal, context: args.context, toolsets: args.toolsets, role: args.role }];
  }
  if (goal !== "") return "goal, tasks: give one or the other, not both.";
  if (list.length === 0) return "tasks: the list is empty.";
  const empty = list.findIndex((one) => one.goal.trim() === "");
  return empty >= 0 ? `tasks[${empty}].goal: is missing.` : list;
}
