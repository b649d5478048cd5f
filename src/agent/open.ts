// From a home and a wish to a conversation: everything an agent is made of is chosen and put together here, once, for every door.
import { delimiter } from "node:path";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import type { ModelGate } from "../llm/gate.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { Target, ToolDefinition } from "../llm/wire.ts";
import { closeIdleConnections } from "../llm/wires/model-fetch.ts";
import { type Memory, openMemory } from "../memory/open.ts";
import type { Expansion } from "../prompt/references/expand.ts";
import type { Environment } from "../sandbox/environment.ts";
import { openEnvironment } from "../sandbox/open.ts";
import { newSessionId } from "../sessions/session-id.ts";
import type { EndReason, SessionStore } from "../sessions/store.ts";
import type { AgentSkills } from "../skills/open.ts";
import type { ToolContext } from "../tools/context.ts";
import { processTable } from "../tools/process-table.ts";
import type { Toolbox } from "../tools/toolbox.ts";
import { Agent, AgentBusyError } from "./agent.ts";
import type { AuxPlace } from "./auxiliary/contract.ts";
import { type CheckpointPort, openCheckpointPort } from "./checkpoints/port.ts";
import type { Rollback } from "./checkpoints/rollback.ts";
import { type ConversationPrompt, promptSource } from "./conversation-prompt.ts";
import { type ChildTable, childTable } from "./delegation/children.ts";
import type { Parent } from "./delegation/spawn.ts";
import { focusToolsets } from "./focus-toolsets.ts";
import { restampTools, toolHashes } from "./frozen-tools.ts";
import { learnedWindows } from "./learned-windows.ts";
import { openGate } from "./open-gate.ts";
import { openGuard } from "./open-guard.ts";
import { ConversationMcp } from "./open-mcp.ts";
import {
  type ChosenModel,
  chooseTarget,
  demoNote,
  handedOver,
  modelConfig,
  resumedModel,
  switchTarget,
} from "./open-model.ts";
import { openPlugins, withPlugins } from "./open-plugins.ts";
import type { OpenedProvider } from "./open-provider.ts";
import { openAgentSkills, preloadFor } from "./open-skills.ts";
import { openSessionTools, openTools, portsOf, type ToolPlace } from "./open-tools.ts";
import type { AgentPorts, HintsPort, Limits, ModelChoice } from "./options.ts";
import type { ConversationPlugins } from "./plugins/conversation.ts";
import { type ResumedSession, resumeSession } from "./resume.ts";
import { sessionCwd } from "./session-cwd.ts";
import type { StartWish } from "./start-wish.ts";
import { type SwappableTools, swappableTools } from "./swappable-tools.ts";

/** What a door wants to talk with, and how. */
export interface AgentWish {
  readonly home: OpenHome;
  readonly clock: Clock;
  store(): Promise<SessionStore>;
  readonly cwd: string;
  readonly platform: string;
  /** Stored with the session: where it came from. */
  readonly source: string;
  /** Somebody can be asked. */
  readonly interactive: boolean;
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  /** Replaces the configured toolsets. */
  readonly toolsets?: readonly string[] | undefined;
  /** Skills that are active for the whole conversation. */
  readonly skills?: readonly string[] | undefined;
  /** A skill that cannot be loaded is noted instead of refused. */
  readonly withoutMissingSkills?: boolean | undefined;
  readonly resume?: ResumeWish | undefined;
  readonly restoreCwd?: boolean | undefined;
  readonly yolo?: boolean | undefined;
  /** Shell hooks nobody was asked about may run. */
  readonly acceptHooks?: boolean | undefined;
  readonly maxTurns?: number | undefined;
  readonly reasoning?: string | undefined;
  readonly passSessionId?: boolean | undefined;
  /** Copies of files before they are changed, whatever the settings say. */
  readonly checkpoints?: boolean | undefined;
  /** False: a review that falls due waits for a run with time for it. */
  readonly learn?: boolean | undefined;
  /** No SOUL.md, project files, memory or skills that are active from the start. */
  readonly ignoreRules?: boolean | undefined;
  /** A conversation that has just begun is given a title. */
  readonly titles?: boolean | undefined;
  /** No person opens it: what it is handed by whoever does. */
  readonly start?: StartWish | undefined;
  /** What the door lays over the prompt, in place of `agent.system_prompt`; asked for every request, never stored. */
  overlay?(): string | undefined;
  /** What the door offers to tools: the schedule, the way to chats. */
  readonly ports?: Pick<ToolContext, "cron" | "deliver"> | undefined;
  /** The text of a page, fenced as untrusted, for `@url:`. Absent: it is fetched as the web tools do it. */
  readPage?(url: string): Promise<string>;
}

