// What an environment is built on: somewhere a shell can be started. State, markers and limits are the same everywhere and live in
// shell-environment.ts.
import type { Writable } from "node:stream";
import type { BackgroundChild, Environment, EnvironmentFiles } from "./environment.ts";

export interface ShellRun {
  readonly script: string;
  /** Read the login files first. */
  readonly login: boolean;
}

export interface ShellIo {
  readonly stdin: { readonly text: string } | "open" | "none";
  /** Gives up on starting; a shell that runs is ended with `end`. */
  readonly signal: AbortSignal;
  /** The array is reused: read it before returning. */
  onBytes(bytes: Uint8Array): void;
}

/** One shell that runs in a place. */
export interface PlacedShell {
  /** On this machine: the shell itself, or the program that leads to it. */
  readonly pid: number;
  readonly stdin: Writable | null;
  /** The shell ended and its output was read or given up: its exit code, or the negative number of the signal that killed it. */
  readonly finished: Promise<number>;
  /** SIGTERM, some time, SIGKILL: to its process group, or to all its descendants too. Settles when it is gone or hopeless. */
  end(scope: "group" | "tree", graceMs: number): Promise<void>;
  /** What the model should know about the way it ended, e.g. that the connection broke. */
  note?(): string | undefined;
}

/**
 * Somewhere shells run.
 *
 * - `start` resolves when the shell runs, and rejects with words for the user when it cannot; nothing has run then.
 * - `stateDir` is a directory inside that exists, belongs to this environment alone, and is gone after `release`.
 * - `generation` changes when what was in `stateDir` was lost.
 */
export interface Place {
  readonly kind: string;
  readonly isolated: boolean;
  readonly home: string;
  readonly tempDir: string;
  readonly stateDir: string;
  readonly generation: number;
  /** False: a plain POSIX shell, and only the directory is carried on. */
  readonly hasBash: boolean;
  /** Directories that come first on PATH; empty: what the place has. */
  readonly path: string;
  /** Variables on the secret list that were handed in on purpose. */
  readonly forced: readonly string[];
  readonly files?: EnvironmentFiles;
  readonly confinement?: NonNullable<Environment["confinement"]>;
  start(run: ShellRun, io: ShellIo): Promise<PlacedShell>;
  /** Null when this machine has no pseudo-terminals to offer. */
  startOnTerminal(run: ShellRun): Promise<BackgroundChild | null>;
  release(): Promise<void>;
}
