// What chat front ends send, and what web pages may not: requests as Open WebUI, LobeChat and LibreChat make them, and those of browsers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, beforeEach, describe, test } from "node:test";
import { type ApiRig, apiRig, KEY, parseEvents } from "./support/api-rig.ts";
import { missingChromium, startSite, surfer } from "./support/engines/chromium.ts";
import { withEngine } from "./support/engines/require.ts";
import { until } from "./support/gateway-rig.ts";

interface Shape {
  readonly what: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly stream?: boolean; readonly messages: readonly object[] };
}
const shapes: Readonly<Record<string, readonly Shape[]>> = JSON.parse(
  readFileSync(new URL("./fixtures/api/front-ends.json", import.meta.url), "utf8"),
);

describe("front ends", () => {
  let rig: ApiRig;
  before(async () => {
    rig = await apiRig();
  });
  after(() => rig[Symbol.asyncDispose]());
  beforeEach(() => {
    rig.model.clear().otherwise({ text: "pong" });
  });

  for (const [name, list] of Object.entries(shapes))
    for (const { what, headers, body } of list)
      test(`${name}: ${what}`, async () => {
        const response = await fetch(`${rig.url}/v1/chat/completions`, {
          ...{ method: "POST", headers: { ...headers, authorization: `Bearer ${KEY}` }, body: JSON.stringify(body) },
        });
        assert.equal(response.status, 200);
        const text = await response.text();
        if (!body.stream) return assert.equal(JSON.parse(text).choices[0].message.content, "pong");
        const chunks = parseEvents(text).flatMap(({ data = "[DONE]" }) =>
          data === "[DONE]" ? [] : [JSON.parse(data)],
        );
        const said = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
        assert.equal(said, "pong");
        assert.equal(chunks.filter(({ choices }) => choices[0]?.finish_reason === "stop").length, 1);
      });

  test("the tools of a client are neither offered to the model nor do their results disturb the conversation", async () => {
    const shape = shapes.LobeChat?.[0];
    assert.ok(shape);
    await rig.call("POST", "/v1/chat/completions", { ...shape.body, stream: false });
    const { messages, tools } = rig.model.last.body;
    assert.ok(!JSON.stringify(tools).includes("weather____now"));
    assert.ok(!JSON.stringify(messages).includes('"blue'));
  });
});

/** What a browser adds to a request, and what a page of that origin gets. */
type Case = readonly [what: string, headers: Readonly<Record<string, string>>, status: number];

const PAGE = "http://page.example";

describe("without a key", () => {
  let rig: ApiRig;
  before(async () => {
    rig = await apiRig({ key: null, extra: { cors_origins: "http://mine.example, *" } });
  });
  after(() => rig[Symbol.asyncDispose]());
  const cases: readonly Case[] = [
    ["a program of this machine", {}, 200],
    ["a page on another origin", { origin: PAGE }, 403],
    ["a page in a frame without an origin", { origin: "null" }, 403],
    ["a page of another port of this machine", { origin: "http://localhost:3000" }, 403],
    [
      "a picture on a page, which sends no origin",
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
      403,
    ],
    ["a name that was bound to this address", { host: "rebound.example" }, 403],
    ["a name that only begins like this machine", { host: "localhost.evil.example" }, 403],
    ["the address of the list", { origin: "http://mine.example" }, 200],
  ];
  for (const [what, headers, status] of cases)
    test(`${what} gets ${status}`, async () => {
      for (const [method, path, body] of [
        ["GET", "/v1/models", undefined],
        ["POST", "/v1/chat/completions", { messages: [{ role: "user", content: "x" }] }],
      ] as const) {
        const asked = rig.model.requests.length;
        const answer = await raw(rig.url, method, path, headers, body);
        assert.equal(answer.status, status);
        if (status === 403) {
          assert.equal(rig.model.requests.length, asked, "nothing was begun");
          assert.doesNotMatch(answer.head, /access-control-allow-origin/i);
          assert.doesNotMatch(answer.text, /"data"|choices/);
        }
      }
    });

  test("neither a session nor a memory can be named", async () => {
    const body = { messages: [{ role: "user", content: "x" }] };
    for (const header of ["x-hermes-session-id", "x-hermes-session-key"]) {
      const { status, json } = await rig.call("POST", "/v1/chat/completions", body, { [header]: "mine" });
      assert.deepEqual([status, json.error.code], [403, "session_header_needs_key"], header);
    }
  });
});

