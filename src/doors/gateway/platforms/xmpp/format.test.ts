import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { entry } from "./entry.ts";
import { toStyled, xmlSafe } from "./format.ts";
import { addressedText } from "./stanzas.ts";

test("Markdown becomes what clients show", () => {
  const cases: [string, string][] = [
    ["# Head\n**bold** *it* ~~gone~~ `a * b`", "*Head*\n*bold* _it_ ~gone~ `a * b`"],
    ["**bold with *it* inside**", "*bold with _it_ inside*"],
    ["[docs](https://x.test/a) <https://y.test>", "docs (https://x.test/a) https://y.test"],
    ["## A [link](https://x.test)", "*A link (https://x.test)*"],
    ["* one\n  * two", "- one\n  - two"],
    ["```js\n**raw** *x*\n```", "```\n**raw** *x*\n```"],
    ["~~~\na\n```\nb\n~~~", "```\na\n```\nb\n```"],
    ["> quoted", "> quoted"],
    ["snake_case_name and 2 * 3", "snake_case_name and 2 * 3"],
  ];
  for (const [markdown, styled] of cases) assert.equal(toStyled(markdown), styled, markdown);
});

test("no character that XML does not know is left", () => {
  const strange = fc.string({
    unit: fc.constantFrom(..."a<&\0\x01\x08\x0b\x1f\t\n\r🎉漢", "\ud800", "\udc00", "\ufffe", "\uffff"),
  });
  fc.assert(
    fc.property(strange, (text) => {
      for (const safe of [xmlSafe(text), toStyled(text)]) {
        assert.ok(safe.isWellFormed());
        assert.ok(!/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(safe), JSON.stringify(safe));
      }
    }),
  );
  assert.equal(xmlSafe("a\u0001b"), "a\ufffdb");
});

test("a message is for us when it begins with our nick or names it with an @", () => {
  const cases: [string, string | null][] = [
    ["bot: hello", "hello"],
    ["Bot, hello", "hello"],
    ["@bot hello", "hello"],
    ["bot", ""],
    ["ask @bot about it", "ask @bot about it"],
    ["ask @bottle about it", null],
    ["the bot knows", null],
    ["bottle: hello", null],
  ];
  for (const [text, rest] of cases) assert.equal(addressedText(text, "bot"), rest, text);
});

test("a target is an address, of a person, a room or a name in a room", () => {
  const cases: [string, string | null][] = [
    ["Ann@Example.org", "ann@example.org"],
    ["team@conference.example.org/Ann B", "team@conference.example.org/Ann B"],
    ["team@conference.example.org/Ann", "team@conference.example.org/Ann"],
    ["example.org", null],
    ["ann@", null],
    ["a@b@c", null],
    ["<ann@example.org>", null],
  ];
  for (const [target, chatId] of cases) assert.equal(entry.parseTarget(target)?.chatId ?? null, chatId, target);
});

test("settings say what is wrong with them", () => {
  const check = (set: Readonly<Record<string, string>>) =>
    entry.check?.((_key, variable) => set[variable ?? ""]) ?? null;
  const right = { XMPP_JID: "bot@example.org", XMPP_PASSWORD: "x" };
  assert.equal(check(right), null);
  assert.match(check({ ...right, XMPP_JID: "bot" }) ?? "", /XMPP_JID/);
  assert.match(check({ ...right, XMPP_SERVICE: "http://example.org" }) ?? "", /XMPP_SERVICE/);
  assert.match(check({ ...right, XMPP_SERVICE: "ws://example.org/ws" }) ?? "", /use wss/);
  assert.equal(check({ ...right, XMPP_SERVICE: "ws://127.0.0.1:5280/ws" }), null);
  assert.match(check({ ...right, XMPP_ROOMS: "team" }) ?? "", /XMPP_ROOMS/);
});
