// Short POSIX scripts of our own in places that only a channel leads to.
import { spawn } from "node:child_process";
import { type Channel, keepEnd, newMark, StartMark } from "./channel.ts";
import { LastingShell } from "./lasting-shell.ts";
import { settledWithin, signalNumber } from "./processes.ts";

/** A connection that stays behind may hold the error output open. */
const DRAIN_MS = 300;

export interface ErrandOptions {
  readonly stdin?: string | Uint8Array | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ErrandResult {
  readonly code: number;
  readonly output: Buffer;
  readonly errors: string;
}

/** Bytes in, bytes out, nothing of the user's state. */
export class Errands {
  readonly #channel: Channel;
  readonly #lasting: LastingShell | null;

  /** `lasting`: a shell stays open between errands, until `close`. */
  constructor(channel: Channel, { lasting = false }: { readonly lasting?: boolean } = {}) {
    this.#channel = channel;
    this.#lasting = lasting ? new LastingShell(channel) : null;
  }

  close(): void {
    this.#lasting?.close();
  }

  async run(script: string, options: ErrandOptions = {}): Promise<ErrandResult> {
    const { signal = new AbortController().signal } = options;
    if (options.stdin === undefined) {
      const result = await this.#lasting?.run(script, signal);
      signal.throwIfAborted();
      if (result) return result;
    }
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
      ended: exit.then(async (code) => {
        await settledWithin(said, DRAIN_MS);
        return { code, errors, begun: start.seen };
      }),
    };
  }
}
