import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { within } from "../kit/within.ts";
import type { ContextEngine } from "./engine.ts";

const BOUND_WITHIN_MS = 5000;

/** What the loop takes for granted when an engine has no answer. */
const OTHERWISE: Partial<{ readonly [Member in keyof ContextEngine]: unknown }> = {
  updateFromResponse: undefined,
  shouldCompress: false,
  shouldCompressPreflight: false,
  shouldCompressInfo: { compress: false },
  hasContentToCompress: true,
  getToolSchemas: [],
  getStatus: {},
  updateModel: undefined,
};

/**
 * An engine that somebody else wrote. What it throws when it is asked in passing is logged, and the conversation goes on as if it had said
 * nothing; failures of `compress` and at the bounds of a conversation are the loop's to tell.
 */
export function guardEngine(engine: ContextEngine, log: Pick<Logger, "warn">): ContextEngine {
  return new Proxy(engine, {
    get(target, member) {
      // The engine itself is the receiver: private fields are not reached through a proxy.
      const value: unknown = Reflect.get(target, member, target);
      if (typeof value !== "function") return value;
      if (!Object.hasOwn(OTHERWISE, member)) return value.bind(target);
      const otherwise = OTHERWISE[member as keyof ContextEngine]; // one of its own keys
      const failed = (error: unknown) => {
        log.warn(`context engine "${target.name}": ${String(member)} failed`, error);
        return otherwise;
      };
      return (...args: readonly unknown[]) => {
        try {
          const given: unknown = Reflect.apply(value, target, args);
          if (!(given instanceof Promise)) return given;
          // Nobody waits here: a promise is no answer, and its failure must not end the process.
          given.catch(failed);
          return otherwise;
        } catch (error) {
          return failed(error);
        }
      };
    },
  });
}

/** Tells an engine of a bound of the conversation. What it makes of it, and how long that takes, is its own affair: the conversation goes on. */
export async function tellBound(
  { log, clock }: { readonly log: Pick<Logger, "warn">; readonly clock: Clock },
  tell: () => void | Promise<void> | undefined,
): Promise<void> {
  try {
    const told = tell();
    if (told) await within(() => told, BOUND_WITHIN_MS, clock);
  } catch (error) {
    log.warn("the context engine failed at a boundary of the conversation", error);
  }
}
