import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as yaml from "yaml";
import { parseText } from "../home/config/yaml-text.ts";
import { readPlainTexts, readPlainTyped } from "./plain-yaml.ts";

/** As front matter is read by the library, empty values as empty texts. Throws when the library finds an error. */
function textsByLibrary(text: string): unknown {
  const document = yaml.parseDocument(text, { schema: "failsafe", uniqueKeys: false });
  if (document.errors[0]) throw document.errors[0];
  return JSON.parse(JSON.stringify(document.toJS() ?? {}, (_, value) => value ?? ""));
}

/** As settings are read by the library. */
function typedByLibrary(text: string): unknown {
  const parsed = parseText(yaml, text);
  assert.ok(parsed.ok, `the parser refuses ${JSON.stringify(text)}`);
  return parsed.tree;
}

const settings = `# my settings
_config_version: 24
model:
  default: anthropic/claude-opus-4.6   # good
  provider: openrouter
  base_url: https://openrouter.ai/api/v1
agent:
  max_turns: 60
  personalities: {}
  reasoning_effort: 'high'
display:
    skin: default
    streaming: on
    show_cost: No
compression:
  threshold: 0.85

command_allowlist:
- delete files
- "git push --force"
toolsets: [web, "file", 7]
terminal:
  shell_init_files:
    - /etc/profile
timezone: ""
empty:
last: null
`;

test("typical settings are read without the parser, and read the same", () => {
  for (const text of [settings, settings.replaceAll("\n", "\r\n")])
    assert.deepEqual(readPlainTyped(text), typedByLibrary(text));
});

const usual: readonly (readonly [string, unknown])[] = [
  ["name: a\ndescription: b c\n", { name: "a", description: "b c" }],
  ['name: a-b\ndescription: "Use when: x #1"\n', { name: "a-b", description: "Use when: x #1" }],
  ["description: 'say \"hi\"'\nversion: 1.10\n", { description: 'say "hi"', version: "1.10" }],
  ["platforms: [macos, linux]\ntags: []\n", { platforms: ["macos", "linux"], tags: [] }],
  [
    "metadata:\n  hermes:\n    tags: [x]\n  other: y\nlast:\n",
    { metadata: { hermes: { tags: ["x"] }, other: "y" }, last: "" },
  ],
  ["list:\n- a b\n- 'c'\nother:\n  - d\n", { list: ["a b", "c"], other: ["d"] }],
  ["a: no\nb: 1, 2 (x); y\n", { a: "no", b: "1, 2 (x); y" }],
  ["url: https://x.y/z#q\nname: 名前 😀\n", { url: "https://x.y/z#q", name: "名前 😀" }],
  ["# comment\na: b # comment\r\n", { a: "b" }],
  ["", {}],
];
for (const [text, fields] of usual) {
  test(`front matter of the usual kind needs no YAML parser: ${JSON.stringify(text).slice(0, 60)}`, () => {
    assert.deepEqual(readPlainTexts(text), fields);
    assert.deepEqual(textsByLibrary(text), fields);
  });
}

const left = [
  ["a: |\n  x\n", "a: >\n  x\n", "a: &x 1\n", "a: *x\n", "a: !!str 1\n", "a: {b: 1}\n", "- a\n", "a: 1\na: 2\n"],
  ["a: b\n  c\n", "a:\n  b: 1\n c: 2\n", "a:\n    b: 1\n  c: 2\n", "  a: b\n", "a: b: c\n", "\ta: 1\n", "a:\tb\n"],
  ["on: 1\n", "? a\n", "? a\n: b\n", "--- \na: 1\n", 'a: "x\\n"\n', "a: 'it''s'\n", "a: it''s: x\n", "a: - b\n"],
  ["a: [x, [y]]\n", 'a: ["x, y"]\n', "a:\n  - b: 1\n", "\ufeffa: 1\n", "a: [x", "text\n", "a:b\n", "<<: x\n"],
  ["__proto__: x\n", "a: b\rc: d\n"],
].flat();
for (const text of left) {
  test(`${JSON.stringify(text)} is left to the parser`, () => {
    assert.equal(readPlainTyped(text), null);
    assert.equal(readPlainTexts(text), null);
  });
}

