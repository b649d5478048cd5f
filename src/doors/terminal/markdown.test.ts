import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { stripTerminalSequences } from "@earendil-works/pi-tui";
import fc from "fast-check";
import { cellWidth, makeTheme, onlyStyled } from "../terminal-text.ts";
import { type CodeState, colourLine, languageOf } from "./code-colours.ts";
import { assumeLinks, OWN_LINKS } from "./links.ts";
import { loadCodeColours, renderMarkdown } from "./markdown.ts";

const coloured = makeTheme(true);
/** What is read, from the coloured text: without colours some marks stay. */
const read = (text: string, width = 80) => renderMarkdown(text, width, coloured).map(stripTerminalSequences).join("\n");
afterEach(() => assumeLinks(null));

const rows: [string, string, string][] = [
  ["emphasis", "**bold** and *italic* and ~~gone~~", "bold and italic and gone"],
  ["a single tilde is no emphasis", "~5 and ~6", "~5 and ~6"],
  ["prices are no formulas, formulas are shown", "$5 and $6, $x^2$", "$5 and $6, x²"],
  ["headings lose their marks", "# Title\n\n## Part\ntext", "Title\n\nPart\ntext"],
  [
    "code stands without fences, its language above it",
    "```ts\nlet a;\n\nlet b;\n```\nend",
    "  ts\n  let a;\n\n  let b;\nend",
  ],
  ["a quote has a line beside it", "> one\n> two", "│ one\n│ two"],
  ["tasks keep their boxes", "- [x] done\n- [ ] open", "- [x] done\n- [ ] open"],
  ["numbers stay as they were written", "1. a\n2. b\n10. c", "1. a\n2. b\n10. c"],
  ["equal numbers are counted", "1. a\n1. b\n1. c", "1. a\n2. b\n3. c"],
  ["a link shows where it leads", "[docs](https://x.test/a)", "docs (https://x.test/a)"],
  ["an address is shown once", "<https://x.test/a> [x.test](https://x.test/)", "https://x.test/a x.test"],
  [
    "words cannot hide another address",
    "[https://good.test](https://bad.test)",
    "https://good.test (https://bad.test)",
  ],
  [
    "columns are aligned as they ask",
    "| a | b |\n|---|--:|\n| x | 1 |\n| 名称 | 22 |",
    " a    │  b\n──────┼────\n x    │  1\n 名称 │ 22",
  ],
  ["entities are read", "a &lt;b&gt; &amp; c", "a <b> & c"],
  ["many blank lines become one", "a\n\n\n\nb", "a\n\nb"],
];
for (const [name, text, expected] of rows) test(name, () => assert.equal(read(text), expected));

test("list items hang, also nested ones", () => {
  const text = "- a text that has to wrap\n  - nested text that wraps too";
  assert.equal(read(text, 16), "- a text that\n  has to wrap\n  - nested text\n    that wraps\n    too");
});

test("a table that is too wide becomes a list of names and values", () => {
  const text = "| Name | Value |\n|---|---|\n| a | some long words that need room |\n| b | c |";
  assert.equal(read(text, 24), "Name: a\nValue: some long words\n  that need room\n\nName: b\nValue: c");
});

test("without colours, code and headings keep their marks", () => {
  const plain = renderMarkdown("## Part\n`x` is\n```js\ny\n```", 40, makeTheme(false));
  assert.deepEqual(plain, ["## Part", "`x` is", "```js", "  y", "```"]);
});

test("a link is one the terminal can open only where it can, and only ours passes the last look", () => {
  const text = `[docs](https://x.test/${"a".repeat(80)})`;
  assumeLinks(true);
  const [line = ""] = renderMarkdown(text, 120, coloured);
  assert.match(line, /\u001b\]8;id=\w+;https:\/\/x\.test\/a{80}\u001b\\/);
  assert.equal(stripTerminalSequences(line).length, "docs ()".length + 60, "a long address is cut");
  assert.deepEqual(onlyStyled([line], 120, OWN_LINKS), [line]);
  const foreign = "\u001b]8;id=h123;https://bad.test\u001b\\docs\u001b]8;;\u001b\\";
  assert.doesNotMatch(onlyStyled([foreign], 120, OWN_LINKS).join(""), /bad\.test\u001b/);
  assert.equal(renderMarkdown("[x](javascript:alert)", 80, coloured).join("").includes("\u001b]8"), false);
  assumeLinks(false);
  assert.doesNotMatch(renderMarkdown(text, 120, coloured).join(""), /\u001b\]8/);
});

