// Hand-written: collectors of streams keep everything or the beginning; a model needs both ends, and memory has to stay bounded.
import { spawn } from "node:child_process";
import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { openPipeNow } from "../home/looks.ts";

// Keeps the beginning and the end of an output of any length in bounded memory. Bytes, not text: what is dropped is never decoded.

const BLOCK = 64 * 1024;

export interface KeptOutput {
  readonly text: string;
  /** Characters dropped between head and tail. */
  readonly omitted: number;
  /** Where in `text` they were; its length when nothing was dropped. */
  readonly headChars: number;
}

export class OutputBuffer {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head = new Blocks();
  readonly #tail = new Blocks();
  #droppedChars = 0;

  constructor(limit: number) {
    this.#headLimit = Math.floor(limit * 0.4);
    this.#tailLimit = limit - this.#headLimit;
  }

  push(bytes: Uint8Array): void {
    const room = this.#headLimit - this.#head.length;
    this.#head.append(bytes.subarray(0, room));
    for (let at = room; at < bytes.length; at += BLOCK) {
      this.#tail.append(bytes.subarray(at, at + BLOCK));
      while (this.#tail.length - BLOCK >= this.#tailLimit) this.#droppedChars += countChars(this.#tail.dropFirst());
    }
  }

  read(): KeptOutput {
    const [head, tail] = [this.#head, this.#tail];
    const excess = Math.max(0, tail.length - this.#tailLimit);
    if (excess === 0 && this.#droppedChars === 0) {
      const text = decode([...head.pieces(0, head.length), ...tail.pieces(0, tail.length)]);
      return { text, omitted: 0, headChars: text.length };
    }
    // Both cuts move away from the middle of a character, into what is dropped.
    const headEnd = head.length - cutCharacter(head.bytes(head.length - 4, head.length));
    const tailStart = excess + restOfCharacter(tail.bytes(excess, excess + 3));
    const before = head.pieces(0, headEnd);
    const cut = [...head.pieces(headEnd, head.length), ...tail.pieces(0, tailStart)];
    return {
      text: decode([...before, ...tail.pieces(tailStart, tail.length)]),
      omitted: cut.reduce((sum, bytes) => sum + countChars(bytes), this.#droppedChars),
      // Not counted: broken bytes become as many characters as the decoder sees fit.
      headChars: decode(before).length,
    };
  }
}

/** A queue of bytes in blocks of one size; a dropped block is used again. */
class Blocks {
  #blocks: Uint8Array[] = [];
  #spare: Uint8Array | null = null;
  length = 0;

  append(bytes: Uint8Array): void {
    let rest = bytes;
    while (rest.length > 0) {
      const used = this.length % BLOCK;
      const block = used === 0 ? this.#addBlock() : (this.#blocks.at(-1) as Uint8Array); // used > 0: there is one
      const part = rest.subarray(0, BLOCK - used);
      block.set(part, used);
      this.length += part.length;
      rest = rest.subarray(part.length);
    }
  }

  /** The oldest block, which must be full; valid until the next `append`. */
  dropFirst(): Uint8Array {
    const first = this.#blocks.shift() as Uint8Array; // the caller looked at the length
    this.length -= BLOCK;
    this.#spare = first;
    return first;
  }

  /** Views of the bytes from `start` to `end`, in order. */
  pieces(start: number, end: number): Uint8Array[] {
    return this.#blocks
      .map((block, index) => block.subarray(Math.max(0, start - index * BLOCK), Math.max(0, end - index * BLOCK)))
      .filter((piece) => piece.length > 0);
  }

  /** A copy of a few bytes; places outside are left out. */
  bytes(start: number, end: number): Uint8Array {
    return Buffer.concat(this.pieces(Math.max(0, start), Math.min(this.length, end)));
  }

  #addBlock(): Uint8Array {
    const block = this.#spare ?? new Uint8Array(BLOCK);
    this.#spare = null;
    this.#blocks.push(block);
    return block;
  }
}

/** Bytes are joined, not texts: with megabytes in hand, every copy is felt, and text may take twice the room. */
function decode(pieces: readonly Uint8Array[]): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.concat(pieces));
}

/** UTF-16 code units of UTF-8 text, so that counts agree with string lengths. */
function countChars(bytes: Uint8Array): number {
  let count = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number; // i is inside
    if ((byte & 0xc0) !== 0x80) count += byte >= 0xf0 ? 2 : 1;
  }
  return count;
}

/** How many bytes at the end belong to a character that goes on behind it. */
function cutCharacter(end: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, end.length); back++) {
    const byte = end[end.length - back] as number; // inside
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

/** How many bytes at the start belong to a character that began before it. */
function restOfCharacter(start: Uint8Array): number {
  const first = start.findIndex((byte) => (byte & 0xc0) !== 0x80);
  return first < 0 ? start.length : first;
}

// Node gives children a socket for stdout, and a socket cannot be opened by path: \`echo x > /dev/stderr\` would fail in every script.
// So commands write into a FIFO. They are made a handful at a time, because each batch costs a process.

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
    const { readEnd, writeEnd } = openPipeNow(path);
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

export function closeWriteEnd(pipe: OutputPipe | null): void {
  if (pipe) closeSync(pipe.writeEnd);
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
