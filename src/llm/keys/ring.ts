// A refusal that is about the key: the same key once more, or the next one of the pool.

import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Failure } from "../errors/classify.ts";
import type { Target } from "../wire.ts";
import { poolAction } from "./pool.ts";
import type { BorrowedKey } from "./pools.ts";

/** Several keys of one provider, kept in the home. */
export interface KeyPort {
  /** How many other keys could take over from the one this target carries. */
  others(target: Target): Promise<number>;
  /** The key in use is spent: it rests, the next one takes over. Null when none can. */
  rotate(target: Target, failure: Failure): Promise<Target | null>;
  /** The login in use has run out: it is renewed. Null when it is none, or cannot be. */
  renew?(target: Target): Promise<Target | null>;
  /** The key this target carries answered for the first time here: the next process may have to take another. */
  used?(target: Target): Promise<void>;
}

export type KeyStep =
  | { readonly type: "next"; readonly target: Target }
  | { readonly type: "renewed"; readonly target: Target }
  /** Once more with the same key, after a pause. */
  | { readonly type: "same" }
  /** The pool has no say in this. */
  | { readonly type: "none" };

/** Remembers which keys were refused since the last answer. */
export class KeyRing {
  readonly #port: KeyPort | undefined;
  #refused: string | null = null;
  /** Keys given up since the last answer. One whose rest is over already is not taken again: two of them would go round for ever. */
  readonly #spent = new Set<string>();
  /** Keys whose use is counted already. */
  readonly #counted = new Set<string>();

  constructor(port: KeyPort | undefined) {
    this.#port = port;
  }

  async noteAnswer(target: Target): Promise<void> {
    this.#refused = null;
    this.#spent.clear();
    const key = `${target.provider}\n${target.apiKey}`;
    if (this.#counted.has(key)) return;
    this.#counted.add(key);
    await this.#port?.used?.(target);
  }

  async afterFailure(target: Target, failure: Failure): Promise<KeyStep> {
    const { classified } = failure;
    if (!this.#port || !classified.shouldRotateCredential) return { type: "none" };
    const again = this.#refused === target.apiKey;
    const said = `${failure.error.message} ${JSON.stringify(failure.error.body ?? "")}`;
    const action = poolAction({ ...classified, said }, { again, canRefresh: this.#port.renew !== undefined });
    if (action === "leave") return { type: "none" };
    if (action === "retry_same") {
      // One key alone is no pool: a fallback does not wait for it.
      if ((await this.#port.others(target)) === 0) return { type: "none" };
      this.#refused = target.apiKey;
      return { type: "same" };
    }
    const renewed = action === "refresh" ? await this.#port.renew?.(target) : null;
    if (renewed) {
      // Refused again, it is not renewed again.
      this.#refused = renewed.apiKey;
      return { type: "renewed", target: renewed };
    }
    this.#spent.add(target.apiKey);
    const next = await this.#port.rotate(target, failure);
    if (next) this.#counted.add(`${next.provider}\n${next.apiKey}`);
    return next && !this.#spent.has(next.apiKey) ? { type: "next", target: next } : { type: "none" };
  }
}

/** The other keys of a provider; the pools are loaded by the first failure that asks for one. */
export function lazyKeys(home: OpenHome, clock: Clock): KeyPort {
  const pools = async () => new (await import("./pools.ts")).CredentialPools(home, clock);
  return {
    others: async (target) => (await pools()).others(target),
    rotate: async (target, failure) => (await pools()).rotate(target, failure),
    renew: async (target) => (await pools()).renew(target),
    async used(target) {
      const strategy = home.config().credential_pool_strategies[target.provider];
      if (strategy === "round_robin" || strategy === "least_used") await (await pools()).used(target);
    },
  };
}

// Children that work side by side spread over the keys of a provider.

/** The target with a key of its own for one child, to be released when the child is gone; the same target where there is no pool. */
export async function borrowKey(home: OpenHome, clock: Clock, target: Target): Promise<BorrowedKey> {
  const { CredentialPools } = await import("./pools.ts");
  const borrowed = await new CredentialPools(home, clock).borrow(target);
  return borrowed ?? { target, release: () => undefined };
}
