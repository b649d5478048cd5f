// The one path of every tool call: prepare, hooks, handler, redaction, size. Results come back in call order.

import { randomUUID } from "node:crypto";
import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { joinSignals, withGrace } from "../kit/clock.ts";
import { type HistoryMessage, type ToolCall, textOf } from "../llm/messages.ts";
import { disarm, fenced, rearm } from "../prompt/fence.ts";
import type { EnvironmentFiles } from "../sandbox/environment.ts";
import { pathsOfBatch, planToolBatch } from "../tools/toolset/batch-plan.ts";
import type { HookedCall, HookedResult, RunContext, ToolContext } from "../tools/toolset/context.ts";
import type { MultimodalOutput, ToolOutput } from "../tools/toolset/registry.ts";
import type { SessionTools } from "../tools/toolset/session-tools.ts";
import type { Assembly, ToolTimes } from "./assembly.ts";
import type { AgentEventBody, ToolCallView } from "./events.ts";
import { type ForeignText, isUntrusted, type Outside, type TextOrigins } from "./foreign-text.ts";
import { type Finished, resultMessages } from "./result-messages.ts";
import type { Entry } from "./transcript.ts";
import type { CallFacts } from "./turn-kit.ts";

const MAX_AT_ONCE = 8;
const WRITES_FILES: ReadonlySet<string> = new Set(["write_file", "patch"]);
const KEEPS_NOTES: ReadonlySet<string> = new Set(["memory", "skill_manage"]);
/** They know which file a text is from, and mask it by that. */
const MASK_BY_PATH: ReadonlySet<string> = new Set(["read_file", "search_files"]);
const TIMES: ToolTimes = { heartbeatMs: 5_000, graceMs: 500, overtimeMs: 30_000 };

interface ToolRunnerOptions {
  readonly tools: SessionTools;
  readonly assembly: Assembly;
  readonly run: RunContext;
  readonly times?: ToolTimes;
  /** The model takes pictures. */
  readonly images: boolean;
  readonly history: () => readonly HistoryMessage[];
  readonly origins: TextOrigins;
  readonly foreign: ForeignText;
  readonly emit: (event: AgentEventBody) => void;
  /** Called for every call that ended. */
  readonly onFinished: (call: HookedCall, result: string, failed: boolean) => void;
  readonly contextFor: (call: CallFacts) => ToolContext;
}

/** A tool that makes a call while it runs. */
interface CallingTool {
  readonly call: HookedCall;
  /** Ends the call it makes. */
  readonly signal: AbortSignal;
}

export class ToolRunner {
  readonly #options: ToolRunnerOptions;
  readonly #times: ToolTimes;
  /** Per call that made calls of its own: the last of those whose text comes from outside. */
  readonly #outsiders = new Map<string, { readonly source: string; readonly outside: Outside }>();
  /** Calls of the model that have begun. */
  readonly #running = new Set<string>();
  #nestedCalls = 0;

  constructor(options: ToolRunnerOptions) {
    this.#options = options;
    this.#times = options.times ?? TIMES;
  }

