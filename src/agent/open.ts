// From a home and a request to a conversation: everything an agent is made of is chosen and put together here, once, for every door.
import { delimiter } from "node:path";
import { openCheckpointPort } from "../checkpoints/port.ts";
import { kindNow } from "../home/looks.ts";
import type { OpenHome } from "../home/open.ts";
import { bundledPlugins, isSafeMode } from "../home/paths.ts";
import { writtenRules } from "../home/sandbox-rules.ts";
import { UserError } from "../kit/errors.ts";
import { isWithin } from "../kit/files.ts";
import { lazy } from "../kit/lazy.ts";
import { working } from "../kit/memory.ts";
import type { ModelSpec } from "../llm/auxiliary/contract.ts";
import { learnedWindows } from "../llm/catalogue/context-length.ts";
import { lazyKeys } from "../llm/keys/ring.ts";
import { closeIdleConnections } from "../llm/wires/model-fetch.ts";
import { ConversationMcp } from "../mcp/open.ts";
import { type Memory, openMemory } from "../memory/open.ts";
import { isStandard } from "../plugins/context-engines.ts";
import { environmentStamp } from "../prompt/fingerprint.ts";
import { type ConversationPrompt, promptSource } from "../prompt/session-prompts.ts";
import type { Environment } from "../sandbox/environment.ts";
import { openEnvironment } from "../sandbox/open.ts";
import { Lane } from "../sessions/lanes.ts";
import { newSessionId } from "../sessions/session-id.ts";
import type { SessionStore } from "../sessions/store.ts";
import { openAgentSkills, preloadFor, reopenFor } from "../skills/open.ts";
import { SkillVariables } from "../skills/variables.ts";
import { ModeGate } from "../tools/toolset/work-mode.ts";
import { Agent } from "./agent.ts";
import { loopLimits, modelChoice } from "./ask-model.ts";
import type { Assembly } from "./assembly.ts";
import { delegatingParent, wantsHints } from "./delegation/children.ts";
import type { Parent } from "./delegation/spawn.ts";
import { openGuard } from "./open-guard.ts";
import { chooseTarget, handedOver, keepKey, modelConfig, openGate, resumedModel } from "./open-model.ts";
import type { OpenedProvider } from "./open-provider.ts";
import { isUnattended, type OpenRequest } from "./open-request.ts";
import {
  focusToolsets,
  hashedChoice,
  maySchedule,
  openSessionTools,
  openTools,
  restampTools,
  type ToolChoice,
  toolHashes,
} from "./open-tools.ts";
import { type OpenAgent, Opened } from "./opened.ts";
import type { ConversationPlugins } from "./plugins.ts";
import { dumpRequest } from "./recovery.ts";
import { resumeSession, sessionCwd } from "./resume.ts";
import { openTrajectories } from "./trajectory.ts";
import { smallWindowNote } from "./usage-meter.ts";

export async function openAgent(request: OpenRequest): Promise<OpenAgent> {
  const mcp = new ConversationMcp(request);
  try {
    return await assemble(request, mcp);
  } catch (error) {
    // Servers that were started for a conversation that never came to be would keep the process alive.
    await mcp.close();
    throw error;
  }
}

/** What holds the agent back must be known: a default in its place might let through what the user shut out. */
function refuseUnreadGuards(home: OpenHome): void {
  const [first, ...more] = home.unreadGuards();
  if (first === undefined) return;
  const others = more.length > 0 ? ` (and ${more.length} more: hermes config check)` : "";
  throw new UserError(
    `${home.display(home.paths.configFile)}: ${first}${others}. Nothing was started; fix it: hermes config edit`,
  );
}

/** A door with a person asks before it opens a conversation; everybody else is told what was decided for them. */
function untrustedFolder({ home, cwd, interactive }: OpenRequest): string[] {
  const { folder, standing } = home.folders.standing(cwd);
  if (interactive || standing !== "unknown" || !home.folders.mentions(folder)) return [];
  const name = home.display(folder);
  return [`${name} is not trusted: nothing in it loads or runs on its own. To change that: hermes trust add ${name}`];
}

