import assert from "node:assert/strict";
import { test } from "node:test";
import { convertPage } from "./page.ts";

const BASE = new URL("https://site.test/dir/");
const open = () => new AbortController().signal;
const convert = async (html: string, timeMs?: number) =>
  convertPage(html, BASE, { signal: open(), ...(timeMs === undefined ? {} : { timeMs }) });
const repeat = (count: number, part: (index: number) => string) =>
  Array.from({ length: count }, (_, n) => part(n)).join("");
const rows = (count: number) => repeat(count, (n) => `<tr><td>row ${n}</td><td><a href="p/${n}">more</a></td></tr>`);

test("a page of thousands of tags keeps headings, links, its table and its numbered list", async () => {
  const { title, markdown } = await convert(
    `<title>Large</title><h2>Numbers</h2><ol>${repeat(700, (n) => `<li><a href="/${n}">item ${n}</a></li>`)}</ol>
      <table><tr><th>name</th><th>where</th></tr>${rows(700)}</table><div><h2>Words</h2>${repeat(
        40,
        (n) => `<p>Paragraph ${n} with a <b>word</b>.</p>`,
      )}</div>`,
  );
  assert.equal(title, "Large");
  const lines = markdown.split("\n");
  const items = lines.filter((line) => /^\d+\. /.test(line));
  assert.deepEqual(
    [items.length, items[0], items.at(-1)],
    [700, "1. [item 0](https://site.test/0)", "700. [item 699](https://site.test/699)"],
  );
  assert.ok(items.every((line, index) => line.startsWith(`${index + 1}. `)));
  const cells = lines.filter((line) => line.startsWith("|")).map((line) => line.replace(/ +/g, " "));
  assert.deepEqual(
    [cells.length, cells[0], cells.at(-1)],
    [702, "| name | where |", "| row 699 | [more](https://site.test/dir/p/699) |"],
  );
  assert.ok(lines.lastIndexOf(lines.find((line) => line.startsWith("|")) ?? "") < lines.indexOf("## Words"));
  assert.match(markdown, /Paragraph 39 with a \*\*word\*\*\.$/);
});

test("a long table whose rows stand in a form keeps its text", async () => {
  const { markdown } = await convert(`<h2>Orders</h2><table><form>${rows(700)}</form></table><p>The end.</p>`);
  assert.match(markdown, /row 0\b.*row 699\b.*The end\.$/s);
  assert.doesNotMatch(markdown, /undefined/);
});

test("a thread that takes too long is given up, and the page still has headings, links and cells", async () => {
  const { title, markdown } = await convert(
    `<title>Slow &amp; long</title><h1>Head</h1><ul><li>one <a href="../x?a=1&amp;b=2">link</a></ul><a href="#here">here</a>
      <table>${rows(2000)}</table>`,
    1,
  );
  assert.equal(title, "Slow & long");
  assert.match(markdown, /^# Head\n- one \[link\]\(https:\/\/site\.test\/x\?a=1&b=2\)\nhere\n\| row 0 \| \[more\]/);
  assert.match(markdown, /\| row 1999 \| \[more\]\(https:\/\/site\.test\/dir\/p\/1999\)$/);
});

test("what nobody sees is left out there too", async () => {
  const deep = "<div>".repeat(2000);
  const { markdown } = await convert(
    `${deep}one <div style="color:red; display: none">ORDER <div>ORDER</div> ORDER</div> two <p hidden>ORDER<p>three
      <span aria-hidden="true">ORDER<i>ORDER</i></span> four <b data-hidden="1" title="a hidden gem">five</b> <section hidden>ORDER <a href="/x">ORDER`,
  );
  assert.equal(markdown.replace(/\s+/g, " "), "one two three four five");
});

test("a page nested beyond reason keeps its text", async () => {
  const { markdown } = await convert(`${"<div>".repeat(90_000)}deep down &amp; out`);
  assert.equal(markdown, "deep down & out");
});

test("an interrupt ends the conversion", async () => {
  const stop = new AbortController();
  const converting = convertPage(`<table>${rows(20_000)}</table>`, BASE, { signal: stop.signal });
  stop.abort(new Error("stopped by the user"));
  await assert.rejects(converting, /stopped by the user/);
});

test("the work is done in a thread of its own", async (t) => {
  let threads = 0;
  const seen = () => void threads++;
  process.on("worker", seen);
  t.after(() => process.off("worker", seen));
  await convert(`<main>${repeat(2000, (n) => `<p>Paragraph ${n} <a href="/${n}">link</a>, and so on.</p>`)}</main>`);
  assert.equal(threads, 1);
});