describe("with a key", () => {
  let rig: ApiRig;
  before(async () => {
    rig = await apiRig({ extra: { cors_origins: [`${PAGE}/`] } });
  });
  after(() => rig[Symbol.asyncDispose]());
  const key = { authorization: `Bearer ${KEY}` };

  test("a listed page is asked for its key, may read answers and streams, and asks before it sends", async () => {
    const preflight = await raw(rig.url, "OPTIONS", "/v1/chat/completions", {
      ...{ origin: PAGE, "access-control-request-method": "POST" },
    });
    assert.equal(preflight.status, 204);
    assert.match(preflight.head, /access-control-allow-methods: GET, POST, PATCH, PUT, DELETE, OPTIONS/i);
    assert.match(preflight.head, /access-control-allow-headers: .*X-Hermes-Session-Id.*Last-Event-ID/i);
    assert.match(preflight.head, /access-control-max-age: 600/i);
    assert.equal((await raw(rig.url, "GET", "/v1/models", { origin: PAGE })).status, 401);
    const stream = await raw(
      rig.url,
      "POST",
      "/v1/chat/completions",
      { ...key, origin: PAGE },
      {
        ...{ stream: true, messages: [{ role: "user", content: "x" }] },
      },
    );
    assert.equal(stream.status, 200);
    assert.match(stream.head, new RegExp(`access-control-allow-origin: ${PAGE}`, "i"));
    assert.match(stream.head, /vary: Origin/i);
    assert.match(stream.head, /access-control-expose-headers: X-Hermes-Session-Id/i);
  });

  test("another page gets nothing, even with the key; another host name is no matter", async () => {
    for (const origin of ["http://evil.example", `${PAGE}.evil.example`, "null"])
      assert.equal((await raw(rig.url, "GET", "/v1/models", { ...key, origin })).status, 403);
    assert.equal((await raw(rig.url, "GET", "/v1/models", { ...key, host: "hermes.lan" })).status, 200);
  });
});

await withEngine("Chromium", missingChromium, () => {
  test("a page in a real browser, on another port of this machine, reads nothing and begins nothing", async () => {
    await using rig = await apiRig({ key: null });
    const body = JSON.stringify({ messages: [{ role: "user", content: "from the page" }] });
    const script = `
      const api = ${JSON.stringify(rig.url)}, body = ${JSON.stringify(body)};
      const read = (path, options) => fetch(api + path, options).then((r) => r.text()).then((t) => t === "" ? "nothing" : "READ", () => "nothing");
      Promise.all([
        read("/v1/models"),
        read("/v1/chat/completions", { method: "POST", body }),
        read("/v1/chat/completions", { method: "POST", body, mode: "no-cors" }),
        new Promise((done) => { navigator.sendBeacon(api + "/v1/chat/completions", body); done("nothing"); }),
        new Promise((done) => { const s = new EventSource(api + "/v1/runs/x/events"); s.onerror = () => { s.close(); done("nothing"); }; }),
      ]).then((all) => { out.textContent = "came to: " + all.join(" "); });`;
    const site = await startSite({ "/": `<h1 id="out">waiting</h1><script>${script}</script>` });
    const user = await surfer();
    try {
      let { snapshot } = await user.call("browser_navigate", { url: site.url });
      await until("the page has tried", async () => {
        ({ snapshot } = await user.call("browser_snapshot"));
        return /came to/.test(snapshot);
      });
      assert.match(snapshot, /came to: nothing nothing nothing nothing nothing/);
      assert.equal(rig.model.requests.length, 0);
      assert.deepEqual(await rig.store.list(), []);
    } finally {
      await user.close();
      await site.close();
    }
  });
});

/** With headers that fetch keeps for itself. */
async function raw(
  url: string,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: object,
) {
  const { request } = await import("node:http");
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; head: string; text: string }>();
  const asked = request(url + path, { method, headers }, (response) => {
    let text = "";
    response.on("data", (chunk) => {
      text += chunk;
    });
    const head = Object.entries(response.headers).map(([name, value]) => `${name}: ${value}`);
    response.on("end", () => resolve({ status: response.statusCode ?? 0, head: head.join("\n"), text }));
  });
  asked.on("error", reject);
  asked.end(body && JSON.stringify(body));
  return promise;
}
