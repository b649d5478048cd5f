import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import fc from "fast-check";
import { signedHeaders, verifySignature } from "./signatures.ts";

interface Recorded {
  readonly name: string;
  readonly secret: string;
  readonly now?: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

const fixtures = new URL("../../../../../test/fixtures/platforms/webhook/deliveries.json", import.meta.url);
const recorded: readonly Recorded[] = JSON.parse(readFileSync(fixtures, "utf8"));

const lower = (headers: Record<string, string>): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

function judge({ headers, body, secret, now = 0 }: Recorded, changes: Partial<Recorded> = {}): boolean {
  const one = { headers, body, secret, now, ...changes };
  const delivery = { headers: lower(one.headers), body: Buffer.from(one.body) };
  return verifySignature(delivery, one.secret, (one.now ?? 0) * 1000).valid;
}

for (const delivery of recorded) {
  test(`a ${delivery.name} is valid with its secret, and with no other`, () => {
    assert.equal(judge(delivery), true);
    assert.equal(judge(delivery, { secret: `x${delivery.secret}` }), false);
    assert.equal(judge(delivery, { secret: delivery.secret.slice(0, -6) }), false);
    assert.equal(judge(delivery, { secret: "" }), false);
  });

  if ("X-Gitlab-Token" in delivery.headers) continue; // a token says nothing about the body
  test(`a ${delivery.name} is not valid when a byte of its body is another`, () => {
    for (const at of [0, 10, delivery.body.length - 1]) {
      const body = `${delivery.body.slice(0, at)}~${delivery.body.slice(at + 1)}`;
      assert.equal(judge(delivery, { body }), false);
    }
    assert.equal(judge(delivery, { body: `${delivery.body}\n` }), false);
  });
}

test("a signed time holds for 300 seconds on both sides", () => {
  for (const delivery of recorded.filter(({ now }) => now !== undefined)) {
    const signed = 1767355200;
    for (const [away, valid] of [
      [-301, false],
      [-300, true],
      [0, true],
      [300, true],
      [301, false],
    ] as const)
      assert.equal(judge(delivery, { now: signed + away }), valid, `${delivery.name} ${away}`);
  }
});

const body = '{"a":1}';
const hex = (text: string) => createHmac("sha256", "s").update(text).digest("hex");

const cases: readonly (readonly [string, Record<string, string>, boolean])[] = [
  ["no header at all", {}, false],
  ["V1 alone", { "x-webhook-signature": hex(body) }, true],
  ["V1 in capitals", { "x-webhook-signature": hex(body).toUpperCase() }, true],
  ["an empty signature", { "x-webhook-signature": "" }, false],
  ["half a signature", { "x-webhook-signature": hex(body).slice(0, 32) }, false],
  ["hub without its prefix", { "x-hub-signature-256": hex(body) }, false],
  ["hub with sha1", { "x-hub-signature-256": `sha1=${hex(body)}` }, false],
  ["hub", { "x-hub-signature-256": `sha256=${hex(body)}` }, true],
  ["the old hub header alone", { "x-hub-signature": "sha1=00" }, false],
  ["V2", { "x-webhook-signature-v2": hex(`5.${body}`), "x-webhook-timestamp": "5" }, true],
  ["V2 without a time", { "x-webhook-signature-v2": hex(`.${body}`) }, false],
  [
    "V2 with a time that is not a number",
    { "x-webhook-signature-v2": hex(`5x.${body}`), "x-webhook-timestamp": "5x" },
    false,
  ],
  [
    "a V2 that fails beside a V1 that would do",
    { "x-webhook-signature-v2": hex(`6.${body}`), "x-webhook-timestamp": "5", "x-webhook-signature": hex(body) },
    false,
  ],
  ["a hub that fails beside the token", { "x-hub-signature-256": "sha256=00", "x-gitlab-token": "s" }, false],
  ["svix without an id", { "svix-timestamp": "5", "svix-signature": `v1,${hex(body)}` }, false],
  ["svix of another version", { "svix-id": "m", "svix-timestamp": "5", "svix-signature": "v2,abc" }, false],
  ["stripe", { "stripe-signature": `t=5,v1=${hex(`5.${body}`)}` }, true],
  ["stripe without a time", { "stripe-signature": `v1=${hex(`.${body}`)}` }, false],
  ["stripe of another version", { "stripe-signature": `t=5,v0=${hex(`5.${body}`)}` }, false],
  [
    "a stripe that fails beside a V1 that would do",
    { "stripe-signature": "t=5,v1=00", "x-webhook-signature": hex(body) },
    false,
  ],
  [
    "svix with a secret that is not base64",
    {
      "svix-id": "m",
      "svix-timestamp": "5",
      "svix-signature": `v1,${createHmac("sha256", "s").update(`m.5.${body}`).digest("base64")}`,
    },
    true,
  ],
];

for (const [name, headers, valid] of cases)
  test(`${name} is ${valid ? "valid" : "refused"}`, () => {
    assert.equal(verifySignature({ headers, body: Buffer.from(body) }, "s", 5000).valid, valid);
  });

test("what we sign ourselves is valid, and its replay has the same key", () => {
  fc.assert(
    fc.property(fc.string(), fc.string({ minLength: 1 }), (text, secret) => {
      const delivery = { headers: signedHeaders(text, secret, 1_000_000), body: Buffer.from(text) };
      const first = verifySignature(delivery, secret, 1_100_000);
      const second = verifySignature(delivery, secret, 1_200_000);
      assert.ok(first.valid && second.valid && first.replayKey !== null);
      assert.equal(first.replayKey, second.replayKey);
    }),
  );
});

test("the replay of a signature in capitals has the same key", () => {
  const headers = signedHeaders(body, "s", 5000);
  const loud = { ...headers, "x-webhook-signature-v2": headers["x-webhook-signature-v2"]?.toUpperCase() };
  const [one, two] = [headers, loud].map((each) =>
    verifySignature({ headers: each, body: Buffer.from(body) }, "s", 5000),
  );
  assert.deepEqual(one, two);
  assert.equal(one?.valid, true);
});

test("no header makes a delivery valid that was not signed with the secret", () => {
  const names = [
    "svix-id",
    "svix-timestamp",
    "svix-signature",
    "x-hub-signature-256",
    "x-gitlab-token",
    "stripe-signature",
  ];
  const more = ["x-webhook-signature", "x-webhook-signature-v2", "x-webhook-timestamp"];
  const value = fc.oneof(
    fc.string(),
    fc.constantFrom("sha256=", "v1,", "5", "sha256=00", hex("other"), `v1,${hex(body)}`),
  );
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names, ...more), value), (headers) => {
      assert.equal(verifySignature({ headers, body: Buffer.from(body) }, "a long secret", 5000).valid, false);
    }),
  );
});
