// One script from the first decision to its result. It runs where commands run; its calls come back here and take the path of every call.

import { randomBytes } from "node:crypto";
import { z } from "zod";
import { messageOf } from "../../kit/errors.ts";
import { stripAnsi } from "../../kit/strip-ansi.ts";
import type { BackgroundChild } from "../../sandbox/environment.ts";
import { openWorkspace } from "../files/workspace.ts";
import { withoutMiddle } from "../terminal/output.ts";
import type { ToolContext } from "../toolset/context.ts";
import { toolError, toolResult } from "../toolset/dispatch.ts";
import { leaveBrokenLine } from "../toolset/results.ts";
import { JAVASCRIPT_RUNNER, javascriptTools } from "./javascript.ts";
import { PYTHON_RUNNER, PYTHON_START, pythonTools } from "./python.ts";

const MAX_CALLS = 50;
const OUT_CHARS = 50_000;
const ERR_CHARS = 10_000;
/** After an interrupt the loop waits half a second; what the script printed last is not worth more than this. */
const LAST_WORDS_MS = 350;
const ENDING_MS = 3_000;

/** Parameters of terminal that make no sense in a script, which waits for each call. */
const NOT_IN_SCRIPTS = ["background", "pty", "notify_on_complete", "watch_patterns", "outside", "reason"];

const KEPT_NAMES = ["PATH", "HOME", "USER", "LANG", "TERM", "SHELL", "LOGNAME", "PYTHONPATH", "VIRTUAL_ENV"];
const KEPT_PREFIXES = ["LC_", "TMP", "XDG_", "CONDA", "HERMES_"];

interface CodeLimits {
  readonly timeoutMs: number;
  readonly tools: readonly string[];
}

type Status = "success" | "error" | "timeout" | "interrupted";

export async function runCode(code: string, ctx: ToolContext, limits: CodeLimits): Promise<string> {
  if (code.trim() === "") return refusal("code is empty");
  const approval = await ctx.guard.decideCode?.(code, ctx.signal);
  if (!approval) return refusal("Scripts cannot be run here.");
  if (!approval.approved) {
    if (!approval.pending) return refusal(approval.message);
    const { description, patternKey } = approval;
    return refusal(approval.message, { approval_pending: true, description, pattern_key: patternKey });
  }
  const judge = await openJudge(ctx);
  return new Script(await ctx.environment.spawn(approval.cleared, {}), ctx, limits, judge).run(code);
}

class Script {
  readonly #child: BackgroundChild;
  readonly #ctx: ToolContext;
  readonly #limits: CodeLimits;
  readonly #judge: ScriptJudge;
  readonly #allowed: ReadonlySet<string>;
  readonly #mark = `${randomBytes(9).toString("hex")} `;
  readonly #stop = new AbortController();
  readonly #texts = { out: new Printed(OUT_CHARS), err: new Printed(ERR_CHARS) };
  readonly #began: number;
  #calls = 0;
  #queue: Promise<void> = Promise.resolve();
  #language: string | null = null;
  #exitCode: number | null = null;
  /** How the process ended, whatever the runner said. */
  #ending = "";

  constructor(child: BackgroundChild, ctx: ToolContext, limits: CodeLimits, judge: ScriptJudge) {
    this.#judge = judge;
    this.#child = child;
    this.#ctx = ctx;
    this.#limits = limits;
    this.#allowed = new Set(ctx.callTool ? limits.tools.filter((name) => ctx.toolNames.has(name)) : []);
    this.#began = ctx.clock.now();
  }

