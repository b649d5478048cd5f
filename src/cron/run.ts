// One run of a job: its script, its context, the agent, and what is kept of it.
import { readdir, readFile, rm } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import type { OpenHome } from "../home/open.ts";
import { type HomePaths, makeDirectory } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import { isMissing, messageOf } from "../kit/errors.ts";
import { isDirectory, writeFileAtomic } from "../kit/files.ts";
import { findJob, type Job, type JobFile, outputFolder } from "./jobs.ts";
import { scanPrompt, stopsOwnGateway } from "./scan.ts";
import type { RunReport, StartedRun } from "./scheduler.ts";
import { runScript, wantsNoAgent } from "./script.ts";
import { Zone } from "./wall-clock.ts";

/** What an agent is to do for a job. */
export interface AgentTask {
  readonly job: Job;
  readonly slot: string;
  readonly sessionId: string;
  /** Instructions around it, which nobody has written for this run. */
  readonly note: string;
  /** What others said: output of the script, answers of other jobs. */
  readonly data: readonly { readonly title: string; readonly text: string; readonly isForeign: boolean }[];
  readonly signal: AbortSignal;
}

export interface AgentAnswer {
  readonly text: string;
  /** Why there is none. */
  readonly error: string | null;
  /** Lines for the user: skills that are missing, a model that was replaced. */
  readonly notes: readonly string[];
}

interface RunPorts {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly jobs: JobFile;
  agent(task: AgentTask): Promise<AgentAnswer>;
}

const MOST_CONTEXT = 8000;
const KEPT_OUTPUTS = 50;

const NOTE =
  "[This is a scheduled run. Nobody is present: ask no questions, decide yourself. Your final answer is delivered automatically, so do not send it with a tool. If there is nothing to report, answer with [SILENT] and nothing else.]";

/** Plain settings that a run reads: the zone of the home, or the machine's where the name is wrong. */
export function homeZone(home: Pick<OpenHome, "config">): Zone {
  try {
    return Zone.named(home.config().timezone);
  } catch {
    return Zone.named("");
  }
}

export async function runJob(run: StartedRun, signal: AbortSignal, ports: RunPorts): Promise<RunReport> {
  const result = await play(run, signal, ports).catch(
    (error: unknown): Played => ({ error: messageOf(error), text: "" }),
  );
  await archive(run, result, ports);
  if (result.error !== null) return { error: result.error, said: null };
  return { error: null, said: result.silent || result.text === "" ? null : result.text };
}

interface Played {
  readonly text: string;
  readonly error: string | null;
  /** Nothing is to be delivered, whatever it says. */
  readonly silent?: boolean;
}

async function play(run: StartedRun, signal: AbortSignal, ports: RunPorts): Promise<Played> {
  const { job, slot, sessionId } = run;
  const { home } = ports;
  const problem = otherProfile(job, home.paths) ?? (await workdirProblem(job));
  if (problem !== null) return { text: "", error: problem };
  const script =
    job.script === null ? null : await runScript(job.script, { home, workdir: job.workdir, sessionId, signal });
  if (job.no_agent) {
    if (script === null) return { text: "", error: "it has no script to run" };
    return { text: script.stdout.trim(), error: script.error };
  }
  if (script?.error === null && (script.stdout.trim() === "" || wantsNoAgent(script.stdout)))
    return { text: script.stdout.trim(), error: null, silent: true };
  requireHarmless(job);
  const data = [
    ...(await contextOf(job, ports)),
    ...(script === null
      ? []
      : [{ title: `script ${job.script}`, text: script.error ?? script.stdout.trim(), isForeign: false }]),
  ];
  // What a script or another job says is data, but nobody is there who could tell: orders in it end the run.
  const threats = scanPrompt(data.map(({ text }) => text).join("\n"), { hasSkills: true });
  if (threats.length > 0) return { text: "", error: blocked(threats, "what it was given to read") };
  const { text, error, notes } = await ports.agent({ job, slot, sessionId, note: NOTE, data, signal });
  if (error !== null) return { text: "", error };
  if (text.trim() === "") return { text: "", error: "the agent gave no answer" };
  return { text: [...notes.map((note) => `⚠️ ${note}`), text.trim()].join("\n\n"), error: null };
}