  /** Runs the calls of one answer. Never rejects for what a tool did; after an interrupt it settles within the grace period. */
  async runBatch(calls: readonly ToolCall[]): Promise<readonly Entry[]> {
    const finished: Finished[] = new Array(calls.length);
    for (const [kind, indexes] of await this.#plan(calls)) {
      const run = async (index: number) => {
        const call = calls[index] as ToolCall; // the plan names indexes of the batch
        const done = this.#options.run.signal.aborted ? null : await this.#runCall(call);
        finished[index] = done ?? notStarted(call, kind);
      };
      if (kind === "sequential") for (const index of indexes) await run(index);
      else await inPool(indexes, MAX_AT_ONCE, run);
    }
    return resultMessages(finished, this.#options);
  }

  /**
   * One call of somebody else than the model, on the same path; its result goes to the caller, whole. A running tool gets it without a
   * fence, because the tool's own result is fenced instead; of anyone else nobody knows where the text goes next.
   */
  async callOnBehalf(name: string, args: HookedCall["args"], by?: CallingTool): Promise<string> {
    const { tools, run } = this.#options;
    if (!tools.names.has(name)) return errorResult(`Unknown tool: ${name}`);
    const id = by ? `${by.call.id}_${++this.#nestedCalls}` : `aside_${randomUUID()}`;
    const call: ToolCall = { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
    const done = await this.#runCall(call, by?.signal ?? run.signal);
    if (!done) return cancelled(name);
    const { content, source = name, outside } = done;
    // Who called is not known of a plugin; whatever runs now may hand it on.
    const callers = by ? [by.call.id] : [...this.#running];
    if (outside) await this.#options.foreign.add([{ call: callers.at(-1) ?? "", from: outside.from }]);
    // What frames stood in the text are the caller's to keep or to lose.
    const loose = outside && { origin: outside.origin, from: outside.from };
    for (const id of callers) if (loose) this.#outsiders.set(id, { source, outside: loose });
    return textOf(outside && !by ? fenced(source, content) : content);
  }

  async #plan(calls: readonly ToolCall[]) {
    const { assembly, tools } = this.#options;
    const { environment } = assembly;
    const planned = calls.map((call) => {
      const { name, args } = this.#prepare(call);
      return name === call.function.name ? call.function : { name, arguments: JSON.stringify(args) };
    });
    const facts = { home: environment.home, isParallelTool: (name: string) => tools.isParallelTool(name) };
    if (calls.length < 2) return planToolBatch(planned, environment.cwd, facts);
    // Most answers hold one call: what judges a batch is loaded with the first one.
    const { isReadOnlyCommand } = await import("../safety/command-kinds.ts");
    const known = { ...facts, isReadOnlyCommand };
    // Who only reads is in nobody's way, whatever name a file goes by.
    if (!planned.some(({ name }) => name === "write_file" || name === "patch"))
      return planToolBatch(planned, environment.cwd, known);
    const real = await realPathsOf(pathsOfBatch(planned, environment.cwd, known), environment.files);
    return planToolBatch(planned, environment.cwd, { ...known, realPath: (path) => real.get(path) ?? path });
  }

  /** The one place where a call is taken out of its bridge and its arguments are put right. */
  #prepare({ function: { name, arguments: text } }: ToolCall) {
    return this.#options.tools.prepare(name, parseArguments(text));
  }

  /** `within` ends a call whose result no model waits for. Null when an interrupt came before it began. */
  async #runCall(call: ToolCall, within?: AbortSignal): Promise<Finished | null> {
    const { run, emit } = this.#options;
    const { name, args: written } = this.#prepare(call);
    const args = WRITES_FILES.has(name) ? mapTexts(written, rearm) : written;
    const hooked: HookedCall = { id: call.id, name, args: this.#keepable(name, args) };
    const shownArgs = mapTexts(args, (text) => this.#options.assembly.redact(text));
    const view: ToolCallView = { id: call.id, name, args: shownArgs, preview: previewCall(name, shownArgs) };

    const { cwd } = this.#options.assembly.environment;
    const diffs: string[] = [];
    const blocked =
      (await this.#options.assembly.mode?.refuses(hooked)) ??
      (await this.#hook("pre_tool_call", () => this.#options.assembly.hooks?.before?.(hooked, run)));
    const isStopped = () => run.signal.aborted || within?.aborted === true;
    // A hook that was not waited for may have had something against it.
    if (isStopped()) return null;
    emit({ type: "tool_start", call: view });
    if (!blocked && this.#options.assembly.checkpoint)
      await withGrace(this.#checkpoint(hooked), within ?? run.signal, 0);
    const began = performance.now();
    if (!within) this.#running.add(call.id);
    // Whoever stops the agent while a copy is made does not want the change either.
    const outcome = blocked
      ? { type: "blocked" as const, text: errorResult(blocked) }
      : isStopped()
        ? { type: "abandoned" as const, text: cancelled(name) }
        : await this.#dispatch(hooked, view, (diff) => void diffs.push(diff), within);
    const ms = Math.round(performance.now() - began);
    this.#running.delete(call.id);

    if (outcome.type === "abandoned") {
      this.#options.onFinished(hooked, outcome.text, true);
      emit({ type: "tool_end", call: view, result: outcome.text, ms, failed: true });
      return { call, content: outcome.text, appendix: "", stub: true };
    }
    const finished = await this.#finish(call, hooked, outcome, { ms, nested: within !== undefined });
    const inner = this.#outsiders.get(call.id);
    this.#outsiders.delete(call.id);
    const source = inner?.source ?? name;
    const text = textOf(finished.content);
    const facts = { call: hooked, text: finished.plain, failed: finished.failed, cwd };
    const outside = blocked
      ? null
      : await this.#options.origins.outside(facts, inner?.outside ?? this.#delegated(hooked));
    // Screens read what tools of ours say by its fields.
    const shown = outside && isUntrusted(source) ? fenced(source, text) : text;
    const diff = this.#options.assembly.redact(diffs.join(""));
    this.#options.onFinished(hooked, text, finished.failed);
    emit({ type: "tool_end", call: view, result: shown, ms, failed: finished.failed, ...(diff && { diff }) });
    const done = { ...finished, source, ...(outside && { outside }) };
    return blocked ? done : { ...done, ran: { call: hooked, cwd } };
  }

  /** A report of children is from outside when they have read such text. */
  #delegated({ id, name }: HookedCall): Outside | undefined {
    const from = name === "delegate_task" ? this.#options.foreign.during(id) : null;
    return from === null ? undefined : { origin: "web", from };
  }

  /** A secret in a note would stand in every prompt from then on. */
  #keepable(name: string, args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const { redactKept } = this.#options.assembly;
    return redactKept && KEEPS_NOTES.has(name) ? mapTexts(args, redactKept) : args;
  }

  async #checkpoint(hooked: HookedCall): Promise<void> {
    const { assembly, run, emit } = this.#options;
    const message = await this.#hook("checkpoint", () => assembly.checkpoint?.(hooked, run));
    if (message) emit({ type: "status", kind: "warn", message });
  }

  async #dispatch(
    hooked: HookedCall,
    view: ToolCallView,
    showDiff: (diff: string) => void,
    within: AbortSignal | undefined,
  ): Promise<Dispatched> {
    const { tools, run, emit } = this.#options;
    const own = tools.timeoutMs(hooked.name, hooked.args);
    const overtime = new AbortController();
    // A tool that goes on listening to its signal keeps nothing of the call alive for the rest of the turn.
    const { signal, release } = joinSignals(run.signal, overtime.signal, ...(within ? [within] : []));
    const began = performance.now();
    const seconds = () => Math.round((performance.now() - began) / 1000);
    const progress = (text?: string) =>
      emit({ type: "tool_progress", call: view, seconds: seconds(), ...(text === undefined ? {} : { text }) });
    const showOutput = (output: string) => emit({ type: "tool_progress", call: view, seconds: seconds(), output });

    const heartbeat = tools.showsLife(hooked.name) ? undefined : setInterval(progress, this.#times.heartbeatMs);
    const cap = own === undefined ? undefined : setTimeout(() => overtime.abort(), own + this.#times.overtimeMs);
    try {
      const callTool: CallFacts["callTool"] = async (name, args, own) => {
        const joined = joinSignals(signal, ...(own ? [own] : []));
        return this.callOnBehalf(name, args, { call: hooked, signal: joined.signal }).finally(joined.release);
      };
      const forScript = within !== undefined;
      const shown = { progress, showDiff, ...(run.interactive && { showOutput }) };
      const ctx = this.#options.contextFor({ callId: hooked.id, signal, ...shown, callTool, forScript });
      const refused = await this.#refuseSend(hooked, ctx);
      if (refused !== null) return { type: "blocked", text: errorResult(refused) };
      const work = Promise.resolve().then(() => tools.call(hooked.name, hooked.args, ctx));
      const settled = await withGrace(work, signal, this.#times.graceMs);
      if (settled.done) return { type: "output", output: settled.value };
      if (run.signal.aborted || within?.aborted) return { type: "abandoned", text: cancelled(hooked.name) };
      return {
        type: "abandoned",
        text: errorResult(
          `${hooked.name} did not end within its time limit (${seconds()} s); its result is not waited for`,
        ),
      };
    } catch (error) {
      const what = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
      this.#options.assembly.log.warn(`tool ${hooked.name} failed`, error);
      return { type: "output", output: errorResult(`[TOOL_ERROR] Tool execution failed: ${what}`) };
    } finally {
      release();
      clearInterval(heartbeat);
      clearTimeout(cap);
    }
  }

  /** Why an address may not be opened: it carries text away, and a stranger's text may have asked for it. */
  async #refuseSend({ name, args }: HookedCall, ctx: ToolContext): Promise<string | null> {
    const addresses = isUntrusted(name) ? [args.url, args.image_url, args.urls].flat() : [];
    if (addresses.length === 0 || !ctx.guard.decideSend || (ctx.foreignText?.() ?? null) === null) return null;
    const { carriesAway } = await import("../safety/url-payload.ts");
    const texts = this.#options
      .history()
      .flatMap((message) => (message.role === "assistant" ? [] : [textOf(message.content)]));
    for (const address of addresses) {
      if (typeof address !== "string") continue;
      if (!carriesAway(address, (part) => texts.some((text) => text.includes(part)))) continue;
      const answer = await ctx.guard.decideSend(address, ctx.signal);
      if (!answer.approved) return answer.message;
    }
    return null;
  }

  /** From what a handler gave to what the model may see. */
  async #finish(
    call: ToolCall,
    hooked: HookedCall,
    outcome: Exclude<Dispatched, { type: "abandoned" }>,
    { ms, nested }: { readonly ms: number; readonly nested: boolean },
  ): Promise<Finished & { readonly failed: boolean /** Whole. */; readonly plain: string }> {
    const { assembly, run, tools } = this.#options;
    const output = outcome.type === "blocked" ? outcome.text : outcome.output;
    const plain = typeof output === "string" ? output : summaryOf(output);
    const failed = outcome.type === "blocked" || isFailedResult(hooked.name, plain);
    const result: HookedResult = {
      text: plain,
      ms,
      status: outcome.type === "blocked" ? "blocked" : failed ? "failed" : "ok",
    };
    await this.#hook("post_tool_call", () => assembly.hooks?.after?.(hooked, result, run));
    const changed = await this.#hook("transform_tool_result", () => assembly.hooks?.transform?.(hooked, result, run));
    const added = await this.#hook("appendix", () => assembly.hooks?.appendix?.(hooked, result, run));
    const appendix = disarm(added ?? "");

    // Masked again as plain output, a test value in source code would become a mark that can be written back.
    const isMasked = changed == null && MASK_BY_PATH.has(hooked.name);
    const redact = (text: string) =>
      isMasked && assembly.redactKept ? assembly.redactKept(text) : assembly.redact(text);
    const mask = (text: string) => disarm(redact(text)).toWellFormed();
    if (typeof output !== "string" && changed == null && this.#options.images) {
      const content = output.content.map((part) => (part.type === "text" ? { ...part, text: mask(part.text) } : part));
      return { call, content, appendix, summary: mask(plain), failed, plain };
    }
    const text = mask(changed ?? plain);
    if (nested) return { call, content: text, appendix, failed, plain };
    const sized = { callId: call.id, name: hooked.name, text };
    return { call, content: await tools.limitResult(sized, run.sessionId), appendix, failed, plain };
  }

  async #hook<T>(what: string, call: () => Promise<T> | undefined): Promise<T | undefined> {
    try {
      return await call();
    } catch (error) {
      this.#options.assembly.log.warn(`hook ${what} failed and is ignored`, error);
      return undefined;
    }
  }
}

type Dispatched =
  | { readonly type: "output"; readonly output: ToolOutput }
  | { readonly type: "blocked"; readonly text: string }
  | { readonly type: "abandoned"; readonly text: string };

function notStarted(call: ToolCall, kind: "sequential" | "parallel"): Finished {
  const name = call.function.name;
  const text =
    kind === "parallel"
      ? cancelled(name)
      : `[Tool execution skipped — ${name} was not started. User sent a new message]`;
  return { call, content: text, appendix: "", stub: true };
}

function cancelled(name: string): string {
  return `[Tool execution cancelled — ${name} was skipped due to user interrupt]`;
}

function errorResult(message: string): string {
  return JSON.stringify({ error: message });
}

function summaryOf(output: MultimodalOutput): string {
  return output.text_summary ?? (textOf(output.content) || "[screenshot]");
}

function parseArguments(text: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}; // a parsed object
}

async function inPool(indexes: readonly number[], size: number, run: (index: number) => Promise<void>): Promise<void> {
  const waiting = [...indexes];
  const work = async () => {
    for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) await run(index);
  };
  await Promise.all(Array.from({ length: Math.min(size, indexes.length) }, work));
}

