import assert from "node:assert/strict";
import { test } from "node:test";
import { stripAnsi } from "../../kit/strip-ansi.ts";
import type { SessionListItem } from "../../sessions/store.ts";
import { cellWidth } from "../terminal-text.ts";
import { type PickerKey, type PickerState, readKeys, renderPicker, stepPicker } from "./session-picker.ts";

const item = (id: string, title: string | null, source = "cli") =>
  ({ id, title, source, preview: `preview of ${id}`, lastActive: 0 }) as unknown as SessionListItem; // the fields a picker shows
const start: PickerState = {
  items: [item("a1", "部署数据库"), item("b2", null, "telegram"), item("c3", "Zoo")],
  filter: "",
  selected: 0,
};

const press = (keys: readonly PickerKey[], state = start) =>
  keys.reduce((now, key) => {
    const step = stepPicker(now, key);
    return step.type === "go_on" ? step.state : now;
  }, state);

test("arrows wrap around", () => {
  assert.equal(press([{ type: "up" }]).selected, 2);
  assert.equal(press([{ type: "down" }, { type: "down" }, { type: "down" }]).selected, 0);
});

test("typing filters by title, preview, source and id", () => {
  for (const [text, id] of [
    ["zoo", "c3"],
    ["TELE", "b2"],
    ["数据", "a1"],
    ["of b", "b2"],
    ["c3", "c3"],
  ] as const) {
    const step = stepPicker(press([{ type: "text", text }]), { type: "enter" });
    assert.ok(step.type === "chosen" && step.item.id === id, text);
  }
});

test("Esc clears the filter, then quits; q quits only without a filter", () => {
  const filtered = press([{ type: "text", text: "zo" }]);
  const cleared = stepPicker(filtered, { type: "escape" });
  assert.ok(cleared.type === "go_on" && cleared.state.filter === "");
  assert.equal(stepPicker(start, { type: "escape" }).type, "quit");
  assert.equal(stepPicker(start, { type: "text", text: "q" }).type, "quit");
  assert.equal(press([{ type: "text", text: "q" }], filtered).filter, "zoq");
  assert.equal(press([{ type: "backspace" }], filtered).filter, "z");
});

test("keys are read from what a terminal sends, several at once too", () => {
  assert.deepEqual(readKeys("ab\u001b[B\u001b[A\r\u007f中\u001b"), [
    { type: "text", text: "ab" },
    { type: "down" },
    { type: "up" },
    { type: "enter" },
    { type: "backspace" },
    { type: "text", text: "中" },
    { type: "escape" },
  ]);
  assert.deepEqual(readKeys("\u001b[1;5C\u0001"), []);
});

test("the screen never exceeds its size, and the chosen line is always on it", () => {
  const many = Array.from({ length: 100 }, (_, n) => item(`id${n}`, `标题${n} ${"长".repeat(60)}`));
  for (const selected of [0, 50, 99]) {
    const lines = renderPicker({ items: many, filter: "", selected }, { columns: 60, rows: 20, now: 10 });
    assert.ok(lines.length <= 20);
    for (const line of lines) assert.ok(cellWidth(stripAnsi(line)) <= 60);
    assert.ok(lines.some((line) => line.includes(`标题${selected} `) && line.includes("\u001b[7m")));
  }
});
