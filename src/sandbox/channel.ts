// A way to run a script somewhere else through a program on this machine: `docker exec`, `ssh`, `bwrap`.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { settledWithin } from "./shell-process.ts";

/** A connection that stays behind may hold the error output open. */
const DRAIN_MS = 300;

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
}

export interface ErrandOptions {
  readonly stdin?: string | Uint8Array | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ErrandResult {
  readonly code: number;
  readonly output: Buffer;
  readonly errors: string;
}

/** Short POSIX scripts of our own through a channel: bytes in, bytes out, nothing of the user's state. */
export class Errands {
  readonly #channel: Channel;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  async run(script: string, options: ErrandOptions = {}): Promise<ErrandResult> {
    const { signal = new AbortController().signal } = options;
    for (let attempt = 0; ; attempt++) {
      const errand = await this.#start(script, options);
      const parts: Buffer[] = [];
      for await (const chunk of errand.chunks()) parts.push(chunk);
      const { code, errors, begun } = await errand.ended;
      signal.throwIfAborted();
      if (begun) return { code, errors, output: Buffer.concat(parts) };
      await this.#channel.recover({ code, errors }, attempt, signal);
    }
  }

  /** Output as it comes, no faster than it is taken. `failed` turns an exit code other than 0 into the error to throw. */
  async *stream(
    script: string,
    { failed, ...options }: ErrandOptions & { failed: (result: Omit<ErrandResult, "output">) => Error },
  ): AsyncIterable<Buffer> {
    const { signal = new AbortController().signal } = options;
    for (let attempt = 0; ; attempt++) {
      const errand = await this.#start(script, options);
      yield* errand.chunks();
      const { code, errors, begun } = await errand.ended;
      signal.throwIfAborted();
      if (begun && code !== 0) throw failed({ code, errors });
      if (begun) return;
      await this.#channel.recover({ code, errors }, attempt, signal);
    }
  }

  async #start(script: string, { stdin, signal }: ErrandOptions) {
    signal?.throwIfAborted();
    const mark = newMark();
    const launch = await this.#channel.launch(`printf '%s\\n' ${mark}\n${script}`, {
      shell: "sh",
      stdin: stdin !== undefined,
    });
    const child = spawn(launch.program, launch.args, {
      cwd: "/",
      env: launch.env,
      stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      detached: true,
      ...(signal ? { signal, killSignal: "SIGKILL" as const } : {}),
    });
    // A script that does not read its input closes the pipe early; its exit code tells what went wrong.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(stdin);
    const start = new StartMark(mark);
    let errors = "";
    child.stderr?.on("data", (data: Buffer) => {
      errors = keepEnd(errors + data);
    });
    const said = new Promise<void>((resolve) => child.stderr?.on("close", () => resolve()));
    const exit = new Promise<number>((resolve) => {
      child.on("exit", (code) => resolve(code ?? 255));
      child.on("error", (error) => {
        errors = keepEnd(errors + error.message);
        resolve(127);
      });
    });
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
          if (child.exitCode === null && child.signalCode === null && child.stdout?.readableEnded === false)
            child.kill("SIGKILL");
        }
      },
      ended: exit.then(async (code) => {
        await settledWithin(said, DRAIN_MS);
        return { code, errors, begun: start.seen };
      }),
    };
  }
}

export const newMark = () => `__HERMES_START_${randomBytes(8).toString("hex")}__`;

const MAX_ERRORS = 4000;
export const keepEnd = (text: string) => text.slice(-MAX_ERRORS);

const MAX_NOISE = 64 * 1024;

/** Drops what comes before the line with the mark: greetings of login files, which some servers send to everybody. */
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
