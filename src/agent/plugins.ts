// One conversation as its plugins see it: what they are notified of, what they may say, and what they may do in it.

import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { isRecord } from "../kit/json.ts";
import { classifyApiError } from "../llm/errors/classify.ts";
import { failureLine } from "../llm/errors/explain.ts";
import type { ModelGate } from "../llm/gate.ts";
import type { Message } from "../llm/messages.ts";
import { listenToModel } from "../llm/model-call.ts";
import type { ConversationPort, PluginLlm } from "../plugins/contract.ts";
import type { PluginHost } from "../plugins/host.ts";
import { current, type SharedPlugins, sharedPlugins } from "../plugins/shared.ts";
import type { PromptSource } from "../prompt/contract.ts";
import { hookText } from "../prompt/recall.ts";
import type { Ask } from "../safety/decision.ts";
import type { EndReason } from "../sessions/store.ts";
import type { HookedCall, HookedResult, RunContext } from "../tools/toolset/context.ts";
import { loadTools } from "../tools/toolset/discover.ts";
import type { Agent } from "./agent.ts";
import type { Assembly, LoopEvents, ToolHooks, TurnPorts } from "./assembly.ts";
import type { SubagentEvent, TurnOutcome } from "./events.ts";
import type { OpenRequest } from "./open-request.ts";

type PluginRequest = Pick<OpenRequest, "home" | "clock" | "cwd" | "platform" | "interactive" | "start" | "acceptHooks">;

const DEEPEST_DISPATCH = 3;
/** How long the end of a conversation waits for listeners that are still being notified. */
const DRAIN_MS = 5000;

export async function openConversationPlugins(request: PluginRequest): Promise<ConversationPlugins> {
  const { home } = request;
  const shared = sharedPlugins(request);
  if (request.acceptHooks) shared.acceptHooks = true;
  // Built-in tools first: a plugin must not get hold of one of their names by being early.
  await loadTools(home.log.child("tools"));
  await shared.host.refresh();
  shared.listen();
  const { memory, context } = home.config();
  if (memory.provider.trim() !== "") await shared.host.useSingle("memory", memory.provider.trim());
  await shared.host.useSingle("engine", context.engine);
  return new ConversationPlugins(request, shared);
}

export class ConversationPlugins implements LoopEvents {
  /** Lines for the user about opening them. */
  readonly notes: readonly string[];
  readonly #request: PluginRequest;
  readonly #shared: SharedPlugins;
  readonly #host: PluginHost;
  readonly #port: ConversationPort;
  /** Rules of plugins that a person said yes to, for this conversation. */
  readonly #allowed = new Set<string>();
  #agent: Agent | null = null;
  #gate: ModelGate | null = null;
  #cwd: () => string;
  #turn: TurnPorts | null = null;
  #contexts: readonly string[] = [];
  #started = false;
  #depth = 0;
  /** Notifications outside of turns, one after the other. */
  #notifying: Promise<unknown> = Promise.resolve();

