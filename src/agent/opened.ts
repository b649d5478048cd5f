// An open conversation and its controls.

import type { CheckpointPort } from "../checkpoints/port.ts";
import type { Rollback } from "../checkpoints/rollback.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { ModelList, NameCheck } from "../llm/providers/model-list.ts";
import type { Usage } from "../llm/usage.ts";
import type { Target, ToolDefinition } from "../llm/wire.ts";
import type { ConversationMcp } from "../mcp/open.ts";
import type { Memory } from "../memory/open.ts";
import { fenced } from "../prompt/fence.ts";
import type { Expansion } from "../prompt/references/expand.ts";
import { clearTypedCommand } from "../safety/decision.ts";
import { expandPath } from "../safety/paths.ts";
import type { ExecuteOptions, ExecuteResult } from "../sandbox/environment.ts";
import { placeLine, placeWords } from "../sandbox/open.ts";
import type { EndReason, SessionStore } from "../sessions/store.ts";
import type { AgentSkills } from "../skills/open.ts";
import type { Speaking } from "../tools/media/speak.ts";
import { processTable, type TrackedProcess } from "../tools/terminal/processes.ts";
import { sizeLimits } from "../tools/toolset/results.ts";
import type { WorkMode } from "../tools/toolset/work-mode.ts";
import { type Agent, AgentBusyError } from "./agent.ts";
import { reasoningOf } from "./ask-model.ts";
import type { Assembly } from "./assembly.ts";
import { type ChildTable, childTable } from "./delegation/children.ts";
import { type ChosenModel, demoNote, nextTarget, switchTarget } from "./open-model.ts";
import type { OpenedProvider } from "./open-provider.ts";
import type { OpenRequest } from "./open-request.ts";
import type { ConversationPlugins } from "./plugins.ts";
import type { ResumedSession, resumeSession } from "./resume.ts";
import type { Trajectories } from "./trajectory.ts";

/** The user sees it run and stops it; this only ends what was forgotten. */
const TYPED_LIMIT_MS = 24 * 3600 * 1000;

const NO_USAGE: Usage = {
  ...{ inputTokens: null, outputTokens: null, cacheReadTokens: null, cacheWriteTokens: null },
  ...{ reasoningTokens: null, promptTokens: null, totalTokens: null },
};

type TypedOptions = Pick<ExecuteOptions, "signal" | "onOutput">;
export type TypedResult = Pick<ExecuteResult, "output" | "omittedChars" | "headChars" | "exitCode" | "interrupted">;

