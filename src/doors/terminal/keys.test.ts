import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { type KeyState, keyHelp, ScreenKeys, shownKeys } from "./keys.ts";

const idle: KeyState = {
  questionOpen: false,
  menuOpen: false,
  draft: "",
  queued: 0,
  attached: 0,
  pictures: 0,
  busy: false,
};
const meaning = (keys: ScreenKeys, data: string, state: KeyState, now: number) => {
  const row = keys.read(data, state, now);
  return row === null || row === "nothing" ? row : row.action;
};
const read = (data: string, state: Partial<KeyState> = {}) => meaning(new ScreenKeys(), data, { ...idle, ...state }, 0);

const cases: [string, string, Partial<KeyState>, string | null][] = [
  ["Ctrl+C", "\u0003", {}, "ctrl_c"],
  ["Ctrl+C with a question", "\u0003", { questionOpen: true }, "ctrl_c"],
  ["the release of Ctrl+C", "\u001b[99;5:3u", {}, null],
  ["Ctrl+D on an empty line", "\u0004", {}, "leave"],
  ["Ctrl+D in a text", "\u0004", { draft: "x" }, null],
  ["Ctrl+D with a picture attached", "\u0004", { pictures: 1 }, "stay"],
  ["Backspace with a picture attached", "\u007f", { pictures: 1 }, "remove_picture"],
  ["Backspace in a text with a picture attached", "\u007f", { pictures: 1, draft: "x" }, null],
  ["Backspace on an empty line", "\u007f", {}, null],
  ["Ctrl+V", "\u0016", {}, "paste"],
  ["Alt+V", "\u001bv", {}, "paste"],
  ["Ctrl+V in a question", "\u0016", { questionOpen: true }, null],
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
  ["Backspace on an empty line with an output attached", "\u007f", { attached: 1 }, "detach"],
  ["Backspace in a text", "\u007f", { attached: 1, draft: "x" }, null],
  ["a letter", "a", {}, null],
  ["Escape while something runs", "\u001b", { busy: true }, "stop"],
  ["Escape while something runs and a text is typed", "\u001b", { busy: true, draft: "x" }, "stop"],
  ["Escape in a menu while something runs", "\u001b", { busy: true, menuOpen: true }, null],
  ["Escape in a question while something runs", "\u001b", { busy: true, questionOpen: true }, null],
];
for (const [name, data, state, expected] of cases)
  test(`${name} means ${expected}`, () => assert.equal(read(data, state), expected));

test("Ctrl+X Ctrl+E opens the editor", () => {
  const keys = new ScreenKeys();
  assert.equal(meaning(keys, "\u0018", idle, 0), "nothing");
  assert.equal(meaning(keys, "\u0005", idle, 1), "edit_externally");
  assert.equal(meaning(keys, "\u0005", idle, 2), null);
});

test("Ctrl+X and a letter open a list, also with a text typed; in a question they are only letters", () => {
  for (const [letter, action] of [
    ["m", "pick_model"],
    ["s", "pick_session"],
    ["t", "pick_tools"],
    ["f", "fork"],
    ["?", "show_keys"],
    ["\u001b[63u", "show_keys"],
  ] as const) {
    const keys = new ScreenKeys();
    assert.equal(meaning(keys, "\u0018", { ...idle, draft: "x" }, 0), "nothing");
    assert.equal(meaning(keys, letter, { ...idle, draft: "x" }, 1), action, letter);
    assert.equal(meaning(keys, letter, idle, 2), null);
    assert.equal(meaning(keys, "\u0018", { ...idle, questionOpen: true }, 3), null);
  }
});

test("Escape twice on an empty line edits the last message", () => {
  const keys = new ScreenKeys();
  assert.equal(meaning(keys, "\u001b", idle, 0), null);
  assert.equal(meaning(keys, "\u001b", idle, 2000), null);
  assert.equal(meaning(keys, "\u001b", idle, 2300), "edit_previous");
});

test("the Escape that stopped a turn is not the first of two", () => {
  const keys = new ScreenKeys();
  assert.equal(meaning(keys, "\u001b", { ...idle, busy: true }, 0), "stop");
  assert.equal(meaning(keys, "\u001b", idle, 100), null);
});

test("the help names every key under its task", () => {
  const text = keyHelp();
  assert.match(text, /^Write a message\n {2}Enter +send/);
  assert.match(text, /^Steer the work\n {2}Esc +close a menu or question, else stop the running turn$/m);
  for (const { help } of shownKeys()) assert.ok(text.includes(help), help);
});

test("the guide lists the keys as the table does", async () => {
  const guide = (await readFile(new URL("../../../docs/guide/README.md", import.meta.url), "utf8")).replaceAll("`", "");
  for (const { shown, help } of shownKeys())
    assert.ok(guide.includes(`| ${shown} | ${help} |`), `| ${shown} | ${help} |`);
});
