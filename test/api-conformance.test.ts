// Every kind of call against everything that can come of it: answered, streamed, refused, left, in use.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { newHolder } from "../src/sessions/lanes.ts";
import { type ApiRig, apiRig, KEY, lastText } from "./support/api-rig.ts";
import { until } from "./support/gateway-rig.ts";

const SESSION = "a-session";
const say = { messages: [{ role: "user", content: "hello" }] };

/** One kind of call that asks the agent. */
interface Asking {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The answer of the agent, out of the reply. */
  text(json: never): unknown;
  /** How a stream of it ends. */
  readonly streamed?: { readonly path?: string; readonly body: object; readonly last: RegExp; readonly text: RegExp };
  /** Bodies that are refused, each with the field that the refusal names. */
  readonly wrong: readonly (readonly [body: unknown, param: string | null])[];
  /** The same call on a stored session. */
  readonly named: { readonly path?: string; readonly headers?: Readonly<Record<string, string>> };
}

const NO_OBJECTS: Asking["wrong"] = [
  ["", null],
  ["{", null],
  [[], null],
  [`{"tools":${"[".repeat(2000)}${"]".repeat(2000)}}`, null],
  ["null", null],
  ["42", null],
];

const ASKING: Readonly<Record<string, Asking>> = {
  "chat completions": {
    ...{ path: "/v1/chat/completions", body: say },
    text: (json: { choices: { message: { content: string } }[] }) => json.choices[0]?.message.content,
    streamed: { body: { ...say, stream: true }, last: /^data: \[DONE\]$/, text: /"content":"you/ },
    wrong: [
      ...NO_OBJECTS,
      [{}, "messages"],
      [{ messages: "x" }, "messages"],
      [{ messages: [] }, "messages"],
      [{ messages: [{ role: "system", content: "x" }] }, "messages"],
      [{ messages: [{ role: "user", content: " " }] }, "messages"],
      [{ messages: ["x"] }, "messages[0]"],
      [{ messages: [{ role: "wizard", content: "x" }] }, "messages[0].role"],
      [{ messages: [{ role: "user", content: [{ type: "file" }] }] }, "messages[0].content"],
      [{ messages: [{ role: "user", content: [{ type: "text" }] }] }, "messages[0].content"],
      [
        {
          messages: [
            { role: "system", content: [{ type: "image_url", image_url: "http://x/a.png" }] },
            ...say.messages,
          ],
        },
        "messages[0].content",
      ],
      [{ messages: [{ role: "user", content: [{ type: "image_url", image_url: "ftp://x" }] }] }, "messages[0].content"],
      [{ messages: [{ role: "user", content: "x".repeat(65_537) }] }, "messages[0].content"],
      [{ ...say, model: 7 }, "model"],
    ],
    named: { headers: { "x-hermes-session-id": SESSION } },
  },
  responses: {
    ...{ path: "/v1/responses", body: { input: "hello" } },
    text: (json: { output: { content: { text: string }[] }[] }) => json.output.at(-1)?.content[0]?.text,
    streamed: {
      body: { input: "hello", stream: true },
      last: /^event: response\.completed$/,
      text: /output_text\.delta/,
    },
    wrong: [
      ...NO_OBJECTS,
      [{}, "input"],
      [{ input: [] }, "input"],
      [{ input: [7] }, "input[0]"],
      [{ input: [{ role: "assistant", content: "x" }] }, "input"],
      [{ input: [{ role: "user", content: [{ type: "input_file" }] }] }, "input[0].content"],
      [{ input: "x", conversation: "c", previous_response_id: "resp_1" }, "conversation"],
      [{ input: "x", conversation_history: {} }, "conversation_history"],
      [{ input: "x", conversation_history: [{ role: "user" }] }, "conversation_history[0]"],
    ],
    named: { headers: { "x-hermes-session-id": SESSION } },
  },
  "session chat": {
    ...{ path: `/api/sessions/${SESSION}/chat`, body: { message: "hello" } },
    text: (json: { message: { content: string } }) => json.message.content,
    streamed: {
      path: `/api/sessions/${SESSION}/chat/stream`,
      ...{ body: { input: "hello" }, last: /^event: done$/, text: /assistant\.delta/ },
    },
    wrong: [...NO_OBJECTS, [{}, "input"], [{ message: "" }, "message"], [{ message: [{ type: "x" }] }, "message"]],
    named: {},
  },
};

let rig: ApiRig;
before(async () => {
  rig = await apiRig({ extra: { busy_seconds: 0.2 } });
  await rig.store.create({ id: SESSION, source: "api_server" });
});
after(() => rig[Symbol.asyncDispose]());
beforeEach(() => {
  rig.model.clear().otherwise(({ body }) => ({ text: `you said ${lastText(body.messages)}` }));
});

for (const [what, asking] of Object.entries(ASKING)) {
  const { path, body, streamed, wrong, named } = asking;
  const stalled = () => rig.model.clear().otherwise({ fault: "stall", after: 3, answer: { text: "a long answer" } });

  describe(what, () => {
    test("answers", async () => {
      const { status, json, headers } = await rig.call("POST", path, body);
      assert.equal(status, 200);
      assert.equal(asking.text(json as never), "you said hello");
      assert.ok(headers.get("x-hermes-session-id"));
      assert.equal(headers.get("x-content-type-options"), "nosniff");
    });

    if (streamed)
      test("streams, and says how it ended", async () => {
        const response = await fetch(rig.url + (streamed.path ?? path), {
          ...{ method: "POST", body: JSON.stringify(streamed.body), headers: { authorization: `Bearer ${KEY}` } },
        });
        assert.equal(response.headers.get("content-type"), "text/event-stream");
        const blocks = (await response.text()).trimEnd().split("\n\n");
        assert.ok(blocks.some((block) => streamed.text.test(block)));
        assert.match(blocks.at(-1)?.split("\n")[0] ?? "", streamed.last);
      });

    test("refuses a wrong key before it looks at anything else", async () => {
      for (const authorization of ["Bearer wrong", `Bearer ${KEY}x`, KEY, "Basic eDp5", ""]) {
        const { status, json } = await rig.call("POST", path, "{", { authorization });
        assert.equal(status, 401);
        assert.deepEqual(json.error, {
          ...{ message: "Invalid API key", type: "invalid_request_error", param: null, code: "invalid_api_key" },
        });
      }
      assert.equal(rig.model.requests.length, 0);
    });

    test("refuses a wrong body by the name of the field", async () => {
      for (const [given, param] of wrong) {
        const { status, json } = await rig.call("POST", path, given);
        assert.equal(status, 400, JSON.stringify(given));
        assert.equal(json.error.type, "invalid_request_error");
        assert.equal(json.error.param, param, JSON.stringify(given).slice(0, 200));
      }
      assert.equal(rig.model.requests.length, 0);
    });

    test("refuses a body that is too large, and the client reads why", async () => {
      // All of it is sent: the answer must not be lost with the rest of the body.
      const large = await rig.call("POST", path, "x".repeat(12_000_000));
      assert.deepEqual([large.status, large.json.error.code], [413, "body_too_large"]);
      const { status, text } = await announced(rig.url + path, 10_000_001);
      assert.equal(status, 413);
      assert.equal(JSON.parse(text).error.code, "body_too_large");
    });

    test("stops when its client hangs up", async () => {
      for (const form of [{ path, body }, ...(streamed ? [{ path, ...streamed }] : [])]) {
        stalled();
        const controller = new AbortController();
        const asked = fetch(rig.url + form.path, {
          ...{ method: "POST", body: JSON.stringify(form.body), headers: { authorization: `Bearer ${KEY}` } },
          signal: controller.signal,
        }).then((response) => response.text());
        await until("the model is asked", () => rig.model.requests.length === 1);
        controller.abort();
        await assert.rejects(asked);
        await rig.model.last.clientLeft;
      }
    });

    test("waits for a session that is in use, and then says so", async () => {
      const holder = newHolder();
      let lane = await rig.store.takeLane(SESSION, holder);
      await until("the turn before has ended", async () => {
        lane = await rig.store.takeLane(SESSION, holder);
        return lane.type === "taken";
      });
      const { status, json, headers } = await rig.call("POST", path, body, named.headers);
      if (lane.type === "taken") await rig.store.releaseLane(lane.lease, { preferSeconds: 0 });
      assert.equal(status, 429);
      assert.deepEqual([json.error.type, json.error.code], ["rate_limit_error", "session_busy"]);
      assert.match(json.error.message, /in use/);
      assert.ok(headers.get("retry-after"));
      assert.equal(rig.model.requests.length, 0);
      assert.equal((await rig.call("POST", path, body, named.headers)).status, 200, "and goes on when it is free");
    });
  });
}

describe("addresses that ask no model", () => {
  const cases: readonly [method: string, path: string, body: unknown, status: number, code: string | null][] = [
    ["GET", "/v1/models", undefined, 200, null],
    ["GET", "/v1/capabilities", undefined, 200, null],
    ["GET", "/v1/skills", undefined, 200, null],
    ["GET", "/v1/toolsets", undefined, 200, null],
    ["GET", "/health/detailed", undefined, 200, null],
    ["GET", "/api/sessions?limit=1&offset=0&source=api_server&include_children=yes", undefined, 200, null],
    ["GET", "/api/sessions?limit=none", undefined, 400, null],
    ["GET", `/api/sessions/${SESSION}`, undefined, 200, null],
    ["GET", "/api/sessions/unknown", undefined, 404, "session_not_found"],
    ["GET", `/api/sessions/${SESSION}/messages`, undefined, 200, null],
    ["PATCH", `/api/sessions/${SESSION}`, { title: "a title" }, 200, null],
    ["PATCH", `/api/sessions/${SESSION}`, { model: "x" }, 400, "unsupported_session_field"],
    ["PATCH", `/api/sessions/${SESSION}`, { title: 7 }, 400, "invalid_title"],
    ["POST", "/api/sessions", { id: SESSION }, 409, "session_exists"],
    ["POST", "/api/sessions", { id: "a\nb" }, 400, "invalid_session_id"],
    ["POST", "/api/sessions", { id: "../../etc" }, 400, "invalid_session_id"],
    ["POST", "/api/sessions", { system_prompt: 7 }, 400, "invalid_system_prompt"],
    ["POST", "/api/sessions", { title: "a title" }, 400, "invalid_title"],
    ["POST", "/api/sessions/unknown/chat", { message: "x" }, 404, "session_not_found"],
    ["GET", "/v1/responses/resp_0", undefined, 404, "response_not_found"],
    ["DELETE", "/v1/responses/resp_0", undefined, 404, "response_not_found"],
    ["GET", "/v1/runs/run_0", undefined, 404, "run_not_found"],
    ["GET", "/v1/runs/run_0/events", undefined, 404, "run_not_found"],
    ["POST", "/v1/runs/run_0/stop", undefined, 404, "run_not_found"],
    ["POST", "/v1/runs", {}, 400, null],
    ["POST", "/v1/runs", { input: "x", previous_response_id: "resp_0" }, 404, "response_not_found"],
    ["GET", "/nothing", undefined, 404, "not_found"],
    ["PUT", "/v1/models", {}, 405, "method_not_allowed"],
    ["DELETE", "/v1/chat/completions", undefined, 405, "method_not_allowed"],
  ];
  for (const [method, path, body, status, code] of cases)
    test(`${method} ${path} is ${status}`, async () => {
      const answer = await rig.call(method, path, body);
      assert.equal(answer.status, status, JSON.stringify(answer.json));
      if (code !== null) assert.equal(answer.json.error.code, code);
      if (status === 405) assert.match(answer.headers.get("allow") ?? "", /GET|POST/);
      assert.equal((await rig.call(method, path, body, { authorization: "Bearer no" })).status, 401);
    });

  test("F269: health needs no key, and HEAD is answered like GET without a body", async () => {
    const health = await rig.call("GET", "/health", undefined, { authorization: "" });
    assert.deepEqual([health.status, health.json.status, health.json.platform], [200, "ok", "hermes-agent"]);
    const head = await rig.call("HEAD", "/v1/models");
    assert.deepEqual([head.status, head.json], [200, null]);
  });
});

test("a job is made, changed, paused, resumed and removed; what cannot be meant is refused", async () => {
  const made = await rig.call("POST", "/api/jobs", { name: "look", schedule: "every 2h", prompt: "look around" });
  assert.equal(made.status, 200);
  const path = `/api/jobs/${made.json.job.id}`;
  const steps: readonly [method: string, path: string, body: unknown, status: number, found: RegExp][] = [
    ["GET", "/api/jobs", undefined, 200, /look around/],
    ["PATCH", path, { prompt: "look again" }, 200, /look again/],
    ["PATCH", path, { color: "red" }, 400, /^\{"error":"nothing to change/],
    ["PATCH", path, { schedule: "sometimes" }, 400, /is not a schedule/],
    ["PATCH", path, { enabled: "yes" }, 400, /enabled must be/],
    ["PATCH", path, { enabled: false }, 200, /"enabled":false/],
    ["POST", `${path}/resume`, undefined, 200, /"enabled":true/],
    ["POST", `${path}/pause`, undefined, 200, /"state":"paused"/],
    ["POST", "/api/jobs", { schedule: "every 2h", prompt: "x" }, 400, /name is missing/],
    ["POST", "/api/jobs", { name: "x", schedule: "every 2h", prompt: "p".repeat(5001) }, 400, /at most 5000/],
    ["POST", "/api/jobs", { name: "x", schedule: "every 2h", prompt: "p", repeat: 0 }, 400, /repeat/],
    ["GET", "/api/jobs/nothex", undefined, 400, /12 hex/],
    ["GET", "/api/jobs/000000000000", undefined, 404, /no job/],
    ["DELETE", path, undefined, 200, /^\{"ok":true\}$/],
    ["GET", path, undefined, 404, /no job/],
  ];
  for (const [method, at, body, status, found] of steps) {
    const answer = await rig.call(method, at, body);
    assert.equal(answer.status, status, `${method} ${at}: ${JSON.stringify(answer.json)}`);
    assert.match(JSON.stringify(answer.json), found);
  }
});

test("a stored session goes on: what was said is known, what a program laid over it stays, a fork has all of it", async () => {
  const made = await rig.call("POST", "/api/sessions", { title: "talk", system_prompt: "Answer in rhymes." });
  assert.equal(made.status, 201);
  const { id } = made.json.session;
  await rig.call("POST", `/api/sessions/${id}/chat`, { message: "one" });
  await rig.call("POST", "/v1/chat/completions", say, { "x-hermes-session-id": id });
  await rig.call("POST", `/api/sessions/${id}/chat`, { message: "two", instructions: "In English." });
  const [system, ...talk] = rig.model.last.body.messages as { content: string }[];
  assert.match(system?.content ?? "", /Answer in rhymes\.\s+In English\./);
  assert.deepEqual(
    talk.map(({ content }) => content),
    ["one", "you said one", "hello", "you said hello", "two"],
  );
  const forked = await rig.call("POST", `/api/sessions/${id}/fork`);
  assert.equal(forked.status, 201);
  const { id: child, parent_session_id: parent, title } = forked.json.session;
  assert.deepEqual([parent, title], [id, "talk #2"]);
  assert.equal((await rig.call("GET", `/api/sessions/${child}/messages`)).json.data.length, 6);
  assert.equal((await rig.call("GET", `/api/sessions/${id}`)).json.session.end_reason, "branched");
  assert.equal((await rig.call("DELETE", `/api/sessions/${child}`)).json.deleted, true);
  assert.equal((await rig.call("GET", `/api/sessions/${child}`)).status, 404);
});

test("two people who begin alike at the same time have a conversation each", async () => {
  const [one, two] = await Promise.all([
    rig.call("POST", "/v1/chat/completions", say),
    rig.call("POST", "/v1/chat/completions", say),
  ]);
  const ids = [one, two].map(({ headers }) => headers.get("x-hermes-session-id") ?? "");
  assert.notEqual(ids[0], ids[1]);
  const mine = await rig.call("POST", "/v1/chat/completions", { ...say, user: "ada" });
  assert.ok(!ids.includes(mine.headers.get("x-hermes-session-id") ?? ""));
});

test("a quiet stream says that it lives, and a client that does not read holds up nobody else", async () => {
  await using quiet = await apiRig({ extra: { keepalive_seconds: 0.05 } });
  quiet.model.script({ text: "at last", delay: 1000 });
  const events = await quiet.events("POST", "/v1/chat/completions", { ...say, stream: true });
  assert.ok(
    events.some(({ comment }) => comment === "keepalive"),
    JSON.stringify(events),
  );
  const big = "x".repeat(4_000_000);
  quiet.model
    .clear()
    .otherwise(({ body }) => ({ text: lastText(body.messages) === "much" ? big : "quick", chunk: 50_000 }));
  const controller = new AbortController();
  const much = { messages: [{ role: "user", content: "much" }], stream: true };
  const unread = await fetch(`${quiet.url}/v1/chat/completions`, {
    ...{
      method: "POST",
      body: JSON.stringify(much),
      headers: { authorization: `Bearer ${KEY}` },
      signal: controller.signal,
    },
  });
  for (let at = 0; at < 3; at++) {
    const { json } = await quiet.call("POST", "/v1/chat/completions", say);
    assert.equal(json.choices[0].message.content, "quick");
  }
  const text = await unread.text();
  assert.ok(text.length > big.length && text.endsWith("data: [DONE]\n\n"), "it gets everything when it reads");
});

test("a picture of the agent is in the answer, in every form of it but a run", async () => {
  const path = join(rig.home.project, "dot.png");
  await writeFile(
    path,
    Buffer.from(
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
      "base64",
    ),
  );
  rig.model.clear().otherwise({ text: `Here:\nMEDIA:${path}` });
  for (const { path: at, body, streamed } of Object.values(ASKING)) {
    assert.match(
      JSON.stringify((await rig.call("POST", at, body)).json),
      /!\[dot\.png\]\(data:image\/png;base64,iVBOR/,
    );
    const events = await rig.events("POST", streamed?.path ?? at, streamed?.body);
    assert.ok(events.some(({ data }) => /!\[dot\.png\]\(data:image\/png;base64,iVBOR/.test(data ?? "")));
  }
});

test("turns beyond the limit are refused and told when to come back", async () => {
  await using small = await apiRig({ extra: { max_turns: 1 } });
  small.model.clear().otherwise({ fault: "stall", after: 1, answer: { text: "a long answer" } });
  const run = await small.call("POST", "/v1/runs", { input: "x" });
  await until("it runs", () => small.model.requests.length === 1);
  const { status, json, headers } = await small.call("POST", "/v1/chat/completions", say);
  assert.deepEqual([status, json.error.code, headers.get("retry-after")], [429, "rate_limit_exceeded", "1"]);
  await small.call("POST", `/v1/runs/${run.json.run_id}/stop`);
  small.model.clear().otherwise({ text: "free again" });
  await until(
    "there is room again",
    async () => (await small.call("POST", "/v1/chat/completions", say)).status === 200,
  );
  assert.equal((await small.call("POST", "/v1/chat/completions", say)).status, 200);
});

test("the same call with a key is made once, also when its first client hangs up", async () => {
  rig.model.clear().otherwise(() => ({ text: "once", delay: 150 }));
  const controller = new AbortController();
  const headers = { authorization: `Bearer ${KEY}`, "idempotency-key": "k1" };
  const left = fetch(`${rig.url}/v1/chat/completions`, {
    ...{ method: "POST", headers, body: JSON.stringify(say), signal: controller.signal },
  });
  await until("the model is asked", () => rig.model.requests.length === 1);
  controller.abort();
  await assert.rejects(left);
  const again = await rig.call("POST", "/v1/chat/completions", say, headers);
  assert.equal(again.json.choices[0].message.content, "once");
  assert.equal(rig.model.requests.length, 1);
  const other = await rig.call("POST", "/v1/chat/completions", { ...say, model: "other" }, headers);
  assert.deepEqual([other.status, other.json.error.code], [422, "idempotency_key_reused"]);
});

test("an answer that was cut off, or that failed behind some text, says so in a stream and without one", async () => {
  const cut = { text: "half of", finish: "length" } as const;
  rig.model.clear().otherwise(cut);
  const whole = await rig.call("POST", "/v1/chat/completions", say);
  assert.equal(whole.status, 200);
  assert.deepEqual([whole.json.choices[0].finish_reason, whole.json.hermes.error_code], ["length", "output_truncated"]);
  assert.equal(whole.headers.get("x-hermes-completed"), "false");
  const events = await rig.events("POST", "/v1/chat/completions", { ...say, stream: true });
  const chunks = events.flatMap(({ data = "[DONE]" }) => (data === "[DONE]" ? [] : [JSON.parse(data)]));
  assert.equal(chunks.at(-1).choices[0].finish_reason, "length");
  rig.model.clear().otherwise({ fault: "status", status: 401, body: { error: { message: "no" } } });
  const failed = await rig.events("POST", "/v1/chat/completions", { ...say, stream: true });
  assert.ok(failed.some(({ event }) => event === "hermes.error"));
  assert.equal(JSON.parse(failed.at(-2)?.data ?? "").choices[0].finish_reason, "error");
  assert.equal(failed.at(-1)?.data, "[DONE]");
  const response = await rig.call("POST", "/v1/responses", { input: "x" });
  assert.deepEqual([response.status, response.json.status, response.json.error.type], [200, "failed", "server_error"]);
});

/** A request that says how large its body will be, and waits for what the server says to that. */
function announced(url: string, length: number): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${KEY}`, "content-length": length };
    const asked = request(url, { method: "POST", headers }, (response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => {
        asked.destroy();
        resolve({ status: response.statusCode ?? 0, text });
      });
    });
    asked.on("error", reject);
    asked.flushHeaders();
  });
}
