// A place behind a channel: containers and other machines.
import { startOnTerminal } from "./background-child.ts";
import { type Channel, type ChannelFailure, keepEnd, newMark, StartMark } from "./channel.ts";
import type { BackgroundChild, EnvironmentFiles } from "./environment.ts";
import type { Errands } from "./errands.ts";
import type { Place, PlacedShell, ShellIo, ShellRun } from "./place.ts";
import { placeFiles } from "./place-files.ts";
import { type ShellProcess, settledWithin, startShell } from "./processes.ts";
import { endScript, supervisorScript, terminalScript } from "./supervisor-script.ts";

/** What an errand of ours may take on top of the time a command is given to end. */
const ERRAND_MS = 800;
const BEGIN_MS = 1000;

export interface RemoteFacts {
  readonly kind: string;
  readonly isolated: boolean;
  readonly home: string;
  readonly tempDir: string;
  readonly stateDir: string;
  /** Path of bash inside; empty: there is only sh. */
  readonly bash: string;
  readonly forced: readonly string[];
}

export interface RemoteOptions {
  readonly channel: Channel;
  /** Closed with the place. */
  readonly errands: Errands;
  readonly facts: RemoteFacts;
  readonly generation: () => number;
  /** Told of every shell that runs, until it ends. */
  readonly watch?: (ended: Promise<unknown>) => void;
  readonly release: () => Promise<void>;
}

export class RemotePlace implements Place {
  readonly kind: string;
  readonly isolated: boolean;
  readonly home: string;
  readonly tempDir: string;
  readonly stateDir: string;
  readonly hasBash: boolean;
  readonly path = "";
  readonly forced: readonly string[];
  readonly files: EnvironmentFiles;
  readonly release: () => Promise<void>;
  readonly #channel: Channel;
  readonly #errands: Errands;
  readonly #shell: string;
  readonly #generation: () => number;
  readonly #watch: (ended: Promise<unknown>) => void;
  #started = 0;

  constructor({ channel, errands, facts, generation, watch, release }: RemoteOptions) {
    this.kind = facts.kind;
    this.isolated = facts.isolated;
    this.home = facts.home;
    this.tempDir = facts.tempDir;
    this.stateDir = facts.stateDir;
    this.hasBash = facts.bash !== "";
    this.forced = facts.forced;
    this.release = async () => {
      await release();
      errands.close();
    };
    this.#channel = channel;
    this.#errands = errands;
    this.#shell = facts.bash || "sh";
    this.#generation = generation;
    this.#watch = watch ?? (() => undefined);
    this.files = placeFiles(this.#errands);
  }

  get generation(): number {
    return this.#generation();
  }

  async start(run: ShellRun, io: ShellIo): Promise<PlacedShell> {
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.#tryStart(run, io);
      if (outcome.shell) return outcome.shell;
      io.signal.throwIfAborted();
      await this.#channel.recover(outcome.failure, attempt, io.signal);
    }
  }

  async startOnTerminal(run: ShellRun): Promise<BackgroundChild | null> {
    const mark = newMark();
    const start = new StartMark(mark);
    const script = terminalScript({ run, shell: this.#shell, mark });
    const launch = await this.#channel.launch(script, { shell: this.#shellKind, stdin: true, terminal: true });
    const child = await startOnTerminal({
      ...launch,
      filter: (text) => (start.seen ? text : Buffer.from(start.push(Buffer.from(text))).toString("utf8")),
      exitCode: signalOf,
      end: async (pid, exited, graceMs) => {
        if (start.seen) await this.#end(Number(start.rest), "tree", graceMs, exited);
        signalProgram(pid);
        await settledWithin(exited, ERRAND_MS);
      },
    });
    if (child) this.#watch(child.exited);
    return child;
  }

  async #tryStart(
    run: ShellRun,
    { stdin, signal, onBytes }: ShellIo,
  ): Promise<{ shell: PlacedShell } | { shell?: undefined; failure: ChannelFailure }> {
    const mark = newMark();
    const start = new StartMark(mark);
    const begun = Promise.withResolvers<void>();
    let errors = "";
    const script = supervisorScript({
      run,
      shell: this.#shell,
      hasBash: this.hasBash,
      mark,
      stateDir: this.stateDir,
      id: String(this.#started++),
    });
    const shell = await startShell({
      ...(await this.#channel.launch(script, { shell: this.#shellKind, stdin: stdin !== "none" })),
      stdin,
      pipe: null,
      onBytes: (bytes) => {
        const rest = start.push(bytes);
        if (start.seen) begun.resolve();
        if (rest.length > 0) onBytes(rest);
      },
      onErrors: (text) => {
        errors = keepEnd(errors + text);
      },
    });
    await firstOf([begun.promise, shell.finished], signal);
    if (signal.aborted && !start.seen) {
      // Too late to stop it from starting; it is ended once it runs.
      if (await settledWithin(begun.promise, BEGIN_MS)) await this.#end(Number(start.rest), "group", 0, shell.finished);
      shell.signal("SIGKILL");
      shell.release();
      signal.throwIfAborted();
    }
    if (!start.seen) return { failure: { code: await shell.finished, errors } };
    return { shell: this.#placed(shell, Number(start.rest), () => errors.trim()) };
  }

  #placed(shell: ShellProcess, pid: number, errors: () => string): PlacedShell {
    let code = 0;
    this.#watch(shell.finished);
    const finished = shell.finished.then((ended) => {
      code = ended;
      return signalOf(ended);
    });
    return {
      pid: shell.pid,
      stdin: shell.stdin,
      finished,
      end: async (scope, graceMs) => {
        await this.#end(pid, scope, graceMs, shell.finished);
        shell.signal("SIGKILL");
        shell.release();
      },
      // The command's own errors are in its output: what is here, the program in between had to say.
      note: () => (code !== 0 && errors() !== "" ? errors() : undefined),
    };
  }

  async #end(pid: number, scope: "group" | "tree", graceMs: number, ended: Promise<unknown>): Promise<void> {
    const told = this.#errands.run(endScript(pid, scope, graceMs)).catch(() => undefined); // no way there: nothing more to be done
    await settledWithin(Promise.all([told, ended]), graceMs + ERRAND_MS);
  }

  get #shellKind(): "bash" | "sh" {
    return this.hasBash ? "bash" : "sh";
  }
}

/** The program in between tells death by a signal as shells do. */
function signalOf(code: number): number {
  return code > 128 && code < 128 + 65 ? 128 - code : code;
}

function signalProgram(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // process.kill throws nothing else
  }
}

function firstOf(promises: readonly Promise<unknown>[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      signal.removeEventListener("abort", done);
      resolve();
    };
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
    for (const promise of promises) promise.then(done, done);
  });
}
