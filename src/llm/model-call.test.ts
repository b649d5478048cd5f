import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentEventBody } from "../agent/events.ts";
import { listenToModel } from "./model-call.ts";
import type { ModelEvent } from "./wire.ts";

async function listen(...events: readonly ModelEvent[]) {
  const emitted: AgentEventBody[] = [];
  const stream = (async function* () {
    yield* events;
  })();
  const reply = await listenToModel(stream, new AbortController().signal, {
    emit: (event) => void emitted.push(event),
    usage: () => undefined,
  });
  return { emitted, reply };
}
const done = (content: string): ModelEvent => ({
  type: "done",
  finishReason: "stop",
  message: { role: "assistant", content },
});

test("a remark on the way is shown as one, and is no part of the answer", async () => {
  const { emitted, reply } = await listen(
    { type: "thinking", delta: "Looking." },
    { type: "remark", text: "Looking.\n" },
    { type: "text", delta: "Found." },
    done("Found."),
  );
  assert.deepEqual(emitted, [
    { type: "thinking", delta: "Looking." },
    { type: "text_end", text: "Looking.", kind: "interim", streamed: false },
    { type: "text", delta: "Found." },
  ]);
  assert.ok(reply.type === "answer");
  assert.deepEqual([reply.message.content, reply.streamed], ["Found.", "Found."]);
});

test("a remark behind the beginning of an answer stays with the thinking", async () => {
  const { emitted } = await listen(
    { type: "text", delta: "Found" },
    { type: "remark", text: "hm" },
    { type: "text", delta: " it." },
    done("Found it."),
  );
  assert.ok(emitted.every((event) => event.type === "text"));
});