/** An id, a title or an id's prefix; `null` = the most recent conversation. */
export interface ResumeWish {
  readonly name: string | null;
}

/** A conversation as a door holds it: the agent, where it is stored, and what can be changed about it between turns. */
export interface OpenAgent {
  readonly agent: Agent;
  readonly store: SessionStore;
  /** Where requests go now. */
  readonly target: Target;
  /** Null where skills are switched off. */
  readonly skills: AgentSkills | null;
  /** Null where there is none in this conversation. */
  readonly memory: Memory | null;
  /** Tools of this conversation, sorted. */
  readonly toolNames: readonly string[];
  /** The tool list as it is sent. */
  readonly definitions: readonly ToolDefinition[];
  /** What was said before, when an earlier conversation is taken up again. */
  readonly history: readonly HistoryMessage[];
  readonly resumed: ResumedSession | null;
  /** It reads no SOUL.md, project files and memory. */
  readonly ignoresRules: boolean;
  /** True when the embedded demo model answers because no provider is configured. */
  readonly demo: boolean;
  /** Lines the user should see once: demo notice, ignored toolsets, where the conversation goes on. */
  readonly notes: readonly string[];
  /** "Do not ask" for this conversation only. */
  yolo: boolean;
  /** What the agent started in the background and has not ended. */
  readonly processes: { readonly running: number; stopAll(): Promise<number> };
  /** The sub-agents of the running turn. */
  readonly subagents: ChildTable;
  /** How hard the model thinks from the next turn on: none, minimal, low, medium, high, xhigh; empty = the provider's default. */
  setReasoning(effort: string): Promise<void>;
  /** Another model from the next turn on. All or nothing; resolves to a sentence for the user. */
  switchModel(wish: { model: string; provider?: string | undefined; global?: boolean | undefined }): Promise<string>;
  /** Models the user may pick from, of the provider in use. */
  knownModels(): Promise<
    readonly { readonly model: string; readonly provider: string; readonly contextLength: number | null }[]
  >;
  /** What a message points at with `@`, attached below it; null when it points at nothing or references are off here. */
  attachReferences(text: string): Promise<Expansion | null>;
  /** Builds the system prompt anew; the provider's cache of the conversation is lost when it changed. */
  reloadPrompt(): Promise<{ readonly changed: boolean; readonly warnings: readonly string[] }>;
  /** The checkpoints of the project it stands in. Rejects with a `UserError` where there can be none. */
  rollback(): Promise<Rollback>;
  title(): Promise<string | null>;
  setTitle(title: string): Promise<void>;
  /** Connects to the MCP servers anew; from the next request on their tools are in the list. Resolves to lines for the user. */
  reloadMcp(): Promise<readonly string[]>;
  /**
   * Ends the session (nothing is left behind of an empty one) and everything that runs for it. Idempotent. `next`: the id of the
   * conversation that takes its place.
   */
  close(reason: EndReason, next?: string): Promise<void>;
}

export async function openAgent(wish: AgentWish): Promise<OpenAgent> {
  const mcp = new ConversationMcp(wish);
  try {
    return await assemble(wish, mcp);
  } catch (error) {
    // Servers that were started for a conversation that never came to be would keep the process alive.
    await mcp.close();
    throw error;
  }
}

