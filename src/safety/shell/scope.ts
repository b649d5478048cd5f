/** What a command line itself says about variables: the values they may hold where they are used. */
export interface Scope {
  get(name: string): readonly string[] | undefined;
  set(name: string, values: readonly string[]): void;
}

export function createScope(): Scope {
  const values = new Map<string, readonly string[]>();
  return {
    get: (name) => values.get(name),
    set: (name, given) => {
      values.set(name, given.slice(0, 8));
    },
  };
}
