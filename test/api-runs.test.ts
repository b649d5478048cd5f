// Runs: events that can be read again, questions that wait for an answer, stops, and what other calls have to do with them.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { newHolder } from "../src/sessions/lanes.ts";
import { type ApiRig, apiRig, KEY, lastText } from "./support/api-rig.ts";
import { until } from "./support/gateway-rig.ts";

let rig: ApiRig;
before(async () => {
  rig = await apiRig({ extra: { busy_seconds: 0.2 } });
});
after(() => rig[Symbol.asyncDispose]());
beforeEach(() => {
  rig.model.clear().otherwise(({ body }) => ({ text: `you said ${lastText(body.messages)}` }));
});

const DANGEROUS = {
  toolCalls: [{ id: "c1", name: "terminal", arguments: { command: "git push --force origin main" } }],
};

async function start(body: object = { input: "work" }): Promise<string> {
  const { status, json } = await rig.call("POST", "/v1/runs", body);
  assert.equal(status, 202);
  assert.match(json.run_id, /^run_[0-9a-f]{32}$/);
  assert.equal(json.status, "started");
  return json.run_id;
}
const statusOf = async (id: string) => (await rig.call("GET", `/v1/runs/${id}`)).json;
const isAt = (id: string, status: string) => until(status, async () => (await statusOf(id)).status === status);
const eventsOf = async (id: string, headers = {}) =>
  (await rig.events("GET", `/v1/runs/${id}/events`, undefined, headers)).map(({ id: number, data, comment }) => ({
    number: Number(number ?? 0),
    ...(data ? JSON.parse(data) : { comment }),
  }));

test("F267: a run tells its events to every reader, from the start or from a number, while it lasts and after", async () => {
  rig.model.script(
    { text: "I look.", thinking: "hm", toolCalls: [{ name: "terminal", arguments: { command: "echo seen" } }] },
    { text: "done", pace: 20 },
  );
  const id = await start();
  const [one, two] = await Promise.all([eventsOf(id), eventsOf(id)]);
  assert.deepEqual(one, two);
  const names = one.map(({ event, comment }) => event ?? comment);
  for (const name of ["reasoning.available", "message.delta", "tool.started", "tool.completed", "run.completed"])
    assert.ok(names.includes(name), `${name} in ${names}`);
  assert.equal(names.at(-1), "stream closed");
  const text = one.flatMap(({ event, delta }) => (event === "message.delta" ? [delta] : [])).join("");
  assert.equal(text, "I look.\n\ndone");
  const later = await eventsOf(id);
  assert.deepEqual(later, one, "the same numbers and events, from the store");
  assert.deepEqual(
    await eventsOf(id, { "last-event-id": "3" }),
    one.filter(({ number }) => number === 0 || number > 3),
  );
  const { status, output, usage, session_id: session } = await statusOf(id);
  assert.deepEqual([status, output], ["completed", "done"]);
  assert.ok(usage.total_tokens > 0);
  assert.equal((await rig.call("GET", `/api/sessions/${session}`)).status, 200);
});

test("a question waits until it is answered, and only an offered answer counts", async () => {
  rig.model.script(DANGEROUS);
  const id = await start();
  await isAt(id, "waiting_for_approval");
  const respond = (body: object) => rig.call("POST", `/v1/runs/${id}/approval`, body);
  for (const body of [{}, { choice: "perhaps" }, { choice: 7 }]) {
    const { status, json } = await respond(body);
    assert.deepEqual([status, json.error.code], [400, "invalid_approval_choice"]);
  }
  const { status, json } = await respond({ choice: "DENY", resolve_all: true });
  assert.deepEqual(
    [status, json],
    [200, { object: "hermes.run.approval_response", run_id: id, choice: "deny", resolved: 1 }],
  );
  await isAt(id, "completed");
  const events = await eventsOf(id);
  const asked = events.find(({ event }) => event === "approval.request");
  assert.equal(asked.command, "git push --force origin main");
  assert.deepEqual(asked.choices, ["once", "session", "always", "deny"]);
  assert.equal(events.find(({ event }) => event === "approval.responded").choice, "deny");
  assert.equal((await respond({ choice: "once" })).json.error.code, "approval_not_active");
  const idle = await start({ input: "x" });
  await isAt(idle, "completed");
});