async function assemble(wish: AgentWish, mcp: ConversationMcp): Promise<OpenAgent> {
  const { home, clock, start } = wish;
  const config = home.config();
  const store = await wish.store();
  if (!start) tidyUp(store, home);
  const found = wish.resume ? await resumeSession(wish.resume.name, store) : null;
  const sessionId = found?.id ?? start?.sessionId ?? newSessionId(clock);
  const recorded = found?.recorded ?? {};
  const chosen = start?.model ? handedOver(start.model.target) : await chooseTarget(home, resumedModel(wish, recorded));
  // A child begins where its parent stands.
  const folder = start ? { cwd: wish.cwd, isFallback: false, warning: null } : await sessionCwd(home, wish.cwd);
  const cwd = wish.restoreCwd !== false && recorded.cwd ? recorded.cwd : folder.cwd;
  const session: { agent?: Agent } = {};
  const currentId = () => session.agent?.sessionId ?? sessionId;
  const environment = await openEnvironment(config, {
    environment: home.environment(),
    cwd,
    privateHome: home.paths.at("home"),
    sessionId: currentId,
    userHome: home.osHome,
    hermesHome: home.paths,
    unattended: !wish.interactive,
    report: (problem) => home.log.warn(problem),
  });
  // A place of its own has a folder of its own to begin with; a child begins where its parent stands.
  if (start?.origin === "subagent" && environment.cwd !== cwd) environment.setCwd(cwd);
  const memory = wish.ignoreRules ? null : await openMemory({ ...home, clock, log: home.log.child("memory") });
  const withoutMemory = memory?.enabled ? [] : ["memory"];
  const warnings: string[] = folder.warning === null ? [] : [folder.warning];
  const plugins = await openPlugins({ ...wish, cwd });
  warnings.push(...(plugins?.notes ?? []));
  const provider = await openExternalMemory(wish, { sessionId, memory, title: found?.resumed.title }, warnings);
  const resumed = found && { id: found.id, store };
  const place: ToolPlace = {
    toolsets: await focusToolsets(wish, cwd, resumed),
    environment,
    contextLength: chosen.target.contextLength,
    without: withoutMemory,
    mcp,
    ...(provider ? { extend: (tools: Toolbox) => provider.withTools(tools) } : {}),
  };
  const swappable = swappableTools(await openSessionTools(wish, place, resumed));
  const { tools } = swappable;
  const hashes = () => toolHashes(tools, home.config(), withoutMemory);
  const toolNames = [...tools.names].sort();
  const guard = openGuard(wish, environment, currentId);
  const skills = start && !start.skills ? null : await openAgentSkills(home, clock, environment, plugins?.skills);
  const prompt = promptSource(
    {
      wish,
      cwd,
      cwdIsFallback: folder.isFallback && cwd === wish.cwd,
      ...(environment.kind === "local"
        ? {}
        : { backend: async () => (await import("./prompt-backend.ts")).backendOf(environment) }),
      toolNames,
      toolsets: tools.toolsets,
      get toolsHash() {
        return hashes().toolsHash;
      },
      get toolSelection() {
        return hashes().toolSelection;
      },
      memory,
      skills,
      ...(provider ? { externalMemory: () => provider.attached.block(), recall: provider.recall } : {}),
      ...(plugins ? { recall: plugins.recall(provider?.recall) } : {}),
      startedAt: found?.startedAt ?? clock.now() / 1000,
      systemMessage: start?.systemMessage ?? null,
    },
    { store, tools },
  );
  const checkpoints = openCheckpointPort(wish, environment);
  const spending: string[] = [];
  const preloaded = skills && !start && !wish.ignoreRules ? await preloadFor(wish, skills, sessionId) : null;
  if (preloaded?.note) warnings.push(preloaded.note);
  const resolvePlace = async (place: AuxPlace) =>
    (await import("./auxiliary/places.ts")).resolvePlace(home, place, clock);
  const own: AgentPorts = {
    gate: start?.gate ?? openGate(home, store, clock, (message) => spending.push(message)),
    takeWarnings: () => spending.splice(0),
    clock,
    log: home.log.child("agent"),
    home: home.paths,
    config: () => home.config(),
    environment,
    redact: home.redact,
    redactKept: home.redact.forKeeping,
    toolPorts: {
      env: (name) => home.env(name),
      redactFile: (text, path) => home.redact.forFile(text, path),
      ...(skills ? { skills } : {}),
      ...portsOf(wish),
      writeSafeRoots: (home.env("HERMES_WRITE_SAFE_ROOT") ?? "").split(delimiter).filter((root) => root !== ""),
    },
    ...(memory?.enabled ? { memory: memory.port } : {}),
    resolvePlace,
    keys: {
      others: async (target) => (await keyPools(home, clock)).others(target),
      rotate: async (target, failure) => (await keyPools(home, clock)).rotate(target, failure),
      async used(target) {
        const strategy = home.config().credential_pool_strategies[target.provider];
        if (strategy === "round_robin" || strategy === "least_used") await (await keyPools(home, clock)).used(target);
      },
    },
    renewConnections: closeIdleConnections,
    keepRefused: async (refused) => (await import("./recovery/request-dump.ts")).dumpRequest(home, clock, refused),
    ...(provider ? { follower: provider.follower } : {}),
    compression: {
      ...provider?.compression,
      flushMemories: async ({ signal }) => void (await session.agent?.flushMemories("compression", signal)),
      async compressed(change) {
        skills?.forgetViews();
        await provider?.compression.compressed?.(change);
      },
    },
    learnWindow: ({ baseUrl, model }, tokens) => learnedWindows(home).set(baseUrl, model, tokens),
    ...(wantsHints(wish) && !environment.files ? { hints: hintsOnce(home, cwd, prompt) } : {}),
    beforeTurn: () => mcp.beforeTurn(),
    ...guard.ports,
    ...(checkpoints ? { checkpoint: checkpoints.before } : {}),
    delegation: {
      async spawn(tasks, call) {
        const { spawnChildren } = await import("./delegation/spawn.ts");
        const onReport: Parent["onReport"] = (...report) => ports.follower?.delegated?.(...report);
        const parts = { home, clock, environment, tools, agent, guard, gate: ports.gate, onReport };
        return spawnChildren(delegatingParent(wish, parts), tasks, call);
      },
    },
  };
  const ports = withPlugins(own, plugins);
  const model: ModelChoice = start?.model ?? {
    target: chosen.target,
    cacheTtl: config.prompt_caching.cache_ttl,
    ...(config.model.max_tokens ? { maxTokens: config.model.max_tokens } : {}),
    liveness: {
      totalSeconds: seconds(home.env("HERMES_API_TIMEOUT")),
      staleSeconds: seconds(home.env("HERMES_STREAM_STALE_TIMEOUT")),
      wholeStaleSeconds: seconds(home.env("HERMES_API_CALL_STALE_TIMEOUT")),
    },
    ...reasoningOf(wish.reasoning ?? config.agent.reasoning_effort),
  };
  const agent = new Agent({
    session: {
      id: sessionId,
      source: wish.source,
      platform: wish.platform,
      profile: home.paths.profile,
      store,
      row: {
        cwd,
        modelConfig: {
          ...modelConfig(chosen),
          ...(start?.delegatedFrom ? { _delegate_from: start.delegatedFrom } : {}),
        },
        ...(start?.delegatedFrom ? { parentSessionId: start.delegatedFrom } : {}),
      },
      interactive: wish.interactive,
      reviews: wish.learn !== false && !start,
      titles: wish.titles === true && !start,
      ...(start ? { origin: start.origin } : {}),
      ...(start?.task ? { task: start.task } : {}),
      ...(start?.jobId ? { jobId: start.jobId } : {}),
      ...(start?.taskId ? { taskId: start.taskId } : {}),
      ...(preloaded?.text ? { opening: preloaded.text } : {}),
    },
    model,
    prompt,
    tools,
    limits: {
      maxIterations: wish.maxTurns ?? config.agent.max_turns,
      apiMaxRetries: config.agent.api_max_retries,
      ...streamRetriesOf(home.env("HERMES_STREAM_RETRIES")),
      maxConcurrentChildren: Math.max(1, config.delegation.max_concurrent_children),
    },
    ports,
  });
  session.agent = agent;
  const { gate } = ports;
  plugins?.attach(agent, gate);
  mcp.paidBy({
    sessionId: currentId,
    jobId: start?.jobId,
    gate,
    main: () => agent.model.target,
    resolve: resolvePlace,
  });
  if (found) await store.reopen(found.id);
  const notes = [...warnings, ...tools.unknown.map((name) => `Unknown toolset "${name}" is ignored.`)];
  const processes = tools.state.of(processTable);
  return new Opened(agent, {
    wish,
    store,
    chosen,
    skills,
    memory,
    provider,
    cwd,
    tools,
    notes,
    found,
    guard,
    environment,
    checkpoints,
    processes,
    mcp,
    plugins,
    reload,
  });

  async function reload(): Promise<readonly string[]> {
    const lines = await mcp.reload();
    const before = hashes().toolsHash;
    swappable.swap(await openTools(wish, place));
    if (hashes().toolsHash === before) return [...lines, "The tools of this conversation are the same as before."];
    gate.expectNewPrefix(agent.sessionId, "reload");
    await restampTools(tools, hashes(), agent.sessionId, store);
    return lines;
  }
}