/** Each step needs those above it. */
async function assemble(request: OpenRequest, mcp: ConversationMcp): Promise<OpenAgent> {
  const { home, clock, start } = request;
  refuseUnreadGuards(home);
  const notes: string[] = [];
  const session = await openSession(request, notes);
  const { store, found } = session;
  const variables = start?.variables ?? new SkillVariables(home);
  const environment = await openWorkplace(request, session, { variables, notes });
  const knowledge = await openKnowledge(request, session, { environment, variables }, notes);
  const { memory, provider, plugins, skills } = knowledge;
  const toolkit = await openToolkit(request, session, { environment, mcp, knowledge });
  const { tools } = toolkit;
  const prompt = openPrompt(request, session, { environment, knowledge, toolkit });
  const guard = openGuard(request, environment, {
    sessionId: session.currentId,
    foreignText: () => session.current.agent?.foreignText.words ?? null,
  });
  const mode = new ModeGate({
    history: found?.history ?? [],
    follows: request.workMode,
    isReadOnly: (name) => tools.isReadOnly(name),
    project: session.cwd,
    hasForeignText: () => guard.asksAfterForeignText && session.current.agent?.foreignText.words != null,
  });
  const checkpoints = openCheckpointPort(request, environment);
  const trajectories = await openTrajectories({ ...request, cwd: session.cwd }, () => tools.definitions);
  const early = start ? [] : untrustedFolder(request);
  const unknownPrices: string[] = [];
  const resolveSpec = async (spec: ModelSpec) =>
    (await import("../llm/auxiliary/model-spec.ts")).resolveSpec(home, spec, clock);
  const openHintsHere = async () => {
    const { openHints } = await import("../prompt/subdirectory-hints.ts");
    return openHints({ home, cwd: session.cwd, knownHashes: () => prompt.contextHashes() });
  };
  const own: Assembly = {
    session: sessionOptions(request, session, knowledge.opening),
    model: start?.model ?? modelChoice(request, session.chosen.target),
    prompt,
    tools,
    limits: loopLimits(request),
    gate: start?.gate ?? openGate(home, store, clock, (message) => unknownPrices.push(message), request.jobBudget),
    takeWarnings: () => [...early.splice(0), ...unknownPrices.splice(0), ...(start ? [] : mcp.takeTroubles())],
    clock,
    log: session.log,
    paths: home.paths,
    config: () => home.config(),
    environment,
    ...(request.interactive && { working }),
    isTrusted: (path) => trustsText(home, session.cwd, environment, path),
    untrustedRules() {
      if (prompt.contextHashes().length === 0) return null;
      if (!home.folders.isTrusted(session.cwd)) return `rules of ${home.display(session.cwd)}`;
      const [first] = writtenRules(home.paths.dir, session.cwd);
      return first === undefined ? null : `rules that a program in the sandbox wrote: ${home.display(first)}`;
    },
    asksAfterForeignText: () => guard.asksAfterForeignText,
    mode,
    redact: home.redact,
    redactKept: home.redact.forKeeping,
    pasted: {
      find: home.redact.fromUser,
      has: (name) => home.env(name) !== undefined,
      keep: (name, value) => keepKey(home, name, value),
      file: home.display(home.paths.envFile),
    },
    toolPorts: {
      env: (name) => home.env(name),
      acceptsEdit: (path) => mode.acceptsEdit(path),
      redactFile: (text, path) => home.redact.forFile(text, path),
      skills: skills ?? undefined,
      deliver: request.deliver,
      editorFiles: request.editorFiles,
      ...(request.reviewEdits && { reviewEdits: request.reviewEdits }),
      schedule: maySchedule(request) ? { startQueued: () => startQueuedJobs(home) } : undefined,
      writeSafeRoots: safeRoots(home.env("HERMES_WRITE_SAFE_ROOT") ?? ""),
    },
    memory: memory?.enabled ? memory : undefined,
    resolveSpec,
    keys: lazyKeys(home, clock),
    renewConnections: closeIdleConnections,
    keepRefused: (refused) => dumpRequest(home, clock, refused),
    follower: trajectories ? trajectories.addTo(provider?.follower) : provider?.follower,
    compression: {
      ...provider?.compression,
      flushMemories: async ({ signal }) => void (await session.current.agent?.flushMemories("compression", signal)),
      async compressed(change) {
        skills?.forgetViews();
        await provider?.compression.compressed?.(change);
      },
    },
    learnWindow: ({ baseUrl, model }, tokens) => learnedWindows(home).set(baseUrl, model, tokens),
    hints: wantsHints(request) && worksHere(environment) ? lazy(openHintsHere) : undefined,
    beforeTurn: () => mcp.beforeTurn(),
    ...guard.ports,
    checkpoint: checkpoints?.before,
    delegation: {
      async spawn(tasks, call) {
        const { spawnChildren } = await import("./delegation/spawn.ts");
        const onReport: Parent["onReport"] = (...report) => assembly.follower?.delegated?.(...report);
        const { gate } = assembly;
        const { jobId } = assembly.session;
        const parts = { home, clock, environment, tools, agent, guard, mode, variables, gate, jobId, onReport };
        // Children write under the lease of this conversation.
        const parent = delegatingParent({ ...request, store: async () => store }, openAgent, parts);
        return spawnChildren(parent, tasks, call);
      },
    },
  };
  const assembly = plugins?.into(own) ?? own;
  const agent = new Agent(assembly);
  session.current.agent = agent;
  const { gate } = assembly;
  plugins?.attach(agent, gate);
  mcp.setPayer({
    sessionId: session.currentId,
    jobId: start?.jobId ?? request.jobId,
    gate,
    main: () => agent.model.target,
    resolve: resolveSpec,
    used: (usage) => agent.countSideCall(usage),
  });
  const complaint = await agent.prepareEngine();
  if (complaint !== null) notes.push(complaint);
  if (!start) notes.push(...mcp.takeTroubles());
  if (found) await store.reopen(found.id);
  notes.push(...tools.unknown.map((name) => `Unknown toolset "${name}" is ignored.`));

  async function reload(): Promise<readonly string[]> {
    const lines = await mcp.reload();
    const before = toolkit.hashes().toolsHash;
    tools.swap(await openTools(request, toolkit.choice));
    if (toolkit.hashes().toolsHash === before)
      return [...lines, "The tools of this conversation are the same as before."];
    gate.expectNewPrefix(agent.sessionId, "reload");
    await restampTools(tools, toolkit.hashes(), agent.sessionId, store);
    return lines;
  }
  return new Opened(agent, {
    ...{
      request,
      assembly,
      notes,
      found,
      guard,
      mode,
      checkpoints,
      trajectories,
      mcp,
      plugins,
      provider,
      skills,
      memory,
      reload,
      current: session.current,
    },
    ...{ store, chosen: session.chosen, cwd: session.cwd },
  });
}

