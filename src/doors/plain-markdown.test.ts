import assert from "node:assert/strict";
import { test } from "node:test";
import { plainMarkdown } from "./plain-markdown.ts";

const rows: [string, string, string][] = [
  ["emphasis markers go", "**bold** and *italic* and ***both*** and ~~gone~~", "bold and italic and both and gone"],
  ["heading markers go", "## Title ##\ntext", "Title\ntext"],
  ["links keep their text", "see [docs](https://x.test/a_(b)) and ![pic](p.png)", "see docs and pic"],
  ["code spans keep their content", "run `**not bold**` now", "run **not bold** now"],
  ["fence lines go, code stays", "```ts\nconst __init__ = **x**;\n```\nafter", "const __init__ = **x**;\nafter"],
  [
    "identifiers with underscores stay",
    "__init__ and snake_case_name and _emph_",
    "__init__ and snake_case_name and emph",
  ],
  ["strong text in underscores goes", "this is __very strong__ text", "this is very strong text"],
  ["products are not emphasis", "2*3*4 = 24", "2*3*4 = 24"],
  ["a cron line is not a rule", "* * * * *", "* * * * *"],
  ["rules are dropped", "a\n\n---\n\nb", "a\n\nb"],
  ["bullets, numbers and quotes stay", "- a\n* b\n1. c\n> d", "- a\n* b\n1. c\n> d"],
  ["many blank lines become one", "a\n\n\n\n\nb", "a\n\nb"],
];
for (const [name, input, expected] of rows) test(name, () => assert.equal(plainMarkdown(input, 80), expected));

test("tables line up by cells", () => {
  const text = "| 名称 | x |\n|---|---|\n| a | 长长的值 |";
  assert.equal(plainMarkdown(text, 80), "| 名称 | x        |\n| ---- | -------- |\n| a    | 长长的值 |");
});

test("a table wider than the terminal becomes a list", () => {
  const text = `| Name | Value |\n|---|---|\n| a | ${"x".repeat(30)} |`;
  assert.equal(plainMarkdown(text, 20).split("\n")[0], "Name: a");
});

test("rows without a separator stay text", () => {
  assert.equal(plainMarkdown("| a | b |\n| c | d |", 80), "| a | b |\n| c | d |");
});