/** Arguments of a call with every text in them changed, however deep. */
function mapTexts(
  args: Readonly<Record<string, unknown>>,
  change: (text: string) => string,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, mapText(value, change)]));
}

function mapText(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapText(item, change));
  if (typeof value !== "object" || value === null) return value;
  return mapTexts(value as Record<string, unknown>, change); // parsed from JSON: a plain object
}

// One line about a call, for whoever watches.

const WIDTH = 80;

/** The argument that says most about a call of this tool. */
const TELLING: Readonly<Record<string, readonly string[]>> = {
  terminal: ["command"],
  process: ["action", "session_id"],
  read_file: ["path"],
  write_file: ["path"],
  patch: ["path", "patch"],
  search_files: ["pattern", "path"],
  web_search: ["query"],
  web_extract: ["urls", "url"],
  session_search: ["query"],
  execute_code: ["code"],
  clarify: ["question"],
  delegate_task: ["goal"],
  memory: ["action", "target"],
  skill_view: ["name"],
  skill_manage: ["action", "name"],
};

function previewCall(name: string, args: Readonly<Record<string, unknown>>): string {
  const telling = (TELLING[name] ?? []).flatMap((key) => describe(args[key]));
  const words = telling.length > 0 ? telling : Object.values(args).flatMap(describe).slice(0, 1);
  const points = [...words.join(" ").replace(/\s+/g, " ").trim()];
  return points.length <= WIDTH ? points.join("") : `${points.slice(0, WIDTH - 1).join("")}…`;
}

