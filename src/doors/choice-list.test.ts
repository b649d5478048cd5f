import assert from "node:assert/strict";
import { test } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import { ChoiceList, type ChoiceListOptions } from "./choice-list.ts";
import { makeTheme } from "./terminal-text.ts";

const UP = "\u001b[A";
const DOWN = "\u001b[B";

function list(options: Partial<ChoiceListOptions<string>> = {}) {
  const taken: (readonly string[] | "cancelled")[] = [];
  const component = new ChoiceList<string>({
    choices: ["apple", "banana", "樱桃"].map((label) => ({ label, value: label })),
    theme: makeTheme(false),
    onTake: (values) => void taken.push(values),
    onCancel: () => void taken.push("cancelled"),
    ...options,
  });
  const press = (...keys: string[]) => {
    for (const key of keys) component.handleInput(key);
  };
  return { taken, component, press };
}

test("arrows go round, Enter takes, a number takes at once", () => {
  const { taken, press } = list();
  press(DOWN, "\r", UP, UP, "\r", "2");
  assert.deepEqual(taken, [["banana"], ["樱桃"], ["banana"]]);
});

test("Escape cancels and other keys do nothing", () => {
  const { taken, press } = list();
  press("x", "9", "\u001b");
  assert.deepEqual(taken, ["cancelled"]);
});

test("several rows are checked with blanks and numbers; none checked means the current one", () => {
  const { taken, press } = list({ multiple: true });
  press("\r", "3", " ", "\r");
  assert.deepEqual(taken, [["apple"], ["apple", "樱桃"]]);
});

test("typing narrows a list that has a filter", () => {
  const { taken, press, component } = list({ filter: true });
  press("樱");
  assert.match(component.render(40).join("\n"), /filter: 樱/);
  press("\r", "\u007f", "2", "\r");
  assert.deepEqual(taken, [["樱桃"], ["banana"]]);
});

test("Escape clears a filter before it cancels", () => {
  const { taken, press } = list({ filter: true });
  press("樱", "\u001b", "\r", "\u001b");
  assert.deepEqual(taken, [["apple"], "cancelled"]);
});

test("rows without numbers are found by digits, and by a text of their own", () => {
  const choices = ["one", "two"].map((label, index) => ({
    label,
    search: `2026-0${index + 1} ${label}`,
    value: label,
  }));
  const { taken, press } = list({ choices, filter: true, numbers: false });
  press("2", "026-02", "\r");
  assert.deepEqual(taken, [["two"]]);
});

test("rows that were checked at first can all be unchecked", () => {
  const { taken, press, component } = list({ multiple: true, checked: new Set(["banana"]) });
  assert.match(component.render(40).join("\n"), /\[ \] apple\n.*\[x\] banana/);
  press("\r", "2", "\r");
  assert.deepEqual(taken, [["banana"], []]);
});

test("pages end at the ends of a long list, and the current row is always to be seen", () => {
  const choices = Array.from({ length: 100 }, (_, n) => ({ label: `row ${n}`, value: `${n}` }));
  const { taken, press, component } = list({ choices });
  press("\u001b[6~", "\u001b[6~", "\r");
  for (let page = 0; page < 20; page++) press("\u001b[6~");
  assert.match(component.render(40).join("\n"), /❯ 100\. row 99/);
  press("\r", "\u001b[5~", "\r");
  assert.deepEqual(taken, [["20"], ["99"], ["89"]]);
});

test("long rows are wrapped and no width is exceeded", () => {
  const { component } = list({ choices: [{ label: "长".repeat(60), hint: "hint", value: "x" }] });
  for (let width = 12; width < 60; width++)
    for (const line of component.render(width)) assert.ok(visibleWidth(line) <= width, `${width}: ${line}`);
});
