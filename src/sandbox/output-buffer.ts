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
    const head = this.#head.join();
    const tail = this.#tail.join();
    const excess = Math.max(0, tail.length - this.#tailLimit);
    if (excess === 0 && this.#droppedChars === 0) {
      const text = decode(Buffer.concat([head, tail]));
      return { text, omitted: 0, headChars: text.length };
    }
    // Both cuts move away from the middle of a character.
    const headEnd = characterStart(head, head.length);
    const tailStart = characterEnd(tail, excess);
    const before = decode(head.subarray(0, headEnd));
    const cut = countChars(head.subarray(headEnd)) + countChars(tail.subarray(0, tailStart));
    return {
      text: before + decode(tail.subarray(tailStart)),
      omitted: this.#droppedChars + cut,
      headChars: before.length,
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

  join(): Uint8Array {
    return Buffer.concat(this.#blocks, this.length);
  }

  #addBlock(): Uint8Array {
    const block = this.#spare ?? new Uint8Array(BLOCK);
    this.#spare = null;
    this.#blocks.push(block);
    return block;
  }
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
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

/** The start of the character that `end` would cut in two; `end` itself when it cuts none. */
function characterStart(bytes: Uint8Array, end: number): number {
  for (let start = end - 1; start >= 0 && start > end - 4; start--) {
    const byte = bytes[start] as number; // start is inside
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return start + length > end ? start : end;
  }
  return end;
}

function characterEnd(bytes: Uint8Array, start: number): number {
  let end = start;
  while (end < bytes.length && end < start + 3 && ((bytes[end] as number) & 0xc0) === 0x80) end++; // end is inside
  return end;
}
