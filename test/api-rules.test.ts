// What the API promises beyond its answers: names of conversations, what lies over the prompt, what is stored of a response, pages of sessions.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import { after, before, beforeEach, describe, test } from "node:test";
import { newHolder } from "../src/sessions/lanes.ts";
import { type ApiRig, apiRig, KEY, lastText, parseEvents } from "./support/api-rig.ts";
import { until } from "./support/gateway-rig.ts";
import { modelConfig } from "./support/temp-home.ts";

let rig: ApiRig;
before(async () => {
  rig = await apiRig({ config: "agent:\n  system_prompt: Sign with a heron.\n", extra: { busy_seconds: 0.2 } });
});
after(() => rig[Symbol.asyncDispose]());
beforeEach(() => {
  rig.model.clear().otherwise(({ body }) => ({ text: `you said ${lastText(body.messages)}` }));
});

const say = (content: unknown = "hello") => ({ messages: [{ role: "user", content }] });
const chat = (body: object = say(), headers = {}) => rig.call("POST", "/v1/chat/completions", body, headers);
const respond = (body: object, headers = {}) => rig.call("POST", "/v1/responses", body, headers);
const sent = () => (rig.model.last.body.messages as { content: string }[]).map(({ content }) => content);
const contents = () => sent().slice(1);

