import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../home/log.ts";
import { PlatformError } from "./contract.ts";
import { type HttpCall, type HttpReply, listen } from "./listener.ts";

type Handle = (call: HttpCall) => Promise<HttpReply>;

async function server(
  t: TestContext,
  handle: Handle,
  options: { maxBytes?: number; early?: (call: Omit<HttpCall, "body">) => Promise<HttpReply | null> } = {},
) {
  const errors: string[] = [];
  const note = (line: string) => void errors.push(line);
  const log: Logger = { ...quiet, warn: note, error: note };
  const listener = await listen({ host: "127.0.0.1", port: 0, setting: "TEST_PORT", log, handle, ...options });
  t.after(() => listener.close());
  return { ...listener, port: Number(new URL(listener.url).port), errors };
}

const nothing = () => undefined;
const quiet: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => quiet };

async function rawConnection(t: TestContext, port: number): Promise<Socket & { heard: string; broke: boolean }> {
  const socket = Object.assign(connect(port, "127.0.0.1"), { heard: "", broke: false });
  t.after(() => socket.destroy());
  socket.on("data", (bytes) => {
    socket.heard += bytes.toString();
  });
  socket.on("error", () => {
    socket.broke = true;
  });
  await once(socket, "connect");
  return socket;
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let i = 0; i < 3000; i++) {
    if (condition()) return;
    await sleep(20);
  }
  assert.fail(`never: ${what}`);
}

const echo: Handle = async ({ method, path, body }) => ({ status: 200, body: { method, path, size: body.length } });

test("a body within the limit arrives whole, however it is cut", async (t) => {
  const { port } = await server(t, echo, { maxBytes: 100 });
  const socket = await rawConnection(t, port);
  socket.write("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n32\r\n");
  socket.write("a".repeat(25));
  await sleep(30);
  socket.write(`${"a".repeat(25)}\r\n32\r\n${"b".repeat(50)}\r\n0\r\n\r\n`);
  await until(() => socket.heard.includes("}"), "a reply");
  assert.match(socket.heard, /^HTTP\/1\.1 200 [\s\S]*\{"method":"POST","path":"\/x","size":100\}$/);
});

test("a body that says it is too long is answered with 413, and the answer arrives while it is still being sent", async (t) => {
  const { port } = await server(t, echo, { maxBytes: 1000 });
  const socket = await rawConnection(t, port);
  socket.write(`POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: ${8 << 20}\r\n\r\n`);
  for (let i = 0; i < 8; i++) socket.write(Buffer.alloc(1 << 20));
  await until(() => socket.heard.includes("}"), "a reply");
  assert.match(socket.heard, /^HTTP\/1\.1 413 /);
});

test("a body that turns out too long without having said so is answered with 413", async (t) => {
  const { port, errors } = await server(t, echo, { maxBytes: 1000 });
  const socket = await rawConnection(t, port);
  socket.write("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (let i = 0; i < 4; i++) socket.write(`100000\r\n${"x".repeat(1 << 20)}\r\n`);
  await until(() => socket.heard.includes("}"), "a reply");
  assert.match(socket.heard, /^HTTP\/1\.1 413 /);
  assert.match(socket.heard, /connection: close/i);
  for (let i = 0; i < 4; i++) {
    await sleep(30);
    socket.write(`100000\r\n${"x".repeat(1 << 20)}\r\n`);
  }
  assert.equal(socket.broke, false, "what is still being sent is read away");
  socket.destroy();
  assert.deepEqual(errors, []);
});

test("what is refused early is refused before its body was sent", async (t) => {
  const { port } = await server(t, echo, { early: async () => ({ status: 404, body: { error: "no" } }) });
  const socket = await rawConnection(t, port);
  socket.write("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n");
  await until(() => socket.heard.includes("}"), "a reply");
  assert.match(socket.heard, /^HTTP\/1\.1 404 /);
  socket.destroy();
});

test("a HEAD gets what a GET would get, without the body", async (t) => {
  const { url } = await server(t, echo);
  const response = await fetch(`${url}/health`, { method: "HEAD" });
  assert.equal(response.status, 200);
  assert.ok(Number(response.headers.get("content-length")) > 10);
  assert.equal(await response.text(), "");
});

test("a caller that leaves in the middle costs one connection and no line of the log", async (t) => {
  const { port, url, errors } = await server(t, echo);
  const socket = await rawConnection(t, port);
  socket.write("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\nhalf");
  await sleep(50);
  socket.destroy();
  await sleep(50);
  assert.equal((await fetch(url)).status, 200);
  assert.deepEqual(errors, []);
});

test("a handler that fails is a 500 without its reason, which the log has", async (t) => {
  const { url, errors } = await server(t, async () => {
    throw new Error("the disk is full of secrets");
  });
  const response = await fetch(url, { method: "POST", body: "x" });
  assert.equal(response.status, 500);
  assert.doesNotMatch(await response.text(), /secret/);
  assert.equal(errors.length, 1);
});

test("what was begun before the end is answered after it", async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const listener = await server(t, async () => {
    await promise;
    return { status: 200, body: "late" };
  });
  const reply = fetch(listener.url, { method: "POST", body: "x" });
  await sleep(50);
  const closed = listener.close();
  await assert.rejects(fetch(listener.url));
  resolve();
  assert.equal(await (await reply).text(), "late");
  await closed;
});

test("a port that is taken is named with its setting", async (t) => {
  const { port } = await server(t, echo);
  await assert.rejects(
    listen({ host: "127.0.0.1", port, setting: "WEBHOOK_PORT", log: quiet, handle: echo }),
    (error: unknown) =>
      error instanceof PlatformError &&
      error.retryable &&
      /taken; choose another with WEBHOOK_PORT/.test(error.message),
  );
});

test("among hundreds of callers that never finish, one that does is answered at once, and they do not pile up", async (t) => {
  const { port, url } = await server(t, echo);
  const beginnings = [
    "",
    "POST /x HTT",
    "POST /x HTTP/1.1\r\nHost: a\r\n",
    "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhal",
  ];
  const slow = await Promise.all(
    Array.from({ length: 320 }, async (_, at) => {
      const socket = await rawConnection(t, port);
      socket.write(beginnings[at % beginnings.length] ?? "");
      const closed = { is: false };
      socket.once("close", () => {
        closed.is = true;
      });
      return closed;
    }),
  );
  const open = () => slow.filter(({ is }) => !is).length;
  for (let at = 0; at < 5; at++) {
    const reply = await fetch(`${url}/y`, { method: "POST", body: "whole" });
    assert.equal(reply.status, 200);
    await reply.body?.cancel();
  }
  await until(() => open() <= 200, "the oldest are closed");
  assert.ok(open() >= 190, "only those that are too many");
});
