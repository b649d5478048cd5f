// Children that outlive the call that started them: on pipes, or on a pseudo-terminal where the optional package is there.

import type { BackendShell } from "./backend.ts";
import type { BackgroundChild } from "./environment.ts";
import { descendantsOf, settledWithin, signalTree } from "./processes.ts";

const TERMINATE_MS = 2000;
const COLUMNS = 120;
const ROWS = 30;

/** `start` is handed who wants the output. */
export async function startOnPipes(
  start: (onBytes: (bytes: Uint8Array) => void) => Promise<BackendShell>,
): Promise<BackgroundChild> {
  const output = listeners();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const shell = await start((bytes) => output.emit(decoder.decode(bytes, { stream: true })));
  return {
    pid: shell.pid,
    onOutput: output.add,
    exited: shell.finished,
    write: (data) => writeTo(shell, data),
    closeInput: () => void shell.stdin?.end(),
    kill: () => shell.end("tree", TERMINATE_MS),
  };
}

interface TerminalStart {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** What of the output is the child's own. */
  readonly filter?: (text: string) => string;
  /** How to end it when ending the program's family is not the way. */
  readonly end?: (pid: number, exited: Promise<number>, graceMs: number) => Promise<void>;
  /** What the program's exit code says about the child's. */
  readonly exitCode?: (code: number) => number;
}

/** Null when this machine has no pseudo-terminals to offer. */
export async function startOnTerminal(start: TerminalStart): Promise<BackgroundChild | null> {
  const pty = await loadPty();
  if (!pty) return null;
  const output = listeners();
  const child = pty.spawn(start.program, [...start.args], {
    name: "xterm-256color",
    cols: COLUMNS,
    rows: ROWS,
    cwd: "/",
    env: { ...start.env },
  });
  child.onData((text) => output.emit(start.filter ? start.filter(text) : text));
  let open = true;
  const exited = new Promise<number>((resolve) => {
    child.onExit(({ exitCode, signal }) => {
      open = false;
      resolve(signal ? -signal : (start.exitCode?.(exitCode) ?? exitCode));
    });
  });
  const write = (data: string) => {
    if (!open) throw new Error("the process has ended");
    child.write(data);
  };
  return {
    pid: child.pid,
    onOutput: output.add,
    exited,
    async write(data) {
      write(data);
      return Buffer.byteLength(data);
    },
    // A terminal has no end of file; this character is how a person types one.
    closeInput: () => write("\x04"),
    kill: () => (start.end ? start.end(child.pid, exited, TERMINATE_MS) : killTree(child.pid, exited)),
  };
}

async function loadPty() {
  try {
    return await import("@lydell/node-pty");
  } catch {
    return null; // optional: no prebuilt file for this platform, or left out at install
  }
}

/** The whole family: SIGTERM, two seconds, SIGKILL. */
export async function killTree(pid: number, ended: Promise<unknown>, graceMs = TERMINATE_MS): Promise<void> {
  const family = await descendantsOf(pid);
  signalTree(pid, family, "SIGTERM");
  await settledWithin(ended, graceMs);
  signalTree(pid, family, "SIGKILL");
  await settledWithin(ended, graceMs);
}

function writeTo({ stdin }: BackendShell, data: string): Promise<number> {
  return new Promise((resolve, reject) => {
    if (!stdin?.writable) {
      reject(new Error("the process's input is closed"));
      return;
    }
    stdin.write(data, (error) => (error ? reject(error) : resolve(Buffer.byteLength(data))));
  });
}

/** Output that comes before anybody listens waits for the first listener. */
function listeners() {
  const all: ((text: string) => void)[] = [];
  let early: string[] = [];
  return {
    add(listener: (text: string) => void) {
      all.push(listener);
      for (const text of early) listener(text);
      early = [];
    },
    emit(text: string) {
      if (text === "") return;
      if (all.length === 0) early.push(text);
      for (const listener of all) listener(text);
    },
  };
}
