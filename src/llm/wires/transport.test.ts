import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import { ModelServer } from "../../../test/support/model-server/server.ts";
import { aRequest, aTarget, collect } from "../../../test/support/model-target.ts";
import { type Clock, systemClock } from "../../kit/clock.ts";
import type { ModelEvent, ModelRequest } from "../wire.ts";
import { createWire } from "./drive.ts";
import { type FetchLike, post } from "./transport.ts";

const ports = { fetch: globalThis.fetch, clock: systemClock };
const wire = createWire("chat_completions", ports);
let model: ModelServer;
before(async () => {
  model = await ModelServer.start();
});
// A step that a busy machine left over would be the next test's answer.
beforeEach(() => void model.clear());
after(() => model.close());

const request = (rest: Partial<ModelRequest> = {}) =>
  aRequest(aTarget("chat_completions", { baseUrl: model.url }), rest);
const failure = (events: readonly ModelEvent[]) => {
  const last = events.at(-1);
  assert.equal(last?.type, "failed");
  return last.error;
};

async function withServer<T>(listener: RequestListener, use: (baseUrl: string) => Promise<T>): Promise<T> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

test("an answer streams over HTTP, and its connection is used again although the server ends a little later", async () => {
  const sockets = new Set<unknown>();
  const reply = 'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  let closed = Promise.withResolvers<void>();
  await withServer(
    async (incoming, response) => {
      sockets.add(incoming.socket);
      response.on("close", () => closed.resolve());
      await incoming.resume().toArray();
      response.setHeader("content-type", "text/event-stream").write(reply);
      setTimeout(() => response.end(), 20);
    },
    async (baseUrl) => {
      for (let round = 0; round < 3; round++) {
        closed = Promise.withResolvers();
        const events = await collect(wire, aRequest(aTarget("chat_completions", { baseUrl })));
        assert.deepEqual(
          events.map((event) => event.type),
          ["text", "done"],
        );
        await closed.promise;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
  );
  assert.equal(sockets.size, 1);
});

test("the first delta is there before the answer is complete", async () => {
  const seen: string[] = [];
  const release = Promise.withResolvers<void>();
  await withServer(
    async (_, response) => {
      response.setHeader("content-type", "text/event-stream");
      response.write('data: {"choices":[{"delta":{"content":"first"}}]}\n\n');
      await release.promise;
      response.end('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n');
    },
    async (baseUrl) => {
      for await (const event of wire.stream(
        aRequest(aTarget("chat_completions", { baseUrl })),
        new AbortController().signal,
      )) {
        seen.push(event.type);
        release.resolve();
      }
    },
  );
  assert.deepEqual(seen, ["text", "done"]);
});

test("an abort ends the stream and closes the socket", async () => {
  model.script({ fault: "stall", after: 3, answer: { text: "a long answer that never ends" } });
  const stop = new AbortController();
  const events: ModelEvent[] = [];
  for await (const event of wire.stream(request(), stop.signal)) {
    events.push(event);
    if (event.type === "text") stop.abort();
  }
  const error = failure(events);
  assert.equal(error.code, "aborted");
  assert.ok(error.partial?.text);
  await model.last.clientLeft;
});

test("an abort before the first byte ends the call, also when fetch ignores it", async () => {
  const deaf: FetchLike = () => new Promise(() => undefined);
  const stop = new AbortController();
  const events = collect(createWire("chat_completions", { fetch: deaf, clock: systemClock }), request(), stop.signal);
  stop.abort();
  assert.equal(failure(await events).code, "aborted");
});

test("a signal that is already aborted sends nothing", async () => {
  const before = model.requests.length;
  assert.equal(failure(await collect(wire, request(), AbortSignal.abort())).code, "aborted");
  assert.equal(model.requests.length, before);
});

test("leaving the loop early closes the socket", async () => {
  model.script({ fault: "stall", after: 3, answer: { text: "a long answer that never ends" } });
  for await (const event of wire.stream(request(), new AbortController().signal)) if (event.type === "text") break;
  await model.last.clientLeft;
});

test("silence inside a stream is a stale stream, and what had come is reported", async () => {
  model.script({ fault: "stall", after: 3, answer: { text: "half an answer" } });
  const error = failure(await collect(wire, request({ limits: { firstByteMs: 30_000, staleMs: 60 } })));
  assert.equal(error.code, "stale_stream");
  assert.equal(error.name, "TimeoutError");
  assert.match(error.message, /timed out/);
  assert.ok(error.partial?.text.startsWith("half"));
  await model.last.clientLeft;
});

test("what breaks behind the model's last word takes nothing away from its answer", async () => {
  const chunk = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
  const said = chunk({ choices: [{ delta: { content: "all of it" }, finish_reason: "stop" }] });
  const usage = chunk({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } });
  // What follows the text, and whether the connection breaks or stays open for ever. Behind the usage nobody waits at all.
  for (const [rest, end, staleMs] of [
    ["", "silence", 200],
    [usage, "silence", 60_000],
    ["", "break", 60_000],
    [chunk({ error: { message: "too late" } }), "silence", 60_000],
  ] as const) {
    const events = await withServer(
      (_, response) => {
        response.setHeader("content-type", "text/event-stream").write(said + rest, () => {
          if (end === "break") setTimeout(() => response.destroy(), 20);
        });
      },
      (baseUrl) =>
        collect(wire, aRequest(aTarget("chat_completions", { baseUrl }), { limits: { firstByteMs: 60_000, staleMs } })),
    );
    const last = events.at(-1);
    assert.equal(last?.type === "done" && last.message.content, "all of it", `${rest} ${end}`);
    assert.equal(
      events.some((event) => event.type === "usage"),
      rest === usage,
    );
  }
});

test("a server that does not begin to answer is stale too", async () => {
  model.script(() => new Promise(() => undefined));
  assert.equal(failure(await collect(wire, request({ limits: { firstByteMs: 40 } }))).code, "stale_stream");
});

test("a steady trickle is not stale, but the whole call has its limit", async () => {
  model.script({ text: "drip ".repeat(200), pace: 10 });
  const error = failure(await collect(wire, request({ limits: { staleMs: 2_000, totalMs: 120 } })));
  assert.equal(error.code, "request_timeout");
});

test("limits use the clock they are given, and leave no timer behind", async () => {
  const pending = new Set<number>();
  let rung = 0;
  const clock: Clock = {
    ...systemClock,
    async sleep(ms, signal) {
      pending.add(ms);
      await systemClock.sleep(ms, signal).then(
        () => rung++,
        () => pending.delete(ms),
      );
      signal?.throwIfAborted();
    },
  };
  const events = await collect(
    createWire("chat_completions", { ...ports, clock }),
    request({ limits: { firstByteMs: 60_000, staleMs: 61_000, totalMs: 62_000 } }),
  );
  assert.equal(events.at(-1)?.type, "done");
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([...pending], []);
  assert.equal(rung, 0);
});

test("a clock that stands still measures nothing", async () => {
  const frozen: Clock = { now: () => 0, random: () => 0, sleep: async () => undefined };
  const events = await collect(
    createWire("chat_completions", { ...ports, clock: frozen }),
    request({ limits: { staleMs: 1, totalMs: 1 } }),
  );
  assert.equal(events.at(-1)?.type, "done");
});

test("an error answer carries status, code, body and headers", async () => {
  const body = { error: { message: "slow down", type: "rate_limit_error", code: "rate_limit_exceeded" } };
  model.script({ fault: "status", status: 429, body, headers: { "retry-after": "7", "set-cookie": "x=1" } });
  const error = failure(await collect(wire, request()));
  assert.equal(error.status, 429);
  assert.equal(error.code, "rate_limit_exceeded");
  assert.equal(error.message, "slow down");
  assert.deepEqual(error.body, body);
  assert.equal(error.headers?.["retry-after"], "7");
  assert.equal(error.headers?.["set-cookie"], undefined);
});

test("an error page is not repeated at the user, and a plain error text is", async () => {
  model.script({ fault: "status", status: 502, body: "<html><body>Bad gateway</body></html>" });
  assert.equal(failure(await collect(wire, request())).message, "HTTP 502 Bad Gateway from 127.0.0.1");
  model.script({ fault: "status", status: 503, body: "try later" });
  assert.equal(
    failure(await collect(wire, request())).message,
    "HTTP 503 Service Unavailable from 127.0.0.1: try later",
  );
});

test("of an endless error body only the beginning is read", async () => {
  await withServer(
    (_, response) => {
      response.statusCode = 500;
      const fill = () => {
        while (response.write("x".repeat(4096)));
        response.once("drain", fill);
      };
      fill();
    },
    async (baseUrl) => {
      const error = failure(await collect(wire, aRequest(aTarget("chat_completions", { baseUrl }))));
      assert.equal(error.status, 500);
      assert.ok(String(error.body).length < 256 * 1024);
    },
  );
});

test("a key that the server repeats in its error is masked", async () => {
  model.script({ fault: "status", status: 401, body: { error: { message: "bad key test-key-0123456789" } } });
  const error = failure(await collect(wire, request()));
  assert.equal(error.message, "bad key ***");
  assert.ok(!JSON.stringify(error).includes("test-key-0123456789"));
});

test("a redirect is not followed: the key stays with its host", async () => {
  let visited = false;
  await withServer(
    (_, response) => {
      visited = true;
      response.end();
    },
    async (elsewhere) => {
      model.script({ fault: "status", status: 307, body: "", headers: { location: elsewhere } });
      const error = failure(await collect(wire, request()));
      assert.equal(error.status, 307);
      assert.match(error.message, new RegExp(elsewhere));
    },
  );
  assert.equal(visited, false);
});

test("nobody listening, a reset and a broken connection each have their socket code", async () => {
  const closed = await withServer(
    () => undefined,
    async (baseUrl) => baseUrl,
  );
  assert.equal(
    failure(await collect(wire, aRequest(aTarget("chat_completions", { baseUrl: closed })))).code,
    "ECONNREFUSED",
  );
  model.script({ fault: "reset" });
  assert.match(failure(await collect(wire, request())).code ?? "", /^(ECONNRESET|UND_ERR_SOCKET)$/);
  model.script({ fault: "cut", after: 4, answer: { text: "an answer that breaks off" } });
  const error = failure(await collect(wire, request()));
  assert.match(error.code ?? "", /^(ECONNRESET|UND_ERR_SOCKET)$/);
  assert.ok(error.partial?.text);
});

test("a stream that ends without its last word is a lost connection, not an answer", async () => {
  model.script({
    fault: "unfinished",
    answer: { text: "half", toolCalls: [{ name: "write_file", arguments: { path: "x" } }] },
  });
  const events = await collect(wire, request());
  assert.ok(!events.some((event) => event.type === "tool_call"));
  assert.deepEqual(failure(events).partial, { text: "half", pendingTools: ["write_file"] });
  assert.equal(failure(events).code, "stream_cut");
});

test("a web page, garbage and an empty stream are failures with a reason", async () => {
  await withServer(
    (_, response) => void response.setHeader("content-type", "text/html").end("<html></html>"),
    async (baseUrl) => {
      const error = failure(await collect(wire, aRequest(aTarget("chat_completions", { baseUrl }))));
      assert.equal(error.code, "not_an_api");
      assert.ok(error.message.includes(baseUrl));
    },
  );
  model.script({ fault: "garbage", text: "data: {oops\n\ndata: {}\n\n" });
  assert.equal(failure(await collect(wire, request())).code, "bad_stream");
  model.script({ fault: "garbage", text: "" });
  assert.equal(failure(await collect(wire, request())).code, "empty_stream");
});

test("a server that answers whole is understood, asked to stream or not", async () => {
  model.script({ text: "whole", toolCalls: [{ name: "ls", arguments: { path: "." } }] });
  const events = await collect(wire, request({ stream: false }));
  assert.equal(model.last.body.stream, false);
  assert.deepEqual(
    events.map((event) => event.type),
    ["text", "tool_pending", "tool_call", "usage", "done"],
  );
  const whole = { choices: [{ message: { role: "assistant", content: "json after all" }, finish_reason: "stop" }] };
  model.script({ fault: "status", status: 200, body: whole });
  const done = (await collect(wire, request())).at(-1);
  assert.equal(done?.type === "done" && done.message.content, "json after all");
});

test("rate limits come with the answer", async () => {
  const headers = {
    "x-ratelimit-limit-requests": "100",
    "x-ratelimit-remaining-requests": "75",
    "x-ratelimit-reset-requests": "6m0s",
  };
  model.script({
    fault: "status",
    status: 200,
    headers,
    body: { choices: [{ message: { content: "x" }, finish_reason: "stop" }] },
  });
  const done = (await collect(wire, request())).at(-1);
  assert.ok(done?.type === "done");
  assert.deepEqual(done.rateLimits?.requestsMin, {
    limit: 100,
    remaining: 75,
    used: 25,
    usagePct: 25,
    resetSeconds: 360,
  });
});

test("a wire needs no socket: any function that answers like fetch will do", async () => {
  const inProcess: FetchLike = async (url, init) => {
    assert.equal(url, "demo://local/chat/completions");
    assert.equal(JSON.parse(String(init.body)).messages.length, 2);
    return new Response('data: {"choices":[{"delta":{"content":"demo"},"finish_reason":"stop"}]}\n\n');
  };
  const demo = createWire("chat_completions", { fetch: inProcess, clock: systemClock });
  const done = (await collect(demo, aRequest(aTarget("chat_completions", { baseUrl: "demo://local", apiKey: "" })))).at(
    -1,
  );
  assert.equal(done?.type === "done" && done.message.content, "demo");
});

test("a stream split at any byte gives the same events", async () => {
  const text =
    ': ping\r\n\r\nevent: a\r\ndata: {"x":"é😀\\n"}\r\n\r\ndata: {"y":\ndata: 2}\n\n\ndata: {"z":[1]}\n\ndata: {"tail":true}';
  const bytes = new TextEncoder().encode(text);
  const read = async (cuts: readonly number[]) => {
    const places = [...new Set(cuts.map((cut) => cut % bytes.length))].sort((a, b) => a - b);
    const chunks = [0, ...places].map((start, index) => bytes.slice(start, places[index] ?? bytes.length));
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk);
        controller.close();
      },
    });
    const answer = await post({
      url: "demo://x",
      headers: {},
      body: "{}",
      ports: { fetch: async () => new Response(body), clock: systemClock },
      limits: {},
      signal: new AbortController().signal,
      stream: true,
      secret: "",
    });
    const events = await Array.fromAsync(answer.events());
    answer.close({ complete: true });
    return events;
  };
  const whole = await read([]);
  assert.deepEqual(
    whole.map((event) => event.data),
    [{ x: "é😀\n" }, { y: 2 }, { z: [1] }, { tail: true }],
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(), { maxLength: 20 }), async (cuts) => assert.deepEqual(await read(cuts), whole)),
  );
  for (let cut = 1; cut < bytes.length; cut++) assert.deepEqual(await read([cut]), whole);
});
