// The environment over any backend: one fresh shell per call, state in a snapshot, the directory in a marker, limits on time and output.
import { randomBytes } from "node:crypto";
import { posix } from "node:path";
import { type ClearedCommand, clearedText } from "../safety/decision.ts";
import type { ShellBackend, ShellRun } from "./backend.ts";
import { startOnPipes } from "./background-child.ts";
import type { BackgroundChild, Environment, EnvironmentFiles, ExecuteOptions, ExecuteResult } from "./environment.ts";
import { type KeptOutput, OutputBuffer } from "./output.ts";
import {
  commandScript,
  initScript,
  MarkerFilter,
  nearestDirectoryScript,
  posixScript,
  quote,
  takeMarker,
} from "./shell-script.ts";

const INIT_MS = 30_000;
const SCRIPT_MS = 30_000;
const TERMINATE_MS = 1000;
/** Kept of one output. Every later step copies it once or twice, and all of it together must stay below 32 MB. */
const MAX_OUTPUT_BYTES = 4_000_000;
/** Linux refuses a single argument of 128 KiB and more, and on its way a script is quoted again or encoded. */
const MAX_ARGUMENT_BYTES = 60_000;

export interface ShellOptions {
  /** Where commands start; inside the backend. */
  readonly cwd: string;
  /** Seen by commands as HERMES_SESSION_ID; asked at each start, because a conversation may go on under another id. */
  readonly sessionId?: (() => string) | undefined;
  /** Sourced once, after the login files. */
  readonly initFiles?: readonly string[] | undefined;
  readonly sourceBashrc?: boolean | undefined;
  /** Variables that commands see besides, asked at each start; what they have already stays as it is. */
  readonly handedOn?: (() => Readonly<Record<string, string>>) | undefined;
  /** Further names that are taken out of what start files export. */
  readonly withheld?: readonly string[] | undefined;
  /** False: every command starts from the login state again. */
  readonly persistent?: boolean | undefined;
  readonly maxOutputBytes?: number | undefined;
}

interface Ending {
  readonly code: number;
  readonly why: "exit" | "timeout" | "abort";
  readonly note?: string | undefined;
}

interface Limits {
  readonly stdin?: string | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

interface PreparedRun extends ShellRun {
  /** Where the shell writes its state, if not over the one it was given. */
  readonly left?: { readonly snapshot: string; readonly as: string } | undefined;
}

interface PreparedFor {
  readonly cwd: string;
  readonly stateless?: boolean;
  readonly marker: string | null;
  /** The call that the editor may show it for. */
  readonly shownFor?: string | undefined;
}

export class ShellEnvironment implements Environment {
  readonly kind: string;
  readonly isolated: boolean;
  readonly tempDir: string;
  readonly home: string;
  readonly files?: EnvironmentFiles;
  readonly confinement?: NonNullable<Environment["confinement"]>;
  readonly noSandbox?: string;
  readonly #backend: ShellBackend;
  readonly #options: ShellOptions;
  readonly #marker = `__HERMES_CWD_${randomBytes(6).toString("hex")}__`;
  readonly #closing = new AbortController();
  readonly #children = new Set<BackgroundChild>();
  #cwd: string;
  #saves = 0;
  #snapshot: { readonly generation: number; readonly path: Promise<string | null> } | null = null;

  constructor(backend: ShellBackend, options: ShellOptions) {
    this.kind = backend.kind;
    this.isolated = backend.isolated;
    this.tempDir = backend.tempDir;
    this.home = backend.home;
    if (backend.files) this.files = backend.files;
    if (backend.confinement) this.confinement = backend.confinement;
    if (backend.noSandbox !== undefined) this.noSandbox = backend.noSandbox;
    this.#backend = backend;
    this.#options = options;
    this.#cwd = options.cwd;
  }

  get cwd(): string {
    return this.#cwd;
  }

  setCwd(path: string): void {
    this.#cwd = path;
  }

  async execute(cleared: ClearedCommand, options: ExecuteOptions): Promise<ExecuteResult> {
    const command = clearedText(cleared);
    const wanted = options.cwd ?? this.#cwd;
    const first = await this.#executeIn(wanted, command, options);
    if (!first.directoryMissing) return first.result;
    const directory = await this.#nearestDirectory(wanted, options.signal);
    const { result } = await this.#executeIn(directory, command, options);
    return { ...result, note: [missingNote(wanted, directory), result.note].filter(Boolean).join("; ") };
  }