/** A child reads no rules at its start; whether it meets them on its way is its first parent's wish. */
const wantsHints = ({ start, ignoreRules }: AgentWish) => start?.hints ?? !ignoreRules;

/** Whoever never calls a tool never loads what discovers. */
function hintsOnce(home: OpenHome, cwd: string, prompt: ConversationPrompt): () => Promise<HintsPort> {
  let opened: Promise<HintsPort> | null = null;
  return () => {
    opened ??= import("./subdirectory-hints.ts").then(({ openHints }) =>
      openHints({ home, cwd, knownHashes: () => prompt.contextHashes() }),
    );
    return opened;
  };
}

/** Children are opened like the conversation itself, with their own history, tools and shell, and nobody to ask. */
function delegatingParent(
  wish: AgentWish,
  {
    guard,
    gate,
    ...parts
  }: Omit<Parent, "depth" | "subagentId" | "open"> & {
    readonly guard: { readonly yolo: boolean };
    readonly gate: ModelGate;
  },
): Parent {
  const skills = wish.start ? wish.start.skills === true : true;
  const { resume: _resume, model: _model, provider: _provider, reasoning: _reasoning, ...own } = wish;
  return {
    ...parts,
    depth: wish.start?.depth ?? 0,
    subagentId: wish.start?.subagentId ?? null,
    open: (start, cwd) =>
      openAgent({
        ...own,
        cwd,
        start: {
          ...start,
          gate,
          skills,
          hints: wantsHints(wish),
          ...(wish.start?.jobId ? { jobId: wish.start.jobId } : {}),
        },
        source: "subagent",
        interactive: false,
        ignoreRules: true,
        yolo: guard.yolo,
        maxTurns: wish.home.config().delegation.max_iterations,
      }),
  };
}

