// The agent of a scheduled job: a new one for each run, without history, asking nobody anything.

import type { TurnOutcome } from "../../agent/events.ts";
import type { OpenRequest } from "../../agent/open-request.ts";
import type { AgentAnswer, AgentTask } from "../../cron/run.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { fenced } from "../../prompt/fence.ts";
import type { SessionStore } from "../../sessions/store.ts";

interface ScheduledPorts {
  readonly home: OpenHome;
  readonly store: SessionStore;
  readonly clock: Clock;
  /** Where a job without a folder of its own works. */
  readonly cwd: string;
}

/** Seconds without a sign of life after which a run is given up. */
const IDLE_SECONDS = 600;
const LOOK_MS = 5_000;

/** Rejects only for what keeps it from being opened at all; what the turn comes to is in the answer. */
export async function runScheduled(task: AgentTask, ports: ScheduledPorts): Promise<AgentAnswer> {
  const { job, sessionId, note, data, signal } = task;
  const { openAgent } = await import("../../agent/open.ts");
  const conversation = await openAgent(requestFor(task, ports));
  const idle = new AbortController();
  const over = new AbortController();
  void watch(conversation.agent, ports, { idle, over: over.signal });
  try {
    const foreign = data.filter(({ isForeign }) => isForeign).map(({ title }) => title);
    await conversation.agent.readOutside(foreign);
    const given = data.map(({ title, text }) => fenced(title, text));
    const said = [note, ...given, job.prompt].filter((part) => part !== "").join("\n\n");
    let outcome: TurnOutcome | null = null;
    const turn = conversation.agent.run({ text: said }, { signal: AbortSignal.any([signal, idle.signal]) });
    for await (const event of turn) if (event.type === "done") outcome = event.outcome;
    await conversation.setTitle(`${job.name} · ${sessionId.slice(-15)}`).catch(() => undefined); // a name that is taken is no failure
    const notes = conversation.notes.filter((line) => line.startsWith("No such skill"));
    return { ...answerOf(outcome, idle.signal), notes };
  } finally {
    over.abort();
    await conversation.close("cron_complete");
  }
}

function requestFor({ job, slot, sessionId }: AgentTask, { home, store, clock, cwd }: ScheduledPorts): OpenRequest {
  const { model, provider } = home.config().cron;
  return {
    ...{ home, clock, sessionId, platform: "cron", source: "cron", origin: "cron", interactive: false },
    store: async () => store,
    cwd: job.workdir ?? cwd,
    model: job.model ?? (model || undefined),
    provider: job.provider ?? ownProvider(job) ?? (job.model === null ? provider || undefined : undefined),
    baseUrl: job.base_url ?? undefined,
    toolsets: job.enabled_toolsets ?? undefined,
    ...(job.skills.length > 0 ? { skills: job.skills, withoutMissingSkills: true } : {}),
    // The rules of a folder count for jobs that name it.
    ignoreRules: job.workdir === null,
    ...{ soulIdentity: true, learn: false, titles: false, restoreCwd: false },
    jobId: `cron:${job.id}:${slot}`,
    jobBudget: job.budget ?? undefined,
  };
}

function answerOf(outcome: TurnOutcome | null, idle: AbortSignal): Omit<AgentAnswer, "notes"> {
  if (idle.aborted) return { text: "", error: messageOf(idle.reason) };
  if (outcome === null) return { text: "", error: "the turn ended without a result" };
  if (outcome.interrupted) return { text: "", error: "it was stopped before it was done" };
  if (outcome.failed) return { text: "", error: outcome.finalText ?? outcome.error ?? "the run failed" };
  return { text: outcome.finalText ?? "", error: null };
}

/** An address alone is a server of the user's own. */
const ownProvider = ({ base_url: url }: AgentTask["job"]) => (url === null ? undefined : "custom");

/** Ends a turn that shows no sign of life for too long. */
async function watch(
  agent: { activity(): { readonly secondsSinceActivity: number } },
  { home, clock }: ScheduledPorts,
  { idle, over }: { readonly idle: AbortController; readonly over: AbortSignal },
): Promise<void> {
  const given = Number(home.env("HERMES_CRON_TIMEOUT") ?? IDLE_SECONDS);
  const limit = Number.isFinite(given) ? given : IDLE_SECONDS;
  if (limit <= 0) return;
  while (!over.aborted) {
    await clock.sleep(Math.min(LOOK_MS, limit * 250), over).catch(() => undefined); // it is over
    if (!over.aborted && agent.activity().secondsSinceActivity > limit)
      return idle.abort(new Error(`nothing happened for ${limit} s (HERMES_CRON_TIMEOUT)`));
  }
}
