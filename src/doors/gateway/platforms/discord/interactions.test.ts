import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { customId, menuOf } from "./interactions.ts";

const named = (...names: readonly string[]) => names.map((name) => ({ name, description: `about ${name}` }));

test("the menu has at most a hundred commands, with names and descriptions that Discord takes", () => {
  const many = named(...Array.from({ length: 150 }, (_, at) => `skill-${at}`));
  assert.equal(menuOf(many).length, 100);
  const [only] = menuOf([{ name: "new", description: "x".repeat(300) }]);
  assert.equal(only?.description.length, 100);
  assert.equal(menuOf([{ name: "new", description: "  " }])[0]?.description, "new");
});

test("names are written in small letters without what Discord refuses, and keep the registry's name", () => {
  const menu = menuOf(named("My Skill!", "reload_mcp", "set-home", "中文", "!!!"));
  assert.deepEqual(
    menu.map(({ name, registered }) => [name, registered]),
    [
      ["myskill", "My Skill!"],
      ["reload_mcp", "reload_mcp"],
      ["set-home", "set-home"],
      ["中文", "中文"],
    ],
  );
});

test("of two names that are the same after cutting the second ends in a digit; an equal whole one is dropped", () => {
  const long = "a".repeat(32);
  const names = menuOf(named("new", "NEW", long, `${long}b`, `${long}c`)).map(({ name }) => name);
  assert.deepEqual(names, ["new", long, `${"a".repeat(31)}0`, `${"a".repeat(31)}1`]);
});

test("every menu is one that Discord takes", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 120 });
  const command = fc.record({ name: text, description: text });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 8 }), (commands) => {
      const menu = menuOf(commands);
      assert.equal(new Set(menu.map(({ name }) => name)).size, menu.length);
      for (const { name, description } of menu) {
        assert.match(name, /^[-_\p{L}\p{N}]{1,32}$/u);
        assert.ok([...description].length >= 1 && [...description].length <= 100);
      }
    }),
  );
});

test("a choice that does not fit on a button has no id", () => {
  assert.equal(customId("abc", "once"), '["hermes","abc","once"]');
  assert.equal(customId("abc", "x".repeat(100)), null);
});
