// Requests that no client would send: whatever comes in, the server answers with a refusal or does what was asked, and goes on.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { type ApiRig, apiRig, KEY } from "./support/api-rig.ts";
import { fewer } from "./support/sample.ts";

const AT_ONCE = 10;

let rig: ApiRig;
before(async () => {
  rig = await apiRig({ extra: { busy_seconds: 0.1 } });
});
after(() => rig[Symbol.asyncDispose]());

const TEMPLATES: readonly (readonly [method: string, path: string, body?: object])[] = [
  [
    "POST",
    "/v1/chat/completions",
    { model: "m", messages: [{ role: "user", content: "x" }], stream: false, user: "u" },
  ],
  [
    "POST",
    "/v1/chat/completions",
    { messages: [{ role: "user", content: [{ type: "text", text: "x" }] }], stream: true },
  ],
  ["POST", "/v1/responses", { input: "x", instructions: "y", conversation: "c", store: true, stream: true }],
  ["POST", "/v1/responses", { input: [{ role: "user", content: "x" }], conversation_history: [], truncation: "auto" }],
  ["GET", "/v1/responses/{}"],
  ["DELETE", "/v1/responses/{}"],
  ["POST", "/v1/runs", { input: "x", session_id: "s", conversation_history: [{ role: "user", content: "y" }] }],
  ["GET", "/v1/runs/{}"],
  ["GET", "/v1/runs/{}/events"],
  ["POST", "/v1/runs/{}/approval", { choice: "once", all: true }],
  ["POST", "/v1/runs/{}/stop"],
  ["GET", "/v1/models"],
  ["GET", "/v1/capabilities"],
  ["GET", "/api/sessions?limit={}&offset={}&source={}&include_children={}"],
  ["POST", "/api/sessions", { id: "s", title: "t", model: "m", system_prompt: "p" }],
  ["GET", "/api/sessions/{}"],
  ["PATCH", "/api/sessions/{}", { title: "t", end_reason: "done" }],
  ["PATCH", "/api/sessions/s", { title: "t", end_reason: "done" }],
  ["DELETE", "/api/sessions/{}"],
  ["GET", "/api/sessions/{}/messages"],
  ["POST", "/api/sessions/{}/fork"],
  ["POST", "/api/sessions/s/chat", { message: "x", instructions: "y" }],
  ["POST", "/api/sessions/s/chat/stream", { input: "x" }],
  ["GET", "/api/jobs?include_disabled={}"],
  ["POST", "/api/jobs", { name: "n", schedule: "every 2h", prompt: "p", deliver: "local", skills: ["s"], repeat: 2 }],
  ["PATCH", "/api/jobs/{}", { enabled: true }],
  ["POST", "/api/jobs/{}/pause"],
];
const NASTY = [
  "..",
  "../../etc/passwd",
  "%2e%2e%2f",
  "%",
  "%zz",
  "\u0000",
  "a\r\nb",
  "__proto__",
  "constructor",
  "💥",
  " ",
  "'; --",
  "s",
  "-1",
  "1e999",
];

const word = fc.oneof(
  fc.constantFrom(...NASTY),
  fc.string({ maxLength: 12, unit: "binary" }),
  fc.string({ minLength: 300, maxLength: 400 }),
);
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  word,
  fc.constantFrom(null, [], {}, -1, 1e308, "", [[]], { role: {} }),
);

/** A body of the template with some fields replaced, at any depth; or something else altogether. */
const bodyOf = (template: object | undefined) =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .array(fc.tuple(fc.nat(), value), { maxLength: 2 })
        .map((changes) => mutated(template ?? {}, changes)),
    },
    { weight: 1, arbitrary: value.map((one) => JSON.stringify(one)) },
    { weight: 1, arbitrary: word },
    {
      weight: 1,
      arbitrary: fc.constantFrom("", "{", '{"a":', `${"[".repeat(20_000)}`, '{"__proto__":{"x":1},"messages":1}'),
    },
  );

function mutated(template: object, changes: readonly (readonly [number, unknown])[]): string {
  const copy = structuredClone(template);
  const places: { holder: Record<string, unknown>; key: string }[] = [];
  const walk = (holder: Record<string, unknown>) => {
    for (const key of Object.keys(holder)) {
      places.push({ holder, key });
      const inner = holder[key];
      if (typeof inner === "object" && inner !== null) walk(inner as Record<string, unknown>); // keys of lists are places too
    }
  };
  walk(copy as Record<string, unknown>); // plain data
  for (const [at, replaced] of changes) {
    const place = places[at % Math.max(1, places.length)];
    if (place) place.holder[place.key] = replaced;
  }
  return JSON.stringify(copy) ?? "";
}

