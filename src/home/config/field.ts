// What one entry of the schema says. Plain data: the schema is imported at every start, so it must cost next to nothing.

export type FieldKind = "text" | "whole" | "number" | "flag" | "choice" | "list" | "items" | "record" | "null";

/** One setting. A value in the file must be of one of `kinds`; otherwise `fallback` is used and the user is notified. */
export interface Field<Value = unknown> {
  readonly kinds: readonly FieldKind[];
  readonly fallback: Value;
  readonly meaning: string;
  /** Members of a choice. */
  readonly values?: readonly string[];
  /** The member that a bare `on`, `yes` or `true` means; YAML 1.1 reads those as booleans. */
  readonly on?: string;
  /** Other words for members of a choice, or for the `true` and `false` of a flag, in lower case; `null` is the empty value. */
  readonly aliases?: Readonly<Record<string, string>>;
  readonly min?: number;
  readonly max?: number;
  /** The environment variable that sets the same thing for one run; it wins over the file ... */
  readonly env?: string;
  /** ... unless this says that the file wins. */
  readonly envBelowConfig?: boolean;
  /** A bare text stands for a list of one. */
  readonly single?: boolean;
  /** Holds in place of `fallback` when something is written that cannot be understood: a gate somebody wanted stays shut. */
  readonly unclear?: unknown;
  /** Holds the agent back, and its `fallback` does less so: a value that cannot be read is no default, no agent starts with it. */
  readonly guard?: boolean;
  /** Of a list: every text is a host (`kit/hosts.ts`). */
  readonly hosts?: boolean;
  /** Of a mapping: every value is a list of texts. */
  readonly lists?: boolean;
  /** Never shown, always masked. */
  readonly secret?: boolean;
  /** Homes of the Python original hold it, so it is known and kept; nothing in this program reads it yet. */
  readonly notUsed?: true;
}

export interface Section<Fields extends Shape = Shape> {
  readonly fields: Fields;
  readonly meaning: string;
}

export interface Shape {
  readonly [key: string]: Field | Section;
}

type ValueOf<Entry> = Entry extends { readonly fields: infer Fields } ? Values<Fields> : PlainValueOf<Entry>;
type PlainValueOf<Entry> = Entry extends { readonly fallback: infer Value } ? Value : never;
type OptionalKeys<Fields> = {
  [Key in keyof Fields]: undefined extends PlainValueOf<Fields[Key]> ? Key : never;
}[keyof Fields];

/** The settings of a shape as the program sees them. Keys the schema does not know are kept, as `unknown`. */
export type Values<Fields> = {
  [Key in Exclude<keyof Fields, OptionalKeys<Fields>>]: ValueOf<Fields[Key]>;
} & { [Key in OptionalKeys<Fields>]?: PlainValueOf<Fields[Key]> } & { [key: string]: unknown };

type Extras = Omit<Partial<Field>, "kinds" | "fallback" | "meaning" | "values">;

export function section<const Fields extends Shape>(meaning: string, fields: Fields): Section<Fields> {
  return { fields, meaning };
}

function field<Value>(kinds: readonly FieldKind[], fallback: Value, meaning: string, extras?: Partial<Field>) {
  return { ...extras, kinds, fallback, meaning } as Field<Value>; // extras never carry a fallback
}

export const text = (fallback: string, meaning: string, extras?: Extras): Field<string> =>
  field(["text"], fallback, meaning, extras);
/** Counts, sizes and times: never below 0, unless the field says otherwise. */
export const whole = (fallback: number, meaning: string, extras?: Extras): Field<number> =>
  field(["whole"], fallback, meaning, { min: 0, ...extras });
export const number = (fallback: number, meaning: string, extras?: Extras): Field<number> =>
  field(["number"], fallback, meaning, extras);
export const flag = (fallback: boolean, meaning: string, extras?: Extras): Field<boolean> =>
  field(["flag"], fallback, meaning, extras);
/** A list of texts. */
export const list = (fallback: readonly string[], meaning: string, extras?: Extras): Field<string[]> =>
  field(["list"], [...fallback], meaning, extras);
/** A list of anything, kept verbatim. */
export const items = (meaning: string): Field<unknown[]> => field(["items"], [], meaning);
/** A mapping whose keys belong to the user, kept verbatim. */
export const record = (meaning: string, extras?: Extras): Field<Record<string, unknown>> =>
  field(["record"], {}, meaning, extras);
export const choice = <const Members extends readonly [string, ...string[]]>(
  values: Members,
  fallback: Members[number],
  meaning: string,
  extras?: Extras,
): Field<Members[number]> => field(["choice"], fallback, meaning, { ...extras, values });

/** A member, or a list of texts instead. */
export const choiceOrList = <const Members extends readonly [string, ...string[]]>(
  values: Members,
  fallback: Members[number],
  meaning: string,
  extras?: Extras,
): Field<Members[number] | string[]> => field(["choice", "list"], fallback, meaning, { ...extras, values });

/** A setting that is absent unless the user gives it. */
export const optional = <Value>(entry: Field<Value>): Field<Value | undefined> => ({ ...entry, fallback: undefined });
/** A setting for which `null` means "no limit" or "decide yourself", and is what stands there by default. */
export const orNull = <Value>(entry: Field<Value>): Field<Value | null> => ({
  ...entry,
  kinds: [...entry.kinds, "null"],
  fallback: null,
});
/** A setting of several possible kinds. */
export const oneOf = <Value>(kinds: readonly FieldKind[], fallback: Value, meaning: string): Field<Value> =>
  field(kinds, fallback, meaning);

/** A setting, or a section with all that is in it, that nothing reads yet. */
export function notUsedYet<Entry extends Field | Section>(entry: Entry): Entry {
  if (!isSection(entry)) return { ...entry, notUsed: true };
  const fields = Object.entries(entry.fields).map(([key, inner]) => [key, notUsedYet(inner)]);
  return { ...entry, fields: Object.fromEntries(fields) };
}

export function isSection(entry: Field | Section): entry is Section {
  return "fields" in entry;
}

/** Nothing in it is read yet. */
export function isNotUsed(entry: Field | Section): boolean {
  return isSection(entry) ? Object.values(entry.fields).every(isNotUsed) : entry.notUsed === true;
}

/** Every setting below a section with its dotted path, in schema order. */
export function* eachField(shape: Shape, prefix = ""): Generator<{ path: string; field: Field }> {
  for (const [key, entry] of Object.entries(shape)) {
    if (isSection(entry)) yield* eachField(entry.fields, `${prefix}${key}.`);
    else yield { path: `${prefix}${key}`, field: entry };
  }
}

/** What the schema says about a path: a setting, a section, something inside a user's own mapping or list, or nothing. */
export function findEntry(
  shape: Shape,
  path: readonly string[],
): { readonly entry: Field | Section } | { readonly inside: Field } | null {
  const [key, ...rest] = path;
  const entry = key !== undefined && Object.hasOwn(shape, key) ? shape[key] : undefined;
  if (!entry) return null;
  if (rest.length === 0) return { entry };
  if (isSection(entry)) return findEntry(entry.fields, rest);
  const open = entry.kinds.some((kind) => kind === "record" || kind === "items" || kind === "list");
  return open ? { inside: entry } : null;
}
