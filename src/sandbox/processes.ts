// One shell, from start to the last byte of its output.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { closeWriteEnd, type OutputPipe } from "./output.ts";

/** A grandchild may hold the pipe long after the shell is gone; what has not come by then is not waited for. */
const DRAIN_MS = 300;

interface ShellStart {
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
    closeWriteEnd(start.pipe);
  }
  // A command that does not read its input closes the pipe early; that is its right.
  child.stdin?.on("error", () => undefined);
  if (typeof start.stdin === "object") child.stdin?.end(start.stdin.text);
  const pid = child.pid as number; // set, since "spawn" was emitted
  if (running.size === 0) process.on("exit", endRunning);
  running.add(pid);
  const letGo = endAfterUs(pid);
  void exited.then(() => {
    letGo();
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
    // Behind a look at what has come: a process that was kept waiting finds the time over before it has looked.
    const timer = setTimeout(() => setImmediate(resolve, false), ms);
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

// Processes of the host: who descends from whom, when one started, how to end a family.

interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** `T` and `t` when it is stopped, `Z` when it has ended. */
  readonly state: string;
  /** Anything that differs between two processes that had the same pid. */
  readonly startTime: string;
}

/** When the process started; null when there is none. Two processes that share a pid over time differ in it. */
export async function startTimeOf(pid: number): Promise<string | null> {
  if (process.platform === "linux") return (await readFacts(pid))?.startTime ?? null;
  const line = await ps(["-o", "lstart=", "-p", String(pid)]);
  return line.trim() || null;
}

/** All living descendants, children before grandchildren. */
export async function descendantsOf(pid: number): Promise<number[]> {
  const parents = await parentTable();
  const found: number[] = [];
  let level = [pid];
  while (level.length > 0) {
    level = level.flatMap((parent) => parents.get(parent) ?? []);
    found.push(...level);
  }
  return found;
}

/**
 * Stops a process and everything it has started; resolves to the latter, children before grandchildren. All of them are in it: a stopped
 * process cannot fork, and those that were forked before it stopped are stopped in turn. Linux only.
 */
export async function standStill(pid: number): Promise<number[]> {
  const stopped = new Set<number>();
  for (;;) {
    const family = await descendantsOf(pid);
    const moving = [pid, ...family].filter((member) => !stopped.has(member));
    if (moving.length === 0) return family;
    signalEach(moving, "SIGSTOP");
    for (const member of moving) {
      // One that waits for a disk or a mount stops when that is over. If it never is, it cannot fork either.
      for (let look = 0; look < STOP_LOOKS && !/^[TtZX]?$/.test((await readFacts(member))?.state ?? ""); look++)
        await new Promise((resolve) => setTimeout(resolve, STOP_LOOK_MS));
      stopped.add(member);
    }
  }
}

const STOP_LOOKS = 2000;
const STOP_LOOK_MS = 5;

/** The first of these processes that leads a group; Linux only. */
export async function groupLeader(pids: readonly number[]): Promise<number | undefined> {
  for (const pid of pids) if ((await readFacts(pid))?.group === pid) return pid;
  return undefined;
}

/** Signals a process group and, one by one, members that left it. A process that is already gone is what was wanted. */
export function signalTree(leader: number, others: readonly number[], signal: NodeJS.Signals): void {
  if (process.platform === "win32") {
    execFile("taskkill", ["/pid", String(leader), "/T", "/F"], () => undefined);
    return;
  }
  signalEach([-leader, ...others], signal);
}

export function signalEach(targets: readonly number[], signal: NodeJS.Signals): void {
  for (const target of targets) {
    try {
      process.kill(target, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // process.kill throws nothing else
    }
  }
}

async function parentTable(): Promise<Map<number, number[]>> {
  const children = new Map<number, number[]>();
  for (const { pid, parent } of await allProcesses()) children.set(parent, [...(children.get(parent) ?? []), pid]);
  return children;
}

async function allProcesses(): Promise<Pick<ProcessFacts, "pid" | "parent">[]> {
  if (process.platform === "win32") return [];
  if (process.platform !== "linux") {
    return (await ps(["-A", "-o", "pid=,ppid="])).split("\n").flatMap((line) => {
      const [pid, parent] = line.trim().split(/\s+/).map(Number);
      return pid && parent !== undefined ? [{ pid, parent }] : [];
    });
  }
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const facts = await Promise.all(pids.map(readFacts));
  return facts.filter((fact) => fact !== null);
}

async function readFacts(pid: number): Promise<ProcessFacts | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    // The second field is the program name in parentheses and may hold blanks and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state = "", parent, group] = fields;
    return { pid, parent: Number(parent), group: Number(group), state, startTime: fields[19] ?? "" };
  } catch {
    return null; // it ended while we looked
  }
}

function ps(args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile("ps", args, (error, stdout) => resolve(error ? "" : stdout));
  });
}

// Process groups of ours that must not outlive this process, whichever way it ends.

const ENDING_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const alive = new Set<number>();
let watching = false;

/** The group is killed when this process ends: by itself, by a crash, or by a signal that nobody else takes care of. Returns how to let go of it. */
export function endWithUs(leader: number): () => void {
  alive.add(leader);
  watch();
  const letGo = endAfterUs(leader);
  return () => {
    letGo();
    alive.delete(leader);
  };
}

function watch(): void {
  if (watching) return;
  watching = true;
  process.on("exit", endAll);
  for (const signal of ENDING_SIGNALS) {
    const onSignal = () => {
      // A door that listens as well closes what there is in its own time.
      if (process.listenerCount(signal) > 1) return;
      endAll();
      process.off(signal, onSignal);
      process.kill(process.pid, signal);
    };
    process.on(signal, onSignal);
  }
}

function endAll(): void {
  for (const leader of alive) signalTree(leader, [], "SIGKILL");
}

// After `kill -9` nothing here can act any more. So a small shell of its own is told every group, and reads until its input ends with us.
// One for all commands: a watcher in the shell of each would cost a fork, and `wait` there would wait for it.

const AFTER_US = `groups=' '
while read -r change group; do
  case $change in
    +) groups="$groups$group " ;;
    -) groups="\${groups%%" $group "*} \${groups#*" $group "}" ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done`;

const groups = new Set<number>();
let watcher: Writable | null = null;

function endAfterUs(leader: number): () => void {
  if (process.platform === "win32") return () => undefined;
  groups.add(leader);
  if (watcher) watcher.write(`+ ${leader}\n`);
  else watcher = startWatcher();
  return () => {
    if (groups.delete(leader)) watcher?.write(`- ${leader}\n`);
  };
}

function startWatcher(): Writable {
  const child = spawn("/bin/sh", ["-c", AFTER_US], {
    stdio: ["pipe", "ignore", "ignore"],
    cwd: "/",
    env: {},
    detached: true, // what is typed at our terminal is not meant for it
  });
  const input = child.stdin;
  // Should it be gone, the next group gets a new one, which is told of all.
  const gone = () => {
    if (watcher === input) watcher = null;
  };
  child.on("error", gone).on("exit", gone).unref();
  input.on("error", gone);
  (input as Socket).unref(); // the pipe of a child is a socket; it keeps no process alive
  for (const group of groups) input.write(`+ ${group}\n`);
  return input;
}