  async spawn(cleared: ClearedCommand, options: { cwd?: string; pty?: boolean }): Promise<BackgroundChild> {
    const command = clearedText(cleared);
    const wanted = options.cwd ?? this.#cwd;
    const directory = await this.#nearestDirectory(wanted, this.#closing.signal);
    const run = await this.#prepare(command, { cwd: directory, marker: null });
    const onTerminal = options.pty ? await this.#backend.startOnTerminal(run) : null;
    const child =
      onTerminal ??
      (await startOnPipes((onBytes) =>
        this.#backend.start(run, { stdin: "open", signal: this.#closing.signal, onBytes }),
      ));
    const notes = [
      directory === wanted ? "" : missingNote(wanted, directory),
      options.pty && !onTerminal ? "no pseudo-terminal on this machine; the process runs on pipes" : "",
    ].filter(Boolean);
    this.#children.add(child);
    void child.exited.then(() => this.#children.delete(child));
    return notes.length > 0 ? { ...child, note: notes.join("; ") } : child;
  }

  async cleanup(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#children].map((child) => child.kill()));
    await this.#backend.release();
  }

  async #executeIn(
    directory: string,
    command: string,
    options: ExecuteOptions,
  ): Promise<{ directoryMissing: boolean; result: ExecuteResult }> {
    const signal = AbortSignal.any([options.signal, this.#closing.signal]);
    const output = new OutputBuffer(this.#options.maxOutputBytes ?? MAX_OUTPUT_BYTES);
    const listener = options.onOutput ? listen(options.onOutput, this.#marker) : null;
    const onBytes = (bytes: Uint8Array) => {
      output.push(bytes);
      listener?.push(bytes);
    };
    const { stateless = false } = options;
    const shownFor = options.stdin === undefined && !stateless ? options.shownFor : undefined;
    const prepared = await unlessAborted(
      () => this.#prepare(command, { cwd: directory, stateless, marker: this.#marker, shownFor }),
      signal,
    );
    const ending: Ending = prepared
      ? await this.#run(prepared, { ...options, signal }, onBytes)
      : { code: 130, why: "abort" };
    listener?.end();
    const { text, omitted, headChars, cwd } = withoutMarker(output.read(), this.#marker);
    if (cwd && !options.keepCwd && !stateless) this.#cwd = cwd;
    if (cwd && prepared) this.#takeOver(prepared);
    const result: ExecuteResult = {
      output: text,
      omittedChars: omitted,
      headChars,
      exitCode: ending.code,
      timedOut: ending.why === "timeout",
      interrupted: ending.why === "abort",
      cwd: cwd || directory,
      note: ending.note,
    };
    // A marker without a directory is what the script prints when it could not go there; the command has not run.
    return { directoryMissing: cwd === "" && directory !== "/", result };
  }

  #placeForState(snapshot: string): PreparedRun["left"] {
    try {
      const as = `${snapshot}.${++this.#saves}`;
      this.#backend.stateFiles?.create(as);
      return this.#backend.stateFiles && { snapshot, as };
    } catch {
      return undefined; // somebody cleared the folder away; the command is not kept from running by that
    }
  }

  /** The state that a shell left is the next one's. */
  #takeOver({ left }: PreparedRun): void {
    if (!left) return;
    try {
      this.#backend.stateFiles?.replace(left.snapshot, left.as);
    } catch {
      // It could not write its state, and the last one stays.
    }
  }

  async #run(
    run: ShellRun,
    { stdin, timeoutMs, signal }: Limits,
    onBytes: (bytes: Uint8Array) => void,
  ): Promise<Ending> {
    const shell = await this.#backend
      .start(run, { stdin: stdin === undefined ? "none" : { text: stdin }, signal, onBytes })
      .catch((error: unknown) => {
        if (signal.aborted) return null;
        throw error;
      });
    if (!shell) return { code: 130, why: "abort" };
    const why = await firstOf(shell.finished, timeoutMs, signal);
    if (why === "exit") {
      const code = await shell.finished;
      return { code: code < 0 ? 128 - code : code, why, note: shell.note?.() };
    }
    await shell.end("group", TERMINATE_MS);
    return { code: why === "timeout" ? 124 : 130, why };
  }

  async #prepare(command: string, { cwd, stateless = false, marker, shownFor }: PreparedFor): Promise<PreparedRun> {
    const long = Buffer.byteLength(quote(quote(command))) > MAX_ARGUMENT_BYTES;
    const common = {
      command,
      commandFile: long ? await this.#writeCommand(command) : undefined,
      cwd,
      sessionId: this.#options.sessionId?.(),
      marker: this.#marker,
    };
    if (!this.#backend.hasBash) return { login: false, script: posixScript({ ...common, printCwd: marker !== null }) };
    if (stateless) return { login: false, script: commandScript({ ...common, snapshot: null, carry: null }) };
    const snapshot = await this.#currentSnapshot();
    const save = marker !== null && this.#options.persistent !== false;
    const left = save && snapshot !== null ? this.#placeForState(snapshot) : undefined;
    const carry = marker ? { save, as: left?.as } : null;
    const script = commandScript({ ...common, snapshot, carry });
    // Without a snapshot each command pays for a login shell of its own.
    const run = { login: snapshot === null, script, left };
    if (shownFor === undefined || !this.#backend.showsCommands) return run;
    const endFile = posix.join(this.#backend.stateDir, `end-${randomBytes(6).toString("hex")}`);
    return {
      ...run,
      shown: { callId: shownFor, cwd, endFile, script: commandScript({ ...common, snapshot, carry, endFile }) },
    };
  }

  #currentSnapshot(): Promise<string | null> {
    const { generation } = this.#backend;
    if (this.#snapshot?.generation === generation) return this.#snapshot.path;
    const path = this.#makeSnapshot();
    this.#snapshot = { generation, path };
    // No way there just now: the next command tries again.
    path.catch(() => {
      if (this.#snapshot?.path === path) this.#snapshot = null;
    });
    return path;
  }

  /** Runs a login shell once and keeps what it set up; null when that fails or takes too long. */
  async #makeSnapshot(): Promise<string | null> {
    const snapshot = posix.join(this.#backend.stateDir, "snapshot.sh");
    const bashrc = this.#options.sourceBashrc === false ? [] : [posix.join(this.home, ".bashrc")];
    const initFiles = (this.#options.initFiles ?? []).map((file) => file.replace(/^~(?=\/|$)/, this.home));
    const { path, forced } = this.#backend;
    const { withheld = [] } = this.#options;
    const script = initScript({ snapshot, sources: [...bashrc, ...initFiles], path, forced, withheld });
    const limits = { timeoutMs: INIT_MS, signal: this.#closing.signal };
    const { code, why } = await this.#run({ login: true, script }, limits, () => undefined);
    return why === "exit" && code === 0 ? snapshot : null;
  }

  async #writeCommand(command: string): Promise<string> {
    const file = posix.join(this.#backend.stateDir, `command-${randomBytes(6).toString("hex")}`);
    const { code } = await this.#runScript(`umask 077 && cat > ${quote(file)}`, { stdin: command });
    if (code !== 0) throw new Error(`the command is too long for an argument, and ${file} could not be written`);
    return file;
  }

  async #nearestDirectory(wanted: string, signal: AbortSignal): Promise<string> {
    const { output } = await this.#runScript(nearestDirectoryScript(wanted), { signal });
    return output || "/";
  }

  /** A short script of our own, without any state. */
  async #runScript(
    script: string,
    { stdin, signal = this.#closing.signal }: { stdin?: string; signal?: AbortSignal },
  ): Promise<{ code: number; output: string }> {
    const output = new OutputBuffer(MAX_ARGUMENT_BYTES);
    const limits = { stdin, timeoutMs: SCRIPT_MS, signal: AbortSignal.any([signal, this.#closing.signal]) };
    const { code } = await this.#run({ login: false, script }, limits, (bytes) => output.push(bytes));
    return { code, output: output.read().text };
  }
}

const missingNote = (wanted: string, directory: string) =>
  `the directory ${wanted} does not exist; the command ran in ${directory}`;

function withoutMarker(kept: KeptOutput, marker: string): KeptOutput & { readonly cwd: string | null } {
  const found = takeMarker(kept.text, marker);
  if (!found) return { ...kept, cwd: null };
  const text = kept.text.slice(0, found.start) + kept.text.slice(found.end);
  return { text, omitted: kept.omitted, headChars: Math.min(kept.headChars, text.length), cwd: found.cwd };
}

/** Decodes output as it comes, for live display. */
function listen(onOutput: (text: string) => void, marker: string) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const filter = new MarkerFilter(marker);
  const emit = (text: string) => {
    if (text !== "") onOutput(text);
  };
  return {
    push: (bytes: Uint8Array) => emit(filter.push(decoder.decode(bytes, { stream: true }))),
    end: () => emit(filter.push(decoder.decode()) + filter.end()),
  };
}

/** Null when the signal came first; what was begun goes on without anybody waiting for it. */
function unlessAborted<Value>(begin: () => Promise<Value>, signal: AbortSignal): Promise<Value | null> {
  if (signal.aborted) return Promise.resolve(null);
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve(null);
    signal.addEventListener("abort", onAbort);
    begin()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", onAbort));
  });
}

function firstOf(
  finished: Promise<unknown>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<"exit" | "timeout" | "abort"> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => settle("timeout"), timeoutMs);
    const onAbort = () => settle("abort");
    const settle = (why: "exit" | "timeout" | "abort") => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(why);
    };
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    finished.then(() => settle("exit"));
  });
}
