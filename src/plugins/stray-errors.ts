// Failures that nobody waits for: of a timer, an emitter or a promise that a plugin let go of. They would end the process.
import { AsyncLocalStorage } from "node:async_hooks";

export interface Owner {
  /** Something of it failed, and nobody was there to hear it. */
  stray(error: unknown): void;
}

const running = new AsyncLocalStorage<Owner>();

/** Runs somebody else's code. Whatever it starts and forgets stays its own: a failure of that is told to the owner and ends nothing. */
export function runAs<T>(owner: Owner, code: () => T): T {
  if (!process.hasUncaughtExceptionCaptureCallback()) process.setUncaughtExceptionCaptureCallback(onStray);
  return running.run(owner, code);
}

function onStray(error: unknown): void {
  const owner = running.getStore();
  if (owner) return owner.stray(error);
  // Of our own making: it goes the way it would have gone without us.
  process.setUncaughtExceptionCaptureCallback(null);
  process.nextTick(() => {
    throw error;
  });
}
