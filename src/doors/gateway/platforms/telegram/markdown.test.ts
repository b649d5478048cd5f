import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MarkdownRefused, parseMarkdownV2 } from "../../../../../test/support/platforms/telegram-markdown.ts";
import { unicodeText } from "../../../../../test/support/unicode-text.ts";
import { splitMessage } from "../../split.ts";
import { toMarkdownV2 } from "./markdown.ts";

const cases: readonly (readonly [name: string, markdown: string, sent: string])[] = [
  ["plain text", "Hello, world", "Hello, world"],
  [
    "reserved characters",
    "_ * [ ] ( ) ~ ` > # + - = | { } . ! \\",
    "\\_ \\* \\[ \\] \\( \\) \\~ \\` \\> \\# \\+ \\- \\= \\| \\{ \\} \\. \\! \\\\",
  ],
  ["a fence with its language", "```ts\nconst a = `b\\n`;\n```", "```ts\nconst a = \\`b\\\\n\\`;\n```"],
  ["a fence that is never closed", "```\ncode", "```\ncode\n```"],
  ["a fence of tildes with another inside", "~~~~md\n```\nx\n```\n~~~~", "```md\n\\`\\`\\`\nx\n\\`\\`\\`\n```"],
  ["inline code", "call `a_b(\\d)` now.", "call `a_b(\\\\d)` now\\."],
  ["inline code with a backtick", "``a`b``", "`a\\`b`"],
  ["a lone backtick", "a ` b", "a \\` b"],
  ["marks inside code", "`**a**` and ```*b*```", "`**a**` and `*b*`"],
  ["a link", "[the docs](https://a.example/x_y)", "[the docs](https://a.example/x_y)"],
  ["a link with parentheses", "[t.](https://a.example/f_(x))", "[t\\.](https://a.example/f_\\(x\\))"],
  ["a link with a title", '[t](https://a.example "T")', "[t](https://a.example)"],
  ["an image", "![alt](https://a.example/i.png)", "\\![alt](https://a.example/i.png)"],
  ["brackets that are no link", "[x] (y) a[0](", "\\[x\\] \\(y\\) a\\[0\\]\\("],
  ["a heading", "## Title: *a* **b**", "*Title: _a_ b*"],
  ["no heading", "#tag ####### seven", "\\#tag \\#\\#\\#\\#\\#\\#\\# seven"],
  ["bold", "**b** and **b.c**", "*b* and *b\\.c*"],
  ["italics", "*i* and *i.j*", "_i_ and _i\\.j_"],
  ["bold italics", "***x***", "*_x_*"],
  ["italics inside bold", "**a *b* c**", "*a _b_ c*"],
  ["bold inside italics", "*a **b** c*", "_a *b* c_"],
  ["italics at the end of bold", "**a *b***", "*a _b_*"],
  ["a link and code inside bold", "**see [x](https://a.example) and `y`**", "*see [x](https://a.example) and `y`*"],
  ["bold inside a link", "[**x** y](https://a.example)", "[*x* y](https://a.example)"],
  ["marks that cross", "**a *b** c*", "*a \\*b* c\\*"],
  ["a mark inside its like", "**a **b** c**", "*a \\*\\*b* c\\*\\*"],
  ["a mark without its partner", "**a", "\\*\\*a"],
  ["an escaped mark", "\\*a\\*", "\\\\\\*a\\\\\\*"],
  ["bullets", "* one\n* *two*\n- three\n+ four", "\\* one\n\\* _two_\n\\- three\n\\+ four"],
  ["multiplication", "2 * 3 * 4", "2 \\* 3 \\* 4"],
  ["names with underscores", "snake_case_name and _x_", "snake\\_case\\_name and \\_x\\_"],
  ["italics over two lines are none", "*a\nb*", "\\*a\nb\\*"],
  ["struck out", "~~old~~ ~one~", "~old~ \\~one\\~"],
  ["a spoiler", "||psst|| a || b", "||psst|| a \\|\\| b"],
  ["a quote", "> said **he**.\n>\n>> twice\nafter", "> said *he*\\.\n>\n>> twice\nafter"],
  ["no quote", ">5 and a > b", "\\>5 and a \\> b"],
  ["a quote that folds", "> a\n**>b\n> c||\nafter", "> a\n**>b\n> c||\nafter"],
  ["a quote that only ends with bars", "> a||", "> a\\|\\|"],
  ["bold that begins with a sign of a quote", "**>5** x", "*\\>5* x"],
  [
    "a table",
    "| Name | Age | City |\n|---|:-:|---|\n| **Ada** | 36 | London |\n| Bob | | `x` |\nafter",
    "*Ada*\n• Age: 36\n• City: London\n\n*Bob*\n• City: `x`\nafter",
  ],
  [
    "a table whose rows have a title of their own",
    "| A | B |\n|---|---|\n| one | 1 | 2 |\n| two | 3 | 4 |",
    "*one*\n• A: 1\n• B: 2\n\n*two*\n• A: 3\n• B: 4",
  ],
  ["a table whose first cell is empty", "|A|B|\n|-|-|\n||x\\|y|", "*x\\|y*"],
  ["a table inside code", "```\n|A|B|\n|-|-|\n|1|2|\n```", "```\n|A|B|\n|-|-|\n|1|2|\n```"],
  ["line ends of Windows", "a\r\nb", "a\nb"],
  ["half a character", "a\ud83d", "a\ufffd"],
];