/** Why it cannot run here; null: it can. Each profile has its own keys, and its own jobs. A record may have been edited by hand. */
export const otherProfile = ({ profile }: Pick<Job, "profile">, { profile: own }: Pick<HomePaths, "profile">) =>
  profile === null || profile === own
    ? null
    : `it is for the profile ${profile}, and this is ${own}; schedule it there: hermes -p ${profile} cron add`;

/** Why it cannot work in its folder; null: it can. The folder may be gone by now, too. */
export const workdirProblem = async ({ workdir }: Pick<Job, "workdir">) =>
  workdir === null || (isAbsolute(workdir) && (await isDirectory(workdir)))
    ? null
    : `${workdir} is not a folder; name one by its whole path`;

const blocked = (categories: readonly string[], what: string) =>
  `blocked by the scan of ${what}: ${categories.join(", ")}. Nothing was sent to the model`;

function requireHarmless({ prompt, skills }: Job): void {
  const hits = scanPrompt(prompt, { hasSkills: skills.length > 0 });
  if (hits.length > 0) throw new Error(blocked(hits, "its prompt"));
  if (stopsOwnGateway(prompt)) throw new Error(STOPS_GATEWAY);
}

export const STOPS_GATEWAY =
  "it would stop or restart the gateway that runs it; use the service manager of the machine, or hermes gateway restart by hand";

// What earlier runs said.

async function contextOf(job: Job, { home, jobs }: RunPorts): Promise<AgentTask["data"]> {
  const known = await jobs.read();
  return Promise.all(
    job.context_from.map(async (name) => {
      const title = `earlier output of the job ${name}`;
      try {
        const text = await newestOutput(outputFolder(home.paths, findJob(known, name).id));
        if (text !== null) return { title, text: text.slice(0, MOST_CONTEXT), isForeign: true };
      } catch (error) {
        home.log.info(`context of job ${job.id}: ${messageOf(error)}`);
      }
      return { title, text: "(there is none yet)", isForeign: false };
    }),
  );
}

async function newestOutput(folder: string): Promise<string | null> {
  const newest = (await outputs(folder)).at(-1);
  if (newest === undefined) return null;
  const text = await readFile(join(folder, newest), "utf8");
  const at = text.indexOf(RESPONSE);
  return (at < 0 ? text : text.slice(at + RESPONSE.length)).trim();
}

async function outputs(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  return names.filter((name) => /^\d{4}-\d{2}-\d{2}_.*\.md$/.test(name)).sort();
}

// The archive.

const RESPONSE = "\n## Response\n";

/** `cron/output/JOB/TIME.md`; the newest 50 are kept. */
async function archive({ job, slot }: StartedRun, { text, error }: Played, { home, clock }: RunPorts): Promise<void> {
  const zone = homeZone(home);
  const at = zone.iso(clock.now());
  const folder = outputFolder(home.paths, job.id);
  const lines = [
    ...[
      `# Cron job: ${job.name}`,
      "",
      `- Job: ${job.id}`,
      `- Time: ${at}`,
      `- Slot: ${slot}`,
      `- Schedule: ${job.schedule_display}`,
    ],
    ...[
      "",
      "## Prompt",
      "",
      job.prompt || `(none; skills: ${job.skills.join(", ") || "none"}; script: ${job.script ?? "none"})`,
      "",
    ],
    ...(error === null ? [RESPONSE.trim(), "", text] : ["## Error", "", error]),
  ];
  makeDirectory(home.paths.at("cron"), 0o700);
  makeDirectory(home.paths.at("cron", "output"), 0o700);
  makeDirectory(folder, 0o700);
  const taken = new Set(await outputs(folder));
  const stamp = at.slice(0, 19).replace("T", "_").replaceAll(":", "-");
  let name = `${stamp}.md`;
  for (let more = 2; taken.has(name); more++) name = `${stamp}_${more}.md`;
  await writeFileAtomic(join(folder, name), `${home.redact(lines.join("\n"))}\n`, { mode: 0o600 });
  const old = [...taken, name].sort().slice(0, -KEPT_OUTPUTS);
  await Promise.all(old.map((one) => rm(join(folder, one), { force: true })));
}

/** An answer as it is delivered. */
export const wrapped = ({ name, id }: Job, text: string) =>
  `Cron job '${name}' (${id})\n\n${text}\n\nTo stop it: /cron remove ${id}`;
