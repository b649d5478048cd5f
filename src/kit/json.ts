// What a value from a file has to look like, as type guards that can be put together. For records of our own on hot paths, where a schema
// library would cost more than all the rest.
export type Shape<T> = (value: unknown) => value is T;

// biome-ignore lint/suspicious/noExplicitAny: a shape of anything
type AnyShape = Shape<any>;
export type ShapeOf<S extends AnyShape> = S extends Shape<infer T> ? T : never;

export const text: Shape<string> = (value) => typeof value === "string";
export const number: Shape<number> = (value) => typeof value === "number";
export const boolean: Shape<boolean> = (value) => typeof value === "boolean";

export function oneOf<const T extends string | number>(values: readonly T[]): Shape<T> {
  return (value): value is T => values.some((allowed) => allowed === value);
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return (value): value is T | null => value === null || shape(value);
}

export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value): value is T | undefined => value === undefined || shape(value);
}

export function listOf<T>(shape: Shape<T>): Shape<readonly T[]> {
  return (value): value is readonly T[] => Array.isArray(value) && value.every(shape);
}

/** Any keys, all values alike. */
export function mapOf<T>(shape: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return (value): value is Readonly<Record<string, T>> => isRecord(value) && Object.values(value).every(shape);
}

type Fields = Readonly<Record<string, AnyShape>>;
type OptionalKeys<F extends Fields> = { [K in keyof F]: undefined extends ShapeOf<F[K]> ? K : never }[keyof F];
type RecordOf<F extends Fields> = {
  readonly [K in Exclude<keyof F, OptionalKeys<F>>]: ShapeOf<F[K]>;
} & { readonly [K in OptionalKeys<F>]?: ShapeOf<F[K]> };

/** These fields; others may be there too and are left alone. */
export function record<F extends Fields>(fields: F): Shape<RecordOf<F>> {
  const wanted = Object.entries(fields);
  return (value): value is RecordOf<F> => isRecord(value) && wanted.every(([key, shape]) => shape(value[key]));
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value when the text is JSON of this shape; null for anything else. */
export function parseAs<T>(json: string, shape: Shape<T>): T | null {
  try {
    const value: unknown = JSON.parse(json);
    return shape(value) ? value : null;
  } catch {
    return null; // not JSON
  }
}

// Reading what a server sent: unknown at the border, and never an exception for a missing field.

export type Json = Readonly<Record<string, unknown>>;

/** The object itself, or an empty one for anything else. */
export function asRecord(value: unknown): Json {
  return isRecord(value) ? value : {};
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/**
 * Whether lists and objects of a JSON text lie deeper in each other than this. A text of nothing but brackets keeps `JSON.stringify` busy
 * for half a minute. Of a text that is no JSON it says anything.
 */
export function isNestedDeeper(json: Uint8Array, levels: number): boolean {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (inText) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > levels) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth--;
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The value of a JSON text, or `undefined` when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text as a whole, without a code fence around it; else the first balanced object in it that is JSON. */
export function objectIn(text: string): Json | null {
  const bare = text
    .trim()
    .replace(/^```[a-z]*\s*\n?/i, "")
    .replace(/\n?```$/, "")
    .trim();
  const whole = parseJson(bare);
  if (isRecord(whole)) return whole;
  for (let start = bare.indexOf("{"); start >= 0; start = bare.indexOf("{", start + 1)) {
    const end = endOfObject(bare, start);
    const value = end < 0 ? undefined : parseJson(bare.slice(start, end + 1));
    if (isRecord(value)) return value;
    // An object that never ends: what stands in it may still be one.
  }
  return null;
}

/** Where the object that begins here ends; braces in its texts do not count. -1: it does not. */
function endOfObject(text: string, start: number): number {
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at++) {
    const char = text[at];
    if (quoted) {
      if (char === "\\") at++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "{") depth++;
    else if (char === "}" && --depth === 0) return at;
  }
  return -1;
}
