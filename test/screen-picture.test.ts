// How scripts/captures.mjs draws a terminal: what stands in which cell, and in which colours.
import assert from "node:assert/strict";
import { test } from "node:test";
import { castOf, drawRecording, drawScreen, readScreen } from "./support/screen-picture.ts";

const size = { columns: 20, rows: 2, theme: "dark", title: "a <picture>" } as const;

test("characters stand in the cells of the terminal, wide ones in two", () => {
  const [row = []] = readScreen("a中b\u001b[1;31mc\u001b[0md\n", "dark");
  const placed = row.map(({ text, at, cells }) => [text, at, cells]);
  assert.deepEqual(placed, [
    ["a", 0, 1],
    ["中", 1, 2],
    ["b", 3, 1],
    ["c", 4, 1],
    ["d", 5, 1],
  ]);
  assert.deepEqual([row[3]?.style.bold, row[3]?.style.fg, row[4]?.style.fg], [true, "#ff7b72", null]);
});

test("a style goes on over the end of a line, links are not part of the picture", () => {
  const [, second = []] = readScreen(
    "\u001b[38;2;1;2;3mone\ntwo\u001b]8;;http://x.test\u001b\\three\u001b]8;;\u0007\n",
    "dark",
  );
  assert.deepEqual(
    second.map(({ text, style }) => [text, style.fg]),
    [["twothree", "#010203"]],
  );
  assert.deepEqual(readScreen("\u001b[48;5;196mx", "light")[0]?.[0]?.style.bg, "#ff0000");
});

test("markup in what is shown stays text", () => {
  const svg = drawScreen({ ansi: "<script>&\n", ...size });
  assert.match(svg, /&lt;script&gt;&amp;<\/text>/);
  assert.match(svg, /<title>a &lt;picture&gt;<\/title>/);
  assert.doesNotMatch(svg, /<script>/);
});

test("a recording draws equal rows once and shows each frame for its time", () => {
  const frames = ["one\nsame\n", "two\nsame\n"].map((ansi, at) => ({ ansi, seconds: at === 0 ? 1 : 3 }));
  const svg = drawRecording({ frames, ...size });
  assert.equal(svg.split(">same</text>").length - 1, 1);
  assert.match(svg, /film 4s steps\(1,end\) infinite/);
  assert.match(svg, /0%\{transform:translateX\(0px\)\}25%\{transform:translateX\(-168px\)\}/);
  const [head = "", first = "", second = ""] = castOf({ frames, ...size }).split("\n");
  assert.deepEqual(JSON.parse(head), { version: 2, width: 20, height: 2, title: "a <picture>" });
  assert.deepEqual([JSON.parse(first)[0], JSON.parse(second)[0]], [0, 1]);
  assert.match(JSON.parse(second)[2], /two\r\nsame$/);
});
