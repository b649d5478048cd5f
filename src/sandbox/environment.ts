// Where commands run. One contract, several implementations (local first), one conformance suite.
import type { ClearedCommand } from "../safety/decision.ts";

export interface ExecuteOptions {
  /** Absolute path inside the environment; default the environment's current directory. */
  readonly cwd?: string;
  readonly timeoutMs: number;
  readonly stdin?: string;
  readonly signal: AbortSignal;
  /** Called with each decoded piece of output as it arrives. */
  readonly onOutput?: (text: string) => void;
  /** Do not move the environment's current directory afterwards. */
  readonly keepCwd?: boolean;
  /** The call it runs for, when a person follows it: where their editor has terminals it is shown there. */
  readonly shownFor?: string;
  /** For our own scripts: no aliases and functions of the user, and no state carried on. */
  readonly stateless?: boolean;
}

export interface ExecuteResult {
  /** stdout and stderr as they came, bounded: beyond the limit the middle is dropped and `omittedChars` counts it. */
  readonly output: string;
  readonly omittedChars: number;
  /** Where in `output` the dropped middle was; its length when nothing was dropped. */
  readonly headChars: number;
  /** 124 after a timeout, 130 after an interrupt, 126 when the directory vanished. */
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly interrupted: boolean;
  /** The current directory after the command. */
  readonly cwd: string;
  /** Something the model should know, e.g. that the wanted directory does not exist. */
  readonly note?: string;
}

/**
 * Where shell commands run with persistent state (exported variables, functions, aliases, current directory).
 *
 * - One fresh shell per call; state travels in a snapshot. Two calls may run at once.
 * - Timeout or abort ends the whole process group: SIGTERM, one second, SIGKILL. `execute` settles within two seconds of either.
 * - It never rejects for what the command did.
 * - It does not decide whether a command may run: it takes only what was decided about.
 */
export interface Environment {
  readonly kind: string;
  readonly cwd: string;
  readonly tempDir: string;
  readonly home: string;
  /** Container-like: the host cannot be harmed from inside. */
  readonly isolated: boolean;
  /** This machine, but only in part. */
  readonly confinement?: Confinement;
  /** Why this machine as it is, where a sandbox was wanted. */
  readonly noSandbox?: string;
  /** Where files are not simply this machine's own: the way to them. */
  readonly files?: EnvironmentFiles;
  execute(command: ClearedCommand, options: ExecuteOptions): Promise<ExecuteResult>;
  setCwd(path: string): void;
  /** Starts a long-lived child in the environment. */
  spawn(command: ClearedCommand, options: { cwd?: string; pty?: boolean }): Promise<BackgroundChild>;
  cleanup(): Promise<void>;
}

/** What a sandbox of this machine leaves open to commands. */
export interface Confinement {
  /** The folder they may write to besides the temp directory; null: there is none. */
  readonly writable: string | null;
  /** A list: these hosts and no others. */
  readonly network: SandboxNetwork;
  /** Whether they can write at a path, links in it followed. */
  allowsWrite(path: string): boolean;
  /** Whether no command can exchange a folder on the way to a path. */
  holdsStill(path: string): boolean;
  /** To be called before something is changed outside with a yes, always followed by `changedOutside`. */
  changingOutside?(): void;
  /** To be called when something was changed outside with a yes: what is there then stays. */
  changedOutside(): Promise<void>;
}

export type SandboxNetwork = "on" | "off" | readonly string[];

/**
 * Files as the commands of an environment see them. Paths are absolute.
 *
 * - `facts` follows links and gives null when nothing is there; everything else rejects with an error whose `code` is the system's.
 * - Nothing here waits for another process: a named pipe is "other" and never opened.
 * - `write` replaces the file in one step and keeps links and modes. Data arrives whole or not at all.
 * - The calls for many paths take one trip for many of them; what cannot be read is left out of their answers.
 */
export interface EnvironmentFiles {
  facts(path: string): Promise<FileFacts | null>;
  /** Every path on the way: as written, then each link followed; the last one is where it really leads, also when nothing is there yet. */
  follow(path: string): Promise<readonly string[]>;
  /** The last of them. */
  resolve(path: string): Promise<string>;
  chunks(path: string, signal?: AbortSignal): AsyncIterable<Buffer>;
  read(path: string): Promise<Buffer>;
  write(path: string, data: string): Promise<void>;
  /** Makes the directory and its parents; false when it was there. */
  makeDirectory(path: string): Promise<boolean>;
  list(path: string): Promise<string[]>;
  remove(path: string): Promise<void>;
  move(from: string, to: string): Promise<void>;
  /** What lies in each of these directories. Links count as "other". */
  entries(directories: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, readonly DirectoryEntry[]>>;
  /** When each of these files was last changed, in milliseconds. */
  changeTimes(paths: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, number>>;
  /** Regular files, in the order asked, each up to `MAX_TEXT_BYTES`; those with a NUL byte, which no text has, are left out. */
  readTexts(
    paths: readonly string[],
    signal: AbortSignal,
  ): AsyncIterable<{ readonly path: string; readonly data: Buffer }>;
  /** Runs ripgrep where the files are; absent where files are this machine's own. */
  ripgrep?(run: RipgrepRun): Promise<{ readonly code: number; readonly errors: string }>;
}

/** So much of a file is read to be searched. */
export const MAX_TEXT_BYTES = 64 * 1024 * 1024;

interface FileFacts {
  readonly type: "file" | "directory" | "other";
  readonly size: number;
  readonly mtimeMs: number;
  /** Differs whenever the content may differ. */
  readonly version: string;
}

export interface DirectoryEntry {
  readonly name: string;
  readonly type: FileFacts["type"];
}

export interface RipgrepRun {
  /** A path on this machine that may be visible inside, tried before what the backend calls `rg`. The exit code is 127 when neither runs. */
  readonly program: string | null;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly signal: AbortSignal;
  onBytes(bytes: Buffer): void;
}

/** A terminal of the user's editor in which one command runs. */
export interface ShownTerminal {
  readonly finished: Promise<{ readonly exitCode: number | null; readonly signal: string | null }>;
  output(): Promise<string>;
  kill(): Promise<void>;
  release(): Promise<void>;
}

/** Starts a program in a terminal of the editor, next to the call it belongs to; null where the editor does not show that call. */
export type ShowCommand = (
  callId: string,
  run: { readonly command: string; readonly args: readonly string[]; readonly cwd: string },
) => Promise<ShownTerminal | null>;

/** A child that outlives the call that started it. */
export interface BackgroundChild {
  readonly pid: number;
  /** Something the model should know, e.g. that no pseudo-terminal was available. */
  readonly note?: string;
  onOutput(listener: (text: string) => void): void;
  /** Resolves with the exit code (negative signal number when killed). */
  readonly exited: Promise<number>;
  write(data: string): Promise<number>;
  closeInput(): void;
  /** The whole tree: SIGTERM, two seconds, SIGKILL. */
  kill(): Promise<void>;
}
