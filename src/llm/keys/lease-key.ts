// Children that work side by side spread over the keys of a provider.
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Target } from "../wire.ts";
import type { KeyLease } from "./pools.ts";

/** The target with a key of its own for one child, to be released when the child is gone; the same target where there is no pool. */
export async function leaseKey(home: OpenHome, clock: Clock, target: Target): Promise<KeyLease> {
  const { CredentialPools } = await import("./pools.ts");
  const lease = await new CredentialPools(home, clock).lease(target);
  return lease ?? { target, release: () => undefined };
}