test("a plain call asks nobody: what would need a yes is refused, and the model is told which setting allows it", async () => {
  rig.model.script(DANGEROUS);
  const { json } = await rig.call("POST", "/v1/chat/completions", { messages: [{ role: "user", content: "push" }] });
  assert.match(json.choices[0].message.content, /approvals|allowlist|config/i);
});

test("a stream of a session asks too, and is answered by its run id", async () => {
  await rig.store.create({ id: "asking", source: "api_server" });
  rig.model.script(DANGEROUS);
  const stream = rig.events("POST", "/api/sessions/asking/chat/stream", { message: "push" });
  await until("the question is open", async () => (await rig.store.questions()).length > 0);
  const response = await fetch(`${rig.url}/health`);
  assert.equal(response.status, 200, "others are served meanwhile");
  const [open] = await rig.store.questions();
  assert.ok(open);
  await rig.store.answerQuestion(open.id, { choice: "deny" }, "test");
  const events = (await stream).map(({ event }) => event);
  assert.ok(events.includes("approval.request") && events.includes("approval.responded"), String(events));
  assert.deepEqual(events.slice(-2), ["run.completed", "done"]);
});

test("a run is stopped, also while it asks; what it came to is told", async () => {
  for (const reply of [DANGEROUS, { fault: "stall", after: 2, answer: { text: "a long answer" } }] as const) {
    rig.model.script(reply);
    const id = await start();
    const waiting = "fault" in reply ? "running" : "waiting_for_approval";
    await isAt(id, waiting);
    if ("fault" in reply) await until("it is asked", () => rig.model.requests.length > 0);
    const { status, json } = await rig.call("POST", `/v1/runs/${id}/stop`);
    assert.deepEqual([status, json], [200, { run_id: id, status: "stopping" }]);
    await isAt(id, "cancelled");
    assert.equal((await eventsOf(id)).at(-2).event, "run.cancelled");
    rig.model.clear();
  }
});

test("a run that fails says why", async () => {
  rig.model.otherwise({ fault: "status", status: 401, body: { error: { message: "no such key" } } });
  const id = await start();
  await isAt(id, "failed");
  const { error } = await statusOf(id);
  assert.match(error, /key/i);
  assert.equal((await eventsOf(id)).at(-2).event, "run.failed");
});

test("the eleventh run at once is refused; the same Idempotency-Key starts one run", async () => {
  rig.model.clear().otherwise({ fault: "stall", after: 1, answer: { text: "a long answer" } });
  const key = { "idempotency-key": "one-run" };
  const [first, again] = await Promise.all([
    rig.call("POST", "/v1/runs", { input: "once" }, key),
    rig.call("POST", "/v1/runs", { input: "once" }, key),
  ]);
  assert.equal(first.json.run_id, again.json.run_id);
  assert.equal((await rig.call("POST", "/v1/runs", { input: "other" }, key)).json.error.code, "idempotency_key_reused");
  const ids = [first.json.run_id, ...(await Promise.all(Array.from({ length: 9 }, () => start())))];
  const { status, json } = await rig.call("POST", "/v1/runs", { input: "x" });
  assert.deepEqual([status, json.error.code, json.error.type], [429, "rate_limit_exceeded", "rate_limit_error"]);
  await Promise.all(ids.map((id) => rig.call("POST", `/v1/runs/${id}/stop`)));
});

