// One shell that stays open for short errands. To start a program and a shell for each of them takes far longer than the errand itself.
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { type Channel, keepEnd, newMark } from "./channel.ts";
import type { ErrandResult } from "./errands.ts";
import { settledWithin } from "./processes.ts";
import { quote } from "./quote.ts";

const IDLE_MS = 30_000;
const DRAIN_MS = 300;

/**
 * - `run` resolves to null when nothing was run: the shell is busy, cannot be had, or went away before the script began.
 * - A shell that waits keeps nobody alive, here or there: it ends with its input.
 */
export class LastingShell {
  readonly #channel: Channel;
  #shell: Shell | null = null;
  #busy = false;
  #closed = false;
  #idle: NodeJS.Timeout | undefined;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  async run(script: string, signal: AbortSignal): Promise<ErrandResult | null> {
    if (this.#busy || this.#closed) return null;
    this.#busy = true;
    clearTimeout(this.#idle);
    try {
      this.#channel.used?.();
      this.#shell ??= await this.#open();
      return await ask(this.#shell, script, signal);
    } finally {
      this.#busy = false;
      this.#idle = setTimeout(() => this.#end(), IDLE_MS).unref();
    }
  }

  close(): void {
    this.#closed = true;
    this.#end();
  }

  #end(): void {
    clearTimeout(this.#idle);
    this.#shell?.child.stdin?.end();
    this.#shell = null;
  }

  async #open(): Promise<Shell> {
    const { program, args, env } = await this.#channel.launch("exec sh", { shell: "sh", stdin: true });
    const child = spawn(program, args, { cwd: "/", env, stdio: "pipe", detached: true });
    const closed = new Promise((resolve) => child.on("close", resolve));
    const gone = () => {
      if (this.#shell?.child === child) this.#shell = null;
    };
    child.on("exit", gone);
    child.on("error", gone);
    // A shell that ended closes its input; `exit` tells.
    child.stdin.on("error", gone);
    hold(child, false);
    return { child, closed };
  }
}

interface Shell {
  readonly child: ChildProcess;
  /** Nothing more will be said. */
  readonly closed: Promise<unknown>;
}

/** Whether this process stays for what the shell says. */
function hold(child: ChildProcess, on: boolean): void {
  const how = on ? "ref" : "unref";
  child[how]();
  for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as Socket | null)?.[how](); // pipes of a child are sockets
}

function ask({ child, closed }: Shell, script: string, signal: AbortSignal): Promise<ErrandResult | null> {
  const mark = newMark();
  const output = new MarkedOutput(mark);
  let errors = "";
  let ended = false;
  return new Promise((resolve) => {
    const settle = (result: ErrandResult | null) => {
      child.stdout?.off("data", onOutput);
      child.stderr?.off("data", onErrors);
      child.off("exit", onExit);
      child.off("error", onExit);
      signal.removeEventListener("abort", onAbort);
      hold(child, false);
      resolve(result);
    };
    const look = () => {
      if (ended && output.result) settle({ ...output.result, errors });
    };
    const onOutput = (bytes: Buffer) => {
      output.push(bytes);
      look();
    };
    const onErrors = (bytes: Buffer) => {
      errors += bytes;
      const at = errors.indexOf(mark);
      ended ||= at >= 0;
      errors = keepEnd(at >= 0 ? errors.slice(0, at) : errors);
      look();
    };
    const onExit = async () => {
      // What it said last may still be on its way.
      await settledWithin(closed, DRAIN_MS);
      settle(output.begun ? { code: 255, output: output.soFar, errors } : null);
    };
    const onAbort = () => {
      child.kill("SIGKILL");
      settle(null); // the caller looks at the signal
    };
    child.stdout?.on("data", onOutput);
    child.stderr?.on("data", onErrors);
    child.on("exit", onExit);
    child.on("error", onExit);
    signal.addEventListener("abort", onAbort);
    hold(child, true);
    if (signal.aborted) return settle(null);
    if (child.exitCode !== null || child.signalCode !== null) return settle(null);
    child.stdin?.write(
      `printf '%s\\n' ${mark}; (eval ${quote(script)}) </dev/null; printf '\\n%s %s\\n' ${mark} $?; printf %s ${mark} >&2\n`,
    );
  });
}

/** What an errand printed, between the line that begins it and the line with its exit code. What came before is none of it. */
class MarkedOutput {
  readonly #mark: Buffer;
  #parts: Buffer[] = [];
  /** The end of what came, in case a mark is cut in two. */
  #tail: Buffer = Buffer.alloc(0);
  begun = false;
  result: { readonly code: number; readonly output: Buffer } | null = null;

  constructor(mark: string) {
    this.#mark = Buffer.from(mark);
  }

  get soFar(): Buffer {
    return Buffer.concat([...this.#parts, this.#tail]);
  }

  push(bytes: Buffer): void {
    const look = Buffer.concat([this.#tail, bytes]);
    const at = look.indexOf(this.#mark);
    const end = at < 0 ? -1 : look.indexOf(0x0a, at);
    if (end < 0) {
      const kept = at < 0 ? Math.max(0, look.length - this.#mark.length - 1) : Math.max(0, at - 1);
      if (this.begun) this.#parts.push(look.subarray(0, kept));
      this.#tail = look.subarray(kept);
      return;
    }
    if (this.begun) {
      const code = Number(look.toString("latin1", at + this.#mark.length, end));
      this.#parts.push(look.subarray(0, at - 1));
      this.result = { code, output: Buffer.concat(this.#parts) };
      return;
    }
    this.begun = true;
    this.#tail = Buffer.alloc(0);
    if (end + 1 < look.length) this.push(look.subarray(end + 1));
  }
}