  async run(code: string): Promise<string> {
    const reader = new FrameReader(this.#mark, (frame) => this.#take(frame));
    this.#child.onOutput((text) => reader.push(text));
    const ended = this.#child.exited;
    void ended.then((code) => {
      this.#ending = code < 0 ? `signal ${-code}` : `exit code ${code}`;
    });
    await this.#write(this.#beginning(code));
    const why = await this.#waitFor(ended);
    this.#stop.abort();
    if (why !== "ended") {
      const gone = this.#child.kill().catch((error) => this.#ctx.log.warn("a script could not be ended", error));
      await Promise.race([gone, pause(why === "interrupted" ? LAST_WORDS_MS : ENDING_MS)]);
      return this.#result(why, reader);
    }
    this.#child.closeInput();
    return this.#result(this.#exitCode === 0 ? "success" : "error", reader);
  }

  #waitFor(ended: Promise<number>): Promise<"ended" | "timeout" | "interrupted"> {
    const { signal } = this.#ctx;
    return new Promise((resolve) => {
      const settle = (why: "ended" | "timeout" | "interrupted") => {
        clearTimeout(timer);
        signal.removeEventListener("abort", interrupted);
        resolve(why);
      };
      const interrupted = () => settle("interrupted");
      const timer = setTimeout(() => settle("timeout"), this.#limits.timeoutMs);
      signal.addEventListener("abort", interrupted);
      if (signal.aborted) interrupted();
      void ended.then(() => settle("ended"));
    });
  }

  /** The first line of input: the runners in both languages, the script and what it may know. */
  #beginning(code: string): string {
    const tools = [...this.#allowed];
    return JSON.stringify({
      mark: this.#mark,
      temp: this.#ctx.environment.tempDir,
      strict: this.#ctx.config.code_execution.mode === "strict",
      names: KEPT_NAMES,
      prefixes: KEPT_PREFIXES,
      handedOn: this.#ctx.skills?.variables?.names ?? [],
      outChars: this.#texts.out.keptChars,
      errChars: this.#texts.err.keptChars,
      code,
      watch: this.#judge.watch,
      python: PYTHON_RUNNER,
      pythonStart: PYTHON_START,
      pythonTools: pythonTools(tools),
      javascript: JAVASCRIPT_RUNNER,
      javascriptTools: javascriptTools(tools),
    });
  }

  #take(frame: Frame): void {
    switch (frame.t) {
      case "start":
        this.#language = frame.language;
        return;
      case "out":
      case "err":
        this.#texts[frame.t].head += frame.text;
        return;
      case "tail":
        this.#texts[frame.of].tail = frame.text;
        this.#texts[frame.of].cut = frame.cut;
        return;
      case "end":
        this.#exitCode = frame.code;
        return;
      case "call":
        // One after the other: a script with threads keeps the order of its side effects.
        this.#queue = this.#queue.then(() => this.#answer(frame.id, () => this.#call(frame.tool, frame.args)));
        return;
      case "judge":
        void this.#answer(frame.id, () => this.#refuse(frame));
    }
  }

