// From a home and a request to a conversation: everything an agent is made of is chosen and put together here, once, for every door.

import { delimiter } from "node:path";
import { openCheckpointPort } from "../checkpoints/port.ts";
import type { OpenHome } from "../home/open.ts";
import { UserError } from "../kit/errors.ts";
import type { AuxPlace } from "../llm/auxiliary/contract.ts";
import { learnedWindows } from "../llm/catalogue/context-length.ts";
import { lazyKeys } from "../llm/keys/ring.ts";
import { closeIdleConnections } from "../llm/wires/model-fetch.ts";
import { ConversationMcp } from "../mcp/open.ts";
import { type Memory, openMemory } from "../memory/open.ts";
import { promptSource } from "../prompt/session-prompts.ts";
import { openEnvironment } from "../sandbox/open.ts";
import { Lane } from "../sessions/lanes.ts";
import { newSessionId } from "../sessions/session-id.ts";
import type { SessionStore } from "../sessions/store.ts";
import { processTable } from "../tools/terminal/processes.ts";
import { Agent } from "./agent.ts";
import { loopLimits, modelChoice } from "./ask-model.ts";
import type { Assembly } from "./assembly.ts";
import { delegatingParent, wantsHints } from "./delegation/children.ts";
import type { Parent } from "./delegation/spawn.ts";
import { hintsOnce } from "./hints-once.ts";
import { openGate } from "./open-gate.ts";
import { openGuard } from "./open-guard.ts";
import { chooseTarget, handedOver, modelConfig, resumedModel } from "./open-model.ts";
import { openPlugins } from "./open-plugins.ts";
import type { OpenedProvider } from "./open-provider.ts";
import type { OpenRequest } from "./open-request.ts";
import { openAgentSkills, preloadFor } from "./open-skills.ts";
import {
  focusToolsets,
  hashedChoice,
  openSessionTools,
  openTools,
  restampTools,
  type ToolPlace,
  toolHashes,
} from "./open-tools.ts";
import { type OpenAgent, Opened } from "./opened.ts";
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

