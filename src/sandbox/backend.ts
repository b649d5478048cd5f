// What an environment is built on: a backend, which starts shells. State, markers and limits are the same everywhere and live in
// shell-environment.ts.

import { randomBytes } from "node:crypto";
import type { Writable } from "node:stream";
import type { BackgroundChild, Environment, EnvironmentFiles } from "./environment.ts";

export interface ShellRun {
  readonly script: string;
  /** Read the login files first. */
  readonly login: boolean;
  /** It may run in a terminal of the user's editor instead, by this script, whose last line goes into a file. */
  readonly shown?:
    | { readonly callId: string; readonly cwd: string; readonly script: string; readonly endFile: string }
    | undefined;
}

export interface ShellIo {
  readonly stdin: { readonly text: string } | "open" | "none";
  /** Gives up on starting; a shell that runs is ended with `end`. */
  readonly signal: AbortSignal;
  /** The array is reused: read it before returning. */
  onBytes(bytes: Uint8Array): void;
}

/** One shell that runs in a backend. */
export interface BackendShell {
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
 * Starts shells: on this machine, in a sandbox or container, on another machine.
 *
 * - `start` resolves when the shell runs, and rejects with words for the user when it cannot; nothing has run then.
 * - `stateDir` is a directory inside that exists, belongs to this environment alone, and is gone after `release`.
 * - `generation` changes when what was in `stateDir` was lost.
 */
export interface ShellBackend {
  readonly kind: string;
  readonly isolated: boolean;
  readonly home: string;
  readonly tempDir: string;
  readonly stateDir: string;
  readonly generation: number;
  /** False: a plain POSIX shell, and only the directory is carried on. */
  readonly hasBash: boolean;
  /** Directories that come first on PATH; empty: what the backend has. */
  readonly path: string;
  /** Variables on the secret list that were handed in on purpose. */
  readonly forced: readonly string[];
  readonly files?: EnvironmentFiles;
  readonly confinement?: NonNullable<Environment["confinement"]>;
  readonly noSandbox?: string | undefined;
  /** An editor is there that shows commands. */
  readonly showsCommands?: boolean;
  /** Files of `stateDir`: a new one that nobody else may read, and one put into the place of another in one step. Absent: a shell has to do it. */
  readonly stateFiles?: { create(file: string): void; replace(file: string, by: string): void };
  start(run: ShellRun, io: ShellIo): Promise<BackendShell>;
  /** Null when this machine has no pseudo-terminals to offer. */
  startOnTerminal(run: ShellRun): Promise<BackgroundChild | null>;
  release(): Promise<void>;
}

// A way to run a script somewhere else through a program on this machine: `docker exec`, `ssh`, `bwrap`.

export interface Launch {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The program ended before the script began; nothing has run. */
export interface ChannelFailure {
  readonly code: number;
  readonly errors: string;
}

export interface LaunchOptions {
  /** `sh` is there everywhere. */
  readonly shell: "bash" | "sh";
  readonly stdin: boolean;
  readonly terminal?: boolean;
}

export interface Channel {
  /** What to start here so that the shell runs the script there, its input and output connected. */
  launch(script: string, options: LaunchOptions): Promise<Launch>;
  /** Repairs or waits, and resolves when another try makes sense; rejects with words for the user otherwise. */
  recover(failure: ChannelFailure, attempt: number, signal: AbortSignal): Promise<void>;
  /** Ends what was launched, where killing the program would leave the script running. */
  end?(pid: number, ended: Promise<unknown>): Promise<void>;
  /** Something is about to run in a shell that is open already. */
  used?(): void;
}

export const newMark = () => `__HERMES_START_${randomBytes(8).toString("hex")}__`;

const MAX_ERRORS = 4000;
export const keepEnd = (text: string) => text.slice(-MAX_ERRORS);

const MAX_NOISE = 64 * 1024;

/** Drops what comes before the line with the mark: greetings of login files, which some servers always send. */
export class StartMark {
  readonly #mark: string;
  #before: Buffer = Buffer.alloc(0);
  seen = false;
  /** What stood on the line after the mark. */
  rest = "";

  constructor(mark: string) {
    this.#mark = mark;
  }

  push(bytes: Uint8Array): Uint8Array {
    if (this.seen) return bytes;
    const all = Buffer.concat([this.#before, bytes]);
    const at = all.indexOf(this.#mark);
    const end = at < 0 ? -1 : all.indexOf("\n", at);
    if (end < 0) {
      this.#before = all.subarray(at < 0 ? Math.max(0, all.length - MAX_NOISE) : at);
      return new Uint8Array();
    }
    this.seen = true;
    this.rest = all.toString("utf8", at + this.#mark.length, end).trim();
    this.#before = Buffer.alloc(0);
    return all.subarray(end + 1);
  }
}
