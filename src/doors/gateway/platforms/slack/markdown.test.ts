import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { readMrkdwn } from "../../../../../test/support/platforms/slack-rules.ts";
import { escapeMrkdwn, toMrkdwn, unescapeMrkdwn } from "./markdown.ts";

const CASES: readonly (readonly [string, string, string])[] = [
  ["plain words stay", "hello there", "hello there"],
  ["bold", "a **b c** d", "a *b c* d"],
  ["italics", "a *b c* d", "a _b c_ d"],
  ["bold italics", "***x***", "*_x_*"],
  ["italics inside bold", "**a *b* c**", "*a _b_ c*"],
  ["bold inside italics", "*a **b** c*", "_a *b* c_"],
  ["struck through", "~~gone~~", "~gone~"],
  ["struck through inside bold", "**~~gone~~**", "*~gone~*"],
  ["a star with blanks is a star", "2 * 3 * 4", "2 * 3 * 4"],
  ["a bullet is a bullet", "* one *two*\n* three", "* one _two_\n* three"],
  ["a star that is never closed", "5 *stars", "5 *stars"],
  ["emphasis ends with its line", "*a\nb*", "*a\nb*"],
  ["italics of underscores are Slack's own", "_x_", "_x_"],
  ["a heading is bold", "# Title\ntext", "*Title*\ntext"],
  ["the sixth heading is the last", "###### x\n####### y", "*x*\n####### y"],
  ["marks inside a heading go", "## **Big** news ##", "*Big news*"],
  ["a heading keeps its hash", "# C#", "*C#*"],
  ["no blank, no heading", "#channel", "#channel"],
  ["a link", "[t](http://u.v/w)", "<http://u.v/w|t>"],
  ["a bold link", "**[t](http://u)**", "*<http://u|t>*"],
  ["a link with parentheses", "[t](http://u/a_(b))", "<http://u/a_(b)|t>"],
  ["a wrapped address", "[t](<http://u/a b>)", "<http://u/a%20b|t>"],
  ["a link with a title", '[t](http://u "The title")', "<http://u|t>"],
  ["what Slack reads in a link", "[a < b & c](http://u?x=1&y=2)", "<http://u?x=1&amp;y=2|a &lt; b &amp; c>"],
  ["a pipe in an address", "[t](http://u/a|b)", "<http://u/a%7Cb|t>"],
  ["an image is no link", "![alt](http://u/x.png)", "![alt](http://u/x.png)"],
  ["stars in an address", "[t](http://u/*a*)", "<http://u/*a*|t>"],
  [
    "people, channels, groups",
    "<@U12AB> <#C12AB|x> <!here> <!subteam^S1>",
    "<@U12AB> <#C12AB|x> <!here> <!subteam^S1>",
  ],
  ["links of Slack's kind", "<https://a.b|c> <mailto:a@b.c> <tel:123>", "<https://a.b|c> <mailto:a@b.c> <tel:123>"],
  ["any other tag is text", "<div> <@nobody here>", "&lt;div&gt; &lt;@nobody here&gt;"],
  ["the three signs", "a & b < c > d", "a &amp; b &lt; c &gt; d"],
  ["signs that are escaped already", "a &amp; b &lt; c", "a &amp; b &lt; c"],
  ["a quote keeps its mark", "> a > b\nc > d", "> a &gt; b\nc &gt; d"],
  ["bold in a quote", "> **a**", "> *a*"],
  ["inline code", "`**a** [b](c)`", "`**a** [b](c)`"],
  ["bold around code", "**`a`**", "*`a`*"],
  ["a fence", "```python\nx = **1** # *a*\n```", "```python\nx = **1** # *a*\n```"],
  ["code keeps its signs", "```\nif a < b && c > d:\n```", "```\nif a < b && c > d:\n```"],
  ["code that Slack would read as markup", "`<div>` `&lt;` `<@U1>`", "`&lt;div>` `&amp;lt;` `&lt;@U1>`"],
  ["a fence of tildes", "~~~js\n**a**\n~~~", "```js\n**a**\n```"],
  ["a fence that is never closed", "a\n```\n**b**", "a\n```\n**b**"],
  ["a fence inside a longer one", "````\n```\n**a**\n```\n````\n**b**", "````\n```\n**a**\n```\n````\n*b*"],
  ["a fence in a list", "1. a\n   ```\n   **b**\n   ```\n**c**", "1. a\n   ```\n   **b**\n   ```\n*c*"],
];
for (const [name, markdown, expected] of CASES)
  test(`Slack's markup: ${name}`, () => assert.equal(toMrkdwn(markdown), expected));

test("a reader of Slack sees marks as what they are", () => {
  const shown = readMrkdwn(toMrkdwn("# Plan\n**Do** *it* ~~now~~ with `a < b` and [docs](http://u?a=1&b=2)"));
  assert.deepEqual(
    shown.filter(({ as }) => as !== "text"),
    [
      { as: "bold", text: "Plan" },
      { as: "bold", text: "Do" },
      { as: "italic", text: "it" },
      { as: "strike", text: "now" },
      { as: "code", text: "a < b" },
      { as: "link", text: "docs", url: "http://u?a=1&b=2" },
    ],
  );
});

const letters = fc.string({ unit: fc.constantFrom(..."ab<>&;.:|#@!/()[] \nlt".split("")), maxLength: 40 });

test("for every text without marks a reader of Slack sees what was written", () => {
  fc.assert(
    fc.property(letters, (text) => {
      const words = text.replace(/[#>[\]]/g, "x").replace(/&(?:lt|gt|amp);/g, "x");
      fc.pre(!/<(?:@|#|!|https?:|mailto:|tel:)/.test(words));
      assert.equal(
        readMrkdwn(toMrkdwn(words))
          .map((run) => run.text)
          .join(""),
        words,
      );
    }),
  );
});

test("for every code a reader of Slack sees the code", () => {
  fc.assert(
    fc.property(letters, (text) => {
      const code = `x${text.replaceAll("\n", " ")}x`;
      assert.deepEqual(readMrkdwn(toMrkdwn(`\`${code}\``)), [{ as: "code", text: code }]);
      assert.deepEqual(readMrkdwn(toMrkdwn(`\`\`\`\n${code}\n\`\`\``)), [{ as: "block", text: `\n${code}\n` }]);
    }),
  );
});

test("whatever is written, nothing of it is lost and no sign of ours stays", () => {
  const unit = fc.constantFrom(
    ..."*~`_#>[]()<&|! \nab\ue000".split(""),
    "**",
    "```",
    "](http://u)",
    "~~~",
    "\ue0017\ue001",
  );
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 60 }), (text) => {
      const made = unescapeMrkdwn(toMrkdwn(text));
      const own = (one: string) => one.replace(/[^ab\ue000\ue001]/g, "");
      assert.equal(own(made).length, own(text).length, made);
    }),
    { numRuns: 500 },
  );
});

test("text that is escaped is shown as it is", () => {
  fc.assert(fc.property(letters, (text) => assert.equal(unescapeMrkdwn(escapeMrkdwn(text)), text)));
});

for (const piece of [
  "**a ",
  "*a ",
  "[a](",
  "[",
  "`",
  "~~a ",
  "<http://a",
  "# ",
  "> ",
  "***a",
  "(((",
  "```\n",
  "<",
  "&lt;",
])
  test(`a long text of ${JSON.stringify(piece)} takes no longer than its length`, () => {
    const began = performance.now();
    toMrkdwn(piece.repeat(39_000 / piece.length));
    assert.ok(performance.now() - began < 1000, `${performance.now() - began} ms`);
  });
