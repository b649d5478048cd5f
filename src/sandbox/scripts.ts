// Short POSIX scripts of our own on a backend that is reached through a channel.
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { type Channel, keepEnd, newMark, StartMark } from "./backend.ts";
import { settledWithin, signalNumber } from "./processes.ts";
import { quote } from "./shell-script.ts";

// One shell that stays open for short scripts. To start a program and a shell for each of them takes far longer than the script itself.

const IDLE_MS = 30_000;

/**
 * - `run` resolves to null when nothing was run: the shell is busy, cannot be had, or went away before the script began.
 * - A shell that waits keeps no process alive, here or there: it ends with its input.
 */
class PersistentShell {
  readonly #channel: Channel;
  #shell: Shell | null = null;
  #busy = false;
  #closed = false;
  #idle: NodeJS.Timeout | undefined;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  async run(script: string, signal: AbortSignal): Promise<ScriptResult | null> {
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

  /** What it is connected to is gone. The program in between may not notice: whoever asked begins again. */
  drop(): void {
    const { child } = this.#shell ?? {};
    this.#end();
    child?.kill("SIGKILL");
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
    // A shell that ended closes its input; `exit` shows it.
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

function ask({ child, closed }: Shell, script: string, signal: AbortSignal): Promise<ScriptResult | null> {
  const mark = newMark();
  const output = new MarkedOutput(mark);
  let errors = "";
  let ended = false;
  return new Promise((resolve) => {
    const settle = (result: ScriptResult | null) => {
      clearTimeout(silence);
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
    // podman can go on waiting for a container that was stopped under it. Nothing of the script has run then.
    const silence = setTimeout(() => {
      if (!output.begun) onAbort();
    }, SILENT_MS);
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

/** What a script printed, between the line that begins it and the line with its exit code. What came before does not belong to it. */
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

/** A shell that is there begins with a script at once. */
const SILENT_MS = 8000;
/** A connection that stays behind may hold the error output open. */
const DRAIN_MS = 300;

interface ScriptOptions {
  readonly stdin?: string | Uint8Array | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ScriptResult {
  readonly code: number;
  readonly output: Buffer;
  readonly errors: string;
}

/** podman forgets what a program said that ends before it has read its input. */
const readToTheEnd = (script: string) => `(${script}\n)\ncode=$?\ncat >/dev/null\nexit $code`;

/** Bytes in, bytes out, nothing of the user's state. */
export class ScriptRunner {
  readonly #channel: Channel;
  readonly #persistent: PersistentShell | null;

  /** `persistent`: a shell stays open between scripts, until `close`. */
  constructor(channel: Channel, { persistent = false }: { readonly persistent?: boolean } = {}) {
    this.#channel = channel;
    this.#persistent = persistent ? new PersistentShell(channel) : null;
  }

  close(): void {
    this.#persistent?.close();
  }

  /** The place was stopped: a shell that stayed open there is of no use any more. */
  drop(): void {
    this.#persistent?.drop();
  }

  async run(script: string, options: ScriptOptions = {}): Promise<ScriptResult> {
    const { signal = new AbortController().signal } = options;
    if (options.stdin === undefined) {
      const result = await this.#persistent?.run(script, signal);
      signal.throwIfAborted();
      if (result) return result;
    }
    for (let attempt = 0; ; attempt++) {
      const running = await this.#start(script, options);
      const parts: Buffer[] = [];
      for await (const chunk of running.chunks()) parts.push(chunk);
      const { code, errors } = await running.ended;
      signal.throwIfAborted();
      if (running.begun) return { code, errors, output: Buffer.concat(parts) };
      await this.#channel.recover({ code, errors }, attempt, signal);
    }
  }

  /** Output as it comes, no faster than it is taken. `failed` turns an exit code other than 0 into the error to throw. */
  async *stream(
    script: string,
    { failed, ...options }: ScriptOptions & { failed: (result: Omit<ScriptResult, "output">) => Error },
  ): AsyncIterable<Buffer> {
    const { signal = new AbortController().signal } = options;
    for (let attempt = 0; ; attempt++) {
      const running = await this.#start(script, options);
      yield* running.chunks();
      const { code, errors } = await running.ended;
      signal.throwIfAborted();
      if (running.begun && code !== 0) throw failed({ code, errors });
      if (running.begun) return;
      await this.#channel.recover({ code, errors }, attempt, signal);
    }
  }

  async #start(script: string, { stdin, signal }: ScriptOptions) {
    signal?.throwIfAborted();
    const mark = newMark();
    const launch = await this.#channel.launch(
      `printf '%s\\n' ${mark}\n${stdin === undefined ? script : readToTheEnd(script)}`,
      {
        shell: "sh",
        stdin: stdin !== undefined,
      },
    );
    const child = spawn(launch.program, launch.args, {
      cwd: "/",
      env: launch.env,
      stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      detached: true,
    });
    // A script that does not read its input closes the pipe early; its exit code shows what went wrong.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(stdin);
    const start = new StartMark(mark);
    let errors = "";
    child.stderr?.on("data", (data: Buffer) => {
      errors = keepEnd(errors + data);
    });
    const said = new Promise<void>((resolve) => child.stderr?.on("close", () => resolve()));
    const exit = new Promise<number>((resolve) => {
      child.on("exit", (code, signal) => resolve(signal ? -signalNumber(signal) : (code ?? 255)));
      child.on("error", (error) => {
        errors = keepEnd(errors + error.message);
        resolve(127);
      });
    });
    const end = () => {
      if (this.#channel.end && child.pid !== undefined) void this.#channel.end(child.pid, exit);
      else child.kill("SIGKILL");
    };
    signal?.addEventListener("abort", end);
    void exit.then(() => signal?.removeEventListener("abort", end));
    if (signal?.aborted) end();
    return {
      async *chunks(): AsyncIterable<Buffer> {
        try {
          for await (const chunk of child.stdout ?? []) {
            const rest = start.push(chunk);
            if (rest.length > 0) yield Buffer.from(rest);
          }
        } catch (error) {
          if (!signal?.aborted) throw error; // killed on request; the caller looks at the signal
        } finally {
          if (child.exitCode === null && child.signalCode === null && child.stdout?.readableEnded === false) end();
        }
      },
      /** Known once the output has been read, which on a busy machine is later than the end of the process. */
      get begun() {
        return start.seen;
      },
      ended: exit.then(async (code) => {
        await settledWithin(said, DRAIN_MS);
        return { code, errors };
      }),
    };
  }
}