/** A conversation as a door holds it: the agent, where it is stored, and what can be changed about it between turns. */
export interface OpenAgent {
  readonly agent: Agent;
  readonly store: SessionStore;
  /** Where requests go now. */
  readonly target: Target;
  /** What to ask for to get its provider again: an id, or the name of the user's own entry. */
  readonly providerName: string;
  /** Null where skills are switched off. */
  readonly skills: AgentSkills | null;
  /** Null where there is none in this conversation. */
  readonly memory: Memory | null;
  /** The folder its commands begin in. */
  readonly cwd: string;
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
  /** Where its commands run, in a few words. */
  readonly place: string;
  /** The same in two or three words. */
  readonly placeWords: string;
  /** "Do not ask" for this conversation only. */
  yolo: boolean;
  /** How far the agent may go by itself. The model hears of a change with the next message. */
  workMode: WorkMode;
  /** Who pays from now on, in the ledger and for caps: a standing goal; null: the conversation alone. */
  set account(account: string | null);
  /** What the agent started in the background and has not ended. */
  readonly processes: {
    readonly running: number;
    /** Oldest first; those that ended are kept for a while. */
    list(): readonly Pick<
      TrackedProcess,
      "id" | "pid" | "command" | "startedAt" | "exitCode" | "output" | "notify" | "consumed" | "watch" | "matched"
    >[];
    /** False when it does not run. */
    stop(id: string): Promise<boolean>;
    stopAll(): Promise<number>;
  };
  /** The sub-agents of the running turn. */
  readonly subagents: ChildTable;
  /** How hard the model thinks from the next turn on: none, minimal, low, medium, high, xhigh; empty = the provider's default. */
  setReasoning(effort: string): Promise<void>;
  /** Another model from the next turn on. All or nothing; resolves to a sentence for the user. */
  switchModel(request: { model: string; provider?: string | undefined; global?: boolean | undefined }): Promise<string>;
  /** Fetches what is published about models when that was long ago, or at once with `force`. Resolves to what went wrong, or null. */
  refreshModels(options?: { readonly force?: boolean }): Promise<string | null>;
  /** Models the user may pick from, of the provider in use: its server's own list where there is one. */
  knownModels(options?: { readonly fresh?: boolean }): Promise<ModelList>;
  /** Where a switch would lead, and whether the model is there. Rejects where `switchModel` would. */
  checkModel(request: { model: string; provider?: string | undefined }): Promise<CheckedModel>;
  /**
   * What a message points at with `@`, attached below it; null when it points at nothing or references are off here. An interrupt of the
   * agent rejects it with an `AbortError`.
   */
  attachReferences(text: string): Promise<Expansion | null>;
  /**
   * Runs a shell line that the user typed, where the agent's commands run, with the user's own rights: nobody is asked, and the model
   * hears nothing of it. Never for a text that a model had a part in. Rejects with a `UserError` where commands cannot run.
   */
  runTyped(line: string, options: TypedOptions): Promise<TypedResult>;
  /** What is said in a sound file, on the account of this conversation. Rejects with a sentence for the user. */
  transcribe(file: string): Promise<string>;
  /** What a picture in a file shows, by a model that sees, on the account of this conversation. Rejects with a sentence for the user. */
  describe(file: string, question: string): Promise<string>;
  /** A sound file that speaks a text, on the account of this conversation. Rejects with a sentence for the user. */
  speak(text: string): Promise<string>;
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

interface CheckedModel {
  /** As it would be asked for, aliases resolved. */
  readonly model: string;
  readonly provider: string;
  readonly baseUrl: string;
  readonly check: NameCheck;
}

/** The assembly, and what of a conversation the loop need not know. */
interface OpenedParts {
  readonly request: OpenRequest;
  readonly assembly: Assembly;
  readonly store: SessionStore;
  readonly chosen: ChosenModel;
  readonly cwd: string;
  readonly skills: AgentSkills | null;
  readonly memory: Memory | null;
  readonly provider: OpenedProvider | null;
  readonly plugins: ConversationPlugins | null;
  readonly mcp: ConversationMcp;
  readonly checkpoints: CheckpointPort | null;
  readonly trajectories: Trajectories | null;
  readonly guard: { yolo: boolean };
  readonly mode: { mode: WorkMode };
  readonly found: Awaited<ReturnType<typeof resumeSession>> | null;
  readonly notes: readonly string[];
  reload(): Promise<readonly string[]>;
  readonly current: { account?: string | undefined };
}

export class Opened implements OpenAgent {
  readonly agent: Agent;
  readonly store: SessionStore;
  readonly skills: AgentSkills | null;
  readonly memory: Memory | null;
  readonly history: readonly HistoryMessage[];
  readonly resumed: ResumedSession | null;
  readonly notes: readonly string[];
  readonly #parts: OpenedParts;
  #chosen: ChosenModel;
  #closed: Promise<void> | null = null;
  readonly #over = new AbortController();

  constructor(agent: Agent, parts: OpenedParts) {
    const { chosen, found } = parts;
    this.agent = agent;
    this.#parts = parts;
    this.#chosen = chosen;
    this.store = parts.store;
    this.skills = parts.skills;
    this.memory = parts.memory;
    this.history = found?.history ?? [];
    this.resumed = found?.resumed ?? null;
    this.notes = [
      ...(chosen.demo ? [demoNote(chosen, parts.request.connectWith)] : []),
      ...chosen.warnings,
      ...(found?.notes ?? []),
      ...parts.notes,
    ];
  }

  get cwd(): string {
    return this.#parts.cwd;
  }

