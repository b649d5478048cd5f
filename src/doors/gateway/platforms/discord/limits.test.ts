import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../../../../kit/clock.ts";
import type { WebReply } from "../../web-calls.ts";
import { type Limited, LimitedError, RateLimits } from "./limits.ts";
import { routeOf } from "./rest.ts";

/** Time passes by sleeping. */
function rig() {
  let now = 1_000_000;
  const clock: Clock = {
    now: () => now,
    random: () => 0,
    async sleep(ms) {
      now += ms;
    },
  };
  const limits = new RateLimits(clock);
  const sent: { readonly what: string; readonly at: number }[] = [];
  const start = now;
  const reply = (status: number, headers: Readonly<Record<string, string | number>>, json?: unknown): WebReply => ({
    ...{ status, json, text: "" },
    headers: new Map(Object.entries(headers).map(([name, value]) => [name, String(value)])),
  });
  const ask = (what: string, answers: readonly WebReply[], more: Partial<Limited> = {}) => {
    const left = [...answers];
    return limits.run({
      ...{ route: "POST /channels/:id/messages", about: "1", isUncounted: false },
      ...{ signal: new AbortController().signal, mayWait: () => true },
      async send() {
        sent.push({ what, at: now - start });
        return left.length > 1 ? (left.shift() as WebReply) : (left[0] as WebReply); // as many as there are
      },
      ...more,
    });
  };
  return { ask, reply, sent };
}

const bucket = (left: number, after: number, name?: string) => ({
  ...{ "x-ratelimit-remaining": left, "x-ratelimit-reset-after": after },
  ...(name === undefined ? {} : { "x-ratelimit-bucket": name }),
});

for (const [method, path, route, about] of [
  ["GET", "/users/@me", "GET /users/@me", ""],
  ["POST", "/channels/12/messages", "POST /channels/:id/messages", "12"],
  ["PATCH", "/channels/12/messages/34", "PATCH /channels/:id/messages/:id", "12"],
  [
    "PUT",
    "/channels/12/messages/34/reactions/%F0%9F%91%80/@me",
    "PUT /channels/:id/messages/:id/reactions/:emoji/@me",
    "12",
  ],
  ["GET", "/guilds/5/members/6", "GET /guilds/:id/members/:id", "5"],
  ["POST", "/interactions/7/aW50/callback", "POST /interactions/:id/:token/callback", "7"],
  ["POST", "/webhooks/8/aW50", "POST /webhooks/:id/:token", "8"],
] as const)
  test(`${method} ${path} is limited as ${route} of ${about || "everything"}`, () => {
    assert.deepEqual(routeOf(method, path), { route, about });
  });

test("a bucket that is empty is waited for, and others are not", async () => {
  const { ask, reply, sent } = rig();
  await ask("last", [reply(200, bucket(0, 2.5))]);
  await ask("elsewhere", [reply(200, bucket(4, 1))], { about: "2" });
  await ask("next", [reply(200, bucket(4, 1))]);
  assert.deepEqual(sent, [
    { what: "last", at: 0 },
    { what: "elsewhere", at: 0 },
    { what: "next", at: 2500 },
  ]);
});

test("routes that Discord puts into one bucket wait for each other, in one channel only", async () => {
  const { ask, reply, sent } = rig();
  const react = { route: "PUT /channels/:id/messages/:id/reactions/:emoji/@me" };
  const unreact = { route: "DELETE /channels/:id/messages/:id/reactions/:emoji/@me" };
  await ask("unreact", [reply(204, bucket(1, 1, "abcd"))], unreact);
  await ask("react", [reply(204, bucket(0, 3, "abcd"))], react);
  await ask("react again", [reply(204, bucket(0, 3, "abcd"))], react);
  await ask("in another channel", [reply(204, bucket(1, 1, "abcd"))], { ...react, about: "2" });
  assert.deepEqual(
    sent.map(({ at }) => at),
    [0, 0, 3000, 3000],
  );
});

test("what Discord put off is sent again when it may, if its caller waits, and else the caller hears how long it is", async () => {
  const { ask, reply, sent } = rig();
  const off = reply(
    429,
    { "retry-after": 1 },
    { message: "You are being rate limited.", retry_after: 0.7, global: false },
  );
  assert.equal((await ask("patient", [off, reply(200, bucket(4, 1))])).status, 200);
  assert.deepEqual(
    sent.map(({ at }) => at),
    [0, 700],
  );
  const failure = await ask("impatient", [off], { mayWait: () => false }).catch((error: unknown) => error);
  assert.ok(failure instanceof LimitedError && failure.seconds === 0.7);
  // The next one need not ask to know.
  await assert.rejects(ask("behind it", [off], { mayWait: (ms) => ms < 700 }), LimitedError);
  assert.deepEqual(
    sent.map(({ what }) => what),
    ["patient", "patient", "impatient"],
  );
});

test("a limit for the whole bot holds everywhere but for answers to interactions", async () => {
  const { ask, reply, sent } = rig();
  const off = reply(429, { "x-ratelimit-global": "true" }, { retry_after: 2, global: true });
  await assert.rejects(ask("one", [off], { mayWait: () => false }), LimitedError);
  await ask("interaction", [reply(204, {})], { route: "POST /interactions/:id/:token/callback", isUncounted: true });
  await ask("other", [reply(200, bucket(4, 1))], { about: "2" });
  assert.deepEqual(
    sent.map(({ at }) => at),
    [0, 0, 2000],
  );
});

test("fifty requests leave in a second, and the rest in the next", async () => {
  const { ask, reply, sent } = rig();
  for (let at = 0; at < 51; at++) await ask("x", [reply(200, bucket(4, 1))], { about: String(at) });
  assert.deepEqual([sent[49]?.at, sent[50]?.at], [0, 1000]);
});

test("in a bucket one request follows the other, and one that gives up holds up nobody", async () => {
  const { ask, reply, sent } = rig();
  const first = Promise.withResolvers<WebReply>();
  const stop = new AbortController();
  const running = [
    ask("first", [], { send: () => first.promise }),
    ask("given up", [reply(200, {})], { signal: stop.signal }),
    ask("third", [reply(200, {})]),
  ];
  stop.abort();
  await assert.rejects(running[1] as Promise<unknown>);
  assert.deepEqual(sent, []);
  first.resolve(reply(200, {}));
  await running[2];
  assert.deepEqual(
    sent.map(({ what }) => what),
    ["third"],
  );
});
