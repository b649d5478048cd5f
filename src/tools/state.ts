import type { StateKey, ToolState } from "./toolset/context.ts";

/** State of tool families that lives as long as one agent. */
export interface OwnedToolState extends ToolState {
  /** Lets every family put away what it holds; afterwards the state starts empty. */
  dispose(): Promise<void>;
}

export function createToolState(): OwnedToolState {
  const values = new Map<StateKey<unknown>, unknown>();
  return {
    of<T>(key: StateKey<T>): T {
      if (!values.has(key)) values.set(key, key.create());
      return values.get(key) as T; // put there by the same key
    },
    async dispose() {
      const held = [...values];
      values.clear();
      await Promise.all(held.map(([key, value]) => key.dispose?.(value)));
    },
  };
}