  get toolNames(): readonly string[] {
    return [...this.#parts.assembly.tools.names].sort();
  }

  get definitions(): readonly ToolDefinition[] {
    return this.#parts.assembly.tools.definitions;
  }

  get target(): Target {
    return this.agent.model.target;
  }

  get providerName(): string {
    return this.#chosen.providerName;
  }

  get demo(): boolean {
    return this.#chosen.demo;
  }

  get place(): string {
    return placeLine(this.#parts.assembly.environment);
  }

  get placeWords(): string {
    return placeWords(this.#parts.assembly.environment);
  }

  get yolo(): boolean {
    return this.#parts.guard.yolo;
  }

  set yolo(on: boolean) {
    this.#parts.guard.yolo = on;
  }

  get workMode(): WorkMode {
    return this.#parts.mode.mode;
  }

  set workMode(mode: WorkMode) {
    this.#parts.mode.mode = mode;
  }

  set account(account: string | null) {
    this.#parts.current.account = account ?? undefined;
  }

  async switchModel(request: { model: string; provider?: string; global?: boolean }): Promise<string> {
    const asked = { ...request, present: this.#chosen.providerName };
    const { chosen, said } = await switchTarget(this.#parts.request.home, this.agent, asked, this.store);
    this.#chosen = chosen;
    return said;
  }

  get subagents(): ChildTable {
    return this.#parts.assembly.tools.state.of(childTable);
  }

  get processes(): OpenAgent["processes"] {
    const table = this.#parts.assembly.tools.state.of(processTable);
    return {
      running: table.running,
      list: () => table.started,
      stop: (id) => table.stop(id),
      stopAll: () => table.stopAll(),
    };
  }

  async setReasoning(effort: string): Promise<void> {
    const { reasoning: _, ...model } = this.agent.model;
    await this.agent.switchModel({ ...model, ...reasoningOf(effort) });
  }

  async refreshModels(options: { readonly force?: boolean } = {}): Promise<string | null> {
    const { home, clock } = this.#parts.request;
    const { refreshFacts } = await import("../llm/catalogue/published-facts.ts");
    return refreshFacts(home, { fetch, now: () => clock.now(), signal: this.#over.signal }, options);
  }

  knownModels(options?: { readonly fresh?: boolean }): Promise<ModelList> {
    return this.#modelsAt(this.target, options);
  }

  async checkModel(request: { model: string; provider?: string }): Promise<CheckedModel> {
    const asked = { ...request, present: this.#chosen.providerName };
    const { target, providerName, demo } = await nextTarget(this.#parts.request.home, asked);
    const { checkName, isPublished } = await import("../llm/providers/model-list.ts");
    const isKnown = demo || (await isPublished(target));
    const check = isKnown ? { type: "listed" as const } : checkName(target.model, await this.#modelsAt(target));
    return { model: target.model, provider: providerName, baseUrl: target.baseUrl, check };
  }

  async #modelsAt(target: Target, options?: { readonly fresh?: boolean }): Promise<ModelList> {
    const { modelList } = await import("../llm/providers/model-list.ts");
    const { clock } = this.#parts.request;
    return modelList(target, { fetch, now: () => clock.now(), signal: this.#over.signal }, options);
  }

  async attachReferences(text: string): Promise<Expansion | null> {
    const { request, cwd } = this.#parts;
    const { home, platform, clock } = request;
    const { attachReferences } = await import("../prompt/references/open.ts");
    const { contextLength } = this.target;
    return this.agent.betweenTurns(async (signal) => {
      const readPage = request.readPage ?? ((url) => readPageFor(url, { home, clock, contextLength, signal }));
      const expansion = await attachReferences(text, { home, cwd, platform, contextLength, readPage });
      signal.throwIfAborted();
      if (expansion?.expanded) await this.agent.readOutside(this.#outside(expansion.references));
      return expansion;
    });
  }

  runTyped(line: string, options: TypedOptions): Promise<TypedResult> {
    const { environment } = this.#parts.assembly;
    return environment.execute(clearTypedCommand(line), { ...options, timeoutMs: TYPED_LIMIT_MS });
  }

  async transcribe(file: string): Promise<string> {
    const { transcribe } = await import("../tools/media/transcribe.ts");
    return transcribe(file, this.#mediaPorts());
  }

  async describe(file: string, question: string): Promise<string> {
    const { describePicture } = await import("./picture-words.ts");
    const { pictureFile } = await import("../tools/media/user-pictures.ts");
    const { part: picture } = await pictureFile(file);
    const { sessionId, auxiliary } = this.agent;
    await this.store.ensure({ id: sessionId, source: this.#parts.request.source, model: this.target.model });
    return describePicture(auxiliary, { picture, question }, { sessionId, signal: this.#over.signal });
  }

  async speak(text: string): Promise<string> {
    const { home, clock, platform } = this.#parts.request;
    const { speakAloud } = await import("../tools/media/speak.ts");
    return speakAloud(text, { ...this.#mediaPorts(), home: home.paths, clock, platform });
  }

  #mediaPorts(): Pick<Speaking, "config" | "env" | "redact" | "signal"> & { pay: NonNullable<Speaking["pay"]> } {
    const { request, assembly } = this.#parts;
    const { home, source } = request;
    const { signal } = this.#over;
    return {
      ...{ config: home.config(), env: home.env, redact: home.redact, signal },
      pay: async (task, call, send) => {
        const { sessionId } = this.agent;
        await this.store.ensure({ id: sessionId, source, model: this.target.model });
        const { value, usage, cost } = await assembly.gate.pay(call, { task, sessionId }, send, signal);
        this.agent.countSideCall({ ...NO_USAGE, ...usage, cost });
        return value;
      },
    };
  }

  /** Which of the things a message points at were written by others. */
  #outside(references: Expansion["references"]): readonly string[] {
    const { assembly, cwd, request } = this.#parts;
    const { display } = request.home;
    return references.flatMap(({ kind, value }) => {
      if (kind === "url") return [`page ${value}`];
      const path = kind === "file" || kind === "folder" ? expandPath(value, cwd, request.home.osHome) : cwd;
      return assembly.isTrusted?.(path) === false ? [`${kind} ${display(path)}`] : [];
    });
  }

  get ignoresRules(): boolean {
    return this.#parts.request.ignoreRules === true;
  }

  reloadPrompt() {
    return this.agent.reloadPrompt();
  }

  async reloadMcp(): Promise<readonly string[]> {
    if (this.agent.busy)
      throw new AgentBusyError("MCP servers cannot be reconnected while a turn is running; interrupt it first");
    return this.#parts.reload();
  }

  async rollback(): Promise<Rollback> {
    const { request, assembly } = this.#parts;
    const { openRollback } = await import("../checkpoints/rollback.ts");
    const on = request.checkpoints ?? request.home.config().checkpoints.enabled;
    return openRollback({ ...request, environment: assembly.environment, sessionId: this.agent.sessionId, on });
  }

  async title(): Promise<string | null> {
    return (await this.store.get(this.agent.sessionId))?.title ?? null;
  }

  async setTitle(title: string): Promise<void> {
    const { sessionId } = this.agent;
    await this.store.ensure({ id: sessionId, source: this.#parts.request.source, model: this.target.model });
    await this.store.setTitle(sessionId, title);
  }

  close(reason: EndReason, next?: string): Promise<void> {
    this.#closed ??= this.#close(reason, next);
    return this.#closed;
  }

  async #close(reason: EndReason, next: string | undefined): Promise<void> {
    this.#over.abort();
    const { sessionId } = this.agent;
    const afresh = reason === "new_session";
    await this.agent.close({ finishReview: afresh || reason === "resumed_other", afresh });
    const messages = this.agent.lastOutcome?.messages ?? this.history;
    await this.#parts.provider?.close({ reason, messages, next });
    await this.#parts.plugins?.close({ reason, next });
    await this.#parts.mcp.close();
    await this.skills?.flush();
    await this.#parts.checkpoints?.settled();
    await this.#parts.trajectories?.settled();
    const session = await this.store.get(sessionId);
    if (session?.messageCount === 0) await this.store.delete(sessionId);
    else if (session) await this.store.end(sessionId, reason);
  }
}

/** The page behind an `@url:` that the user typed, read and fenced like the result of the web tools. Rejects with a sentence for the user. */
async function readPageFor(
  url: string,
  {
    home,
    clock,
    contextLength,
    signal,
  }: Pick<OpenRequest, "home" | "clock"> & { readonly contextLength: number; readonly signal: AbortSignal },
): Promise<string> {
  const { cutMiddle, readWebPage } = await import("../tools/web/extract.ts");
  const { title, content } = await readWebPage(url, {
    config: home.config(),
    home: home.paths,
    clock,
    log: home.log.child("web"),
    signal,
    redact: home.redact,
    env: (name) => home.env(name),
  });
  const text = cutMiddle(
    home.redact(content),
    sizeLimits(contextLength).perResult,
    (left) => `[... ${left} characters left out ...]`,
  );
  return fenced("web_extract", `${title === "" ? "" : `# ${title}\n`}${url}\n\n${text}`);
}
