// The skills of one agent: the tools' way in. Everything else of this room works on a `SkillsContext`.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readSmallNow } from "../home/looks.ts";
import type { OpenHome } from "../home/open.ts";
import { VERSION } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import { UserError } from "../kit/errors.ts";
import { parseAs, record, text } from "../kit/json.ts";
import { type HistoryMessage, userTextToSend } from "../llm/messages.ts";
import type { Environment } from "../sandbox/environment.ts";
import type { SyncResult } from "./bundled.ts";
import type { GuardScan, ManageRequest } from "./manage/write.ts";
import type { InlineShell } from "./preprocess.ts";
import { bundledDir } from "./provenance.ts";
import { flushUsage, type SkillsContext } from "./roots.ts";
import { type SkillResult, type SkillRun, ViewMemory } from "./run.ts";
import type { SkillVariables } from "./variables.ts";

interface SkillsOptions {
  readonly home: Pick<OpenHome, "paths" | "config" | "env" | "setEnv" | "log">;
  readonly clock: Clock;
  /** Runs commands inside skills when `skills.inline_shell` is on; see `bashSnippets`. */
  readonly inlineShell?: InlineShell;
  /** Hands the variables on that opened skills declare. */
  readonly variables?: SkillVariables | undefined;
  /** Plugin namespace -> its folder of skills. */
  readonly plugins?: ReadonlyMap<string, readonly string[]>;
}

export interface AgentSkills {
  readonly context: SkillsContext;
  /** For surfaces that put a skill's text into a message themselves. */
  readonly inlineShell: InlineShell | undefined;
  /** For them too, and for scripts. */
  readonly variables: SkillVariables | undefined;
  list(request: { readonly category?: string | undefined }, run: SkillRun): Promise<SkillResult>;
  view(request: { readonly name: string; readonly filePath?: string | undefined }, run: SkillRun): Promise<SkillResult>;
  manage(request: ManageRequest, run: SkillRun): Promise<SkillResult>;
  /** Names offered on a platform when they were first asked for: what `/reload-skills` compares with. */
  namesAtStart(platform: string): Promise<ReadonlySet<string>>;
  /** Loaded texts are gone from the conversation (compression, undo): the next view shows them again. */
  forgetViews(): void;
  /** The same skills for another run, which has seen nothing yet. */
  fork(): AgentSkills;
  /** Writes counts that still wait. */
  flush(): Promise<void>;
}

export function skillsContext({ home, clock, plugins }: SkillsOptions): SkillsContext {
  return {
    paths: home.paths,
    config: () => home.config(),
    env: (name) => home.env(name),
    clock,
    log: home.log.child("skills"),
    plugins,
  };
}

/** One per agent: what it has looked at is remembered here. */
export function openSkills(options: SkillsOptions): AgentSkills {
  const context = skillsContext(options);
  const views = new ViewMemory();
  const ports = {
    views,
    inlineShell: options.inlineShell,
    setEnv: (name: string, value: string) => options.home.setEnv(name, value),
    variables: options.variables,
  };
  let atStart: Promise<ReadonlySet<string>> | null = null;
  return {
    context,
    inlineShell: options.inlineShell,
    variables: options.variables,
    namesAtStart(platform) {
      atStart ??= import("./open-skill.ts").then(async ({ offeredSkills }) => {
        const offered = await offeredSkills(context, platform);
        return new Set(offered.map(({ name }) => name));
      });
      return atStart;
    },
    // Loaded on first use: most conversations need one of the three, many none.
    async list(request, run) {
      const { listSkills } = await import("./open-skill.ts");
      return listSkills(context, { ...request, platform: run.platform });
    },
    async view(request, run) {
      const { viewSkill } = await import("./view.ts");
      return viewSkill(request, context, run, ports);
    },
    async manage(request, run) {
      const { manageSkill } = await import("./manage/manage.ts");
      return manageSkill({ request, context, run, ports: { views, scan: guardScan } });
    },
    forgetViews: () => views.forget(),
    // What it opens is not what the conversation opened.
    fork: () => openSkills({ ...options, variables: undefined }),
    flush: () => flushUsage(context),
  };
}

