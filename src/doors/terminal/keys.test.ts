import assert from "node:assert/strict";
import { test } from "node:test";
import { type KeyState, ScreenKeys } from "./keys.ts";

const idle: KeyState = { questionOpen: false, menuOpen: false, draft: "", queued: 0, busy: false };
const read = (data: string, state: Partial<KeyState> = {}) => new ScreenKeys().read(data, { ...idle, ...state }, 0);

const cases: [string, string, Partial<KeyState>, string | null][] = [
  ["Ctrl+C", "\u0003", {}, "ctrl_c"],
  ["Ctrl+C with a question", "\u0003", { questionOpen: true }, "ctrl_c"],
  ["the release of Ctrl+C", "\u001b[99;5:3u", {}, null],
  ["Ctrl+D on an empty line", "\u0004", {}, "leave"],
  ["Ctrl+D in a text", "\u0004", { draft: "x" }, null],
  ["Ctrl+L", "\u000c", {}, "redraw"],
  ["Ctrl+Z", "\u001a", {}, "suspend"],
  ["Ctrl+Z inside a paste", "\u001b[200~a\u001ab\u001b[201~", {}, null],
  ["Ctrl+G", "\u0007", {}, "edit_externally"],
  ["Alt+G", "\u001bg", {}, "edit_externally"],
  ["Ctrl+R", "\u0012", {}, "search_history"],
  ["Ctrl+R with a question", "\u0012", { questionOpen: true }, null],
  ["Ctrl+S", "\u0013", {}, "stash"],
  ["Up with something queued", "\u001b[A", { queued: 1 }, "take_back_queued"],
  ["Up with a draft", "\u001b[A", { queued: 1, draft: "x" }, null],
  ["a letter", "a", {}, null],
];
for (const [name, data, state, expected] of cases)
  test(`${name} means ${expected}`, () => assert.equal(read(data, state), expected));

test("Ctrl+X Ctrl+E opens the editor", () => {
  const keys = new ScreenKeys();
  assert.equal(keys.read("\u0018", idle, 0), "nothing");
  assert.equal(keys.read("\u0005", idle, 1), "edit_externally");
  assert.equal(keys.read("\u0005", idle, 2), null);
});

test("Escape twice on an empty line edits the last message", () => {
  const keys = new ScreenKeys();
  assert.equal(keys.read("\u001b", idle, 0), null);
  assert.equal(keys.read("\u001b", idle, 2000), null);
  assert.equal(keys.read("\u001b", idle, 2300), "edit_previous");
  assert.equal(read("\u001b\u001b"), "edit_previous");
  assert.equal(read("\u001b\u001b", { draft: "x" }), null);
});
