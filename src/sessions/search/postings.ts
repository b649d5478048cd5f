// How the index of terms is written down: lists of places, and the facts of each text, in as few bytes as there is in them.

/** Where a term occurs: places in ascending order, and how often. */
export interface Postings {
  readonly places: Int32Array;
  readonly counts: Uint8Array;
}

const NO_POSTINGS: Postings = { places: new Int32Array(0), counts: new Uint8Array(0) };

// Numbers as few bytes: seven bits each, the lowest first.

export const EMPTY = new Uint8Array(0);

class ByteWriter {
  #bytes = new Uint8Array(16);
  #size = 0;

  number(value: number): void {
    let rest = value;
    while (rest >= 128) {
      this.#byte((rest % 128) + 128);
      rest = Math.floor(rest / 128);
    }
    this.#byte(rest);
  }

  bytes(): Uint8Array {
    return this.#bytes.slice(0, this.#size);
  }

  #byte(value: number): void {
    if (this.#size === this.#bytes.length) {
      const larger = new Uint8Array(this.#size * 2);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes[this.#size++] = value;
  }
}

class ByteReader {
  readonly #bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get done(): boolean {
    return this.at >= this.#bytes.length;
  }

  number(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.#bytes[this.at++] ?? 0;
      if (byte < 128) return value + byte * scale;
      value += (byte - 128) * scale;
      scale *= 128;
    }
  }
}

export class PostingsWriter {
  readonly #out = new ByteWriter();
  #last = -1;
  length = 0;

  push(place: number, count: number): void {
    const step = place - this.#last - 1;
    this.#last = place;
    this.length++;
    this.#out.number(count > 1 ? step * 2 + 1 : step * 2);
    if (count > 1) this.#out.number(Math.min(255, count));
  }

  bytes(): Uint8Array {
    return this.#out.bytes();
  }
}

export function decodePostings(bytes: Uint8Array, base: number): Postings {
  const places = new Int32Array(bytes.length);
  const counts = new Uint8Array(bytes.length);
  let size = 0;
  let place = base - 1;
  let at = 0;
  while (at < bytes.length) {
    let step = bytes[at++] ?? 0;
    if (step >= 128) {
      step -= 128;
      for (let scale = 128; ; scale *= 128) {
        const byte = bytes[at++] ?? 0;
        step += (byte & 127) * scale;
        if (byte < 128) break;
      }
    }
    place += (step >>> 1) + 1;
    let count = 1;
    if (step % 2 === 1) {
      count = bytes[at++] ?? 1;
      if (count >= 128) count = count - 128 + (bytes[at++] ?? 0) * 128;
    }
    places[size] = place;
    counts[size++] = count;
  }
  return { places: places.subarray(0, size), counts: counts.subarray(0, size) };
}

export function concatPostings(parts: readonly Postings[]): Postings {
  if (parts.length <= 1) return parts[0] ?? NO_POSTINGS;
  const size = parts.reduce((sum, part) => sum + part.places.length, 0);
  const places = new Int32Array(size);
  const counts = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    places.set(part.places, at);
    counts.set(part.counts, at);
    at += part.places.length;
  }
  return { places, counts };
}

/** A text as its segment keeps it, its group by number. */
export interface StoredText {
  readonly id: number;
  readonly group: number;
  readonly at: number;
  readonly kind: number;
  readonly length: number;
  readonly size: number;
}

export function encodeTexts(texts: readonly StoredText[]): Uint8Array {
  const out = new ByteWriter();
  let id = 0;
  let ms = 0;
  for (const text of texts) {
    const now = Math.max(0, Math.round(text.at * 1000));
    out.number(text.id - id);
    out.number(text.group);
    out.number(now >= ms ? (now - ms) * 2 : (ms - now) * 2 - 1);
    out.number(Math.min(65_535, Math.ceil(text.length)) * 16 + text.kind);
    out.number(text.size);
    id = text.id;
    ms = now;
  }
  return out.bytes();
}

export class DecodedTexts {
  readonly id: number[] = [];
  readonly group: number[] = [];
  readonly time: number[] = [];
  readonly length: number[] = [];
  readonly kind: number[] = [];
  readonly size: number[] = [];

  constructor(bytes: Uint8Array) {
    const reader = new ByteReader(bytes);
    let id = 0;
    let ms = 0;
    while (!reader.done) {
      id += reader.number();
      this.id.push(id);
      this.group.push(reader.number());
      const step = reader.number();
      ms += step % 2 === 0 ? step / 2 : -(step + 1) / 2;
      this.time.push(ms / 1000);
      const both = reader.number();
      this.length.push(Math.floor(both / 16));
      this.kind.push(both % 16);
      this.size.push(reader.number());
    }
  }

  at(place: number): StoredText {
    return {
      id: this.id[place] ?? 0,
      group: this.group[place] ?? 0,
      at: this.time[place] ?? 0,
      kind: this.kind[place] ?? 0,
      length: this.length[place] ?? 0,
      size: this.size[place] ?? 0,
    };
  }
}