// --- the steps

type OpenedSession = Awaited<ReturnType<typeof openSession>>;

/** Which conversation it is, where it is kept, which model it is held with and in which folder. */
async function openSession(request: OpenRequest, notes: string[]) {
  const { home, clock, start } = request;
  const log = home.log.child("agent");
  const base = await request.store();
  // What was delegated is written under the lease of whoever delegated it.
  const lane = start?.delegatedFrom ? null : new Lane(base, log);
  const store = lane?.store ?? base;
  if (!start) tidyUp(store, home);
  const found = request.resume ? await resumeSession(request.resume.name, store, request.source) : null;
  const recorded = found?.recorded ?? {};
  const chosen = start?.model
    ? handedOver(start.model.target)
    : await chooseTarget(home, { ...resumedModel(home, request, recorded), baseUrl: request.baseUrl });
  // A child begins where its parent stands.
  const isChosen = start !== undefined || request.cwdIsChosen;
  const folder = isChosen
    ? { cwd: request.cwd, isFallback: false, warning: null }
    : await sessionCwd(home, request.cwd);
  if (folder.warning !== null) notes.push(folder.warning);
  const small = start ? null : smallWindowNote(chosen.target);
  if (small !== null) notes.push(small);
  const cwd = request.restoreCwd !== false && recorded.cwd ? recorded.cwd : folder.cwd;
  const id = found?.id ?? start?.sessionId ?? request.sessionId ?? newSessionId(clock);
  /** The agent, once there is one: a compression goes on under another id. And who pays, when that is a goal. */
  const current: { agent?: Agent; account?: string | undefined } = {};
  const currentId = () => current.agent?.sessionId ?? id;
  const cwdIsFallback = folder.isFallback && cwd === request.cwd;
  return { log, lane, store, found, chosen, cwd, cwdIsFallback, id, current, currentId };
}

