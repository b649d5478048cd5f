// Commands on this machine, as this user. What keeps them apart from our secrets is the environment they are given.
import { randomBytes } from "node:crypto";
import { access, constants, lstat, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { startOnPipes, startOnTerminal } from "./background-child.ts";
import { childEnvironment, forcedNames } from "./child-env.ts";
import type { BackgroundChild, Environment, ExecuteOptions, ExecuteResult } from "./environment.ts";
import { type KeptOutput, OutputBuffer } from "./output-buffer.ts";
import { OutputPipes } from "./output-pipe.ts";
import { settledWithin, startShell } from "./shell-process.ts";
import { commandScript, initScript, MarkerFilter, posixScript, takeMarker } from "./shell-script.ts";

const INIT_MS = 30_000;
const TERMINATE_MS = 1000;
const GIVE_UP_MS = 500;
/** Kept of one output. Every later step copies it once or twice, and all of it together must stay below 32 MB. */
const MAX_OUTPUT_BYTES = 2_500_000;
const STALE_MS = 7 * 24 * 3600 * 1000;
/** Linux refuses a single argument of 128 KiB and more. */
const MAX_ARGUMENT_BYTES = 100_000;

export interface LocalOptions {
  /** What commands start from; secrets are taken out here. */
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Becomes HOME of every command if this directory exists. */
  readonly privateHome?: string;
  /** Seen by commands as HERMES_SESSION_ID; asked at each start, because a conversation may go on under another id. */
  readonly sessionId?: () => string;
  /** Sourced once, after the login files. */
  readonly initFiles?: readonly string[];
  readonly sourceBashrc?: boolean;
  /** False: every command starts from the login state again. */
  readonly persistent?: boolean;
  readonly maxOutputBytes?: number;
}

export async function openLocalEnvironment(options: LocalOptions): Promise<Environment> {
  const { environment, privateHome } = options;
  const hasOwnHome = privateHome !== undefined && (await isDirectory(privateHome));
  const env = childEnvironment(environment, hasOwnHome ? { HOME: privateHome } : {});
  const tempDir = await privateTempDir(environment.TMPDIR ?? "/tmp");
  await removeStale(tempDir);
  const stateDir = await mkdtemp(join(tempDir, "shell-"));
  const shell = await findShell(env.PATH ?? "", environment);
  return new LocalEnvironment(options, { env, tempDir, stateDir, shell });
}

interface Shell {
  readonly path: string;
  readonly isBash: boolean;
}

class LocalEnvironment implements Environment {
  readonly kind = "local";
  readonly isolated = false;
  readonly tempDir: string;
  readonly home: string;
  readonly #options: LocalOptions;
  readonly #env: Readonly<Record<string, string>>;
  readonly #stateDir: string;
  readonly #shell: Shell;
  readonly #marker = `__HERMES_CWD_${randomBytes(6).toString("hex")}__`;
  readonly #pipes: OutputPipes;
  readonly #closing = new AbortController();
  readonly #children = new Set<BackgroundChild>();
  #cwd: string;
  #snapshot: Promise<string | null> | null = null;

  constructor(
    options: LocalOptions,
    place: { env: Readonly<Record<string, string>>; tempDir: string; stateDir: string; shell: Shell },
  ) {
    this.#options = options;
    this.#env = place.env;
    this.tempDir = place.tempDir;
    this.home = place.env.HOME ?? "/";
    this.#stateDir = place.stateDir;
    this.#shell = place.shell;
    this.#pipes = new OutputPipes(place.stateDir, place.env);
    this.#cwd = options.cwd;
  }

  get cwd(): string {
    return this.#cwd;
  }

  setCwd(path: string): void {
    this.#cwd = path;
  }

  async execute(command: string, options: ExecuteOptions): Promise<ExecuteResult> {
    const signal = AbortSignal.any([options.signal, this.#closing.signal]);
    const { directory, note } = await nearestDirectory(options.cwd ?? this.#cwd);
    const args = await this.#argumentsFor(command, {
      cwd: directory,
      stateless: options.stateless,
      marker: this.#marker,
    });
    const output = new OutputBuffer(this.#options.maxOutputBytes ?? MAX_OUTPUT_BYTES);
    const listener = options.onOutput ? listen(options.onOutput, this.#marker) : null;
    const onBytes = (bytes: Uint8Array) => {
      output.push(bytes);
      listener?.push(bytes);
    };
    const ending = signal.aborted
      ? { code: 130, why: "abort" as const }
      : await this.#run(args, options, signal, onBytes);
    listener?.end();
    const { text, omitted, headChars, cwd } = withoutMarker(output.read(), this.#marker);
    if (cwd !== null && !options.keepCwd && !options.stateless) this.#cwd = cwd;
    return {
      output: text,
      omittedChars: omitted,
      headChars,
      exitCode: ending.code,
      timedOut: ending.why === "timeout",
      interrupted: ending.why === "abort",
      cwd: cwd ?? directory,
      ...(note ? { note } : {}),
    };
  }

  async spawn(command: string, options: { cwd?: string; pty?: boolean }): Promise<BackgroundChild> {
    const { directory, note: cwdNote } = await nearestDirectory(options.cwd ?? this.#cwd);
    const args = await this.#argumentsFor(command, { cwd: directory, marker: null });
    const start = { shell: this.#shell.path, args, env: this.#callEnvironment(), pipe: null };
    const onTerminal = options.pty ? await startOnTerminal(start) : null;
    const ptyNote =
      options.pty && !onTerminal ? "no pseudo-terminal on this machine; the process runs on pipes" : undefined;
    const note = [cwdNote, ptyNote].filter(Boolean).join("; ");
    const child = onTerminal
      ? { ...onTerminal, ...(note ? { note } : {}) }
      : await startOnPipes({ ...start, pipe: await this.#pipes.take() }, note);
    this.#children.add(child);
    void child.exited.then(() => this.#children.delete(child));
    return child;
  }

  async cleanup(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#children].map((child) => child.kill()));
    await rm(this.#stateDir, { recursive: true, force: true });
  }

  async #run(
    args: readonly string[],
    { stdin, timeoutMs }: ExecuteOptions,
    signal: AbortSignal,
    onBytes: (bytes: Uint8Array) => void,
  ): Promise<{ code: number; why: "exit" | "timeout" | "abort" }> {
    const shell = await startShell({
      shell: this.#shell.path,
      args,
      env: this.#callEnvironment(),
      stdin: stdin === undefined ? "none" : { text: stdin },
      pipe: await this.#pipes.take(),
      onBytes,
    });
    const stop = await firstOf(shell.finished, timeoutMs, signal);
    if (stop === "exit") {
      const code = await shell.finished;
      return { code: code < 0 ? 128 - code : code, why: "exit" };
    }
    shell.signal("SIGTERM");
    await settledWithin(shell.finished, TERMINATE_MS);
    // Also when the shell itself is gone: members of its group may have ignored the first signal.
    shell.signal("SIGKILL");
    await settledWithin(shell.finished, GIVE_UP_MS);
    shell.release();
    return { code: stop === "timeout" ? 124 : 130, why: stop };
  }

  async #argumentsFor(
    command: string,
    { cwd, stateless, marker }: { cwd: string; stateless?: boolean; marker: string | null },
  ): Promise<readonly string[]> {
    if (!this.#shell.isBash) return ["-c", posixScript({ command, cwd, marker })];
    if (stateless) return ["-c", commandScript({ command, cwd, snapshot: null, carry: null })];
    this.#snapshot ??= this.#makeSnapshot();
    const snapshot = await this.#snapshot;
    const commandFile = Buffer.byteLength(command) > MAX_ARGUMENT_BYTES ? await this.#writeCommand(command) : undefined;
    const script = commandScript({
      command,
      ...(commandFile ? { commandFile } : {}),
      cwd,
      snapshot,
      carry: marker ? { save: this.#options.persistent !== false, marker } : null,
    });
    // Without a snapshot each command pays for a login shell of its own.
    return [...(snapshot ? [] : ["-l"]), "-c", script];
  }

  /** Runs a login shell once and keeps what it set up; null when that fails or takes too long. */
  async #makeSnapshot(): Promise<string | null> {
    const snapshot = join(this.#stateDir, "snapshot.sh");
    const bashrc = this.#options.sourceBashrc === false ? [] : [join(this.home, ".bashrc")];
    const script = initScript({
      snapshot,
      sources: [...bashrc, ...(this.#options.initFiles ?? []).map((file) => file.replace(/^~(?=\/|$)/, this.home))],
      path: this.#env.PATH ?? "",
      forced: forcedNames(this.#options.environment),
    });
    await this.#run(
      ["-l", "-c", script],
      { timeoutMs: INIT_MS, signal: this.#closing.signal },
      this.#closing.signal,
      () => undefined,
    );
    return access(snapshot, constants.R_OK).then(
      () => snapshot,
      () => null,
    );
  }

  async #writeCommand(command: string): Promise<string> {
    const file = join(this.#stateDir, `command-${randomBytes(6).toString("hex")}`);
    await writeFile(file, command, { mode: 0o600 });
    return file;
  }

  #callEnvironment(): Record<string, string> {
    const sessionId = this.#options.sessionId?.();
    return { ...this.#env, ...(sessionId ? { HERMES_SESSION_ID: sessionId } : {}) };
  }
}

function withoutMarker(kept: KeptOutput, marker: string): KeptOutput & { readonly cwd: string | null } {
  const found = takeMarker(kept.text, marker);
  if (!found) return { ...kept, cwd: null };
  const text = kept.text.slice(0, found.start) + kept.text.slice(found.end);
  return { text, omitted: kept.omitted, headChars: Math.min(kept.headChars, text.length), cwd: found.cwd };
}

/** Decodes output for somebody who watches it come. */
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

/** The directory itself, or the nearest ancestor that still exists, with a note about it. */
async function nearestDirectory(wished: string): Promise<{ directory: string; note?: string }> {
  let directory = wished;
  while (!(await isDirectory(directory)) && dirname(directory) !== directory) directory = dirname(directory);
  if (directory === wished) return { directory };
  return { directory, note: `the directory ${wished} does not exist; the command ran in ${directory}` };
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** Ours alone: a directory that somebody else prepared under a name we would guess is not used. */
async function privateTempDir(base: string): Promise<string> {
  const uid = process.getuid?.();
  const wished = join(base, `hermes-${uid ?? "user"}`);
  await mkdir(wished, { recursive: true, mode: 0o700 });
  const found = await lstat(wished);
  const safe = found.isDirectory() && (uid === undefined || (found.uid === uid && (found.mode & 0o022) === 0));
  return safe ? wished : mkdtemp(`${wished}-`);
}

/** A killed program leaves its shell state behind. What runs touches its own with every command. */
async function removeStale(tempDir: string): Promise<void> {
  for (const name of await readdir(tempDir)) {
    const path = join(tempDir, name);
    if (!name.startsWith("shell-")) continue;
    const found = await stat(path).catch(() => null); // another run removed it first
    if (found && Date.now() - found.mtimeMs > STALE_MS) await rm(path, { recursive: true, force: true });
  }
}

async function findShell(path: string, environment: Readonly<Record<string, string>>): Promise<Shell> {
  const windows = process.platform === "win32";
  const directories = [...path.split(windows ? ";" : ":").filter(Boolean), "/usr/bin", "/bin"];
  const candidates = [
    ...(windows ? [environment.HERMES_GIT_BASH_PATH ?? "", "C:\\Program Files\\Git\\bin\\bash.exe"] : []),
    ...directories.map((directory) => join(directory, windows ? "bash.exe" : "bash")),
    ...[environment.SHELL ?? "", "/bin/sh"],
  ].filter(Boolean);
  for (const candidate of candidates) {
    const usable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return { path: candidate, isBash: /bash(\.exe)?$/.test(candidate) };
  }
  throw new Error("no shell found: install bash, or put it on PATH");
}
