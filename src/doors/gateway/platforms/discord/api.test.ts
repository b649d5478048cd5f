import assert from "node:assert/strict";
import { test } from "node:test";
import { failureFrom, sendFailure } from "./api.ts";
import { apiUrlOf, entry, tokenOf } from "./entry.ts";
import { nonceOf } from "./sending.ts";

const error = (fields: object, message = "Unknown Channel") => Object.assign(new Error(message), fields);
const CHAT = { chatId: "1" };
const THREAD = { chatId: "1", threadId: "2" };

test("each failure of a request belongs to one row of the table of sending", () => {
  const cases: readonly (readonly [Error, string, string])[] = [
    [error({ timeToReset: 0, retryAfter: 2550 }), "rate_limited", "rate_limited"],
    [error({ status: 404, code: 10003 }), "refused", "thread_gone"],
    [error({ status: 400, code: 50083 }), "refused", "thread_gone"],
    [error({ status: 400, code: 160005 }), "refused", "thread_gone"],
    [error({ status: 403, code: 50013 }), "refused", "refused"],
    [error({ status: 403, code: 50007 }), "refused", "refused"],
    [error({ status: 413, code: 40005 }), "refused", "refused"],
    [error({ status: 400, code: 50035 }), "format", "format"],
    [error({ status: 401, code: 0 }), "unreachable", "unreachable"],
    [error({}, "Expected token to be set for this request, but none was present"), "unreachable", "unreachable"],
    [error({ status: 502 }), "unreachable", "unreachable"],
    [error({ code: "ECONNREFUSED" }), "unreachable", "unreachable"],
    [error({ code: "ENOTFOUND" }), "unreachable", "unreachable"],
    [error({ code: "UND_ERR_CONNECT_TIMEOUT" }), "unreachable", "unreachable"],
    [error({ code: "CERT_HAS_EXPIRED" }), "unreachable", "unreachable"],
    [error({ name: "AbortError" }), "unknown", "unknown"],
    [error({ code: "ECONNRESET" }), "unknown", "unknown"],
    [error({ code: "UND_ERR_SOCKET" }), "unknown", "unknown"],
  ];
  for (const [one, inChat, inThread] of cases) {
    assert.equal(sendFailure(failureFrom(one), CHAT).failed, inChat, JSON.stringify(one));
    assert.equal(sendFailure(failureFrom(one), THREAD).failed, inThread, JSON.stringify(one));
  }
  assert.equal(sendFailure(failureFrom(error({ timeToReset: 0, retryAfter: 2550 })), CHAT).retryAfter, 2.55);
});

test("a nonce is the same for a repeat, another one for another text, chat or part, and as long as Discord takes", () => {
  const nonce = nonceOf("1", "inbox:5#0", "hello");
  assert.equal(nonce.length, 25);
  assert.equal(nonceOf("1", "inbox:5#0", "hello"), nonce);
  const others = [
    nonceOf("2", "inbox:5#0", "hello"),
    nonceOf("1", "inbox:5#1", "hello"),
    nonceOf("1", "inbox:5#0", "x"),
  ];
  assert.equal(new Set([nonce, ...others]).size, 4);
});

test("a target is the id of a channel, and of a thread in it", () => {
  assert.deepEqual(entry.parseTarget("123"), { chatId: "123" });
  assert.deepEqual(entry.parseTarget(" 123:456 "), { chatId: "123", threadId: "456" });
  for (const text of ["", "#general", "123:", "12a", "1:2:3"]) assert.equal(entry.parseTarget(text), null);
});

test("a token is sent over an encrypted connection, or within this machine and network", () => {
  const check = (url: string) => entry.check?.((key) => (key === "api_url" ? url : undefined));
  for (const fine of ["https://discord.com/api", "http://127.0.0.1:80/api", "http://localhost/api"])
    assert.equal(check(fine), null, fine);
  for (const open of ["http://discord.com/api", "http://127.0.0.1.example.com", "ftp://x", "x"])
    assert.match(String(check(open)), /^DISCORD_API_URL must be an address that begins with https:/, open);
});

test("the address and the token are taken as people write them", () => {
  const option = (values: Readonly<Record<string, string>>) => (key: string) => values[key];
  assert.equal(apiUrlOf(option({})), "https://discord.com/api");
  assert.equal(apiUrlOf(option({ api_url: "http://127.0.0.1:9/api/v10/" })), "http://127.0.0.1:9/api");
  assert.equal(tokenOf(option({ token: " Bot abc.def " })), "abc.def");
  assert.equal(tokenOf(option({})), null);
});