for (const [name, markdown, sent] of cases)
  test(`${name}: Telegram is sent ${JSON.stringify(sent)}`, () => {
    assert.equal(toMarkdownV2(markdown), sent);
    parseMarkdownV2(sent);
  });

test("what Telegram refuses is refused by its look-alike too", () => {
  const refused: readonly (readonly [string, RegExp])[] = [
    ["a.b", /character '\.' is reserved/],
    ["a-b!", /character '-' is reserved/],
    ["*a", /can't find end of Bold entity at byte offset 0/],
    ["é *a _b* c_", /can't find end of \w+ entity/],
    ["_a__b_", /can't find end of/],
    ["a > b", /character '>' is reserved/],
    ["a | b", /character '\|' is reserved/],
    ["> *a\nb*", /can't find end of Bold entity/],
    ["[a](b", /can't find end of a URL/],
    ["![a](b)", /tg:\/\/emoji/],
    ["`a", /can't find end of Code entity/],
    ["```js\na", /can't find end of PreCode entity/],
  ];
  for (const [text, why] of refused)
    assert.throws(
      () => parseMarkdownV2(text),
      (error) => error instanceof MarkdownRefused && why.test(error.message),
      text,
    );
});

const marks = [
  ..."* ** *** **** _ __ ` `` ``` ~ ~~ ~~~ | || [ ] ( ) > >> **> # ## \\ - + = { } . !".split(" "),
  ..."](https://a.example/b) ](x) https://a.example/x_y <b> \n \n\n \t".split(" "),
  ...["# ", "> ", "* ", "- ", "1. ", "```js\n", "\n```\n", "\n|a|b|\n|-|-|\n|c|d|\n", " ", " ", "\n", "\r\n"],
];
const words = fc.constantFrom("alpha", "beta", "Gamma", "0", "é", "漢字", "👩‍💻", "\u00a0", "\u200b");
const markdown = fc
  .array(fc.oneof(fc.constantFrom(...marks), words, unicodeText({ maxLength: 4 })), { maxLength: 40 })
  .map((pieces) => pieces.join(""));

test("whatever the text, Telegram parses what it is sent", () => {
  fc.assert(
    fc.property(markdown, (text) => {
      parseMarkdownV2(toMarkdownV2(text));
    }),
    { numRuns: 3000 },
  );
});

const letters = (text: string) => text.replace(/[^\p{L}\p{N}]/gu, "");

/** What a reader can get at: the text, where its links lead, and the languages of code, in the order of the source. */
function read(sent: string): string {
  const { text, entities, dropped } = parseMarkdownV2(sent);
  const hidden = [
    ...entities.flatMap(({ offset, length, url }) => (url === undefined ? [] : [{ at: offset + length, text: url }])),
    ...entities.flatMap(({ offset, language }) => (language === undefined ? [] : [{ at: offset, text: language }])),
    ...dropped.map(({ offset, url }) => ({ at: offset, text: url })),
  ].sort((a, b) => b.at - a.at);
  return letters(hidden.reduce((all, one) => all.slice(0, one.at) + one.text + all.slice(one.at), text));
}

test("nothing that was written is missing from what is shown", () => {
  const visible = fc
    .array(fc.oneof(fc.constantFrom(...marks), words), { maxLength: 30 })
    // Blanks at the beginning are cut by Telegram, and the offsets of this test are not.
    .map((pieces) => `x${pieces.join("")}`);
  const isTable = (line: string) => /^[-|: \t]*-[-|: \t]*$/.test(line);
  const isLongInfo = (line: string) => /^[ \t]*(?:`{3,}|~{3,})\s*[^\s`]+\s+\S/.test(line);
  fc.assert(
    fc.property(visible, (text) => {
      fc.pre(!text.split(/\r?\n/).some((line) => isTable(line) || isLongInfo(line)));
      assert.equal(read(toMarkdownV2(text)), letters(text));
    }),
    { numRuns: 3000 },
  );
});

test("a text without marks is shown as it is, letter by letter", () => {
  const unit = fc.constantFrom(..."abc xyz 0123 .!-+=(){}_#>,;:'\"é漢👍".split(""));
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 80 }), (text) => {
      fc.pre(text.isWellFormed() && !/^ {0,3}#{1,6}[ \t]+\S|^>/.test(text));
      assert.equal(parseMarkdownV2(toMarkdownV2(text)).text, text.trim());
    }),
  );
});

test("each part of 10,000 characters of nested code parses and fits, and the parts hold the code", () => {
  const code = Array.from({ length: 260 }, (_, n) => `${" ".repeat(n % 9)}if (a[${n}] > b_${n}) { run(\`x${n}\`); }`);
  const source = `Intro **bold**:\n\n\`\`\`\`ts\n${code.join("\n")}\n\`\`\`\`\n\n1. done!`;
  const parts = splitMessage(source, { max: 4096, format: toMarkdownV2 });
  assert.ok(parts.length > 2);
  const shown = parts.map((part) => parseMarkdownV2(toMarkdownV2(part)));
  for (const part of parts) assert.ok(toMarkdownV2(part).length <= 4096);
  const blocks = shown.flatMap(({ text, entities }) =>
    entities.filter(({ type }) => type === "pre").map(({ offset, length }) => text.slice(offset, offset + length)),
  );
  assert.equal(blocks.map((block) => block.replace(/\n$/, "")).join("\n"), code.join("\n"));
});
