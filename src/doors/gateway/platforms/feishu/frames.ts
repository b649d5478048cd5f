// Frames of Feishu's persistent connection: one message of Protocol Buffers, written and read by hand, and events that come in several of
// them.

export interface Frame {
  readonly sequence: bigint;
  readonly log: bigint;
  readonly service: number;
  /** 0: control, 1: data. */
  readonly method: number;
  readonly headers: readonly (readonly [key: string, value: string])[];
  readonly payload: Uint8Array;
}

/** The fields of the message, by number. 6, 7 and 9 say nothing that is needed. */
const FIELDS = { sequence: 1, log: 2, service: 3, method: 4, headers: 5, payload: 8 } as const;
const HEADER = { key: 1, value: 2 } as const;
const VARINT = 0;
const BYTES = 2;

export function encodeFrame({ sequence, log, service, method, headers, payload }: Frame): Uint8Array<ArrayBuffer> {
  const text = (field: number, value: string) => bytesField(field, Buffer.from(value));
  return Buffer.concat([
    ...[varintField(FIELDS.sequence, sequence), varintField(FIELDS.log, log)],
    ...[varintField(FIELDS.service, BigInt(service)), varintField(FIELDS.method, BigInt(method))],
    ...headers.map(([key, value]) =>
      bytesField(FIELDS.headers, Buffer.concat([text(HEADER.key, key), text(HEADER.value, value)])),
    ),
    ...(payload.length > 0 ? [bytesField(FIELDS.payload, payload)] : []),
  ]);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}

const varintField = (field: number, value: bigint) =>
  Buffer.concat([varint(BigInt((field << 3) | VARINT)), varint(value)]);

function bytesField(field: number, value: Uint8Array): Buffer {
  return Buffer.concat([varint(BigInt((field << 3) | BYTES)), varint(BigInt(value.length)), value]);
}

/** Null: not such a frame. */
export function decodeFrame(bytes: Uint8Array): Frame | null {
  const fields = fieldsIn(bytes);
  if (fields === null) return null;
  const number = (field: number) =>
    fields.find(([found, value]) => found === field && typeof value === "bigint")?.[1] as bigint | undefined; // by its type
  const lists = (field: number) =>
    fields.flatMap(([found, value]) => (found === field && typeof value !== "bigint" ? [value] : []));
  const headers = lists(FIELDS.headers).map((header) => {
    const parts = fieldsIn(header) ?? [];
    const text = (field: number) => {
      const value = parts.find(([found]) => found === field)?.[1];
      return typeof value === "object" ? Buffer.from(value).toString() : "";
    };
    return [text(HEADER.key), text(HEADER.value)] as const;
  });
  return {
    ...{ sequence: number(FIELDS.sequence) ?? 0n, log: number(FIELDS.log) ?? 0n, headers },
    ...{ service: Number(number(FIELDS.service) ?? 0n), method: Number(number(FIELDS.method) ?? 0n) },
    payload: lists(FIELDS.payload)[0] ?? new Uint8Array(),
  };
}

function fieldsIn(bytes: Uint8Array): readonly (readonly [number, bigint | Uint8Array])[] | null {
  const fields: [number, bigint | Uint8Array][] = [];
  let at = 0;
  const next = (): bigint | null => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) return null;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
    return null;
  };
  while (at < bytes.length) {
    const tag = next();
    const value = tag === null ? null : next();
    if (tag === null || value === null) return null;
    const [field, kind] = [Number(tag >> 3n), Number(tag & 7n)];
    if (kind === VARINT) fields.push([field, value]);
    else if (kind === BYTES && at + Number(value) <= bytes.length) {
      fields.push([field, bytes.subarray(at, at + Number(value))]);
      at += Number(value);
    } else return null;
  }
  return fields;
}

const MOST_OPEN = 50;

/** Puts events together that come in several frames. */
export class Pieces {
  readonly #open = new Map<string, (Uint8Array | undefined)[]>();

  /** The whole event, when this was the last piece of it. */
  add(
    id: string,
    { count, index }: { readonly count: number; readonly index: number },
    payload: Uint8Array,
  ): Uint8Array | null {
    if (count <= 1) return payload;
    const pieces = this.#open.get(id) ?? Array<Uint8Array | undefined>(Math.min(count, 1000)).fill(undefined);
    pieces[index] = payload;
    this.#open.set(id, pieces);
    const [oldest] = this.#open.keys();
    if (this.#open.size > MOST_OPEN && oldest !== undefined) this.#open.delete(oldest);
    const whole = pieces.filter((piece) => piece !== undefined);
    if (whole.length < pieces.length) return null;
    this.#open.delete(id);
    return Buffer.concat(whole);
  }
}