test("any call becomes a run when its client does not want to wait", async () => {
  const { status, json, headers } = await rig.call(
    "POST",
    "/v1/chat/completions",
    { messages: [{ role: "user", content: "later" }] },
    { prefer: "respond-async" },
  );
  assert.equal(status, 202);
  assert.equal(headers.get("location"), `/v1/runs/${json.run_id}`);
  await isAt(json.run_id, "completed");
  const { output, model } = await statusOf(json.run_id);
  assert.deepEqual([output, model], ["you said later", "hermes-agent"]);
  await rig.store.create({ id: "talked-in", source: "api_server" });
  for (const [path, body, named] of [
    ["/v1/chat/completions", { model: "mine", messages: [{ role: "user", content: "later" }] }, "mine"],
    ["/api/sessions/talked-in/chat", { message: "later" }, "hermes-agent"],
  ] as const) {
    const run = await rig.call("POST", path, body, { prefer: "respond-async" });
    assert.equal((await statusOf(run.json.run_id)).model, named);
    await isAt(run.json.run_id, "completed");
  }
});

test("a call that becomes a run is made once for each Idempotency-Key", async () => {
  for (const [path, body] of [
    ["/v1/chat/completions", { messages: [{ role: "user", content: "later" }] }],
    ["/v1/responses", { input: "later", conversation: "once" }],
  ] as const) {
    const headers = { prefer: "respond-async", "idempotency-key": `once ${path}` };
    const [one, two] = await Promise.all([
      rig.call("POST", path, body, headers),
      rig.call("POST", path, body, headers),
    ]);
    assert.equal(one.status, 202);
    assert.deepEqual(two.json, one.json);
    await isAt(one.json.run_id, "completed");
    assert.deepEqual((await rig.call("POST", path, body, headers)).json, one.json);
    const other = await rig.call("POST", path, { ...body, model: "other" }, headers);
    assert.deepEqual([other.status, other.json.error?.code], [422, "idempotency_key_reused"]);
  }
  assert.equal(rig.model.requests.length, 2);
});

test("a run follows a stored response, or the session it names", async () => {
  const first = await rig.call("POST", "/v1/responses", { input: "one", instructions: "Be brief." });
  await isAt(await start({ input: "two", previous_response_id: first.json.id }), "completed");
  assert.match(rig.model.last.body.messages[0].content, /Be brief\./, "instructions are inherited");
  const named = { session_id: "a-run-session" };
  await isAt(await start({ input: "three", ...named }), "completed");
  await isAt(await start({ input: [{ role: "user", content: "four" }], ...named }), "completed");
  const said = rig.model.requests.map(({ body }) =>
    (body.messages as { content: string }[]).slice(1).map((one) => one.content),
  );
  assert.deepEqual(said.slice(1), [["one", "you said one", "two"], ["three"], ["three", "you said three", "four"]]);
});

test("a run of a session that stays in use ends as failed and says why; too large a body begins none", async () => {
  await rig.store.create({ id: "in-use", source: "api_server" });
  const lane = await rig.store.takeLane("in-use", newHolder());
  const id = await start({ input: "x", session_id: "in-use" });
  await isAt(id, "failed");
  if (lane.type === "taken") await rig.store.releaseLane(lane.lease, { preferSeconds: 0 });
  assert.match((await statusOf(id)).error, /in use/);
  const large = await rig.call("POST", "/v1/runs", "x".repeat(10_000_001));
  assert.deepEqual([large.status, large.json.error.code], [413, "body_too_large"]);
  assert.equal(rig.model.requests.length, 0);
});

test("a run goes on when whoever read its events is gone, and its pictures reach the model", async () => {
  const go = Promise.withResolvers<void>();
  rig.model.script(async () => {
    await go.promise;
    return { text: "done all the same" };
  });
  const url =
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const id = await start({
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "look" },
          { type: "input_image", image_url: url },
        ],
      },
    ],
  });
  const controller = new AbortController();
  const reading = fetch(`${rig.url}/v1/runs/${id}/events`, {
    ...{ headers: { authorization: `Bearer ${KEY}` }, signal: controller.signal },
  }).then((response) => response.text());
  await until("it is asked", () => rig.model.requests.length === 1);
  controller.abort();
  await assert.rejects(reading);
  go.resolve();
  await isAt(id, "completed");
  assert.equal((await statusOf(id)).output, "done all the same");
  assert.match(rig.model.requests[0]?.raw ?? "", /data:image\/png;base64,iVBOR/);
});