function describe(value: unknown): readonly string[] {
  if (typeof value === "string") return value.trim() === "" ? [] : [value];
  if (typeof value === "number" || typeof value === "boolean") return [String(value)];
  return Array.isArray(value) ? value.flatMap(describe).slice(0, 3) : [];
}

/** Where each path really leads, by `files` if they are not this machine's own. A file that does not exist yet is placed by the nearest directory that does. */
export async function realPathsOf(
  paths: readonly string[],
  files?: Pick<EnvironmentFiles, "resolve">,
): Promise<ReadonlyMap<string, string>> {
  const unique = [...new Set(paths)];
  const real = await Promise.all(unique.map((path) => (files ? followIn(files, path) : follow(path))));
  return new Map(unique.map((path, index) => [path, real[index] ?? path]));
}

async function followIn(files: Pick<EnvironmentFiles, "resolve">, path: string): Promise<string> {
  try {
    return await files.resolve(path);
  } catch {
    return path; // the tool itself will say what is wrong with it
  }
}

async function follow(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    // Not there (yet), or not ours to look at.
    const parent = dirname(path);
    return parent === path ? path : join(await follow(parent), basename(path));
  }
}

// Did a call fail? The result decides, for the display and for whoever counts failures.

const LOOK_AT = 500;

export function isFailedResult(name: string, result: string): boolean {
  const fields = parseObject(result);
  if (name === "terminal" && typeof fields?.exit_code === "number") return fields.exit_code !== 0;
  if (name === "memory" && fields?.success === false) return true;
  if (WRITES_FILES.has(name) && hasLanded(fields)) return false;
  if (/^\s*error/i.test(result)) return true;
  return /"(?:error|failed)"\s*:(?!\s*(?:null|false|""|\[\s*\]|0\b))/.test(result.slice(0, LOOK_AT));
}

/** The file was written, whatever else the result complains about (a linter, a warning). */
function hasLanded(fields: Readonly<Record<string, unknown>> | null): boolean {
  return fields !== null && (fields.success === true || typeof fields.bytes_written === "number");
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  if (!text.trimStart().startsWith("{")) return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null; // a parsed object
  } catch {
    // Not JSON after all: judged as plain text.
    return null;
  }
}
