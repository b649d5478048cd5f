import assert from "node:assert/strict";
import { test } from "node:test";
import { sendFailure } from "./api.ts";
import { apiUrlOf, entry, tokenOf } from "./entry.ts";
import type { Failure } from "./rest.ts";
import { nonceOf } from "./sending.ts";

const CHAT = { chatId: "1" };
const THREAD = { chatId: "1", threadId: "2" };

test("each failure of a request belongs to one row of the table of sending", () => {
  const answered = (status: number, code = 0): Failure => ({ type: "answered", status, code, message: "x" });
  const cases: readonly (readonly [Failure, string, string])[] = [
    [{ type: "limited", seconds: 2.55, message: "x" }, "rate_limited", "rate_limited"],
    [answered(404, 10003), "refused", "thread_gone"],
    [answered(400, 50083), "refused", "thread_gone"],
    [answered(400, 160005), "refused", "thread_gone"],
    [answered(403, 50013), "refused", "refused"],
    [answered(403, 50007), "refused", "refused"],
    [answered(413, 40005), "refused", "refused"],
    [answered(400, 50035), "format", "format"],
    [answered(401), "unreachable", "unreachable"],
    [answered(502), "unreachable", "unreachable"],
    [{ type: "not_sent", message: "x" }, "unreachable", "unreachable"],
    [{ type: "no_answer", message: "x" }, "unknown", "unknown"],
  ];
  for (const [one, inChat, inThread] of cases) {
    assert.equal(sendFailure(one, CHAT).failed, inChat, JSON.stringify(one));
    assert.equal(sendFailure(one, THREAD).failed, inThread, JSON.stringify(one));
  }
  assert.equal(sendFailure({ type: "limited", seconds: 2.55, message: "x" }, CHAT).retryAfter, 2.55);
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
