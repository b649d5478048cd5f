// Jobs on a schedule, made and changed by the agent for its user.
import { z } from "zod";
import type { JobFields } from "../cron/fields.ts";
import { CronJobs } from "../cron/manage.ts";
import { messageOf } from "../kit/errors.ts";
import type { ToolContext } from "./toolset/context.ts";
import { toolError, toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";
import { chatPlatforms } from "./toolset/toolsets.ts";

const parameters = z.object({
  action: z.enum(["create", "list", "update", "pause", "resume", "run", "run_now", "trigger", "remove"]),
  job_id: z.string().optional().describe("Id or name; for all but create and list"),
  schedule: z
    .string()
    .optional()
    .describe('"every 2h", "in 20 minutes", "every weekday at 9", "每天早上8点", a time as ISO, or a cron expression'),
  prompt: z.string().optional().describe("What the agent of the job is to do. It knows nothing of this conversation"),
  name: z.string().optional(),
  repeat: z.number().int().optional().describe("Runs until it ends; 0 = never"),
  deliver: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe("origin (this chat), local (files only), all, a platform or platform:chat_id; several with commas"),
  skills: z.array(z.string()).optional(),
  model: z.object({ provider: z.string().optional(), model: z.string() }).optional(),
  script: z.string().optional().describe("A file in scripts/ of the home; its output goes in front of the prompt"),
  no_agent: z.boolean().optional().describe("The output of the script is the message; no model is asked"),
  context_from: z.array(z.string()).optional().describe("Jobs whose last answers it gets"),
  enabled_toolsets: z.array(z.string()).optional(),
  workdir: z.string().optional(),
  profile: z.string().optional().describe("None but this one: another profile has its own jobs"),
  tz: z.string().optional().describe("Time zone of a cron expression, as Europe/Berlin"),
  include_completed: z.boolean().optional().describe("With list"),
});

type Arguments = z.infer<typeof parameters>;

register({
  name: "cronjob",
  toolset: "cronjob",
  emoji: "⏰",
  deferred: true,
  description:
    "Schedule prompts: reminders, reports, checks that run later or again and again, each by a new agent without history. Create, list, update, pause, resume, run and remove jobs. Tell the user the next times that come back.",
  parameters,
  port: "schedule",
  textOrigin: "local",
  verbatim: ["name", "prompt", "deliver", "script", "workdir", "tz"],
  onInvalid: (problem) => failed(problem),
  handler: cronjob,
});

async function cronjob(args: Arguments, ctx: ToolContext): Promise<string> {
  const { sessions: store, schedule } = ctx;
  if (!store || !schedule) return toolError("Nothing can be scheduled from here.");
  const platforms = chatPlatforms(ctx.config);
  const notes: string[] = [];
  const jobs = new CronJobs({
    ...{ clock: ctx.clock, platforms, work: () => store.work() },
    home: { paths: ctx.home, config: () => ctx.config },
    report: (problem) => notes.push(problem),
  });
  try {
    const result = await act(args, jobs, ctx);
    return toolResult({ ...result, ...(notes.length > 0 ? { notes } : {}) });
  } catch (error) {
    return failed(messageOf(error));
  }
}

/** The shape of its results, also of those that failed. */
const failed = (error: string) => toolResult({ success: false, error });

async function act(args: Arguments, jobs: CronJobs, ctx: ToolContext): Promise<object> {
  const { action, job_id: job = "" } = args;
  if (action === "list") {
    const listed = await jobs.list({ all: args.include_completed === true });
    return { success: true, count: listed.length, jobs: listed };
  }
  if (action === "create") return jobs.create(fieldsOf(args), originOf(ctx));
  if (job.trim() === "") return { success: false, error: `job_id is required: action list shows them.` };
  switch (action) {
    case "update":
      return jobs.update(job, fieldsOf(args));
    case "pause":
      return jobs.pause(job);
    case "resume":
      return jobs.resume(job);
    case "remove":
      return jobs.remove(job);
    default: {
      const { row: _row, by, ...result } = await jobs.trigger(job);
      if (by === null) await ctx.schedule?.startQueued();
      return result;
    }
  }
}

function fieldsOf({ action: _a, job_id: _j, include_completed: _i, model, ...fields }: Arguments): JobFields {
  return { ...fields, ...(model ? { model: model.model, provider: model.provider } : {}) };
}

/** Where the answers of a job go that says nothing else: the chat it was made in. */
function originOf({ chat, platform }: ToolContext) {
  if (!chat) return null;
  return {
    ...{ platform, chat_id: chat.chatId },
    ...(chat.chatName === undefined ? {} : { chat_name: chat.chatName }),
    ...(chat.threadId === undefined ? {} : { thread_id: chat.threadId }),
  };
}
