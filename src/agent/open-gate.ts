// The one gate of a process, with this home's caps, prices and ledger.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { priceOf } from "../llm/catalogue/prices.ts";
import { createGate } from "../llm/gate/create-gate.ts";
import type { ModelGate } from "../llm/gate.ts";
import { createWire } from "../llm/wires/drive.ts";
import { createModelFetch } from "../llm/wires/model-fetch.ts";
import type { SessionStore } from "../sessions/store.ts";

export function openGate(
  home: OpenHome,
  store: SessionStore,
  clock: Clock,
  warn: (message: string) => void,
): ModelGate {
  const log = home.log.child("llm");
  const fetch = createModelFetch();
  return createGate({
    ledger: store,
    caps: () => home.config().budget,
    priceOf,
    wireFor: (target) => createWire(target.apiMode, { fetch, clock }),
    clock,
    cacheTtl: () => home.config().prompt_caching.cache_ttl,
    prefixMemory: {
      read: (sessionId) => store.getValue(sessionId, "prefix"),
      write: (sessionId, state) => store.setValue(sessionId, "prefix", state),
    },
    onDefect: (what, error) => log.error(what, error),
    onColdCache: (message) => log.warn(message),
    onUnknownPrice: (message) => {
      log.warn(message);
      warn(message);
    },
  });
}
