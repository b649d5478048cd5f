// /api/jobs: prompts on a schedule, with the checks of the command line and of the agent's own tool.

import type { JobFields } from "../../cron/fields.ts";
import type { Job } from "../../cron/jobs.ts";
import { CronJobs } from "../../cron/manage.ts";
import { startQueued } from "../../cron/ticker.ts";
import { messageOf, UserError } from "../../kit/errors.ts";
import { chatPlatforms } from "../../tools/toolset/toolsets.ts";
import { flag } from "./content.ts";
import { ApiError, type Call, type Reply, type Route } from "./contract.ts";
import type { Api } from "./server.ts";

type Body = Readonly<Record<string, unknown>>;

const LONGEST_NAME = 200;
const LONGEST_PROMPT = 5000;
const CHANGEABLE = ["name", "schedule", "prompt", "deliver", "skills", "skill", "repeat", "enabled"];

export function jobRoutes(api: Api): readonly Route[] {
  const { home, clock, store } = api.parts;
  const jobs = new CronJobs({
    ...{ home, clock, work: () => store.work(), platforms: chatPlatforms(home.config()) },
    report: (problem) => home.log.child("cron").warn(problem),
  });
  /** Its errors are a plain text here. */
  const route = (method: Route["method"], path: string, work: (call: Call) => Promise<object>): Route => ({
    method,
    path,
    handle: (call) => answered(() => work(call)),
  });
  const job = async (call: Call) => ({ job: await jobs.find(idOf(call)) });
  return [
    route("GET", "/api/jobs", async ({ query }) => ({
      jobs: await jobs.list({ all: flag(query.get("include_disabled") ?? undefined, false) }),
    })),
    route("POST", "/api/jobs", async (call) => {
      const { job_id: id } = await jobs.create(fieldsOf(await call.body(), { isNew: true }), null);
      return { job: await jobs.find(id) };
    }),
    route("GET", "/api/jobs/:id", job),
    route("PATCH", "/api/jobs/:id", async (call) => {
      const id = idOf(call);
      await jobs.find(id);
      const body = await call.body();
      if (!CHANGEABLE.some((field) => field in body))
        throw new JobsError(400, `nothing to change: send one of ${CHANGEABLE.join(", ")}`);
      const fields = fieldsOf(body, { isNew: false });
      const enabled = body.enabled;
      if (enabled !== undefined && typeof enabled !== "boolean")
        throw new JobsError(400, "enabled must be true or false");
      if (Object.values(fields).some((value) => value !== undefined)) await jobs.update(id, fields);
      if (enabled === true && !(await jobs.find(id)).enabled) await jobs.resume(id);
      if (enabled === false) await jobs.pause(id);
      return { job: await jobs.find(id) };
    }),
    route("DELETE", "/api/jobs/:id", async (call) => {
      await jobs.remove(idOf(call));
      return { ok: true };
    }),
    route("POST", "/api/jobs/:id/pause", async (call) => {
      await jobs.pause(idOf(call));
      return job(call);
    }),
    route("POST", "/api/jobs/:id/resume", async (call) => {
      await jobs.resume(idOf(call));
      return job(call);
    }),
    route("POST", "/api/jobs/:id/run", async (call) => {
      const { by } = await jobs.trigger(idOf(call));
      if (by === null) await startQueued(home);
      return job(call);
    }),
  ];
}

class JobsError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

async function answered(work: () => Promise<object>): Promise<Reply> {
  try {
    return { status: 200, body: await work() };
  } catch (error) {
    if (error instanceof JobsError) return { status: error.status, body: { error: error.message } };
    if (error instanceof ApiError)
      return { status: error.status, headers: error.facts.headers, body: { error: error.message } };
    if (!(error instanceof UserError)) throw error;
    const isUnknown = /^There is no job/i.test(messageOf(error));
    return { status: isUnknown ? 404 : 400, body: { error: messageOf(error) } };
  }
}

function idOf(call: Call): string {
  const id: Job["id"] = call.param("id");
  if (!/^[0-9a-f]{12}$/.test(id)) throw new JobsError(400, "a job id has 12 hex digits");
  return id;
}

function fieldsOf(body: Body, { isNew }: { readonly isNew: boolean }): JobFields {
  const name = textIn(body, "name", LONGEST_NAME);
  if (isNew && !name?.trim()) throw new JobsError(400, "name is missing: a text of 1 to 200 characters");
  if (!isNew && name !== undefined && name.trim() === "") throw new JobsError(400, "name must not be empty");
  const schedule = textIn(body, "schedule", 500);
  if (isNew && !schedule?.trim()) throw new JobsError(400, 'schedule is missing, such as "every weekday at 9"');
  return {
    ...{ name, schedule, prompt: textIn(body, "prompt", LONGEST_PROMPT), deliver: deliverIn(body) },
    ...{ skills: skillsIn(body), repeat: repeatIn(body) },
  };
}

function textIn(body: Body, field: string, longest: number): string | undefined {
  const value = body[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw new JobsError(400, `${field} must be a text`);
  if (value.length > longest) throw new JobsError(400, `${field} must have at most ${longest} characters`);
  return value;
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === "string");

function deliverIn(body: Body): JobFields["deliver"] {
  const { deliver } = body;
  if (deliver === undefined || deliver === null) return undefined;
  if (typeof deliver === "string" || isTexts(deliver)) return deliver;
  throw new JobsError(400, "deliver must be a target or a list of targets");
}

function skillsIn(body: Body): readonly string[] | undefined {
  const given = body.skills ?? body.skill;
  if (given === undefined || given === null) return undefined;
  if (typeof given === "string") return given.trim() === "" ? [] : [given];
  if (isTexts(given)) return given;
  throw new JobsError(400, "skills must be a list of names");
}

function repeatIn({ repeat }: Body): number | undefined {
  if (repeat === undefined || repeat === null) return undefined;
  if (typeof repeat === "number" && Number.isSafeInteger(repeat) && repeat >= 1) return repeat;
  throw new JobsError(400, "repeat must be a whole number from 1 on");
}