/** Loaded when the guard is on, and then only on the first write. */
const guardScan: GuardScan = async (dir) => {
  const { guardAgentSkill } = await import("./scan/scan.ts");
  return guardAgentSkill(dir);
};

// One look at a stamp is what a start costs; the sync itself is loaded when this version has not yet run in this home.

/** Runs the sync when this version of the program has not yet done so in this home. */
export async function syncOnStart(context: SkillsContext): Promise<SyncResult | null> {
  const stamp = join(context.paths.skillsDir, ".bundled_version");
  const wanted = `${VERSION} ${bundledDir(context)}\n`;
  if ((readSmallNow(stamp)?.toString() ?? (await readFile(stamp, "utf8").catch(() => ""))) === wanted) return null;
  const { syncBundledSkills } = await import("./bundled.ts");
  const result = await syncBundledSkills(context);
  if (result.failed.length > 0) return result;
  const { writeFileAtomic } = await import("../kit/files.ts");
  await writeFileAtomic(stamp, wanted);
  return result;
}

// The skills of one conversation, and what they may use of it.

export async function openAgentSkills(
  home: OpenHome,
  clock: Clock,
  environment?: Environment,
  {
    plugins,
    variables,
  }: { readonly plugins?: SkillsOptions["plugins"] | undefined; readonly variables?: SkillVariables } = {},
): Promise<AgentSkills> {
  const skills = openSkills({
    home,
    clock,
    variables,
    ...(plugins && plugins.size > 0 ? { plugins } : {}),
    async inlineShell(command, options) {
      const { inlineShell } = await import("./inline-shell.ts");
      return inlineShell(home, environment, variables?.values())(command, options);
    },
  });
  try {
    await syncOnStart(skills.context);
  } catch (error) {
    home.log.warn("the skills that come with the program could not be copied into the home", error);
  }
  return skills;
}

/** A conversation goes on: what the skills declare that its messages hold is handed on again. One that is gone since declares nothing. */
export async function reopenFor(
  history: readonly HistoryMessage[],
  { context, variables }: AgentSkills,
  platform: string,
): Promise<void> {
  const names = new Set<string>();
  for (const message of history) {
    const sent = message.role === "user" ? userTextToSend(message) : "";
    // Most conversations carry none, and then nothing is loaded.
    if (/^\[The/m.test(sent)) for (const name of (await import("./expand.ts")).skillsIn(sent)) names.add(name);
    const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
    for (const { function: call } of calls)
      if (call.name === "skill_view") names.add(parseAs(call.arguments, viewArguments)?.name ?? "");
  }
  if (names.size === 0) return;
  const { openSkill } = await import("./open-skill.ts");
  const { checkRequirements } = await import("./requirements.ts");
  for (const name of names) {
    const opened = await openSkill(name, context, { platform });
    if (opened.type === "refused") continue;
    const declared = (await checkRequirements(opened.parsed.fields, context)).variables.map(
      (variable) => variable.name,
    );
    await variables?.open(opened.skill, declared, context);
  }
}

const viewArguments = record({ name: text });

/** The text of the skills a conversation begins with. Throws for one that cannot be loaded, unless the request does without. */
export async function preloadFor(
  {
    skills: names = [],
    platform,
    withoutMissingSkills,
  }: { readonly skills?: readonly string[]; readonly platform: string; readonly withoutMissingSkills?: boolean },
  skills: AgentSkills,
  sessionId: string,
): Promise<{ readonly text: string; readonly note: string | null } | null> {
  if (names.length === 0) return null;
  const { preloadSkills } = await import("./expand.ts");
  const { text: opening, missing } = await preloadSkills(names, skills.context, {
    platform,
    sessionId,
    inlineShell: skills.inlineShell,
    variables: skills.variables,
  });
  if (missing.length === 0) return { text: opening, note: null };
  const note = `No such skill: ${missing.join(", ")} (unknown, disabled, or not for this system). "hermes skills list" shows the skills.`;
  if (!withoutMissingSkills) throw new UserError(note);
  return { text: opening, note };
}
