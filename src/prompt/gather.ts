// Everything a prompt is made from, fetched at once. Whatever fails is left out with a note: building a prompt never fails.

import type { Config } from "../home/config/schema.ts";
import type { Clock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import type { VisibleSkills } from "../skills/visible.ts";
import { codingMode, codingPosture, readWorkspace } from "./coding.ts";
import type { CodingReading, ContextReading, PromptInputs, SoulReading } from "./contract.ts";
import { readContextFiles } from "./files/context-files.ts";
import { contextFileLimit, type FileRules, type Scan } from "./files/read.ts";
import { readSoul, wantsSoul } from "./files/soul.ts";
import type { RunProgram } from "./ports.ts";
import { type HostFacts, readHost } from "./probes/host.ts";
import type { PythonProbe } from "./probes/python.ts";

const EXTERNAL_MEMORY_MS = 5_000;

type Settings = Pick<Config, "agent" | "platform_hints" | "context_file_max_chars" | "context_files" | "security">;

/** The part of `PromptInputs` that needs no reading. */
type KnownInputs = Omit<
  PromptInputs,
  | ("soul" | "contextFiles" | "skills" | "coding" | "pythonLine" | "externalMemory" | "notes")
  | ("hostName" | "hostKind" | "environmentHint" | "platformHints")
  | ("toolUseEnforcement" | "taskCompletionGuidance" | "parallelToolGuidance")
>;

export interface PromptRequest {
  readonly known: KnownInputs;
  readonly settings: Settings;
  /** Nobody chose the directory; project files of the program's own folder are then not the user's. */
  readonly cwdIsFallback?: boolean;
  readonly installRoot?: string;
  readonly tempDir: string;
  readonly soulPath: string;
  /** Tokens; 0 when it is not known. */
  readonly contextLength: number;
  /** Sub-agents, batch runs and `--ignore-rules` go without project files, and without SOUL.md unless they want the identity. */
  readonly skipContextFiles: boolean;
  readonly loadSoulIdentity: boolean;
  /** HERMES_ENVIRONMENT_HINT, else the setting. */
  readonly environmentHint?: string | undefined;
  readonly host: HostFacts;
  /** What the caller found wrong already, for the user. */
  readonly notes?: readonly string[];
  /** What the session's first build found, null included: a rebuild does not look again. */
  readonly coding?: CodingReading | null;
}

export interface PromptPorts extends FileRules {
  readonly run: RunProgram;
  readonly scan: Scan;
  readonly clock: Clock;
  /** SHA-256 of files the user has trusted. */
  readonly trusted?: ReadonlySet<string>;
  readonly python?: PythonProbe;
  skills?(): Promise<Pick<VisibleSkills, "categories" | "warnings"> | null>;
  /** The static block of an external memory provider. */
  externalMemory?(): Promise<string | null>;
}

export async function gatherPromptInputs(request: PromptRequest, ports: PromptPorts): Promise<PromptInputs> {
  const { known, settings } = request;
  const notes: string[] = [...(request.notes ?? [])];
  const optional = async <T>(part: string, read: () => Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      notes.push(`The prompt goes without ${part}: ${messageOf(error)}`);
      return otherwise;
    }
  };
  const limit = contextFileLimit(request.contextLength, settings.context_file_max_chars);
  if (limit.warning !== null) notes.push(limit.warning);
  const rules = {
    files: ports.files,
    isDenied: (path: string) => ports.isDenied(path),
    scan: ports.scan,
    trusted: ports.trusted,
    reaction: settings.security.context_scan,
    limit: limit.chars,
  };
  const isLocal = known.backend?.type !== "remote";
  const [host, soul, contextFiles, coding, skills, pythonLine, externalMemory] = await Promise.all([
    optional("the name of the system", () => readHost(request.host, ports.files), { hostName: request.host.type }),
    optional<SoulReading | null>(
      "SOUL.md",
      async () => (wantsSoul(request) ? readSoul({ ...rules, path: request.soulPath }) : null),
      null,
    ),
    optional<ContextReading | null>("project files", () => readProjectFiles(request, rules), null),
    optional<CodingReading | null>("the code workspace", () => readCoding(request, ports), null),
    optional("the skills", async () => (await ports.skills?.()) ?? null, null),
    optional(
      "the Python toolchain",
      async () => (isLocal && settings.agent.environment_probe && (await ports.python?.line())) || null,
      null,
    ),
    optional("external memory", () => withLimit(ports.externalMemory?.(), ports.clock), null),
  ]);
  return {
    ...known,
    ...host,
    soul,
    toolUseEnforcement: settings.agent.tool_use_enforcement as PromptInputs["toolUseEnforcement"], // as the settings schema says
    taskCompletionGuidance: settings.agent.task_completion_guidance,
    parallelToolGuidance: settings.agent.parallel_tool_call_guidance,
    skills: skills?.categories ?? [],
    environmentHint: request.environmentHint ?? settings.agent.environment_hint,
    coding,
    pythonLine,
    platformHints: settings.platform_hints,
    contextFiles: contextFiles ?? undefined,
    externalMemory,
    notes: [...notes, ...(skills?.warnings ?? [])],
  };
}

type Rules = Pick<
  Parameters<typeof readContextFiles>[0],
  "files" | "isDenied" | "scan" | "trusted" | "reaction" | "limit"
>;

async function readProjectFiles(request: PromptRequest, rules: Rules): Promise<ContextReading | null> {
  const { settings, installRoot } = request;
  const { cwd, platform } = request.known;
  if (cwd === null) return null;
  return readContextFiles({
    ...rules,
    cwd,
    skip: request.skipContextFiles,
    fallbackIn: request.cwdIsFallback && installRoot !== undefined ? { installRoot, platform } : undefined,
    agentsScope: settings.context_files.agents_scope,
  });
}

async function readCoding(request: PromptRequest, { files, run, scan }: PromptPorts): Promise<CodingReading | null> {
  if (request.coding !== undefined) return request.coding;
  const { tempDir, settings } = request;
  const { cwd, userHome, platform, backend } = request.known;
  if (cwd === null || backend?.type === "remote") return null;
  const search = { cwd, userHome, tempDir, files };
  const { active, focus, root } = await codingPosture(codingMode(settings.agent.coding_context), platform, search);
  if (!active) return null;
  const workspace = root === null ? null : await readWorkspace({ root, files, run, scan });
  return { active, focus, workspace, instructions: settings.agent.coding_instructions };
}

async function withLimit(text: Promise<string | null> | undefined, clock: Clock): Promise<string | null> {
  if (!text) return null;
  const stop = new AbortController();
  const late = clock.sleep(EXTERNAL_MEMORY_MS, stop.signal).then(() => {
    throw new Error(`it did not answer within ${EXTERNAL_MEMORY_MS / 1000} seconds`);
  });
  try {
    return await Promise.race([text, late]);
  } finally {
    stop.abort(new Error("answered"));
    late.catch(() => undefined); // whoever loses the race has nothing more to say
    text.catch(() => undefined);
  }
}
