import assert from "node:assert/strict";
import { test } from "node:test";
import { addressesIn, refuseCommand } from "./cdp.ts";
import { elementBoxes, outlinePage, type TreeNode } from "./page.ts";

const TREE: readonly TreeNode[] = [
  {
    role: "generic",
    ref: "e1",
    children: [
      { role: "heading", name: "Sign up", level: 1, ref: "e2" },
      {
        role: "list",
        ref: "e3",
        children: [{ role: "listitem", ref: "e4", children: [{ role: "link", name: "Terms", ref: "e5", url: "/t" }] }],
      },
      { role: "textbox", name: "Name", ref: "e6", text: "Ada" },
      { role: "checkbox", name: "Agree", ref: "e7", checked: true, disabled: true },
      { role: "generic", ref: "e8", cursor: "pointer", text: "Menu" },
      { role: "paragraph", ref: "e9", text: "x".repeat(300) },
      {
        role: "iframe",
        ref: "e10",
        box: { x: 100, y: 50, width: 10, height: 10 },
        children: [{ role: "button", name: "In", ref: "f1e2", box: { x: 1, y: 2, width: 5, height: 5 } }],
      },
    ],
  },
];

test("a compact snapshot leaves wrappers out, shortens text and marks what can be acted on", () => {
  const { text, elementCount, refs } = outlinePage(TREE, { full: false });
  assert.equal(
    text,
    [
      '- heading "Sign up" [level=1]',
      '- link "Terms" @e5',
      '- textbox "Name" @e6: Ada',
      '- checkbox "Agree" @e7 [checked=true] [disabled]',
      "- generic @e8: Menu",
      `- ${"x".repeat(160)}…`,
      "- iframe @e10",
      '  - button "In" @f1e2',
    ].join("\n"),
  );
  assert.equal(elementCount, 5);
  assert.ok(refs.has("e2") && refs.has("f1e2"));
});

test("a full snapshot keeps lists, all text and where links lead", () => {
  const { text } = outlinePage(TREE, { full: true });
  assert.match(text, /- list\n {2}- listitem\n {4}- link "Terms" @e5 -> \/t/);
  assert.match(text, /- paragraph: x{300}/);
});

test("the place of an element in a frame counts from the window's corner", () => {
  const inside = elementBoxes(TREE).find(({ ref }) => ref === "f1e2");
  assert.deepEqual(inside?.box, { x: 101, y: 52, width: 5, height: 5 });
});

const COMMANDS: readonly (readonly [string, Readonly<Record<string, unknown>>, RegExp | null])[] = [
  ["Runtime.evaluate", { expression: "1" }, null],
  ["Page.navigate", { url: "https://example.com" }, null],
  ["Emulation.setDeviceMetricsOverride", { width: 1 }, null],
  ["Page.navigate", { url: "file:///etc/hostname" }, /only http and https/],
  ["Page.navigate", { url: "chrome://settings" }, /only http and https/],
  ["Page.navigate", { url: "view-source:https://x" }, /only http and https/],
  ["Network.setCookies", { cookies: [{ url: "file:///x" }] }, /only http and https/],
  ["DOM.setFileInputFiles", { files: ["/x"] }, /beyond the open page/],
  ["Target.createTarget", { url: "https://x" }, /Commands of Target/],
  ["Browser.close", {}, /Commands of Browser/],
  ["IO.read", {}, /Commands of IO/],
  ["Fetch.enable", {}, /Commands of Fetch/],
  ["rubbish", {}, /is not a command/],
];
for (const [method, params, expected] of COMMANDS)
  test(`${method} ${JSON.stringify(params)} is ${expected ? "refused" : "sent"}`, () => {
    const refusal = refuseCommand(method, params);
    if (expected) assert.match(refusal ?? "", expected);
    else assert.equal(refusal, null);
  });

test("addresses are found wherever they stand in the parameters", () => {
  assert.deepEqual(addressesIn({ url: "a:", deep: [{ url: "b:" }], other: "c:" }), ["a:", "b:"]);
});
