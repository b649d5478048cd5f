// Node gives children a socket for stdout, and a socket cannot be opened by path: \`echo x > /dev/stderr\` would fail in every script.
// So commands write into a FIFO. They are made a handful at a time, because each batch costs a process.
import { spawn } from "node:child_process";
import { close, constants, open, unlink } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

const openFd = promisify(open);
const closeFd = promisify(close);
const unlinkFile = promisify(unlink);

const BATCH = 16;
const READ_BYTES = 64 * 1024;

export interface OutputPipe {
  /** For the child's stdout and stderr; ours to close once the child has it. */
  readonly writeEnd: number;
  /** Bytes as they come; the array is reused, so it must be read before returning. */
  read(onBytes: (bytes: Uint8Array) => void): { readonly ended: Promise<void>; destroy(): void };
}

export class OutputPipes {
  readonly #directory: string;
  readonly #env: Readonly<Record<string, string>>;
  #ready: string[] = [];
  #made = 0;
  #making: Promise<void> | null = null;
  #broken = process.platform === "win32";

  constructor(directory: string, env: Readonly<Record<string, string>>) {
    this.#directory = directory;
    this.#env = env;
  }

  /** Null where FIFOs cannot be made; the caller falls back to what Node offers. */
  async take(): Promise<OutputPipe | null> {
    while (this.#ready.length === 0 && !this.#broken) {
      this.#making ??= this.#make().finally(() => {
        this.#making = null;
      });
      await this.#making;
    }
    const path = this.#ready.pop();
    if (!path) return null;
    const readEnd = await openFd(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writeEnd = await openFd(path, constants.O_WRONLY);
    await unlinkFile(path);
    return { writeEnd, read: (onBytes) => readFrom(readEnd, onBytes) };
  }

  async #make(): Promise<void> {
    const paths = Array.from({ length: BATCH }, () => join(this.#directory, `out-${this.#made++}`));
    const code = await new Promise<number | null>((resolve) => {
      const child = spawn("mkfifo", ["-m", "600", ...paths], { stdio: "ignore", env: this.#env, cwd: "/" });
      child.on("error", () => resolve(null));
      child.on("exit", resolve);
    });
    if (code === 0) this.#ready.push(...paths);
    else this.#broken = true;
  }
}

export async function closeWriteEnd(pipe: OutputPipe | null): Promise<void> {
  if (pipe) await closeFd(pipe.writeEnd);
}

function readFrom(fd: number, onBytes: (bytes: Uint8Array) => void) {
  const buffer = Buffer.alloc(READ_BYTES);
  const socket = new Socket({
    fd,
    readable: true,
    writable: false,
    // One buffer for the whole stream: a gigabyte of output makes no garbage.
    onread: {
      buffer,
      callback: (bytes: number) => {
        onBytes(buffer.subarray(0, bytes));
        return true;
      },
    },
  });
  const ended = new Promise<void>((resolve) => {
    socket.on("close", () => resolve());
    socket.on("end", () => resolve());
    socket.on("error", () => resolve());
  });
  socket.resume();
  return { ended, destroy: () => socket.destroy() };
}
