// The system prompt of a conversation: built once, stored with the session, from then on taken from there byte for byte.

import { readFile } from "node:fs/promises";
import { release, tmpdir, type, userInfo } from "node:os";
import { delimiter } from "node:path";
import type { OpenHome } from "../home/open.ts";
import { installRoot } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import { makeDirectories, writeFileAtomic } from "../kit/files.ts";
import type { Target } from "../llm/wire.ts";
import type { Memory } from "../memory/open.ts";
import type { AgentSkills } from "../skills/open.ts";
import { visibleSkills } from "../skills/visible.ts";
import { buildSystemPromptParts } from "./build.ts";
import type { Backend, CodingReading, PromptBuild, PromptSource } from "./contract.ts";
import { calendarDay, isKnownZone, sameDay } from "./day-notes.ts";
import { gatherPromptInputs, type PromptPorts } from "./gather.ts";
import { type ProbeOptions, type PythonProbe, rememberedPythonProbe } from "./probes/python.ts";
import { readingPorts } from "./reading-ports.ts";

/** What the prompt has to know of what a conversation was opened with. */
interface PromptRequest {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly platform: string;
  readonly passSessionId?: boolean | undefined;
  /** No SOUL.md, project files, memory or skills that are active from the start. */
  readonly ignoreRules?: boolean | undefined;
  /** SOUL.md speaks all the same. */
  readonly soulIdentity?: boolean | undefined;
  /** What the door lays over the prompt, in place of `agent.system_prompt`; asked for every request, never stored. */
  overlay?(): string | undefined;
}

export interface PromptContext {
  readonly request: PromptRequest;
  readonly cwd: string;
  /** Nobody chose it. */
  readonly cwdIsFallback?: boolean;
  /** Where commands run; absent = on this machine as it is. */
  readonly backend?: () => Promise<Backend | undefined>;
  /** As `sandboxStamp` writes it; absent where commands run elsewhere. */
  readonly sandbox?: string | undefined;
  readonly toolNames: readonly string[];
  readonly toolsets: readonly string[];
  /** Hash of the tool list as it is sent, and of what the user chose. */
  readonly toolsHash?: string;
  readonly toolSelection?: string;
  readonly memory: Pick<Memory, "snapshot" | "reload"> | null;
  readonly skills: AgentSkills | null;
  /** The external memory's own text. */
  readonly externalMemory?: () => Promise<string | null>;
  readonly recall?: NonNullable<PromptSource["recall"]>;
  /** Unix seconds. */
  readonly startedAt: number;
  readonly systemMessage?: string | null;
  /** What an earlier build found; then nobody looks again. */
  readonly coding?: CodingReading | null;
}

export interface BuiltPrompt extends PromptBuild {
  readonly coding: CodingReading | null;
  /** Of the project files in it: hints about sub-directories do not repeat them. */
  readonly contextHashes: readonly string[];
}

/** The one way a prompt is built, for conversations and for whoever wants to look at it. */
export async function buildPrompt(
  context: PromptContext,
  target: Pick<Target, "model" | "provider" | "contextLength" | "windowAssumed">,
  sessionId: string,
): Promise<BuiltPrompt> {
  const { request } = context;
  const { home } = request;
  const settings = home.config();
  const backend = await context.backend?.();
  const startedOn = calendarDay(context.startedAt * 1000, settings.timezone);
  const today = calendarDay(request.clock.now(), settings.timezone);
  const inputs = await gatherPromptInputs(
    {
      known: {
        model: target.model,
        provider: target.provider,
        platform: request.platform,
        toolNames: context.toolNames,
        toolsHash: context.toolsHash,
        toolSelection: context.toolSelection,
        userHome: home.environment().HOME ?? userInfo().homedir,
        profile: home.paths.profile,
        rootHome: home.display(home.paths.root),
        profileHome: home.display(home.paths.dir),
        // Another machine has no folder of ours.
        cwd: backend?.type === "remote" && backend.name === "ssh" ? null : context.cwd,
        backend,
        systemMessage: context.systemMessage ?? null,
        memoryText: null,
        userText: null,
        ...context.memory?.snapshot(),
        startedOn,
        rebuiltOn: sameDay(startedOn, today) ? null : today,
        sessionId: request.passSessionId ? sessionId : null,
        kanbanGuidance: workerGuidance(context),
      },
      settings,
      installRoot: installRoot(),
      cwdIsFallback: context.cwdIsFallback === true,
      tempDir: tmpdir(),
      soulPath: home.paths.soulFile,
      contextLength: target.windowAssumed ? 0 : target.contextLength,
      skipContextFiles: request.ignoreRules === true,
      loadSoulIdentity: request.soulIdentity === true,
      coding: context.coding,
      notes: isKnownZone(settings.timezone) ? [] : [unknownZone(settings.timezone)],
      host: { platform: process.platform, type: type(), release: release(), env: (name) => home.env(name) },
    },
    await promptPorts(context),
  );
  const { coding = null, contextFiles } = inputs;
  return { ...buildSystemPromptParts(inputs), coding, contextHashes: contextFiles?.hashes ?? [] };
}

const unknownZone = (zone: string) =>
  `timezone in config.yaml (or HERMES_TIMEZONE) is ${JSON.stringify(zone)}, which is not a time zone like Europe/Berlin; the machine's own is used.`;

// What the prompt's readers may use of this machine: its files behind the deny list, git and python, the skills.

/** What the dispatcher tells a worker about its work, in place of our own words. Null: it told nothing, or this is no worker. */
function workerGuidance({ request: { home }, toolNames }: PromptContext): string | null {
  const isWorker = Boolean(home.env("HERMES_KANBAN_TASK")?.trim()) && toolNames.includes("kanban_show");
  return (isWorker ? home.env("HERMES_KANBAN_GUIDANCE")?.trim() : "") || null;
}

async function promptPorts(context: PromptContext): Promise<PromptPorts> {
  const { home, clock, platform } = context.request;
  const { environment, files, isDenied, run, scan, trusted } = await readingPorts(home);
  const { skills } = context;
  return {
    files,
    isDenied,
    run,
    scan,
    trusted,
    clock,
    python: pythonProbe(home, { run, files, clock, path: environment.PATH ?? "" }),
    externalMemory: context.externalMemory,
    async skills() {
      const loaded = { tools: new Set(context.toolNames), toolsets: new Set(context.toolsets) };
      return skills && visibleSkills(skills.context, { platform, loaded });
    },
  };
}

/** Looking through PATH for four programs is fifty looks at the disk: a server that builds a prompt for every call does it once a minute. */
const PROBE_KEPT_MS = 60_000;
const probes = new WeakMap<OpenHome, { readonly path: string; readonly at: number; readonly probe: PythonProbe }>();

function pythonProbe(home: OpenHome, parts: Omit<ProbeOptions, "delimiter" | "safeDirectory">): PythonProbe {
  const { clock, path } = parts;
  const kept = probes.get(home);
  if (kept && kept.path === path && Math.abs(clock.now() - kept.at) < PROBE_KEPT_MS) return kept.probe;
  const file = home.paths.at("cache", "python-probe.json");
  const probe = rememberedPythonProbe(
    { ...parts, delimiter: delimiter === ";" ? ";" : ":", safeDirectory: home.paths.dir },
    {
      read: () => readFile(file, "utf8"),
      async write(text) {
        await makeDirectories(home.paths.cacheDir, 0o700);
        await writeFileAtomic(file, text);
      },
    },
  );
  probes.set(home, { path, at: clock.now(), probe });
  return probe;
}