test("no rendered line is wider than the screen, whatever stands in it", () => {
  const piece = fc.constantFrom(
    "word ",
    "汉字",
    "**",
    "`",
    "\n",
    "\n\n",
    "- ",
    "> ",
    "1. ",
    "| a | b |\n|---|--:|\n| c | d |\n",
    "```\n",
    "# ",
    "[a](https://x.test/b) ",
    "    ",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), fc.integer({ min: 12, max: 60 }), (parts, width) => {
      for (const line of renderMarkdown(parts.join(""), width, coloured)) assert.ok(cellWidth(line) <= width, line);
    }),
  );
});

test("code is coloured by its language once the colours are loaded", async () => {
  await loadCodeColours();
  const [, line = ""] = renderMarkdown("```ts\nreturn 1;\n```", 40, coloured);
  assert.equal(line, `  ${coloured.keyword("return")} ${coloured.number("1")};`);
});

/** Every painted piece as `kind:text`. */
function pieces(info: string, code: string): string {
  const tagged = { ...makeTheme(false) };
  for (const kind of ["keyword", "string", "number", "comment", "call", "type", "added", "removed"] as const)
    tagged[kind] = (text) => `<${kind[0]}:${text}>`;
  const language = languageOf(info);
  assert.ok(language, `${info} is known`);
  let state: CodeState | null = null;
  return code
    .split("\n")
    .map((line) => {
      const painted = colourLine(line, language, state, tagged);
      state = painted.state;
      return painted.text;
    })
    .join("\n");
}

const code: [string, string, string][] = [
  ["ts", 'import a from "b"; // c', '<k:import> a <k:from> <s:"b">; <c:// c>'],
  ["tsx", "f(`a\nb`, null)", "<c:f>(<s:`><s:a>\n<s:b`>, <n:null>)"],
  ["js", "/* a\nb */ 0x1f", "<c:/*><c: a>\n<c:b */> <n:0x1f>"],
  ["python", 'def f(): # c\n  """d\n  e"""', '<k:def> <c:f>(): <c:# c>\n  <s:"""><s:d>\n<s:  e""">'],
  ["bash", "echo $# 'a' # c", "echo $# <s:'a'> <c:# c>"],
  ["json", '{"a": [1, true]}', '{<t:"a">: [<n:1>, <n:true>]}'],
  ["yaml", "a-b: c # d", "<t:a-b>: c <c:# d>"],
  ["html", '<a x="y">don\'t', '<a <t:x>=<s:"y">>don\'t'],
  ["sql", "SELECT 'a' -- c", "<k:SELECT> <s:'a'> <c:-- c>"],
  ["rust", "fn f<'a>()", "<k:fn> f<'a>()"],
  ["diff", "+a\n-b", "<a:+a>\n<r:-b>"],
];
for (const [info, text, expected] of code)
  test(`${info} code is told apart`, () => assert.equal(pieces(info, text), expected));

test("colours change no character, and no fence of a language that nobody knows fails", () => {
  assert.equal(languageOf("brainfuck"), null);
  const names = [
    "ts",
    "python",
    "bash",
    "json",
    "yaml",
    "toml",
    "go",
    "rust",
    "c",
    "java",
    "php",
    "ruby",
    "lua",
    "sql",
    "css",
    "html",
    "dockerfile",
    "make",
    "ps1",
    "haskell",
    "graphql",
  ];
  const line = fc
    .array(
      fc.constantFrom(
        "a",
        " ",
        '"',
        "'",
        "`",
        "/*",
        "*/",
        "//",
        "#",
        "--",
        "\\",
        "1",
        "$",
        "名",
        "<!--",
        '"""',
        "(",
        ":",
      ),
    )
    .map((parts) => parts.join(""));
  fc.assert(
    fc.property(fc.constantFrom(...names), line, (name, text) => {
      const language = languageOf(name);
      assert.ok(language);
      assert.equal(stripTerminalSequences(colourLine(text, language, null, coloured).text), text);
    }),
  );
});
