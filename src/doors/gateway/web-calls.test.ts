import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { startWebServer } from "../../../test/support/platforms/web-server.ts";
import { addressProblem, CallFailedError, callWeb, mediaTypeOf, retryAfter, trimmedUrl } from "./web-calls.ts";

const ADDRESSES: readonly (readonly [address: string, isFine: boolean])[] = [
  ["https://example.org", true],
  ["https://example.org:8448/path", true],
  ["http://127.0.0.1:8008", true],
  ["http://[::1]:8008", true],
  ["http://192.168.1.20:8123", true],
  ["http://100.100.1.2", true],
  ["http://homeassistant.local:8123", true],
  ["http://synapse:8008", true],
  ["http://example.org", false],
  ["http://8.8.8.8", false],
  ["http://[2001:db8::1]", false],
  ["ftp://example.org", false],
  ["example.org", false],
  ["", false],
  ["https://user:secret@example.org", false],
];

for (const [address, isFine] of ADDRESSES)
  test(`${address || "nothing"} is ${isFine ? "an address" : "not an address"} for a platform`, () => {
    const problem = addressProblem(address, "MATRIX_HOMESERVER");
    if (isFine) assert.equal(problem, null);
    else assert.match(problem ?? "", /^MATRIX_HOMESERVER must/);
    assert.doesNotMatch(problem ?? "", /secret/);
  });

test("a socket's address has its own scheme", () => {
  assert.equal(addressProblem("ws://127.0.0.1:1", "X", "ws"), null);
  assert.match(addressProblem("http://127.0.0.1:1", "X", "ws") ?? "", /wss:/);
});

test("slashes at the end of an address are cut, others stay", () => {
  assert.equal(trimmedUrl("https://a.org/b//"), "https://a.org/b");
  assert.equal(trimmedUrl(undefined), "");
});

test("a file is named by its type", () => {
  assert.equal(mediaTypeOf("A.PNG"), "image/png");
  assert.equal(mediaTypeOf("no-end"), "application/octet-stream");
});

test("the time to wait is read as seconds or as a date", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const of = (value: string) => retryAfter(new Map([["retry-after", value]]), now);
  assert.equal(of("7"), 7);
  assert.equal(of("Thu, 01 Jan 2026 00:00:30 GMT"), 30);
  assert.equal(of("soon"), undefined);
  assert.equal(retryAfter(new Map(), now), undefined);
});

const failure = (url: string, seconds = 5) =>
  callWeb(url, { method: "POST", body: { a: 1 }, seconds }).then(
    () => assert.fail("it answered"),
    (error: unknown) => error as CallFailedError,
  );

test("a failed call says whether anything can have arrived", async () => {
  const web = await startWebServer({ handle: () => ({ status: 200, body: {} }) });
  try {
    web.faults.push({ on: /POST/, what: "lose answer" }, { on: /POST/, what: "hang" });
    const lost = await failure(`${web.url}/path?token=secret`);
    assert.ok(lost instanceof CallFailedError);
    assert.equal(lost.kind, "unknown");
    const late = await failure(`${web.url}/path?token=secret`, 0.2);
    assert.deepEqual([late.kind, /within 0.2 seconds/.test(late.message)], ["unknown", true]);
    for (const { message } of [lost, late]) assert.doesNotMatch(message, /secret/);
    assert.equal((await callWeb(`${web.url}/x`, { method: "POST", body: { a: 1 } })).status, 200);
  } finally {
    await web.close();
  }
  assert.equal((await failure(`${web.url}/x`)).kind, "unreachable", "nobody listens there any more");
});

test("a server that goes away between two calls does not leave the second one in doubt", async () => {
  const web = await startWebServer({ handle: () => ({ status: 200, body: {} }) });
  assert.equal((await callWeb(web.url)).status, 200);
  await web.close();
  assert.equal((await failure(web.url)).kind, "unreachable");
});

test("an answer that breaks off in the middle is a failure", async () => {
  const raw = createServer((socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
    setTimeout(() => socket.destroy(), 20);
  });
  await new Promise<void>((resolve) => raw.listen(0, "127.0.0.1", resolve));
  const { port } = raw.address() as { port: number };
  assert.equal((await failure(`http://127.0.0.1:${port}`)).kind, "unknown");
  raw.close();
});
