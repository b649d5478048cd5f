// One shell, from start to the last byte of its output.
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { closeWriteEnd, type OutputPipe } from "./output-pipe.ts";
import { signalTree } from "./process-tree.ts";

/** A grandchild may hold the pipe long after the shell is gone; what has not come by then is not waited for. */
const DRAIN_MS = 300;

export interface ShellStart {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: { readonly text: string } | "open" | "none";
  readonly pipe: OutputPipe | null;
  /** The array is reused: read it before returning. */
  onBytes(bytes: Uint8Array): void;
  /** Gets what comes on stderr; without it that is output too. */
  readonly onErrors?: (text: string) => void;
}

export interface ShellProcess {
  readonly pid: number;
  readonly stdin: ChildProcess["stdin"];
  /** The shell itself ended: its exit code, or the negative number of the signal that killed it. */
  readonly exited: Promise<number>;
  /** As `exited`, and its output was read to the end or given up. */
  readonly finished: Promise<number>;
  /** Once finished: its output was read to the end. */
  readonly drained: boolean;
  signal(signal: NodeJS.Signals): void;
  /** Stops reading. */
  release(): void;
}

/** Shells that still run. A program that has to leave at once takes them with it; nothing else could end them any more. */
const running = new Set<number>();

function endRunning(): void {
  for (const pid of running) signalTree(pid, [], "SIGKILL");
}

export async function startShell(start: ShellStart): Promise<ShellProcess> {
  const output = start.pipe?.writeEnd ?? "pipe";
  const child = spawn(start.program, start.args, {
    cwd: process.platform === "win32" ? undefined : "/",
    env: start.env,
    stdio: [start.stdin === "none" ? "ignore" : "pipe", output, start.onErrors ? "pipe" : output],
    // A group and session of its own: it can be ended as a whole, and cannot grab our terminal.
    detached: process.platform !== "win32",
  });
  const exited = new Promise<number>((resolve) => {
    child.on("exit", (code, signal) => resolve(signal ? -signalNumber(signal) : (code ?? 1)));
  });
  const started = new Promise<void>((resolve, reject) => {
    child.on("spawn", resolve);
    child.on("error", (error) => reject(new Error(`${start.program} could not be started: ${error.message}`)));
  });
  const reader = readOutput(child, start);
  try {
    await started;
  } catch (error) {
    reader.destroy();
    throw error;
  } finally {
    await closeWriteEnd(start.pipe);
  }
  // A command that does not read its input closes the pipe early; that is its right.
  child.stdin?.on("error", () => undefined);
  if (typeof start.stdin === "object") child.stdin?.end(start.stdin.text);
  const pid = child.pid as number; // set, since "spawn" was emitted
  if (running.size === 0) process.on("exit", endRunning);
  running.add(pid);
  void exited.then(() => {
    running.delete(pid);
    if (running.size === 0) process.off("exit", endRunning);
  });
  let drained = false;
  return {
    pid,
    stdin: child.stdin,
    exited,
    finished: exited.then(async (code) => {
      drained = await reader.endedWithin(DRAIN_MS);
      reader.destroy();
      return code;
    }),
    get drained() {
      return drained;
    },
    signal: (signal) => signalTree(pid, [], signal),
    release: () => reader.destroy(),
  };
}

function readOutput(child: ChildProcess, { pipe, onBytes, onErrors }: ShellStart) {
  let open = true;
  const whileOpen = (bytes: Uint8Array) => {
    if (open) onBytes(bytes);
  };
  if (onErrors) child.stderr?.setEncoding("utf8").on("data", onErrors);
  const streams = [child.stdout, onErrors ? null : child.stderr].filter((stream) => stream !== null);
  const source = pipe ? pipe.read(whileOpen) : readStreams(streams, whileOpen);
  return {
    endedWithin: (ms: number) => settledWithin(source.ended, ms),
    destroy() {
      open = false;
      source.destroy();
      if (onErrors) child.stderr?.destroy(); // a program that stays behind may hold it open
    },
  };
}

function readStreams(streams: readonly Readable[], onBytes: (bytes: Uint8Array) => void) {
  const ended = Promise.all(
    streams.map(
      (stream) =>
        new Promise<void>((resolve) => {
          stream.on("data", onBytes);
          stream.on("close", () => resolve());
        }),
    ),
  );
  return {
    ended: ended.then(() => undefined),
    destroy: () => {
      for (const stream of streams) stream.destroy();
    },
  };
}

/** True when the promise settled in time. Leaves no timer behind. */
export function settledWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    const done = () => {
      clearTimeout(timer);
      resolve(true);
    };
    promise.then(done, done);
  });
}

const SIGNALS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGABRT: 6,
  SIGKILL: 9,
  SIGSEGV: 11,
};

export function signalNumber(signal: NodeJS.Signals): number {
  return SIGNALS[signal] ?? 15;
}
