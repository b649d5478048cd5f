import type { SessionStore } from "../../../src/sessions/store.ts";

/** The real store with some operations watched or made to fail. */
export function storeWith(store: SessionStore, changed: Partial<SessionStore>): SessionStore {
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(changed, key) ?? Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
