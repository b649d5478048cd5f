// Responses that follow each other: who comes first, and what is left of one that did not come to its end.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ApiRig, apiRig, lastText } from "./support/api-rig.ts";
import { until } from "./support/gateway-rig.ts";

let rig: ApiRig;
before(async () => {
  rig = await apiRig();
});
after(() => rig[Symbol.asyncDispose]());
beforeEach(() => {
  rig.model.clear().otherwise(({ body }) => ({ text: `you said ${lastText(body.messages)}` }));
});

const respond = (body: object, headers = {}) => rig.call("POST", "/v1/responses", body, headers);
const contents = () => (rig.model.last.body.messages as { content: string }[]).slice(1).map(({ content }) => content);
/** The answer to the next request waits until it is called. */
function held(text: string): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  rig.model.script(async () => {
    await promise;
    return { text };
  });
  return resolve;
}
/** Long enough for a call to be read, and to ask the model if it may. */
const aWhile = () => sleep(150);

describe("two calls of one conversation at once", () => {
  test("follow each other, in the order they came in, in a stream and without one", async () => {
    for (const stream of [false, true]) {
      const conversation = `at once, ${stream}`;
      await respond({ input: "first", conversation });
      const asked = rig.model.requests.length;
      const go = held("answer A");
      const body = { input: "A", conversation, stream };
      const one = stream ? rig.events("POST", "/v1/responses", body) : respond(body);
      await until("A is asked", () => rig.model.requests.length === asked + 1);
      const two = respond({ input: "B", conversation });
      await aWhile();
      const three = respond({ input: "C", conversation });
      await aWhile();
      assert.equal(rig.model.requests.length, asked + 1, "B waits");
      go();
      const first = await one;
      const id = Array.isArray(first) ? JSON.parse(first[0]?.data ?? "{}").response.id : first.json.id;
      assert.equal((await two).json.previous_response_id, id);
      assert.equal((await three).json.previous_response_id, (await two).json.id);
      assert.deepEqual(contents(), ["first", "you said first", "A", "answer A", "B", "you said B", "C"]);
    }
  });

  test("of a new name are one conversation of the home", async () => {
    const go = held("answer A");
    const one = respond({ input: "A", conversation: "new" });
    await until("A is asked", () => rig.model.requests.length === 1);
    const two = respond({ input: "B", conversation: "new" });
    await aWhile();
    go();
    const sessions = [await one, await two].map(({ headers }) => headers.get("x-hermes-session-id"));
    assert.equal(sessions[0], sessions[1]);
    assert.deepEqual(contents(), ["A", "answer A", "B"]);
    await respond({ input: "C", conversation: "new" });
    assert.deepEqual(contents(), ["A", "answer A", "B", "you said B", "C"]);
  });

  test("by the id of a stream that goes on: the second has its answer", async () => {
    const go = held("answer A");
    const one = rig.events("POST", "/v1/responses", { input: "A", conversation: "by id", stream: true });
    await until("A is asked", () => rig.model.requests.length === 1);
    const { DatabaseSync } = await import("node:sqlite");
    const db = new DatabaseSync(`${rig.home.dir}/response_store.db`, { readOnly: true });
    const row = db.prepare("SELECT response_id AS id FROM conversations WHERE name = 'by id'").get();
    db.close();
    const two = respond({ input: "B", previous_response_id: row?.id });
    await aWhile();
    go();
    await Promise.all([one, two]);
    assert.deepEqual(contents(), ["A", "answer A", "B"]);
  });

  test("the second is refused when the first takes too long, and the next one still follows the first", async () => {
    await using busy = await apiRig({ extra: { busy_seconds: 1 } });
    busy.model.otherwise(({ body }) => ({ text: `you said ${lastText(body.messages)}` }));
    const { promise, resolve } = Promise.withResolvers<void>();
    busy.model.script(async () => {
      await promise;
      return { text: "answer A" };
    });
    const ask = (input: string) => busy.call("POST", "/v1/responses", { input, conversation: "long" });
    const one = ask("A");
    await until("A is asked", () => busy.model.requests.length === 1);
    const two = ask("B");
    await sleep(700);
    const three = ask("C");
    const { status, json } = await two;
    assert.deepEqual([status, json.error.code], [429, "session_busy"]);
    resolve();
    await one;
    assert.equal((await three).status, 200);
    const said = (busy.model.last.body.messages as { content: string }[]).slice(1).map(({ content }) => content);
    assert.deepEqual(said, ["A", "answer A", "C"]);
  });
});