/** Old conversations go when the user wants it so; it never delays the one that is opened. */
function tidyUp(store: SessionStore, home: OpenHome): void {
  const { sessions } = home.config();
  if (!sessions.auto_prune) return;
  store
    .autoPrune({
      retentionDays: sessions.retention_days,
      minIntervalHours: sessions.min_interval_hours,
      vacuum: sessions.vacuum_after_prune,
    })
    .catch((error) => home.log.warn("old sessions could not be pruned", error));
}

interface Parts {
  readonly wish: AgentWish;
  readonly store: SessionStore;
  readonly chosen: ChosenModel;
  readonly skills: AgentSkills | null;
  readonly memory: Memory | null;
  readonly provider: OpenedProvider | null;
  readonly cwd: string;
  readonly tools: SwappableTools["tools"];
  readonly notes: readonly string[];
  readonly found: Awaited<ReturnType<typeof resumeSession>> | null;
  readonly guard: { yolo: boolean };
  readonly environment: Environment;
  readonly checkpoints: CheckpointPort | null;
  readonly processes: OpenAgent["processes"];
  readonly mcp: ConversationMcp;
  readonly plugins: ConversationPlugins | null;
  readonly reload: () => Promise<readonly string[]>;
}

class Opened implements OpenAgent {
  readonly agent: Agent;
  readonly store: SessionStore;
  readonly skills: AgentSkills | null;
  readonly memory: Memory | null;
  readonly history: readonly HistoryMessage[];
  readonly resumed: ResumedSession | null;
  readonly notes: readonly string[];
  readonly #parts: Parts;
  #chosen: ChosenModel;
  #closed: Promise<void> | null = null;

  constructor(agent: Agent, parts: Parts) {
    const { chosen, found } = parts;
    this.agent = agent;
    this.#parts = parts;
    this.#chosen = chosen;
    this.store = parts.store;
    this.skills = parts.skills;
    this.memory = parts.memory;
    this.history = found?.history ?? [];
    this.resumed = found?.resumed ?? null;
    this.notes = [...(chosen.demo ? [demoNote()] : []), ...chosen.warnings, ...(found?.notes ?? []), ...parts.notes];
  }