describe("addresses", () => {
  const HEALTH = 200;
  const cases: readonly [method: string, path: string, status: number][] = [
    ["GET", "/health?x=1#y", HEALTH],
    ["HEAD", "/health", HEALTH],
    ["GET", "/%68ealth", HEALTH],
    ["GET", "http://127.0.0.1/health", HEALTH],
    ["GET", "/health/", 401],
    ["GET", "/v1/%2e%2e/health", 401],
    ["GET", "/v1/../health", 401],
    ["GET", "http:///", 401],
    ["GET", "*", 401],
  ];
  for (const [method, path, status] of cases)
    test(`${method} ${path} without a key is ${status}`, async () => {
      const { promise, resolve, reject } = Promise.withResolvers<{ status?: number | undefined; text: string }>();
      const { hostname, port } = new URL(rig.url);
      request({ method, path, hostname, port }, (response) => {
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode, text }));
      })
        .on("error", reject)
        .end();
      const answered = await promise;
      assert.equal(answered.status, status);
      assert.equal(answered.text === "", method === "HEAD");
    });

  test("an id may be written with escapes; what is no UTF-8 names nothing, and other methods are told", async () => {
    await rig.store.create({ id: "a b%41/é", source: "api_server" });
    const escaped = encodeURIComponent("a b%41/é");
    assert.equal((await rig.call("GET", `/api/sessions/${escaped}`)).json.session.id, "a b%41/é");
    for (const [path, status] of [
      ["/api/sessions/%ff", 404],
      ["/api/sessions/%e9%", 404],
      ["/v1/models/", 404],
      ["/nothing", 404],
    ] as const)
      assert.equal((await rig.call("GET", path)).status, status, path);
    const refused = await fetch(`${rig.url}/v1/models`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}` },
    });
    assert.deepEqual([refused.status, refused.headers.get("allow")], [405, "GET, HEAD"]);
  });
});

describe("names of conversations", () => {
  const LONG = "n".repeat(256);

  test("what is no name is refused, in every header that takes one", async () => {
    for (const header of ["x-hermes-session-id", "x-hermes-session-key"])
      for (const name of [`${LONG}n`, "a\tb"]) {
        const { status, json } = await chat(say(), { [header]: name });
        assert.deepEqual([status, json.error.code, json.error.param], [400, "invalid_session_id", header]);
      }
    for (const name of ["../x", "a/b", "a\\b", "..", "."])
      assert.equal((await chat(say(), { "x-hermes-session-id": name })).status, 400, name);
    for (const path of ["/v1/responses", "/v1/runs"])
      assert.equal(
        (await rig.call("POST", path, { input: "x" }, { "x-hermes-session-key": `${LONG}n` })).json.error.code,
        "invalid_session_id",
      );
    assert.equal(rig.model.requests.length, 0);
  });

  test("both come back whole with every kind of answer, so that the next call can send them", async () => {
    const headers = { "x-hermes-session-id": LONG, "x-hermes-session-key": "ada lovelace" };
    await rig.store.create({ id: LONG, source: "api_server" });
    for (const [path, body] of [
      ["/v1/chat/completions", say()],
      ["/v1/chat/completions", { ...say(), stream: true }],
      ["/v1/responses", { input: "x" }],
      ["/v1/responses", { input: "x", stream: true }],
      [`/api/sessions/${LONG}/chat`, { message: "x" }],
      [`/api/sessions/${LONG}/chat/stream`, { message: "x" }],
    ] as const) {
      const response = await fetch(rig.url + path, {
        ...{ method: "POST", headers: { authorization: `Bearer ${KEY}`, ...headers }, body: JSON.stringify(body) },
      });
      await response.text();
      for (const [name, value] of Object.entries(headers)) assert.equal(response.headers.get(name), value, path);
    }
  });

  test("those that begin alike are kept apart by user and key, and no words of one make the name of another", async () => {
    const id = async (body: object, headers = {}) => (await chat(body, headers)).headers.get("x-hermes-session-id");
    const ids = [
      await id(say("a\nada")),
      await id({ ...say("a"), user: "ada" }),
      await id(say("a"), { "x-hermes-session-key": "ada" }),
      await id({ ...say("a"), user: "ada" }, { "x-hermes-session-key": "ada" }),
      await id({ ...say("a"), user: "eve" }),
      await id(say("a")),
    ];
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(await id({ ...say("a"), user: "ada" }), ids[1]);
    // The id that clients of before know: of the system text and the first words alone.
    assert.equal(ids[5], "api-7361a6f4b374745d");
  });
});

describe("over the prompt of the agent", () => {
  test("lie the words of the settings, then those of the client; developer is system", async () => {
    await chat({
      messages: [
        { role: "system", content: "One." },
        { role: "developer", content: [{ type: "text", text: "Two." }] },
        { role: "user", content: "x" },
      ],
    });
    assert.match(sent()[0] ?? "", /Hermes[\s\S]*Sign with a heron\.\n\nOne\.\nTwo\.$/);
    await chat();
    assert.match(sent()[0] ?? "", /Sign with a heron\.$/, "and without a client's words those of the settings");
    const { json } = await rig.call("POST", "/v1/runs", { input: "x", instructions: "Three." });
    await until("it is asked", () => rig.model.requests.length === 3);
    assert.match(sent()[0] ?? "", /Sign with a heron\.\n\nThree\.$/);
    await rig.call("POST", `/v1/runs/${json.run_id}/stop`);
  });

  test("a thousand parts are read, one more is refused", async () => {
    assert.equal((await chat(say(Array(1000).fill("x")))).status, 200);
    const { status, json } = await chat(say(Array(1001).fill("x")));
    assert.deepEqual([status, json.error.code], [400, "invalid_content_part"]);
  });
});

describe("a stored response", () => {
  const talk = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content: `m${at}` }));

  test("of a conversation by name goes on with its last one, and a deleted one is forgotten with its name", async () => {
    const one = await respond({ input: "one", conversation: "by name" });
    const two = await respond({ input: "two", conversation: "by name" });
    assert.deepEqual(contents(), ["one", "you said one", "two"]);
    assert.equal(two.json.previous_response_id, one.json.id);
    assert.equal(
      two.headers.get("x-hermes-session-id"),
      one.headers.get("x-hermes-session-id"),
      "it is one conversation of the home",
    );
    await rig.call("DELETE", `/v1/responses/${two.json.id}`);
    await respond({ input: "three", conversation: { id: "by name" } });
    assert.deepEqual(contents(), ["three"]);
  });

  test("gives way to a history that the client sends, which is cut when the client wants it", async () => {
    const { json } = await respond({ input: "one" });
    const history = { previous_response_id: json.id, conversation_history: talk(150) };
    await respond({ input: "now", ...history });
    assert.equal(contents().length, 151);
    await respond({ input: "now", ...history, truncation: "auto" });
    assert.deepEqual(contents(), [...talk(150).map(({ content }) => content), "now"].slice(-101));
    await respond({ input: [...talk(2), "last"] });
    assert.deepEqual(contents(), ["m0", "m1", "last"], "all inputs but the last are history");
  });

  test("is not there when the client wants none stored", async () => {
    for (const store of [false, "off", 0]) {
      const { json } = await respond({ input: "one", store });
      assert.equal((await rig.call("GET", `/v1/responses/${json.id}`)).status, 404);
    }
  });

  test("that its client left is incomplete, has the text so far, and can be followed", async () => {
    rig.model.script({ fault: "stall", after: 4, answer: { text: "half of a long answer" } });
    const controller = new AbortController();
    const response = await fetch(`${rig.url}/v1/responses`, {
      ...{ method: "POST", body: JSON.stringify({ input: "begin", stream: true }), signal: controller.signal },
      headers: { authorization: `Bearer ${KEY}` },
    });
    let text = "";
    const reading = (async () => {
      for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += piece;
    })();
    await until("text has come", () => text.includes("output_text.delta"));
    const id = /resp_[0-9a-f]+/.exec(text)?.[0];
    assert.equal((await rig.call("GET", `/v1/responses/${id}`)).json.status, "in_progress");
    controller.abort();
    await assert.rejects(reading);
    const stored = async () => (await rig.call("GET", `/v1/responses/${id}`)).json;
    await until("it is stored", async () => (await stored()).status === "incomplete");
    assert.match((await stored()).output[0].content[0].text, /^half/);
    await respond({ input: "and?", previous_response_id: id });
    const [first, half, last] = contents();
    assert.deepEqual([first, last], ["begin", "and?"]);
    assert.match(half ?? "", /^half/);
  });

  test("has long arguments and results cut at its end; its events have them whole", async () => {
    const command = `printf '%.0sx' $(seq 1500) # ${"y".repeat(600)}`;
    const call = (name: string, args: Readonly<Record<string, unknown>>) => ({
      toolCalls: [{ name, arguments: args }],
    });
    rig.model.script(call("terminal", { command }), call("write_file", { path: "a.txt", content: "z".repeat(600) }), {
      text: "done",
    });
    const events = await rig.events("POST", "/v1/responses", { input: "x", stream: true });
    const data = events.map((one) => JSON.parse(one.data ?? "{}"));
    const whole = data.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item);
    const final = data.at(-1).response.output;
    assert.deepEqual(
      whole.map(({ id, type }) => [id, type]),
      final.map(({ id, type }: { id: string; type: string }) => [id, type]),
    );
    const results = [whole, final].map((items) => items[1].output[0].text.length);
    assert.ok(results[0] > 1500 && results[1] === 501, String(results));
    assert.equal(final[0].arguments, JSON.stringify({ command }), "a command is never cut");
    assert.equal(JSON.parse(whole[2].arguments).content.length, 600);
    assert.equal(JSON.parse(final[2].arguments).content.length, 501);
  });
});

