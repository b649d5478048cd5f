// Where commands run. One contract, several implementations (local first), one conformance suite.

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
  /** For our own errands: no aliases and functions of the user, and no state carried on. */
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
  /** Something the model should know, e.g. that the wished directory does not exist. */
  readonly note?: string;
}

/**
 * A place where shell commands run with a lasting state (exported variables, functions, aliases, current directory).
 *
 * - One fresh shell per call; state travels in a snapshot. Two calls may run at once.
 * - Timeout or abort ends the whole process group: SIGTERM, one second, SIGKILL. `execute` settles within two seconds of either.
 * - It never rejects for what the command did.
 * - It does not decide whether a command may run; whoever calls it has decided.
 */
export interface Environment {
  readonly kind: string;
  readonly cwd: string;
  readonly tempDir: string;
  readonly home: string;
  /** Container-like: the host cannot be harmed from inside. */
  readonly isolated: boolean;
  /** This machine, but only in part: which folder commands may write to besides the temp directory, and whether they have a network. */
  readonly confinement?: { readonly writable: string | null; readonly network: boolean };
  /** Where files are not simply this machine's own: the way to them. */
  readonly files?: EnvironmentFiles;
  execute(command: string, options: ExecuteOptions): Promise<ExecuteResult>;
  setCwd(path: string): void;
  /** Starts a long-lived child in the environment. */
  spawn(command: string, options: { cwd?: string; pty?: boolean }): Promise<BackgroundChild>;
  cleanup(): Promise<void>;
}

/**
 * Files as the commands of an environment see them. Paths are absolute.
 *
 * - `facts` follows links and gives null when nothing is there; everything else rejects with an error whose `code` is the system's.
 * - `write` replaces the file in one step and keeps links and modes. Data arrives whole or not at all.
 */
export interface EnvironmentFiles {
  facts(path: string): Promise<{
    readonly type: "file" | "directory" | "other";
    readonly size: number;
    readonly mtimeMs: number;
    /** Differs whenever the content may differ. */
    readonly version: string;
  } | null>;
  /** Where the path leads through all links, also when nothing is there yet. */
  resolve(path: string): Promise<string>;
  chunks(path: string, signal?: AbortSignal): AsyncIterable<Buffer>;
  read(path: string): Promise<Buffer>;
  write(path: string, data: string): Promise<void>;
  /** Makes the directory and its parents; false when it was there. */
  makeDirectory(path: string): Promise<boolean>;
  list(path: string): Promise<string[]>;
  remove(path: string): Promise<void>;
  move(from: string, to: string): Promise<void>;
}

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
