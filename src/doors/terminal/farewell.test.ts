import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenAgent } from "../../agent/opened.ts";
import { sayGoodbye } from "./farewell.ts";

/** What a screen that ends with this code leaves on the terminal. `saves` is called when memories are saved first. */
async function goodbyeIn(profile: string, code = 0, saves: (() => void) | null = null): Promise<string> {
  const session = { id: "20260101_000000_abcdef", title: "Prices", messageCount: 2, toolCallCount: 1 };
  const conversation = {
    agent: {
      sessionId: session.id,
      wantsToSave: saves !== null,
      saveMemories: async () => {
        saves?.();
        return [];
      },
    },
    store: { get: async () => session, load: async () => [{ role: "user", content: "hello" }] },
    close: async () => undefined,
  } as unknown as OpenAgent; // what a goodbye asks for
  const home = {
    paths: { profile },
    env: () => undefined,
    config: () => ({ memory: { flush_wait: saves === null ? 0 : 3 } }),
    unwritable: null,
  };
  const parts = { home, leftBehind: [], startedAt: 0, word: "", now: () => 5000, settled: async () => undefined };
  let written = "";
  const write = process.stdout.write;
  process.stdout.write = ((text: string) => {
    written += text;
    return true;
  }) as typeof write;
  try {
    await sayGoodbye(conversation, code, parts as unknown as Parameters<typeof sayGoodbye>[2]); // the same
  } finally {
    process.stdout.write = write;
  }
  return written;
}

test("how to come back is told as it has to be typed, with the profile if it is not the default one", async () => {
  assert.match(await goodbyeIn("default"), /hermes --resume 20260101_000000_abcdef\n {2}hermes -c "Prices"\n/);
  const work = await goodbyeIn("work");
  assert.match(work, /--resume 20260101_000000_abcdef -p work\n {2}hermes -c "Prices" -p work\n/);
  assert.match(work, /Duration: {2}5s\nMessages: {2}1 \(1 user, 1 tool call\)/);
});

test("memories are saved when somebody leaves, and not after a signal, when there is no time", async () => {
  const codes: number[] = [];
  for (const code of [0, 143]) assert.match(await goodbyeIn("default", code, () => codes.push(code)), /Session: /);
  assert.deepEqual(codes, [0]);
});