function sessionOptions(
  request: OpenRequest,
  session: OpenedSession,
  opening: string | undefined,
): Assembly["session"] {
  const { start } = request;
  const { id, store, lane, cwd, chosen } = session;
  const { delegatedFrom } = start ?? {};
  return {
    ...{ id, store, lane, opening },
    source: request.source,
    platform: request.platform,
    profile: request.home.paths.profile,
    row: {
      cwd,
      userId: request.sender?.userId,
      parentSessionId: delegatedFrom,
      modelConfig: {
        ...modelConfig(chosen),
        ...(delegatedFrom ? { _delegate_from: delegatedFrom } : {}),
        // Where the original keeps the folder of an editor's conversation.
        ...(request.cwdIsChosen ? { cwd } : {}),
      },
    },
    interactive: request.interactive,
    reviews: request.learn !== false && !start,
    titles: request.titles === true && !start,
    ...{ history: request.history, historyGoesOn: request.historyGoesOn },
    sessionKey: request.sessionKey,
    chat: request.chat,
    sender: request.sender,
    origin: start?.origin ?? request.origin,
    task: start?.task,
    // A goal may come and go while the conversation is open.
    get jobId() {
      return session.current.account ?? start?.jobId ?? request.jobId;
    },
    taskId: start?.taskId,
    foreign: start?.foreign,
  };
}

/** Files are this machine's own, all of them or some. */
const worksHere = ({ files, confinement }: Environment) => !files || confinement !== undefined;

/** Where its commands run. */
async function openWorkplace(
  request: OpenRequest,
  { cwd, currentId }: OpenedSession,
  { variables: ofSkills, notes }: { readonly variables: SkillVariables; readonly notes: string[] },
): Promise<Environment> {
  const { home, start } = request;
  const { backend, docker_forward_env } = home.config().terminal;
  const variables = home.environment(backend === "docker" ? ["HERMES_DOCKER_BINARY", ...docker_forward_env] : []);
  const environment = await openEnvironment(home.config(), {
    environment: variables,
    ...(home.env("HERMES_KANBAN_TASK") && (await import("../kanban/worker-place.ts")).cardPlace(request, variables)),
    ...{ cwd, withheld: home.withheld(), handedOn: () => ofSkills.values() },
    privateHome: home.paths.at("home"),
    sessionId: currentId,
    userHome: home.osHome,
    hermesHome: home.paths,
    unattended: isUnattended(request),
    show: request.showCommand,
    report: (problem) => home.log.warn(problem),
  });
  if (environment.noSandbox !== undefined && !start)
    notes.push(`No sandbox (${environment.noSandbox}): commands run with your full permissions. See: hermes doctor`);
  // Another machine or container begins in a folder of its own; a child begins where its parent stands.
  if (start?.origin === "subagent" && environment.cwd !== cwd) environment.setCwd(cwd);
  return environment;
}

type Knowledge = Awaited<ReturnType<typeof openKnowledge>>;

/** What it knows besides its rules: memory, plugins, skills. */
async function openKnowledge(
  request: OpenRequest,
  session: OpenedSession,
  { environment, variables }: { readonly environment: Environment; readonly variables: SkillVariables },
  notes: string[],
) {
  const { home, clock, start } = request;
  // A scheduled run has none unless its job asks for it: nobody would see what it notes down.
  const remembers = request.origin === "cron" ? request.toolsets?.includes("memory") : !request.ignoreRules;
  const memory = remembers ? await openMemory({ ...home, clock, log: home.log.child("memory") }) : null;
  const plugins = await openPlugins({ ...request, cwd: session.cwd });
  notes.push(...(plugins?.notes ?? []));
  const provider = await openExternalMemory(
    request,
    { sessionId: session.id, memory, title: session.found?.resumed.title },
    notes,
  );
  const withSkills = !start || start.skills;
  const parts = { plugins: plugins?.skills, variables };
  const skills = withSkills ? await openAgentSkills(home, clock, environment, parts) : null;
  if (skills && session.found) await reopenFor(session.found.history, skills, request.platform);
  const preloads = !start && (!request.ignoreRules || request.soulIdentity);
  const preloaded = skills && preloads ? await preloadFor(request, skills, session.id) : null;
  if (preloaded?.note) notes.push(preloaded.note);
  return { memory, plugins, provider, skills, opening: preloaded?.text || undefined };
}

type Toolkit = Awaited<ReturnType<typeof openToolkit>>;