  constructor(request: PluginRequest, shared: SharedPlugins) {
    this.#request = request;
    this.#shared = shared;
    this.#host = shared.host;
    this.#cwd = () => request.cwd;
    this.notes = shared.host.takeLines();
    this.#port = {
      dispatchTool: (name, args) => this.#dispatch(name, args),
      injectMessage: (text) => this.#inject(text),
      complete: (question) => this.#complete(question),
    };
  }

  /** Folders of skills by namespace. */
  get skills(): ReadonlyMap<string, readonly string[]> {
    return this.#host.skills();
  }

  attach(agent: Agent, gate: ModelGate): void {
    this.#agent = agent;
    this.#gate = gate;
    this.#shared.open.push(this.#port);
  }

  hasListeners(event: string): boolean {
    return this.#host.hooks.hasListeners(event);
  }

  /** Within a turn: whoever interrupts it does not wait for listeners. */
  notify(event: string, facts: Readonly<Record<string, unknown>>): Promise<readonly unknown[]> {
    return this.#notify(event, facts, this.#turn?.run.signal);
  }

  #notify(event: string, facts: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<readonly unknown[]> {
    if (!this.hasListeners(event)) return Promise.resolve([]);
    return current.run(this.#port, () => this.#host.hooks.emit(event, { ...facts, cwd: this.#cwd() }, signal));
  }

  async turnStarts(turn: TurnPorts): Promise<void> {
    this.#turn = turn;
    this.#contexts = [];
    const { interactive, platform, cwd } = this.#request;
    await this.#shared.shellHooks.settle({ ask: turn.ask, interactive, cwd });
    const { sessionId } = turn.run;
    const model = this.#agent?.model.target.model ?? "";
    const isFirst = turn.history.filter(({ role }) => role === "user").length <= 1;
    if (isFirst && !this.#started) await this.notify("on_session_start", { session_id: sessionId, model, platform });
    if (!this.#started) await this.#tellClaimed();
    this.#started = true;
    if (!this.hasListeners("pre_llm_call")) return;
    const facts = {
      session_id: sessionId,
      user_message: turn.text,
      conversation_history: turn.history,
      is_first_turn: isFirst,
      model,
      platform,
    };
    const answers = await this.notify("pre_llm_call", facts);
    const texts = answers.flatMap((answer) => {
      const text = isRecord(answer) ? answer.context : answer;
      return typeof text === "string" && text.trim() !== "" ? [text] : [];
    });
    this.#contexts = await Promise.all(texts.map((text) => this.#spill(text)));
  }

  /** The dispatcher of a board gave this process a card. */
  async #tellClaimed(): Promise<void> {
    const { home, start } = this.#request;
    if (start !== undefined || !home.env("HERMES_KANBAN_TASK")) return;
    const worker = (await import("../kanban/own-card.ts")).workerOf((name) => home.env(name));
    if (worker === null) return;
    const { task: task_id, run: run_id, board, workspace } = worker;
    await this.notify("kanban_task_claimed", { task_id, run_id, board, workspace, profile: home.paths.profile });
  }

  /** What memory recalls, then what hooks add, on the current message as it is sent. */
  recall(inner: PromptSource["recall"]): NonNullable<PromptSource["recall"]> {
    return async (text, run, input) => {
      const recalled = (await inner?.(text, run, input)) ?? [];
      return this.#contexts.length === 0 ? recalled : [...recalled, this.#contexts.join("\n\n")];
    };
  }

  /** The conversation with its plugins in it. */
  into(assembly: Assembly): Assembly {
    // Hooks run on this machine, whatever place commands run in.
    const { environment } = assembly;
    if (environment.kind === "local" || environment.confinement) this.#cwd = () => assembly.environment.cwd;
    const { delegation, follower } = assembly;
    return {
      ...assembly,
      events: this,
      takeWarnings: () => [...(assembly.takeWarnings?.() ?? []), ...this.#host.takeLines()],
      hooks: toolHooks(this, {
        interactive: this.#request.interactive,
        ask: () => this.#turn?.ask ?? null,
        isAllowed: (key) => this.#allowed.has(key) || assembly.config().command_allowlist.includes(key),
        allow: (key, how) => this.#allow(key, how),
      }),
      guardFor: (run, ask, auxiliary) => assembly.guardFor(run, this.#observed(ask, run.sessionId), auxiliary),
      follower: {
        ...follower,
        turnEnded: (turn) => {
          follower?.turnEnded?.(turn);
          this.#later("on_session_end", this.#endFacts(turn.outcome));
        },
      },
      toolPorts: {
        ...assembly.toolPorts,
        conversation: this.#port,
        emitHook: (event, facts) => this.notify(event, facts),
        transformOutput: async (facts) => {
          const answers = await this.notify("transform_terminal_output", { ...facts });
          return answers.find((answer) => typeof answer === "string") ?? null;
        },
      },
      ...(delegation
        ? {
            delegation: {
              spawn: (tasks, call) =>
                delegation.spawn(tasks, {
                  ...call,
                  emit: (event) => {
                    if (event.type === "subagent")
                      this.#followChild(event, call.sessionId, tasks[event.taskIndex]?.role ?? "leaf");
                    call.emit(event);
                  },
                }),
            },
          }
        : {}),
    };
  }

  /** The conversation is over; a conversation that takes its place is a reset. Waits a while for listeners. */
  async close(end: { readonly reason: EndReason; readonly next?: string | undefined }): Promise<void> {
    const facts = this.#agent?.lastOutcome
      ? this.#endFacts(this.#agent.lastOutcome)
      : { session_id: this.#agent?.sessionId };
    this.#later("on_session_finalize", { ...facts, reason: end.reason });
    if (end.reason === "new_session")
      this.#later("on_session_reset", { ...facts, session_id: end.next ?? facts.session_id });
    const done = new AbortController();
    await Promise.race([this.#notifying, this.#request.clock.sleep(DRAIN_MS, done.signal).catch(() => undefined)]); // notified in time
    done.abort();
    const at = this.#shared.open.indexOf(this.#port);
    if (at >= 0) this.#shared.open.splice(at, 1);
  }

  #endFacts(outcome: TurnOutcome) {
    const { sessionId, completed, interrupted, model } = outcome;
    return { session_id: sessionId, completed, interrupted, model, platform: this.#request.platform };
  }

  #later(event: string, facts: Readonly<Record<string, unknown>>): void {
    this.#notifying = this.#notifying.then(() => this.#notify(event, facts));
  }

  #followChild(event: SubagentEvent, parent: string, role: string): void {
    // Children of children are reported by their own parents.
    if (event.depth !== (this.#request.start?.depth ?? 0) + 1) return;
    const facts = { parent_session_id: parent, child_id: event.id, child_role: role, child_goal: event.goal };
    if (event.phase === "start") this.#later("subagent_start", facts);
    if (event.phase === "complete") {
      const { text = "", summary = text, status = "completed", ms = 0 } = event;
      this.#later("subagent_stop", { ...facts, child_summary: summary, child_status: status, duration_ms: ms });
    }
  }

  /** Observers of what a person is asked about commands; they change nothing. */
  #observed(ask: Ask, sessionId: string): Ask {
    return async (question, signal) => {
      if (question.kind !== "approval") return ask(question, signal);
      const { command, description, patternKey } = question;
      const { platform } = this.#request;
      const facts = {
        ...{ command, description, pattern_key: patternKey, pattern_keys: [patternKey] },
        ...{ session_key: sessionId, session_id: sessionId, surface: platform },
      };
      await this.notify("pre_approval_request", facts);
      const answer = await ask(question, signal);
      await this.notify("post_approval_response", { ...facts, choice: "choice" in answer ? answer.choice : null });
      return answer;
    };
  }

  async #allow(key: string, how: "session" | "always"): Promise<void> {
    this.#allowed.add(key);
    const { home } = this.#request;
    const present = home.config().command_allowlist;
    if (how === "always" && !present.includes(key)) await home.setConfigKey("command_allowlist", [...present, key]);
  }

  async #dispatch(name: string, args: Readonly<Record<string, unknown>>): Promise<string> {
    if (!this.#turn || !this.#agent?.busy)
      return JSON.stringify({ error: `${name}: no turn is running, so no tool can be called` });
    // A hook that calls a tool is asked about that call too, and may call another.
    if (this.#depth >= DEEPEST_DISPATCH)
      return JSON.stringify({ error: `${name}: plugins call each other in circles` });
    this.#depth++;
    try {
      return await this.#turn.callTool(name, args);
    } finally {
      this.#depth--;
    }
  }

  #inject(text: string): boolean {
    const agent = this.#agent;
    if (!agent || text.trim() === "") return false;
    if (!agent.steer(text)) agent.publish({ type: "notice", kind: "process", text });
    return true;
  }

  #complete(request: Parameters<PluginLlm["complete"]>[0]): Promise<string> {
    if (!this.#agent || !this.#gate) throw new Error("llm needs a running conversation");
    return askModel(request, { gate: this.#gate, agent: this.#agent, jobId: this.#request.start?.jobId });
  }

  /** A text too long to ride on a message moves to a file, with its two ends left here. */
  #spill(text: string): Promise<string> {
    const { home, clock } = this.#request;
    return hookText(text, async () => {
      const name = `${clock.now()}-${Math.floor(clock.random() * 0xffffff).toString(16)}.txt`;
      const path = home.paths.at("cache", "hook-context", name);
      try {
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await writeFile(path, text, { mode: 0o600 });
        return path;
      } catch (error) {
        home.log.warn(`a hook's text could not be saved to ${path}`, error);
        return null;
      }
    });
  }
}

// A plugin's question to the conversation's model: through the one gate, under its own name in the ledger.

const LIMIT_MS = 120_000;

async function askModel(
  request: Parameters<PluginLlm["complete"]>[0],
  { gate, agent, jobId }: { readonly gate: ModelGate; readonly agent: Agent; readonly jobId?: string | undefined },
): Promise<string> {
  const { target } = agent.model;
  const messages: readonly Message[] = [
    ...(request.system === undefined ? [] : [{ role: "system" as const, content: request.system }]),
    { role: "user", content: request.prompt },
  ];
  const signal = request.signal ?? AbortSignal.timeout(LIMIT_MS);
  const { maxTokens } = request;
  const stream = gate.stream(
    { target, messages, tools: [], limits: { totalMs: LIMIT_MS }, ...(maxTokens === undefined ? {} : { maxTokens }) },
    { task: "plugin", sessionId: agent.sessionId, ...(jobId === undefined ? {} : { jobId }) },
    signal,
  );
  const reply = await listenToModel(stream, signal, {
    emit: () => undefined,
    usage: (usage) => agent.countSideCall(usage),
  });
  if (reply.type === "answer") return reply.message.content ?? "";
  if (reply.type === "interrupted") throw new Error("the question was interrupted");
  const { provider, model, contextLength } = target;
  throw new Error(failureLine(classifyApiError(reply.error, { provider, model, contextLength }), target.apiKey));
}

// Tool calls as hooks see them: before, after, and the text the model gets.

interface RuleApprovals {
  readonly interactive: boolean;
  ask(): Ask | null;
  isAllowed(key: string): boolean;
  allow(key: string, how: "session" | "always"): Promise<void>;
}

function toolHooks(events: Pick<LoopEvents, "hasListeners" | "notify">, rules: RuleApprovals): ToolHooks {
  return {
    async before(call, run) {
      if (!events.hasListeners("pre_tool_call")) return null;
      const answers = await events.notify("pre_tool_call", factsOf(call, run));
      const directives = answers.filter(isRecord);
      const block = directives.find(({ action }) => action === "block");
      if (block) return textOf(block.message) ?? "Blocked by a hook.";
      for (const directive of directives.filter(({ action }) => action === "approve")) {
        const refusal = await askPerson(call, textOf(directive.message) ?? textOf(directive.rule) ?? "", rules);
        if (refusal !== null) return refusal;
      }
      return null;
    },
    async after(call, result, run) {
      if (events.hasListeners("post_tool_call"))
        await events.notify("post_tool_call", { ...factsOf(call, run), ...resultFacts(result) });
    },
    async transform(call, result, run) {
      if (!events.hasListeners("transform_tool_result")) return null;
      const answers = await events.notify("transform_tool_result", { ...factsOf(call, run), ...resultFacts(result) });
      return answers.find((answer) => typeof answer === "string") ?? null;
    },
  };
}

/** A rule of a plugin wants a person's word. Without one the answer is no. */
async function askPerson(call: HookedCall, rule: string, rules: RuleApprovals): Promise<string | null> {
  const key = `plugin_rule:${call.name}:${createHash("sha256").update(rule).digest("hex").slice(0, 12)}`;
  if (rules.isAllowed(key)) return null;
  const why = rule === "" ? "a plugin asks for your approval" : rule;
  const ask = rules.ask();
  if (!rules.interactive || !ask)
    return `${call.name} needs a person's approval (${why}), and nobody can be asked here.`;
  const { choice } = await ask({
    kind: "approval",
    command: `${call.name} ${JSON.stringify(call.args)}`.slice(0, 500),
    description: why,
    patternKey: key,
    allowAlways: true,
    about: "other",
  });
  if (choice === "deny") return `The user did not approve this call (${why}).`;
  if (choice !== "once") await rules.allow(key, choice);
  return null;
}

function factsOf(call: HookedCall, run: RunContext): Readonly<Record<string, unknown>> {
  return {
    tool_name: call.name,
    args: call.args,
    task_id: run.taskId,
    session_id: run.sessionId,
    tool_call_id: call.id,
  };
}

function resultFacts({ text, ms, status }: HookedResult): Readonly<Record<string, unknown>> {
  const failed = status !== "ok";
  return {
    result: text,
    duration_ms: ms,
    status: status === "failed" ? "error" : status,
    ...(failed ? errorFacts(text) : { error_type: null, error_message: null }),
  };
}

function errorFacts(text: string): Readonly<Record<string, unknown>> {
  const known = /^\[TOOL_ERROR\] Tool execution failed: (\w+): /;
  try {
    const value: unknown = JSON.parse(text);
    const message = isRecord(value) && typeof value.error === "string" ? value.error : text;
    const type = isRecord(value) && typeof value.error_type === "string" ? value.error_type : known.exec(message)?.[1];
    return { error_type: type ?? "tool_error", error_message: message.slice(0, 2000) };
  } catch {
    return { error_type: "tool_error", error_message: text.slice(0, 2000) }; // a result in plain words
  }
}

const textOf = (value: unknown) => (typeof value === "string" && value.trim() !== "" ? value : null);