async function assemble(request: OpenRequest, mcp: ConversationMcp): Promise<OpenAgent> {
  const { home, clock, start } = request;
  refuseUnreadGuards(home);
  const config = home.config();
  const log = home.log.child("agent");
  // What was delegated is written under the lease of whoever delegated it.
  const lane = start?.delegatedFrom ? null : new Lane(await request.store(), log);
  const store = lane?.store ?? (await request.store());
  if (!start) tidyUp(store, home);
  const found = request.resume ? await resumeSession(request.resume.name, store) : null;
  const sessionId = found?.id ?? start?.sessionId ?? newSessionId(clock);
  const recorded = found?.recorded ?? {};
  const chosen = start?.model
    ? handedOver(start.model.target)
    : await chooseTarget(home, resumedModel(home, request, recorded));
  // A child begins where its parent stands.
  const folder = start ? { cwd: request.cwd, isFallback: false, warning: null } : await sessionCwd(home, request.cwd);
  const cwd = request.restoreCwd !== false && recorded.cwd ? recorded.cwd : folder.cwd;
  const session: { agent?: Agent } = {};
  const currentId = () => session.agent?.sessionId ?? sessionId;
  const environment = await openEnvironment(config, {
    environment: home.environment(),
    cwd,
    privateHome: home.paths.at("home"),
    sessionId: currentId,
    userHome: home.osHome,
    hermesHome: home.paths,
    unattended: !request.interactive,
    report: (problem) => home.log.warn(problem),
  });
  // A place of its own has a folder of its own to begin with; a child begins where its parent stands.
  if (start?.origin === "subagent" && environment.cwd !== cwd) environment.setCwd(cwd);
  const memory = request.ignoreRules ? null : await openMemory({ ...home, clock, log: home.log.child("memory") });
  const withoutMemory = memory?.enabled ? [] : ["memory"];
  const warnings: string[] = folder.warning === null ? [] : [folder.warning];
  const small = start ? null : smallWindowNote(chosen.target);
  if (small !== null) warnings.push(small);
  const plugins = await openPlugins({ ...request, cwd });
  warnings.push(...(plugins?.notes ?? []));
  const provider = await openExternalMemory(request, { sessionId, memory, title: found?.resumed.title }, warnings);
  const resumed = found && { id: found.id, store };
  const place: ToolPlace = {
    toolsets: await focusToolsets(request, cwd, resumed),
    environment,
    contextLength: chosen.target.contextLength,
    without: withoutMemory,
    mcp,
    ...(provider ? { extend: (tools) => provider.addTools(tools) } : {}),
  };
  const tools = await openSessionTools(request, place, resumed);
  const hashes = () => toolHashes(tools, home.config(), hashedChoice(request, place));
  const toolNames = [...tools.names].sort();
  const guard = openGuard(request, environment, currentId);
  const skills = start && !start.skills ? null : await openAgentSkills(home, clock, environment, plugins?.skills);
  const prompt = promptSource(
    {
      request,
      cwd,
      cwdIsFallback: folder.isFallback && cwd === request.cwd,
      ...(environment.kind === "local"
        ? {}
        : { backend: async () => (await import("../prompt/probes/host.ts")).backendOf(environment) }),
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
  const checkpoints = openCheckpointPort(request, environment);
  const trajectories = await openTrajectories({ ...request, cwd }, () => tools.definitions);
  const spending: string[] = [];
  const preloaded = skills && !start && !request.ignoreRules ? await preloadFor(request, skills, sessionId) : null;
  if (preloaded?.note) warnings.push(preloaded.note);
  const resolvePlace = async (place: AuxPlace) =>
    (await import("../llm/auxiliary/places.ts")).resolvePlace(home, place, clock);
  const model = start?.model ?? modelChoice(request, chosen.target);
  const own: Assembly = {
    session: {
      id: sessionId,
      source: request.source,
      platform: request.platform,
      profile: home.paths.profile,
      store,
      lane,
      row: {
        cwd,
        userId: request.sender?.userId,
        modelConfig: {
          ...modelConfig(chosen),
          ...(start?.delegatedFrom ? { _delegate_from: start.delegatedFrom } : {}),
        },
        ...(start?.delegatedFrom ? { parentSessionId: start.delegatedFrom } : {}),
      },
      interactive: request.interactive,
      reviews: request.learn !== false && !start,
      titles: request.titles === true && !start,
      history: request.history,
      sessionKey: request.sessionKey,
      chat: request.chat,
      sender: request.sender,
      origin: start?.origin ?? request.origin,
      ...(start?.task ? { task: start.task } : {}),
      ...(start?.jobId ? { jobId: start.jobId } : {}),
      ...(start?.taskId ? { taskId: start.taskId } : {}),
      ...(preloaded?.text ? { opening: preloaded.text } : {}),
    },
    model,
    prompt,
    tools,
    limits: loopLimits(request),
    gate: start?.gate ?? openGate(home, store, clock, (message) => spending.push(message)),
    takeWarnings: () => [...spending.splice(0), ...(start ? [] : mcp.takeTroubles())],
    clock,
    log,
    paths: home.paths,
    config: () => home.config(),
    environment,
    redact: home.redact,
    redactKept: home.redact.forKeeping,
    toolPorts: {
      env: (name) => home.env(name),
      redactFile: (text, path) => home.redact.forFile(text, path),
      ...(skills ? { skills } : {}),
      writeSafeRoots: safeRoots(home.env("HERMES_WRITE_SAFE_ROOT") ?? ""),
    },
    ...(memory?.enabled ? { memory } : {}),
    resolvePlace,
    keys: lazyKeys(home, clock),
    renewConnections: closeIdleConnections,
    keepRefused: async (refused) => (await import("./recovery/request-dump.ts")).dumpRequest(home, clock, refused),
    ...(provider ? { follower: provider.follower } : {}),
    ...(trajectories ? { follower: trajectories.beside(provider?.follower) } : {}),
    compression: {
      ...provider?.compression,
      flushMemories: async ({ signal }) => void (await session.agent?.flushMemories("compression", signal)),
      async compressed(change) {
        skills?.forgetViews();
        await provider?.compression.compressed?.(change);
      },
    },
    learnWindow: ({ baseUrl, model }, tokens) => learnedWindows(home).set(baseUrl, model, tokens),
    ...(wantsHints(request) && !environment.files ? { hints: hintsOnce(home, cwd, prompt) } : {}),
    beforeTurn: () => mcp.beforeTurn(),
    ...guard.ports,
    ...(checkpoints ? { checkpoint: checkpoints.before } : {}),
    delegation: {
      async spawn(tasks, call) {
        const { spawnChildren } = await import("./delegation/spawn.ts");
        const onReport: Parent["onReport"] = (...report) => assembly.follower?.delegated?.(...report);
        const parts = { home, clock, environment, tools, agent, guard, gate: assembly.gate, onReport };
        return spawnChildren(delegatingParent({ ...request, store: async () => store }, openAgent, parts), tasks, call);
      },
    },
  };
  const assembly = plugins?.into(own) ?? own;
  const agent = new Agent(assembly);
  session.agent = agent;
  const { gate } = assembly;
  plugins?.attach(agent, gate);
  mcp.paidBy({
    sessionId: currentId,
    jobId: start?.jobId,
    gate,
    main: () => agent.model.target,
    resolve: resolvePlace,
    used: (usage) => agent.countSideCall(usage),
  });
  const complaint = await agent.prepareEngine();
  if (complaint !== null) warnings.push(complaint);
  if (!start) warnings.push(...mcp.takeTroubles());
  if (found) await store.reopen(found.id);
  const notes = [...warnings, ...tools.unknown.map((name) => `Unknown toolset "${name}" is ignored.`)];
  const processes = tools.state.of(processTable);
  return new Opened(agent, {
    request,
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
    trajectories,
    processes,
    mcp,
    plugins,
    reload,
  });

  async function reload(): Promise<readonly string[]> {
    const lines = await mcp.reload();
    const before = hashes().toolsHash;
    tools.swap(await openTools(request, place));
    if (hashes().toolsHash === before) return [...lines, "The tools of this conversation are the same as before."];
    gate.expectNewPrefix(agent.sessionId, "reload");
    await restampTools(tools, hashes(), agent.sessionId, store);
    return lines;
  }
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

/** Loaded for those who chose one. */
async function openExternalMemory(
  request: OpenRequest,
  about: { readonly sessionId: string; readonly memory: Memory | null; readonly title?: string | null | undefined },
  warnings: string[],
): Promise<OpenedProvider | null> {
  if (request.ignoreRules || request.home.config().memory.provider.trim() === "") return null;
  const { openProvider } = await import("./open-provider.ts");
  return openProvider({ ...about, request }, (text) => warnings.push(text));
}

/** A list that names no directory still allows none. */
function safeRoots(variable: string): readonly string[] {
  const roots = variable.split(delimiter).filter((root) => root.trim() !== "");
  return roots.length === 0 && variable.trim() !== "" ? [variable] : roots;
}
