// Jobs that run by themselves, at times the user wishes. Who keeps the schedule is reached through a port.
import { z } from "zod";
import type { CronFields, CronRequest, ToolContext } from "./toolset/context.ts";
import { toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

const names = z.array(z.string()).optional();
const parameters = z.object({
  action: z.enum(["create", "list", "update", "pause", "resume", "run", "run_now", "trigger", "remove"]),
  job_id: z.string().optional().describe("id or unique name; all but create and list"),
  prompt: z.string().optional().describe("The task, complete: a run remembers nothing of this conversation"),
  schedule: z.string().optional().describe("'30m', 'every 2h', '0 9 * * 1-5' or a time like 2026-03-01T09:00"),
  name: z.string().optional(),
  repeat: z.int().optional().describe("Number of runs; default: once for a time, else without end"),
  deliver: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe("origin, local, all, platform or platform:chat[:thread]"),
  skills: names,
  model: z.object({ provider: z.string().optional(), model: z.string() }).nullable().optional(),
  script: z.string().optional().describe("File below scripts/ that runs first; its output is given to the job"),
  no_agent: z.boolean().optional().describe("The script's output is the message; no model"),
  context_from: names.describe("Jobs whose last output is given to this one"),
  enabled_toolsets: names,
  workdir: z.string().optional(),
  profile: z.string().optional(),
});
type Arguments = z.infer<typeof parameters>;

register({
  name: "cronjob",
  toolset: "cronjob",
  emoji: "⏰",
  deferred: true,
  port: "cron",
  description:
    "Schedule jobs: reminders, reports, checks. Each run is a fresh agent without this conversation, and its final answer is delivered. create " +
    "needs schedule and one of prompt, skills, script. update changes what is given; an empty text or list clears it.",
  parameters,
  verbatim: ["prompt", "schedule", "name", "deliver", "script", "workdir", "profile"],
  textOrigin: "local",
  onInvalid: (error) => failure(error),
  handler: manage,
});

async function manage(args: Arguments, ctx: ToolContext): Promise<string> {
  if (ctx.origin === "cron") return failure("A scheduled job cannot schedule jobs.");
  if (!ctx.cron) return failure("Nobody keeps a schedule in this run: scheduled jobs are not configured here.");
  const request = requestOf(args);
  return typeof request === "string" ? failure(request) : toolResult(await ctx.cron.manage(request, ctx));
}

/** The request, or what is missing in it. */
function requestOf({ action, job_id, ...given }: Arguments): CronRequest | string {
  if (action === "list") return { action };
  const isGiven = (value: unknown) => value !== undefined && (action === "update" || !isBlank(value));
  const fields = Object.fromEntries(
    Object.entries(given).filter(([, value]) => isGiven(value)),
  ) as unknown as CronFields; // the schema names the same fields
  if (action === "create") {
    if (!given.schedule?.trim()) return "schedule: say when the job runs.";
    const hasWork = given.prompt?.trim() || given.script?.trim() || (given.skills?.length ?? 0) > 0;
    if (!hasWork) return "prompt, skills, script: give the job at least one of them.";
    if (given.no_agent && !given.script?.trim()) return "no_agent: needs a script, whose output is the message.";
    return { action, ...fields };
  }
  const jobId = job_id?.trim() ?? "";
  if (jobId === "") return `job_id: say which job to ${action}; action list shows them.`;
  if (action !== "update") return { action: action === "run_now" || action === "trigger" ? "run" : action, jobId };
  return Object.keys(fields).length === 0 ? "update: nothing to change was given." : { action, jobId, ...fields };
}

const isBlank = (value: unknown) => typeof value === "string" && value.trim() === "";

function failure(error: string): string {
  return toolResult({ success: false, error });
}