  async #answer(id: number, work: () => Promise<string | null>): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const result = await work();
    await this.#write(JSON.stringify({ id, result }));
  }

  async #refuse(effect: ScriptEffect): Promise<string | null> {
    try {
      return await this.#judge.refuse(effect, this.#stop.signal);
    } catch (error) {
      this.#ctx.log.warn("what a script was about to do could not be judged", error);
      return `This could not be judged, so it is not done: ${messageOf(error)}`;
    }
  }

  async #call(tool: string, args: Readonly<Record<string, unknown>>): Promise<string> {
    const { callTool } = this.#ctx;
    if (!callTool || !this.#allowed.has(tool)) {
      return toolError(
        `${tool} cannot be called from a script here. There are: ${[...this.#allowed].join(", ") || "none"}`,
      );
    }
    if (this.#calls >= MAX_CALLS) {
      return toolError(`No more calls: a script may make ${MAX_CALLS}. Print what you have and go on in another one.`);
    }
    this.#calls++;
    const given = Object.entries(args).filter(([name]) => tool !== "terminal" || !NOT_IN_SCRIPTS.includes(name));
    return callTool(tool, Object.fromEntries(given), this.#stop.signal);
  }

  async #write(line: string): Promise<void> {
    try {
      await this.#child.write(`${line}\n`);
    } catch (error) {
      this.#ctx.log.debug("a script ended before it was answered", error);
    }
  }

  #result(status: Status, reader: FrameReader): string {
    const { clock, redact } = this.#ctx;
    const clean = (text: string) => redact(stripAnsi(text));
    const whole = this.#exitCode !== null;
    const [out, err] = (["out", "err"] as const).map((name) => this.#texts[name].show(clean, { whole }).trimEnd());
    const error = this.#error(status, clean(reader.rest).trimEnd());
    return toolResult({
      status,
      output: err ? `${out}\n--- stderr ---\n${err}` : out,
      tool_calls_made: this.#calls,
      duration_seconds: Math.round((clock.now() - this.#began) / 10) / 100,
      note: this.#child.note,
      error: error ?? undefined,
    });
  }

  #error(status: Status, rest: string): string | null {
    if (status === "success") return null;
    if (status === "timeout") return `The script was stopped after ${this.#limits.timeoutMs / 1000} seconds.`;
    if (status === "interrupted") return "The script was interrupted.";
    const where = `${this.#ctx.environment.kind} environment`;
    if (this.#language === null) {
      const ending = `the interpreter ended with ${this.#ending} before the script began`;
      return `No script could be started in the ${where}: ${rest ? `${rest} (${this.#ending})` : ending}`;
    }
    const other =
      this.#language === "python" ? "" : ` There is no Python in the ${where}: write JavaScript (ES module).`;
    if (this.#exitCode === null) return `The script's process ended with ${this.#ending} before it was done.${other}`;
    return `The script ended with exit code ${this.#exitCode}.${other}`;
  }
}

function refusal(error: string, more: Readonly<Record<string, unknown>> = {}): string {
  return toolResult({ status: "error", output: "", tool_calls_made: 0, duration_seconds: 0, error, ...more });
}

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

// What a script's runner says, line by line. Lines without the mark are not its own: a warning of the shell, an interpreter that is missing.

const text = z.string();
const frame = z.discriminatedUnion("t", [
  z.object({ t: z.literal("start"), language: text }),
  z.object({ t: z.literal("out"), text }),
  z.object({ t: z.literal("err"), text }),
  z.object({ t: z.literal("tail"), of: z.enum(["out", "err"]), text, cut: z.number() }),
  // A script may send anything here; whatever it is, it waits for an answer.
  z.object({
    t: z.literal("call"),
    id: z.number(),
    tool: text.catch(""),
    args: z.record(z.string(), z.unknown()).catch({}),
  }),
  z.object({
    t: z.literal("judge"),
    id: z.number(),
    line: text.optional().catch(undefined),
    write: text.optional().catch(undefined),
  }),
  z.object({ t: z.literal("end"), code: z.number() }),
]);
type Frame = z.infer<typeof frame>;

const KEPT_CHARS = 2000;
const LONGEST_LINE = 64_000_000;

class FrameReader {
  readonly #mark: string;
  readonly #take: (frame: Frame) => void;
  #line = "";
  /** The end of what came without the mark. */
  rest = "";

  constructor(mark: string, take: (frame: Frame) => void) {
    this.#mark = mark;
    this.#take = take;
  }

  push(text: string): void {
    const lines = (this.#line + text).split("\n");
    this.#line = (lines.pop() ?? "").slice(0, LONGEST_LINE);
    for (const line of lines) this.#read(line);
  }

  #read(line: string): void {
    const at = line.indexOf(this.#mark);
    if (at < 0) {
      this.rest = `${this.rest}${line}\n`.slice(-KEPT_CHARS);
      return;
    }
    const parsed = frame.safeParse(parse(line.slice(at + this.#mark.length)));
    if (parsed.success) this.#take(parsed.data);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // not a frame after all
  }
}

// What a script is about to do by itself, without a tool: start a program, delete, write. Judged as if a tool were to do it.

/** What the runner asks about; everything else it lets pass. */
interface Watch {
  /** Files and folders a write to is asked about. */
  readonly guarded: readonly string[];
  /** Where not empty: every write outside of these is asked about. */
  readonly roots: readonly string[];
}

interface ScriptEffect {
  /** A command line that does the same. */
  readonly line?: string | undefined;
  /** A file that is written, moved or changed. */
  readonly write?: string | undefined;
}

interface ScriptJudge {
  /** Null: whatever a script does, it does to nobody. */
  readonly watch: Watch | null;
  /** Null, or why not; may ask the user. */
  refuse(effect: ScriptEffect, signal: AbortSignal): Promise<string | null>;
}

async function openJudge(ctx: ToolContext): Promise<ScriptJudge> {
  const { isolated, confinement } = ctx.environment;
  if (isolated || confinement) return { watch: null, refuse: async () => null };
  const { guard, refuseWrite } = await openWorkspace(ctx);
  return {
    watch: { guarded: guard.watchedForWrites(), roots: ctx.writeSafeRoots ?? [] },
    async refuse({ line, write }, signal) {
      if (write !== undefined) return refuseWrite(write, false);
      if (line === undefined) return "Nothing is known about what the script wants to do.";
      const outcome = await ctx.guard.decide(line, signal);
      return outcome.approved ? null : outcome.message;
    },
  };
}

// What a script printed, as the model reads it: the beginning, and the end when there was more.

/** The runner keeps more than is shown, so that the cut can be moved off a secret. */
const SPARE_CHARS = 25_000;

class Printed {
  readonly #limit: number;
  head = "";
  tail = "";
  cut = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** What the runner keeps: two fifths as they come, the rest when the script has ended. */
  get keptChars(): number {
    return this.#limit + SPARE_CHARS;
  }

  /** `whole`: the runner said all it had to say. */
  show(clean: (text: string) => string, { whole }: { readonly whole: boolean }): string {
    const { head, tail, cut } = this;
    const isLost = !whole && tail === "" && head.length >= Math.floor((this.keptChars * 2) / 5);
    if (isLost) return clean(head.slice(0, leaveBrokenLine(head, head.length, -1)));
    return withoutMiddle({ output: head + tail, omittedChars: cut, headChars: head.length }, this.#limit, clean);
  }
}