const headerText = word.map((text) => text.replace(/[^\x20-\x7e]/g, "?"));
const headers = fc.array(
  fc.oneof(
    headerText.map((text) => `X-Hermes-Session-Id: ${text}`),
    headerText.map((text) => `X-Hermes-Session-Key: ${text}`),
    headerText.map((text) => `Idempotency-Key: ${text}`),
    headerText.map((text) => `Last-Event-ID: ${text}`),
    headerText.map((text) => `Authorization: ${text}`),
    headerText.map((text) => `Origin: ${text}`),
    fc.constantFrom(
      "Prefer: respond-async",
      "Content-Type: text/plain",
      "Expect: 100-continue",
      "Transfer-Encoding: chunked",
      "Content-Encoding: gzip",
      "Content-Length: 99999999999",
      "Content-Length: -1",
      "no header",
      "Host: evil.example",
    ),
  ),
  { maxLength: 3 },
);

const requests = fc.constantFrom(...TEMPLATES).chain(([method, path, template]) =>
  fc
    .record({
      method: fc.oneof(
        { weight: 9, arbitrary: fc.constant(method) },
        fc.constantFrom("PUT", "OPTIONS", "HEAD", "TRACE", "BREW"),
      ),
      parts: fc.array(word, { minLength: 4, maxLength: 4 }),
      raw: fc.boolean(),
      body: bodyOf(template),
      headers,
    })
    .map((one) => {
      let at = 0;
      const filled = path.replace(/\{\}/g, () => {
        const part = one.parts[at++] ?? "";
        return one.raw ? part.replace(/[\s\u0000-\u001f\u007f-\uffff]/g, "~") : encodeURIComponent(part.toWellFormed());
      });
      const length = one.headers.some((line) => /^(?:Content-Length|Transfer-Encoding)/.test(line))
        ? []
        : [`Content-Length: ${Buffer.byteLength(one.body)}`];
      const head = [
        `${one.method} ${filled} HTTP/1.1`,
        ...(one.headers.some((line) => line.startsWith("Host")) ? [] : ["Host: 127.0.0.1"]),
        ...(one.headers.some((line) => line.startsWith("Authorization")) ? [] : [`Authorization: Bearer ${KEY}`]),
        ...["Connection: close", ...length, ...one.headers],
      ];
      return `${head.join("\r\n")}\r\n\r\n${one.body}`;
    }),
);

test("whatever is sent, the answer is never a 500, and the server goes on; nothing is written outside the home", async () => {
  const outside = () =>
    readdir(rig.home.osHome, { recursive: true }).then((all) => all.filter((path) => !path.startsWith(".hermes")));
  const before = await outside();
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(fc.array(requests, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (texts) => {
      for (const status of await Promise.all(texts.map((text) => exchange(text)))) {
        seen.set(status, (seen.get(status) ?? 0) + 1);
        assert.notEqual(status, 500);
        assert.ok(status === 0 || (status >= 200 && status < 600), `status ${status}`);
      }
    }),
    { numRuns: fewer(10_000 / AT_ONCE, 40) },
  );
  assert.equal((await rig.call("GET", "/health")).status, 200);
  assert.ok((seen.get(400) ?? 0) > 20 && (seen.get(200) ?? 0) > 5, JSON.stringify([...seen]));
  assert.deepEqual(await outside(), before);
});

test("bytes that are no HTTP end their own connection alone", async () => {
  const noise = fc.uint8Array({ minLength: 1, maxLength: 200 });
  await fc.assert(
    fc.asyncProperty(noise, async (bytes) => {
      assert.ok([0, 400].includes(await exchange(bytes, { endsAfter: true })));
    }),
    { numRuns: fewer(1000, 40) },
  );
  assert.equal((await rig.call("GET", "/health")).status, 200);
});

/** The status of the answer; 0: the connection was closed without one, or nothing came because the request is not complete. */
function exchange(request: string | Uint8Array, { endsAfter = false } = {}): Promise<number> {
  const { hostname, port } = new URL(rig.url);
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(Number(port), hostname, () => (endsAfter ? socket.end(request) : socket.write(request)));
    const status = () => Number(/^HTTP\/1\.1 (?!100)(\d{3})/m.exec(answer)?.[1] ?? 0);
    // A request that announced more than it sent is waited for, for a minute; it is given up here.
    const isOpen = /Content-Length: \d{6}|Transfer-Encoding|Expect/.test(String(request));
    const quiet = setTimeout(() => socket.destroy(), isOpen ? 300 : 20_000);
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
      if (status() !== 0) {
        clearTimeout(quiet);
        socket.setTimeout(10_000, () => reject(new Error(`no end: ${String(request).slice(0, 300)}`)));
      }
    });
    socket.on("close", () => {
      clearTimeout(quiet);
      resolve(status());
    });
    socket.on("error", () => undefined); // closed on us
  });
}