describe("streams", () => {
  test("tell the tokens once more in a chunk of their own when the client wants that, and only then", async () => {
    const tail = async (options: object) =>
      (await rig.events("POST", "/v1/chat/completions", { ...say(), stream: true, ...options }))
        .slice(-3)
        .map(({ data = "" }) => (data === "[DONE]" ? data : JSON.parse(data)));
    const [finish, usage, end] = await tail({ stream_options: { include_usage: true } });
    assert.deepEqual([finish.choices[0].finish_reason, usage.choices, end], ["stop", [], "[DONE]"]);
    assert.ok(usage.usage.total_tokens > 0);
    assert.deepEqual(usage.usage, finish.usage);
    for (const options of [{}, { stream_options: null }, { stream_options: { include_usage: false } }]) {
      const [text, last] = await tail(options);
      assert.deepEqual([text.choices[0]?.finish_reason, last.choices[0]?.finish_reason], [null, "stop"]);
    }
  });

  test("and runs show no secret of a call, whatever the model writes into it", async () => {
    const secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH";
    const steps = () =>
      rig.model.script(
        { toolCalls: [{ name: "terminal", arguments: { command: `true OPENAI_API_KEY=${secret}` } }] },
        { text: "done" },
      );
    await rig.store.create({ id: "secrets", source: "api_server" });
    for (const [path, body] of [
      ["/v1/chat/completions", { ...say(), stream: true }],
      ["/api/sessions/secrets/chat/stream", { message: "x" }],
    ] as const) {
      steps();
      const text = JSON.stringify(await rig.events("POST", path, body));
      assert.match(text, /"(?:hermes\.tool\.progress|tool\.started)"/);
      assert.ok(!text.includes(secret), text);
    }
    steps();
    const { json } = await rig.call("POST", "/v1/runs", { input: "x" });
    const text = JSON.stringify(await rig.events("GET", `/v1/runs/${json.run_id}/events`));
    assert.match(text, /tool\.started/);
    assert.ok(!text.includes(secret), text);
  });

  test("of a session are answered and stopped by the run id that they tell", async () => {
    await rig.store.create({ id: "steered", source: "api_server" });
    const open = async (message: string) => {
      const response = await fetch(`${rig.url}/api/sessions/steered/chat/stream`, {
        ...{ method: "POST", body: JSON.stringify({ message }), headers: { authorization: `Bearer ${KEY}` } },
      });
      let text = "";
      const ended = (async () => {
        for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += piece;
        return parseEvents(text).map(({ event, data }) => ({ event, data: JSON.parse(data ?? "{}") }));
      })();
      await until("it has begun", () => text.includes("message.started"));
      return { id: /run_[0-9a-f]{32}/.exec(text)?.[0] ?? "", ended, text: () => text };
    };
    rig.model.script(
      { toolCalls: [{ name: "terminal", arguments: { command: "git push --force origin main" } }] },
      { text: "asked" },
    );
    const asking = await open("push");
    await until("it asks", () => asking.text().includes("approval.request"));
    const answered = await rig.call("POST", `/v1/runs/${asking.id}/approval`, { choice: "deny" });
    assert.deepEqual([answered.status, answered.json.resolved], [200, 1]);
    const events = await asking.ended;
    assert.equal(events.find(({ event }) => event === "approval.responded")?.data.choice, "deny");
    assert.deepEqual(
      events.map(({ data }) => data.seq),
      events.map((_, at) => at),
    );
    assert.equal(events.at(-1)?.event, "done");
    rig.model.clear().otherwise({ fault: "stall", after: 2, answer: { text: "a long answer" } });
    const running = await open("on and on");
    assert.equal((await rig.call("POST", `/v1/runs/${running.id}/stop`)).status, 200);
    assert.equal((await running.ended).at(-1)?.event, "done");
    assert.equal((await rig.call("POST", `/v1/runs/${running.id}/approval`, { choice: "once" })).status, 404);
  });

  test("curl -N reads a run while it works, and only what is new the next time", async (t) => {
    const curl = async (...args: string[]) => {
      const child = spawn("curl", ["-sN", "-H", `Authorization: Bearer ${KEY}`, ...args]);
      child.on("error", () => undefined);
      let text = "";
      child.stdout.on("data", (piece) => {
        text += piece;
      });
      const ended = once(child, "close").then(([code]) => ({ code, text }));
      return { ended, text: () => text };
    };
    const { code } = await (await curl("--version")).ended.catch(() => ({ code: 1 }));
    if (code !== 0) return t.skip("curl is not installed");
    const go = Promise.withResolvers<void>();
    rig.model.script({ toolCalls: [{ name: "todo", arguments: {} }] }, async () => {
      await go.promise;
      return { text: "done" };
    });
    const { json } = await rig.call("POST", "/v1/runs", { input: "x" });
    const url = `${rig.url}/v1/runs/${json.run_id}/events`;
    const reading = await curl(url);
    await until("it has the first events", () => reading.text().includes("tool.completed"));
    go.resolve();
    const { text } = await reading.ended;
    assert.match(text, /^id: 1\ndata: \{"event":"tool\.started"[\s\S]*"run\.completed"[^\n]*\n\n: stream closed\n\n$/);
    const rest = (await (await curl("-H", "Last-Event-ID: 2", url)).ended).text;
    assert.equal(rest, text.slice(text.indexOf("id: 3")));
  });
});

describe("stored sessions", () => {
  test("come in pages of at most 200, by source, the newest first, and say whether there are more", async () => {
    for (let at = 0; at < 205; at++) await rig.store.create({ id: `page-${at}`, source: at < 3 ? "telegram" : "cli" });
    const page = async (query: string) => (await rig.call("GET", `/api/sessions?${query}`)).json;
    const large = await page("limit=1000");
    assert.deepEqual([large.data.length, large.limit, large.has_more], [200, 200, true]);
    const chats = await page("source=telegram&limit=2");
    assert.deepEqual([chats.data.length, chats.has_more], [2, true]);
    const rest = await page("source=telegram&limit=2&offset=2");
    assert.deepEqual([rest.data.length, rest.has_more, rest.offset], [1, false, 2]);
    assert.ok(!JSON.stringify(large).includes('"system_prompt"'), "never the prompt itself");
  });

  test("in use are neither changed nor deleted nor forked", async () => {
    await rig.store.create({ id: "held", source: "api_server" });
    const lane = await rig.store.takeLane("held", newHolder());
    for (const [method, body] of [
      ["PATCH", { title: "taken away" }],
      ["DELETE", undefined],
    ] as const) {
      const { status, json } = await rig.call(method, "/api/sessions/held", body);
      assert.deepEqual([status, json.error.code], [429, "session_busy"]);
    }
    const forked = await rig.call("POST", "/api/sessions/held/fork", {});
    assert.deepEqual([forked.status, forked.json.error?.code], [429, "session_busy"]);
    assert.equal((await rig.store.get("held"))?.endReason, null);
    if (lane.type === "taken") await rig.store.releaseLane(lane.lease, { preferSeconds: 0 });
    const { status, json } = await rig.call("PATCH", "/api/sessions/held", { title: "mine", end_reason: "done" });
    assert.deepEqual([status, json.session.title, json.session.end_reason], [200, "mine", "done"]);
  });

  test("are not forked under a turn that runs", async () => {
    await rig.store.create({ id: "working", source: "api_server" });
    const go = Promise.withResolvers<void>();
    const talk = (message: string) => rig.call("POST", "/api/sessions/working/chat", { message });
    await talk("hello");
    rig.model.script(async () => {
      await go.promise;
      return { text: "done" };
    });
    const working = talk("work");
    await until("it works", () => rig.model.requests.length === 2);
    const fork = () => rig.call("POST", "/api/sessions/working/fork", {});
    assert.deepEqual((await fork()).json.error?.code, "session_busy");
    assert.equal((await rig.store.get("working"))?.endReason, null);
    go.resolve();
    assert.equal((await working).status, 200);
    await until("it is free", async () => (await fork()).status === 201);
    assert.equal((await rig.store.get("working"))?.endReason, "branched");
  });

  test("forget what is in memory of them when they are deleted, and take up new settings", async () => {
    const named = { "x-hermes-session-id": "renewed" };
    await chat(say("one"), named);
    await rig.call("DELETE", "/api/sessions/renewed");
    await chat(say("two"), named);
    assert.deepEqual(contents(), ["two"]);
    await writeFile(
      rig.home.at("config.yaml"),
      `${modelConfig(rig.model).replace("fake-model", "other-model")}agent:\n  system_prompt: Sign with a stork.\n`,
    );
    await until("the new model is asked", async () => {
      await chat(say("three"), named);
      return rig.model.last.body.model === "other-model";
    });
    assert.match(sent()[0] ?? "", /stork/);
  });
});

test("a browser that asks without an origin, and a wrong method, are told what an address takes", async () => {
  for (const [method, path, allow] of [
    ["OPTIONS", "/v1/models", "GET, HEAD"],
    ["POST", "/v1/responses/resp_1", "GET, HEAD, DELETE"],
    ["GET", "/v1/runs", "POST"],
  ] as const) {
    const { status, headers } = await rig.call(method, path);
    assert.deepEqual([status, headers.get("allow")], [405, allow]);
  }
});

test("a turn in which nothing happens is ended, and says so; one that waits for an approval is not", async () => {
  await using quiet = await apiRig({ config: "agent:\n  gateway_timeout: 1\n" });
  const command = "git push --force origin main";
  quiet.model.script({ toolCalls: [{ name: "terminal", arguments: { command } }] });
  const { json } = await quiet.call("POST", "/v1/runs", { input: "push" });
  const state = async () => (await quiet.call("GET", `/v1/runs/${json.run_id}`)).json.status;
  await until("the run asks", async () => (await state()) === "waiting_for_approval");
  quiet.model.clear().otherwise({ fault: "stall", after: 2, answer: { text: "a long answer" } });
  const events = await quiet.events("POST", "/v1/chat/completions", { ...say(), stream: true });
  assert.equal(JSON.parse(events.at(-2)?.data ?? "").choices[0].finish_reason, "error");
  assert.match(events.find(({ event }) => event === "hermes.error")?.data ?? "", /inactivity/);
  assert.equal(await state(), "waiting_for_approval");
});

test("what runs when the server stops is ended and stored", async () => {
  await using stopping = await apiRig();
  stopping.model.clear().otherwise({ fault: "stall", after: 2, answer: { text: "a long answer" } });
  const { json } = await stopping.call("POST", "/v1/runs", { input: "x" });
  const stream = stopping.events("POST", "/v1/chat/completions", { ...say(), stream: true });
  await until("both are asked", () => stopping.model.requests.length === 2);
  await stopping.stop();
  const [finish, done] = (await stream).slice(-2);
  assert.equal(JSON.parse(finish?.data ?? "").choices[0].finish_reason, "error");
  assert.equal(done?.data, "[DONE]");
  const run = await (await stopping.store.work()).apiRun(json.run_id);
  assert.equal(run?.status, "failed");
  assert.match(run?.error ?? "", /shutting down|stopp/i);
});

test("a sub-agent knows its task alone, and has a session of its own", async () => {
  rig.model.clear().otherwise(({ body: { messages } }) => {
    const [, first] = messages as { content: string }[];
    const isDone = messages.at(-1).role === "tool";
    if (first?.content === "look into it") return { text: "found" };
    return isDone ? { text: "done" } : { toolCalls: [{ name: "delegate_task", arguments: { goal: "look into it" } }] };
  });
  const begin = [
    { role: "user", content: "earlier" },
    { role: "assistant", content: "yes" },
    { role: "user", content: "delegate" },
  ];
  for (const headers of [{}, { "x-hermes-session-id": "delegates" }]) {
    const asked = rig.model.requests.length;
    const answer = await chat({ messages: begin }, headers);
    const [, child] = rig.model.requests.slice(asked).filter(({ body }) => body.tools?.length);
    assert.deepEqual(child?.body.messages.slice(1), [{ role: "user", content: "look into it" }]);
    const id = answer.headers.get("x-hermes-session-id");
    const said = (await rig.call("GET", `/api/sessions/${id}/messages`)).json.data;
    assert.ok(!JSON.stringify(said).includes("No result"), JSON.stringify(said));
  }
});
