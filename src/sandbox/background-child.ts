// Children that outlive the call that started them: on pipes, or on a pseudo-terminal where the optional package is there.
import type { BackgroundChild } from "./environment.ts";
import { descendantsOf, signalTree } from "./process-tree.ts";
import { type ShellProcess, type ShellStart, settledWithin, startShell } from "./shell-process.ts";

const TERMINATE_MS = 2000;
const COLUMNS = 120;
const ROWS = 30;

export type BackgroundStart = Pick<ShellStart, "shell" | "args" | "env" | "pipe">;

export async function startOnPipes(start: BackgroundStart, note?: string): Promise<BackgroundChild> {
  const output = listeners();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const onBytes = (bytes: Uint8Array) => output.emit(decoder.decode(bytes, { stream: true }));
  const shell = await startShell({ ...start, stdin: "open", onBytes });
  return {
    pid: shell.pid,
    ...(note ? { note } : {}),
    onOutput: output.add,
    exited: shell.finished,
    write: (data) => writeTo(shell, data),
    closeInput: () => void shell.stdin?.end(),
    kill: () => killTree(shell.pid, shell.finished),
  };
}

/** Null when this machine has no pseudo-terminals to offer. */
export async function startOnTerminal(start: BackgroundStart): Promise<BackgroundChild | null> {
  const pty = await loadPty();
  if (!pty) return null;
  const output = listeners();
  const child = pty.spawn(start.shell, [...start.args], {
    name: "xterm-256color",
    cols: COLUMNS,
    rows: ROWS,
    cwd: "/",
    env: { ...start.env },
  });
  child.onData(output.emit);
  let open = true;
  const exited = new Promise<number>((resolve) => {
    child.onExit(({ exitCode, signal }) => {
      open = false;
      resolve(signal ? -signal : exitCode);
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
    kill: () => killTree(child.pid, exited),
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
export async function killTree(pid: number, ended: Promise<unknown>): Promise<void> {
  const family = await descendantsOf(pid);
  signalTree(pid, family, "SIGTERM");
  await settledWithin(ended, TERMINATE_MS);
  signalTree(pid, family, "SIGKILL");
  await settledWithin(ended, TERMINATE_MS);
}

function writeTo(shell: ShellProcess, data: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const stdin = shell.stdin;
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