/** Its tools, and what they are known by when the conversation goes on later. */
async function openToolkit(
  request: OpenRequest,
  { found, store, cwd, chosen }: OpenedSession,
  {
    environment,
    mcp,
    knowledge,
  }: { readonly environment: Environment; readonly mcp: ConversationMcp; readonly knowledge: Knowledge },
) {
  const { memory, provider } = knowledge;
  const resumed = found && { id: found.id, store };
  const choice: ToolChoice = {
    toolsets: await focusToolsets(request, cwd, resumed),
    environment,
    contextLength: chosen.target.contextLength,
    without: memory?.enabled ? [] : ["memory"],
    mcp,
    extend: (tools) => provider?.addTools(tools),
  };
  const tools = await openSessionTools(request, choice, resumed);
  const hashes = () => toolHashes(tools, request.home.config(), hashedChoice(request, choice));
  return { choice, tools, hashes };
}

function openPrompt(
  request: OpenRequest,
  { store, found, cwd, cwdIsFallback }: OpenedSession,
  parts: { readonly environment: Environment; readonly knowledge: Knowledge; readonly toolkit: Toolkit },
): ConversationPrompt {
  const { environment, toolkit } = parts;
  const { memory, plugins, provider, skills } = parts.knowledge;
  const { tools, hashes } = toolkit;
  return promptSource(
    {
      ...{ request, cwd, cwdIsFallback, memory, skills },
      sandbox: environmentStamp(environment),
      backend:
        environment.kind === "local"
          ? undefined
          : async () => (await import("../prompt/probes/host.ts")).backendOf(environment),
      toolNames: [...tools.names].sort(),
      toolsets: tools.toolsets,
      get toolsHash() {
        return hashes().toolsHash;
      },
      get toolSelection() {
        return hashes().toolSelection;
      },
      externalMemory: provider ? () => provider.attached.block() : undefined,
      recall: plugins ? plugins.recall(provider?.recall) : provider?.recall,
      startedAt: found?.startedAt ?? request.clock.now() / 1000,
      systemMessage: request.start?.systemMessage ?? null,
    },
    { store, tools },
  );
}

/** Never rejects for what a plugin did: the conversation goes on without it, and its notes say so. None configured: nothing is loaded. */
async function openPlugins(request: OpenRequest): Promise<ConversationPlugins | null> {
  if (isSafeMode(request.home) || !wantsPlugins(request.home)) return null;
  const { openConversationPlugins } = await import("./plugins.ts");
  return openConversationPlugins(request);
}

function wantsPlugins(home: OpenHome): boolean {
  const { plugins, hooks, memory, context } = home.config();
  if ((plugins.enabled ?? []).length > 0 || Object.keys(hooks).length > 0) return true;
  const isOwn = !["", "local"].includes(memory.provider.trim()) || !isStandard(context.engine);
  return isOwn || kindNow(bundledPlugins()) === "directory"; // none came with the program
}

async function startQueuedJobs(home: OpenHome): Promise<void> {
  const { startQueued } = await import("../cron/ticker.ts");
  await startQueued(home);
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

/** Null, and nothing loaded, where none is configured. */
async function openExternalMemory(
  request: OpenRequest,
  about: { readonly sessionId: string; readonly memory: Memory | null; readonly title?: string | null | undefined },
  notes: string[],
): Promise<OpenedProvider | null> {
  if (request.ignoreRules || request.home.config().memory.provider.trim() === "") return null;
  const { openProvider } = await import("./open-provider.ts");
  return openProvider({ ...about, request }, (text) => notes.push(text));
}

/** What belongs to the system, and what the agent keeps of itself; what it fetched lies in the cache. */
const SYSTEM_FILES = /^\/(?:etc|proc|sys|usr|lib\w*)\//;
const OF_CARDS = /\/kanban\/(?:boards\/[^/]+\/)?attachments\//; // whoever attached them

/** A container or another machine has no folders of its own to trust: it counts as the folder the conversation was opened in. */
function trustsText({ folders, paths }: OpenHome, cwd: string, { files, kind }: Environment, path: string): boolean {
  if (files && kind !== "bubblewrap") return folders.isTrusted(cwd);
  const isOwn = isWithin(path, paths.dir) && !isWithin(path, paths.cacheDir) && !OF_CARDS.test(path);
  return isOwn || SYSTEM_FILES.test(path) || folders.isTrusted(path);
}

/** A list that names no directory still allows none. */
function safeRoots(variable: string): readonly string[] {
  const roots = variable.split(delimiter).filter((root) => root.trim() !== "");
  return roots.length === 0 && variable.trim() !== "" ? [variable] : roots;
}