  get toolNames(): readonly string[] {
    return [...this.#parts.tools.names].sort();
  }

  get definitions(): readonly ToolDefinition[] {
    return this.#parts.tools.definitions;
  }

  get target(): Target {
    return this.agent.model.target;
  }

  get demo(): boolean {
    return this.#chosen.demo;
  }

  get yolo(): boolean {
    return this.#parts.guard.yolo;
  }

  set yolo(on: boolean) {
    this.#parts.guard.yolo = on;
  }

  async switchModel(wish: { model: string; provider?: string; global?: boolean }): Promise<string> {
    const provider = wish.provider ?? this.#chosen.providerName;
    const { chosen, said } = await switchTarget(this.#parts.wish.home, this.agent, { ...wish, provider }, this.store);
    this.#chosen = chosen;
    return said;
  }

  get subagents(): ChildTable {
    return this.#parts.tools.state.of(childTable);
  }

  get processes(): OpenAgent["processes"] {
    return this.#parts.processes;
  }

  async setReasoning(effort: string): Promise<void> {
    const { reasoning: _, ...model } = this.agent.model;
    await this.agent.switchModel({ ...model, ...reasoningOf(effort) });
  }

  async knownModels() {
    const { modelsOf } = await import("../llm/catalogue/facts.ts");
    const { provider } = this.target;
    const facts = await modelsOf(provider);
    return facts.map(({ id, contextLength }) => ({ model: id, provider, contextLength }));
  }

  async attachReferences(text: string): Promise<Expansion | null> {
    const { wish, cwd } = this.#parts;
    const { home, platform, clock } = wish;
    const { attachReferences } = await import("./references.ts");
    const { contextLength } = this.target;
    const readPage =
      wish.readPage ??
      (async (url) => (await import("./read-page.ts")).readPageFor(url, { home, clock, contextLength }));
    return attachReferences(text, { home, cwd, platform, contextLength, readPage });
  }

  get ignoresRules(): boolean {
    return this.#parts.wish.ignoreRules === true;
  }

  reloadPrompt() {
    return this.agent.reloadPrompt();
  }

  async reloadMcp(): Promise<readonly string[]> {
    if (this.agent.busy)
      throw new AgentBusyError("MCP servers cannot be reloaded while a turn runs; interrupt it first");
    return this.#parts.reload();
  }

  async rollback(): Promise<Rollback> {
    const { wish, environment } = this.#parts;
    const { openRollback } = await import("./checkpoints/rollback.ts");
    const on = wish.checkpoints ?? wish.home.config().checkpoints.enabled;
    return openRollback({ ...wish, environment, sessionId: this.agent.sessionId, on });
  }

  async title(): Promise<string | null> {
    return (await this.store.get(this.agent.sessionId))?.title ?? null;
  }

  async setTitle(title: string): Promise<void> {
    const { sessionId } = this.agent;
    await this.store.ensure({ id: sessionId, source: this.#parts.wish.source, model: this.target.model });
    await this.store.setTitle(sessionId, title);
  }

  close(reason: EndReason, next?: string): Promise<void> {
    this.#closed ??= this.#close(reason, next);
    return this.#closed;
  }

  async #close(reason: EndReason, next: string | undefined): Promise<void> {
    const { sessionId } = this.agent;
    await this.agent.close({ finishReview: reason === "new_session" || reason === "resumed_other" });
    const messages = this.agent.lastOutcome?.messages ?? this.history;
    await this.#parts.provider?.close({ reason, messages, next });
    await this.#parts.plugins?.close({ reason, next });
    await this.#parts.mcp.close();
    await this.skills?.flush();
    await this.#parts.checkpoints?.settled();
    const session = await this.store.get(sessionId);
    if (session?.messageCount === 0) await this.store.delete(sessionId);
    else if (session) await this.store.end(sessionId, reason);
  }
}

async function keyPools(home: OpenHome, clock: Clock) {
  const { CredentialPools } = await import("./recovery/credential-pools.ts");
  return new CredentialPools(home, clock);
}

/** Loaded for those who chose one. */
async function openExternalMemory(
  wish: AgentWish,
  about: { readonly sessionId: string; readonly memory: Memory | null; readonly title?: string | null | undefined },
  warnings: string[],
): Promise<OpenedProvider | null> {
  if (wish.ignoreRules || wish.home.config().memory.provider.trim() === "") return null;
  const { openProvider } = await import("./open-provider.ts");
  return openProvider({ ...about, wish }, (text) => warnings.push(text));
}

/** A positive number of seconds from a variable; anything else is not said. */
function seconds(text: string | undefined): number | undefined {
  const value = Number(text);
  return value > 0 ? value : undefined;
}

function streamRetriesOf(text: string | undefined): Pick<Limits, "streamRetries"> {
  return /^\d{1,2}$/.test(text?.trim() ?? "") ? { streamRetries: Number(text) } : {};
}

function reasoningOf(effort: string): Pick<ModelChoice, "reasoning"> {
  if (effort === "") return {};
  if (effort === "none") return { reasoning: { enabled: false } };
  return { reasoning: { enabled: true, effort: effort as "medium" } }; // checked by the option parser and the settings schema
}
