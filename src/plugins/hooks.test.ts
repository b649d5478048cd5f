import assert from "node:assert/strict";
import { test } from "node:test";
import { jumpingClock } from "../../test/support/memory-provider.ts";
import { recordedLog } from "../../test/support/session-store.ts";
import { HookBus } from "./hooks.ts";

test("a listener hears when nobody waits for it any more, also one that is asked after an interrupt", async () => {
  for (const signal of [undefined, AbortSignal.abort()]) {
    const clock = jumpingClock();
    const bus = new HookBus({ clock, log: recordedLog(), limitMs: 1000, report: () => undefined });
    const left = Promise.withResolvers<void>();
    bus.add("on_session_end", {
      owner: "a listener that never answers",
      call: (_payload, waited) => {
        waited?.addEventListener("abort", () => left.resolve());
        return new Promise(() => undefined);
      },
    });
    const emitting = bus.emit("on_session_end", {}, signal);
    for (let n = 0; n < 10; n++) await clock.pass(100);
    assert.deepEqual(await emitting, []);
    await left.promise;
  }
});
