// Who is let in to the MCP server over HTTP, what a request may be, and how many clients may come and go.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { KEY, type McpRig, mcpRig, mcpPost as post } from "./support/mcp/server-rig.ts";

let rig: McpRig;
before(async () => {
  rig = await mcpRig();
});
after(() => rig[Symbol.asyncDispose]());

const hello = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } },
};

describe("who is let in over HTTP", () => {
  const cases: readonly (readonly [what: string, headers: Record<string, string>, status: number])[] = [
    ["the key", {}, 200],
    ["no key", { authorization: "" }, 401],
    ["another key", { authorization: "Bearer nope" }, 401],
    ["a page of another origin, with the key", { origin: "https://evil.example" }, 403],
    ["a page of another port", { origin: "http://localhost:3000" }, 403],
    ["a page without an origin of its own", { origin: "null" }, 403],
    ["another kind of body", { "content-type": "text/plain" }, 415],
    ["a client that reads no streams", { accept: "text/html" }, 406],
  ];
  for (const [what, headers, status] of cases)
    test(`${what}: ${status}`, async () => {
      const response = await post(rig, hello, headers);
      assert.equal(response.status, status, await response.text());
      if (headers.origin) assert.equal(response.headers.get("access-control-allow-origin"), null);
      assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    });

  test("without a key: localhost by name alone, and no web page at all", async () => {
    await using open = await mcpRig({ key: null, extra: { cors_origins: "*" } });
    const { request } = await import("node:http");
    const status = (headers: Record<string, string>) =>
      new Promise<number | undefined>((resolve, reject) => {
        const sent = request(
          open.url,
          {
            method: "POST",
            headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
          },
          (response) => {
            response.resume();
            resolve(response.statusCode);
          },
        );
        sent.on("error", reject).end(JSON.stringify(hello));
      });
    assert.equal(await status({}), 200);
    assert.equal(await status({ host: "rebound.example" }), 403);
    assert.equal(await status({ origin: "https://evil.example" }), 403);
    assert.equal(await status({ "sec-fetch-site": "cross-site" }), 403);
  });

  test("an origin that is listed may; its page can read what the protocol needs", async () => {
    await using listed = await mcpRig({ extra: { cors_origins: "https://good.example" } });
    const response = await post(listed, hello, { origin: "https://good.example" });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("access-control-allow-origin"), "https://good.example");
    assert.match(response.headers.get("access-control-expose-headers") ?? "", /Mcp-Session-Id/);
    const before = await fetch(listed.url, { method: "OPTIONS", headers: { origin: "https://good.example" } });
    assert.equal(before.status, 204);
    await response.text();
  });

  test("too large a body, other addresses and methods, a session that nobody knows", async () => {
    const large = await post(rig, `"${"x".repeat(4_000_001)}"`);
    assert.equal(large.status, 413);
    const get = (path: string, init: RequestInit = {}) =>
      fetch(new URL(path, rig.url), { headers: { authorization: `Bearer ${KEY}` }, ...init }).then(
        ({ status }) => status,
      );
    assert.equal(await get("/"), 404);
    assert.equal(await get("/health"), 200);
    assert.equal(await get("/mcp", { method: "PATCH" }), 405);
    const unknown = await post(rig, { jsonrpc: "2.0", id: 1, method: "tools/list" }, { "mcp-session-id": "gone" });
    assert.equal(unknown.status, 404);
    assert.match(await unknown.text(), /Session not found/);
    const none = await post(rig, { jsonrpc: "2.0", id: 1, method: "tools/list" });
    assert.equal(none.status, 400);
  });
});

describe("clients", () => {
  const begin = async (): Promise<string> => {
    const response = await post(rig, hello);
    await response.text();
    const id = response.headers.get("mcp-session-id") ?? "";
    const heard = await post(rig, { jsonrpc: "2.0", method: "notifications/initialized" }, { "mcp-session-id": id });
    assert.deepEqual([response.status, heard.status], [200, 202]);
    return id;
  };
  const list = async (id: string) => {
    const response = await post(rig, { jsonrpc: "2.0", id: 2, method: "tools/list" }, { "mcp-session-id": id });
    await response.text();
    return response.status;
  };

  test("may come and go without a word: the one that was quiet for longest makes room, one that waits for an answer stays", async () => {
    const waiting = await begin();
    const gone = new AbortController();
    const wait = { name: "events_wait", arguments: { timeout_ms: 300_000 } };
    const held = await post(
      rig,
      { jsonrpc: "2.0", id: 9, method: "tools/call", params: wait },
      { "mcp-session-id": waiting },
      gone.signal,
    );
    const quiet = await begin();
    for (let at = 0; at < 130; at++) await begin();
    assert.equal(await list(quiet), 404);
    assert.equal(await list(waiting), 200);
    gone.abort();
    await held.text().catch(() => undefined); // let go
  });

  test("without the key hold no place of those that have one, however many there are", async () => {
    const { port } = new URL(rig.url);
    const strangers = Array.from({ length: 260 }, () => connect(Number(port), "127.0.0.1"));
    // Refused by their first lines, and still sending their bodies.
    const asks = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n";
    for (const one of strangers) one.write(asks);
    await Promise.all(strangers.map((one) => once(one, "data")));
    assert.equal((await post(rig, hello)).status, 200);
    for (const one of strangers) one.destroy();
  });
});
