import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { idAt, namesBot, readableText, threadName, timeOf } from "./text.ts";

test("a thread is named after the first line of a text, without marks and mentions", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["what do roses need?", "what do roses need?"],
    ["<@123456> what do   roses need?\nMore below.", "what do roses need?"],
    ["## Roses\n\ntext", "Roses"],
    ["> - a quote", "a quote"],
    ["<@&123> <#456> <:rose:789>", "Hermes"],
    ["", "Hermes"],
    ["a < b and c > d", "a < b and c > d"],
    [`${"rose ".repeat(40)}end`, `${"rose ".repeat(16).slice(0, 79)}…`],
    ["🌹".repeat(200), `${"🌹".repeat(79)}…`],
  ];
  for (const [text, name] of cases) assert.equal(threadName(text, "Hermes"), name);
});

test("the name of a thread is one that Discord takes, whatever the text is", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (text) => {
      const name = threadName(text, "Hermes");
      assert.ok([...name].length >= 1 && [...name].length <= 100 && !name.includes("\n"), JSON.stringify(name));
    }),
  );
});

test("a person reads the names of people and not the call of the bot", () => {
  const people = [
    { id: "1", username: "hermes" },
    { id: "2", username: "bob", global_name: "Bob" },
  ];
  const cases: readonly (readonly [string, string])[] = [
    ["<@1> hello", "hello"],
    ["<@!1> hello", "hello"],
    ["hello <@1> again", "hello again"],
    ["<@&9> hello", "hello"],
    ["<@1> ask <@2> about it", "ask @Bob about it"],
    ["<@3> and <@&8> stay", "<@3> and <@&8> stay"],
    ["<@1>", ""],
  ];
  for (const [content, text] of cases)
    assert.equal(readableText(content, { selfId: "1", ownRoles: new Set(["9"]), people }), text);
  assert.ok(namesBot("<@!1>", "1") && namesBot("x <@1>", "1") && !namesBot("<@12> <@&1>", "1"));
});

test("an id tells when it was made, and the smallest id of a moment is found", () => {
  assert.equal(timeOf("175928847299117063"), 1462015105796);
  fc.assert(
    fc.property(fc.integer({ min: 1_420_070_400_001, max: 2_000_000_000_000 }), (at) => {
      assert.equal(timeOf(String(idAt(at))), at);
      assert.equal(timeOf(String(idAt(at) - 1n)), at - 1);
    }),
  );
  assert.equal(idAt(0), 0n);
});
