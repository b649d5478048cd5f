// `/cron`: the words of `hermes cron` where people talk to the agent.
import type { JobFields } from "../cron/fields.ts";
import { CronJobs } from "../cron/manage.ts";
import { homeZone } from "../cron/run.ts";
import { readSchedule } from "../cron/schedule.ts";
import { answerLines, listText, statusLines } from "../cron/show.ts";
import { startQueued, tickerStatus } from "../cron/ticker.ts";
import { systemClock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import { chatPlatforms } from "../tools/toolset/toolsets.ts";
import { type CommandContext, type CommandDefinition, typedWords } from "./context.ts";

const VERBS = ["list", "add", "create", "edit", "pause", "resume", "run", "remove", "status"];

const cron: CommandDefinition = {
  name: "cron",
  description: "schedule a job, list and change jobs",
  category: "Tools & Skills",
  argsHint: "[list|add|edit|pause|resume|run|remove|status] [...]",
  subcommands: VERBS,
  busyPolicy: "dispatch",
  keepsText: true,
  async values(typed, ctx) {
    const { words, last } = typedWords(typed);
    const [verb, ...named] = words;
    if (verb === undefined) return null;
    if (named.length > 0 || !["edit", "pause", "resume", "run", "remove"].includes(verb)) return null;
    const jobs = await openJobs({ ...ctx, clock: systemClock }, () => undefined).file.read();
    return { replaces: last, values: jobs.map(({ id, name }) => ({ value: id, about: name })) };
  },
  async run(args, ctx) {
    const words = wordsOf(args);
    const [verb = "list", ...rest] = words;
    try {
      const said = await act(verb.toLowerCase(), rest, ctx);
      ctx.say(said);
    } catch (error) {
      ctx.warn(messageOf(error));
    }
  },
};

const openJobs = (
  { home, store, clock }: Pick<CommandContext, "home" | "store" | "clock">,
  report: (problem: string) => void,
) =>
  new CronJobs({
    ...{ home, clock, report, work: () => store.work() },
    platforms: chatPlatforms(home.config()),
  });

async function act(verb: string, words: readonly string[], ctx: CommandContext): Promise<string> {
  const { home } = ctx;
  const jobs = openJobs(ctx, (problem) => ctx.warn(problem));
  const zone = homeZone(home);
  const { rest, fields, all } = optionsOf(words);
  const job = rest.join(" ");
  switch (verb) {
    case "list":
      return listText(jobs, await tickerStatus(home.paths), zone, { all });
    case "status":
      return statusLines(await jobs.status(), zone);
    case "add":
    case "create": {
      const split =
        fields.schedule === undefined ? splitSchedule(rest, ctx) : { schedule: fields.schedule, prompt: job };
      const prompt = fields.prompt ?? split.prompt;
      return answerLines(await jobs.create({ ...fields, ...split, prompt }, ctx.chat?.place ?? null), zone);
    }
  }
  if (!VERBS.includes(verb)) throw new Error(`/cron takes ${VERBS.join(", ")}, not "${verb}".`);
  if (job === "") throw new Error(`/cron ${verb} needs a job: its id or name. /cron list shows them.`);
  if (verb === "edit") return answerLines(await jobs.update(job, fields), zone);
  if (verb === "pause") return answerLines(await jobs.pause(job), zone);
  if (verb === "resume") return answerLines(await jobs.resume(job), zone);
  if (verb === "remove") return answerLines(await jobs.remove(job), zone);
  const { by, message, deliver } = await jobs.trigger(job);
  if (by === null) await startQueued(home);
  return `${message} Its answer goes to: ${deliver}.`;
}

/** What stands in quotes is one word. */
function wordsOf(text: string): readonly string[] {
  return [...text.matchAll(/"([^"]*)"|“([^”]*)”|'([^']*)'|(\S+)/g)].map(
    ([, ...groups]) => groups.find((one) => one !== undefined) ?? "",
  );
}

const TEXTS = ["name", "model", "provider", "base_url", "script", "workdir", "tz", "schedule", "prompt"] as const;
const LISTS: Readonly<Record<string, "deliver" | "skills" | "context_from" | "enabled_toolsets">> = {
  deliver: "deliver",
  skill: "skills",
  skills: "skills",
  "context-from": "context_from",
  toolsets: "enabled_toolsets",
};

const BUDGET: Readonly<Record<string, "usd" | "tokens">> = { "budget-usd": "usd", "budget-tokens": "tokens" };

/** `--name VALUE` and its like, taken out of the words; several values of one option stand with commas. */
function optionsOf(words: readonly string[]): {
  readonly rest: readonly string[];
  readonly fields: JobFields;
  readonly all: boolean;
} {
  const rest: string[] = [];
  const fields: Record<string, unknown> = {};
  let all = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    const name = word.startsWith("--") ? word.slice(2) : null;
    if (name === null) rest.push(word);
    else if (name === "all") all = true;
    else if (name === "no-agent" || name === "agent") fields.no_agent = name === "no-agent";
    else {
      const value = words[++at];
      const text = TEXTS.find((one) => one === name.replace("-", "_"));
      const list = LISTS[name];
      if (value === undefined) throw new Error(`--${name} needs a value.`);
      if (text) fields[text] = value;
      else if (list) fields[list] = value.split(",").map((one) => one.trim());
      else if (name === "repeat" && /^\d+$/.test(value)) fields.repeat = Number(value);
      else if (name in BUDGET && /^(?:\d+(?:\.\d*)?|\.\d+)?$/.test(value))
        fields.budget = {
          ...(fields.budget as object | undefined),
          [BUDGET[name] ?? ""]: value === "" ? null : Number(value),
        };
      else throw new Error(`/cron knows no option --${name} ${value}.`);
    }
  }
  return { rest, fields: fields as JobFields, all }; // built from names of fields alone
}

const MOST_WORDS = 9;

/** `every monday 10:00 water the plants`: as many words as make a schedule, and the rest. */
function splitSchedule(words: readonly string[], { home, clock }: CommandContext) {
  const at = { now: clock.now(), zone: homeZone(home) };
  for (let count = Math.min(MOST_WORDS, words.length); count > 0; count--) {
    const schedule = words.slice(0, count).join(" ");
    try {
      readSchedule(schedule, at);
      return { schedule, prompt: words.slice(count).join(" ") };
    } catch (error) {
      if (count === 1) throw error;
    }
  }
  throw new Error('/cron add needs a schedule and a prompt: /cron add "every weekday at 9" look at the news');
}

export const CRON_COMMANDS: readonly CommandDefinition[] = [cron];
