/** What a command line itself says about variables: the values they may hold where they are used. */
export interface Scope {
  get(name: string): readonly string[] | undefined;
  set(name: string, values: readonly string[]): void;
}

/** Longer values are not followed: `a=$a$a` doubles with every line. */
const MAX_VALUE_CHARS = 8192;

export function createScope(): Scope {
  const values = new Map<string, readonly string[]>();
  return {
    get: (name) => values.get(name),
    set: (name, given) => {
      const followed = given.filter((value) => value.length <= MAX_VALUE_CHARS).slice(0, 8);
      if (followed.length > 0 || given.length === 0) values.set(name, followed);
      else values.delete(name);
    },
  };
}
