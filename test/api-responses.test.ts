// Responses that follow each other: who comes first, and what is left of one that did not come to its end.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ApiRig, apiRig, KEY, lastText } from "./support/api-rig.ts";
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

describe("a response that nobody waits for", () => {
  const ASYNC = { prefer: "respond-async" };
  const stored = async (id: string) => (await rig.call("GET", `/v1/responses/${id}`)).json;
  const runOf = async (id: string) => (await rig.call("GET", `/v1/runs/${id}`)).json;

  test("is part of its chain: by name, by id, and to be read while it lasts and after", async () => {
    const first = await respond({ input: "first", conversation: "async", instructions: "Be brief." });
    const go = held("answer A");
    const { status, json } = await respond({ input: "A", conversation: "async" }, ASYNC);
    assert.equal(status, 202);
    assert.match(json.response_id, /^resp_/);
    assert.equal((await stored(json.response_id)).status, "in_progress");
    const two = respond({ input: "B", conversation: "async" });
    const three = respond({ input: "C", previous_response_id: json.response_id }, ASYNC);
    assert.equal((await three).status, 202, "nobody waits who does not want to");
    await aWhile();
    go();
    const { previous_response_id: previous } = (await two).json;
    assert.equal(previous, json.response_id);
    const { status: end, output, usage, previous_response_id: before } = await stored(json.response_id);
    assert.deepEqual([end, output[0].content[0].text, before], ["completed", "answer A", first.json.id]);
    assert.ok(usage.total_tokens > 0);
    assert.equal((await runOf(json.run_id)).output, "answer A");
    await until("C is done", async () => (await runOf((await three).json.run_id)).status === "completed");
    const asked = rig.model.requests.map(({ body }) =>
      (body.messages as { content: string }[]).slice(1).map(({ content }) => content),
    );
    const begun = ["first", "you said first", "A", "answer A"];
    assert.deepEqual(asked.slice(2).sort(), [
      [...begun, "B"],
      [...begun, "C"],
    ]);
    assert.match(rig.model.last.body.messages[0].content, /Be brief\./, "instructions are inherited");
  });

  test("is not there when none is to be stored, and a stop leaves what there is of it", async () => {
    const without = (await respond({ input: "A", store: false }, ASYNC)).json;
    assert.equal((await stored(without.response_id)).error?.code, "response_not_found");
    await until("it is done", async () => (await runOf(without.run_id)).status === "completed");
    assert.equal((await stored(without.response_id)).error?.code, "response_not_found");
    rig.model.script({ fault: "stall", after: 4, answer: { text: "half of a long answer" } });
    const { run_id: run, response_id: id } = (await respond({ input: "A", conversation: "stopped" }, ASYNC)).json;
    await until("text has come", async () => (await runOf(run)).last_event === "message.delta");
    await rig.call("POST", `/v1/runs/${run}/stop`);
    await until("it has ended", async () => (await stored(id)).status !== "in_progress");
    const { status, output } = await stored(id);
    assert.equal(status, "incomplete");
    assert.match(output[0].content[0].text, /^half/);
    await respond({ input: "B", conversation: "stopped" });
    assert.match(contents().join("|"), /^A\|half.*\|B$/);
  });

  test("and cannot begin has failed, and says why", async () => {
    assert.equal((await respond({ input: "A", previous_response_id: "resp_none" }, ASYNC)).status, 404);
    await using busy = await apiRig({ extra: { busy_seconds: 0.2 } });
    busy.model.otherwise({ fault: "stall", after: 1, answer: { text: "a long answer" } });
    const ask = async () =>
      (await busy.call("POST", "/v1/responses", { input: "A", conversation: "long" }, ASYNC)).json;
    await ask();
    await until("A is asked", () => busy.model.requests.length === 1);
    const { response_id: id } = await ask();
    const now = async () => (await busy.call("GET", `/v1/responses/${id}`)).json;
    await until("it has ended", async () => (await now()).status !== "in_progress");
    const { status, error } = await now();
    assert.equal(status, "failed");
    assert.match(error.message, /in use/);
  });
});

test("a response that is not streamed and whose client left is incomplete, with the text so far or none", async () => {
  for (const [after, said] of [
    [4, 1],
    [0, 0],
  ] as const) {
    const conversation = `left after ${after}`;
    const asked = rig.model.requests.length;
    rig.model.script({ fault: "stall", after, answer: { text: "half of a long answer" } });
    const controller = new AbortController();
    const left = fetch(`${rig.url}/v1/responses`, {
      ...{ method: "POST", body: JSON.stringify({ input: "A", conversation }), signal: controller.signal },
      headers: { authorization: `Bearer ${KEY}` },
    });
    await until("A is asked", () => rig.model.requests.length === asked + 1);
    await aWhile();
    controller.abort();
    await assert.rejects(left);
    const { previous_response_id: id } = (await respond({ input: "B", conversation })).json;
    const { status, error, output } = (await rig.call("GET", `/v1/responses/${id}`)).json;
    assert.deepEqual([status, error, output.length], ["incomplete", null, said]);
    if (said > 0) assert.match(output[0].content[0].text, /^half/);
  }
});

test("a streamed response that cannot be stored ends as failed, is not in progress for ever, and holds nothing up", async () => {
  const breakStore = () => {
    const db = new DatabaseSync(`${rig.home.dir}/response_store.db`);
    db.exec("CREATE TRIGGER full BEFORE INSERT ON responses BEGIN SELECT RAISE(ABORT, 'the disk is full'); END");
    return () => {
      db.exec("DROP TRIGGER full");
      db.close();
    };
  };
  const { json } = await respond({ input: "first" });
  for (const when of ["at its start", "at its end"]) {
    const asked = rig.model.requests.length;
    const go = held("answer A");
    const body = { input: "A", conversation: `full ${when}`, stream: true, previous_response_id: undefined };
    let repair = when === "at its start" ? breakStore() : null;
    const reading = rig.events("POST", "/v1/responses", body, { "x-hermes-session-id": `full-${when}` });
    if (repair === null) {
      await until("A is asked", () => rig.model.requests.length === asked + 1);
      repair = breakStore();
      go();
    }
    const events = (await reading).map(({ data }) => JSON.parse(data ?? "{}"));
    repair();
    go();
    assert.equal(events[0].type, "response.created");
    const { type, response } = events.at(-1);
    assert.deepEqual([type, response.status], ["response.failed", "failed"]);
    assert.match(response.error.message, /internal error/);
    const { status, json: stored } = await rig.call("GET", `/v1/responses/${response.id}`);
    assert.deepEqual(
      [status, stored.status, stored.error?.message],
      when === "at its start"
        ? [404, undefined, `there is no response ${response.id}`]
        : [200, "failed", "its end could not be stored"],
    );
    rig.model.clear().otherwise({ text: "again" });
    const next = await respond({ input: "B" }, { "x-hermes-session-id": `full-${when}` });
    assert.equal(next.json.output[0].content[0].text, "again", "its conversation is free");
  }
  assert.equal((await rig.call("GET", `/v1/responses/${json.id}`)).json.status, "completed");
  await until("no turn is left", async () => (await rig.call("GET", "/health/detailed")).json.active_agents === 0);
});