test("a number or a nothing in an unusual spelling is left to the parser", () => {
  for (const word of ["Null", "007", "1e3", "0x1f", "2024-01-01", "1:30", "123456789012345678", "-0", "1\u00a0"])
    assert.equal(readPlainTyped(`a: ${word}\n`), null, word);
});

test("an empty file is an empty mapping", () => {
  for (const text of ["", "\n\n", "# only a comment\n", "   \n"]) assert.deepEqual(readPlainTyped(text), {});
});

const words = [
  ["a", "b", "model", "on", "Yes", "n", "null", "~", "1", "-1", "0", "-0", "1.5", "1.", ".5", "007", "1_0", "1:2"],
  ["x y", "x  y", "http://h:1/p", "a:", "a: b", "#c", "x #c", "x#c", "'q'", '"q"', "'q' r", '"a" #c', '"#"', "[]"],
  ["[a, b]", "[a,'b',1]", "[a, ]", "[,]", "[a b, on]", "[a b ,c]", "[x #c]", "[-1, ~]", "[(x)]", "{}", "{a: 1}", "-"],
  [
    "- a",
    "--",
    "=",
    "<<",
    "|",
    ">",
    "&a",
    "*a",
    "!t",
    "%",
    "@",
    "`",
    "a/b",
    "/x",
    "(x)",
    "x(y)",
    "$x",
    "é",
    "名",
    "😀",
  ],
  ["2024-01-01", "0.10", "1e3", "...", "---", "TRUE", "tRue", "Null", "e0", "E5", "x1e3", "nan", ".inf", "1.10", "no"],
  [": ", ":", " ", "  ", "#", " #", "\u00a0", "&", "*", "!", "{", "}", "[", "]", ",", "\\", '"', "'", "?", "(", "\t"],
  ["\u2028", "\r", "\u3000", "[a:b]", "[a, 'b: c']", "1, 2"],
].flat();
const text = fc
  .array(
    fc
      .tuple(
        fc.constantFrom("", "", "", "  ", "  ", "    ", " "),
        fc.oneof(
          { weight: 4, arbitrary: fc.constantFrom("a", "b", "c", "d", "model").map((key) => `${key}: `) },
          fc.constantFrom("model:", "key-x:  ", "_y: ", "a.b-c_d: ", "on: ", "1: ", "a : ", "- ", "-  ", ""),
        ),
        fc.oneof(
          { weight: 5, arbitrary: fc.constantFrom("a", "no", "1.5", "x y", "'q'", "[a, b]", "a/b", "") },
          { weight: 3, arbitrary: fc.constantFrom(...words) },
          fc.array(fc.constantFrom(...words), { maxLength: 3 }).map((pieces) => pieces.join("")),
          fc.constantFrom("", "# x"),
        ),
        fc.constantFrom("", "", "", " # c", "#c", " "),
      )
      .map((parts) => parts.join("")),
    { minLength: 1, maxLength: 5 },
  )
  .chain((lines) => fc.constantFrom("\n", "\r\n").map((eol) => lines.join(eol)));

for (const [kind, read, byLibrary] of [
  ["texts", readPlainTexts, textsByLibrary],
  ["typed values", readPlainTyped, typedByLibrary],
] as const) {
  test(`whatever is read as ${kind} without the parser, the parser reads the same`, () => {
    let answered = 0;
    fc.assert(
      fc.property(text, (given) => {
        const tree = read(given);
        if (tree === null) return;
        answered++;
        assert.deepEqual(tree, byLibrary(given), JSON.stringify(given));
      }),
      { numRuns: 5000 },
    );
    assert.ok(answered > 200, `only ${answered} answered`);
  });
}
