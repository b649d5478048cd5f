import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import type { KeyPort } from "./ring.ts";

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
