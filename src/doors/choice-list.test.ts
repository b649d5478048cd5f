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

test("hints in columns are shown whole or not at all, at any width", () => {
  const ids = ["20260101_000000_aaaaaa", "20260101_000000_bbbbbb"];
  const choices = ids.map((id, at) => ({
    label: "名".repeat(30 * (at + 1)),
    hint: ["just now", id, "cli"],
    value: id,
  }));
  const { component } = list({ choices, filter: true, numbers: false });
  for (let width = 12; width < 140; width++) {
    const rows = component.render(width);
    for (const row of rows) {
      assert.ok(visibleWidth(row) <= width, `${width}: ${row}`);
      assert.ok(!row.includes("2026") || ids.some((id) => row.includes(id)), `${width}: ${row}`);
    }
    if (width >= 80) assert.ok(rows[0]?.includes(ids[0] ?? ""), `${width}: ${rows[0]}`);
  }
});

test("words are found in any order, the row in force has a mark", () => {
  const choices = ["gpt-5-mini", "gpt-5", "claude-mini"].map((label, at) => ({
    label,
    value: label,
    current: at === 1,
  }));
  const { taken, press, component } = list({ choices, filter: true, numbers: "shown" });
  assert.match(component.render(40).join("\n"), /❯ 1\. {3}gpt-5-mini\n {2}2\. ● gpt-5\n/);
  press("m", "i", "n", "i", " ", "5", "\r");
  assert.deepEqual(taken, [["gpt-5-mini"]]);
});

test("what is found elsewhere comes behind the rows that match, once; a preview comes when it is read", async () => {
  const changes = { count: 0, waiting: Promise.withResolvers<void>() };
  const changed = async () => {
    await changes.waiting.promise;
    changes.waiting = Promise.withResolvers();
  };
  const asked: string[] = [];
  const { taken, press, component } = list({
    filter: true,
    numbers: false,
    preview: async (value) => `about ${value}\nsecond line`,
    find: async (typed) => {
      asked.push(typed);
      return ["banana", "nashi"].map((label) => ({ label, value: label }));
    },
    onChange: () => changes.waiting.resolve(),
  });
  component.render(40);
  await changed();
  assert.match(component.render(40).join("\n"), /\n─+\n {2}about apple\n {2}second line/);
  press("n", "a", "n");
  await changed();
  assert.deepEqual(asked, ["nan"], "not for every letter");
  const shown = component.render(40).join("\n");
  assert.match(shown, /filter: nan\n❯ banana\n {2}nashi\n/);
  press(DOWN, "\r");
  assert.deepEqual(taken, [["nashi"]]);
});

test("hints of one piece stand below each other, unless a label is long", () => {
  const rows = (...labels: string[]) =>
    list({ filter: true, numbers: false, choices: labels.map((label) => ({ label, hint: "about it", value: label })) })
      .component.render(80)
      .map((line) => line.trimEnd());
  assert.deepEqual(rows("Model", "终端"), ["❯ Model  about it", "  终端   about it"]);
  assert.deepEqual(rows("Model", "x".repeat(50)), ["❯ Model  about it", `  ${"x".repeat(50)}  about it`]);
});
