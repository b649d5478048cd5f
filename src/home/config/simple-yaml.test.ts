import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as yaml from "yaml";
import { readSimpleYaml } from "./simple-yaml.ts";
import { parseText } from "./yaml-text.ts";

const typical = `# my settings
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
    - ~/.profile
timezone: ""
empty:
last: null
`;

test("a typical file is read without the parser, and read the same", () => {
  const simple = readSimpleYaml(typical.replace("~/.profile", "/etc/profile"));
  const parsed = parseText(yaml, typical.replace("~/.profile", "/etc/profile"));
  assert.ok(simple !== null && parsed.ok);
  assert.deepEqual(simple, parsed.tree);
});

for (const text of [
  "a: |\n  x\n",
  "a: &x 1\n",
  "a: *x\n",
  "a: !!str 1\n",
  "a: {b: 1}\n",
  "- a\n",
  "a: 1\na: 2\n",
  "a: b\n  c\n",
  "a:\n  b: 1\n c: 2\n",
  "a: b: c\n",
  "\ta: 1\n",
  "a:\tb\n",
  "on: 1\n",
  "? a\n",
  "--- \na: 1\n",
  "a: 007\n",
  "a: 1e3\n",
  "a: 0x1f\n",
  "a: 2024-01-01\n",
  "a: 1:30\n",
  'a: "x\\n"\n',
  "a: 'it''s'\n",
  "a: - b\n",
  "a: [x, [y]]\n",
  'a: ["x, y"]\n',
  "a:\n  - b: 1\n",
  "a: 123456789012345678\n",
  "\ufeffa: 1\n",
  "a: [x",
  "text\n",
  "a:b\n",
  "<<: x\n",
]) {
  test(`${JSON.stringify(text)} is left to the parser`, () => assert.equal(readSimpleYaml(text), null));
}

test("an empty file is an empty mapping", () => {
  for (const text of ["", "\n\n", "# only a comment\n", "   \n"]) assert.deepEqual(readSimpleYaml(text), {});
});

const indent = fc.constantFrom("", "", "  ", "  ", "    ", " ");
const word = fc.constantFrom(
  "a",
  "b",
  "model",
  "on",
  "Yes",
  "n",
  "null",
  "~",
  "1",
  "-1",
  "0",
  "-0",
  "1.5",
  "1.",
  ".5",
  "007",
  "1_0",
  "1:2",
  "x y",
  "x  y",
  "http://h:1/p",
  "a:",
  "a: b",
  "#c",
  "x #c",
  "x#c",
  "'q'",
  '"q"',
  "'q' r",
  '"a" #c',
  '"#"',
  "[]",
  "[a, b]",
  "[a,'b',1]",
  "[a, ]",
  "[,]",
  "[a b, on]",
  "[x #c]",
  "{}",
  "{a: 1}",
  "-",
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
  "2024-01-01",
  "0.10",
  "1e3",
  "...",
  "---",
  "TRUE",
  "tRue",
  "e0",
  "E5",
  "x1e3",
  "nan",
  ".inf",
);
const line = fc.oneof(
  fc
    .tuple(
      indent,
      fc.constantFrom("a", "b", "c", "model", "key-x", "_y", "on", "1"),
      fc.constantFrom(": ", ":", ":  ", " : "),
      word,
      fc.constantFrom("", " # c", "#c", " "),
    )
    .map((parts) => parts.join("")),
  fc.tuple(indent, fc.constantFrom("a:", "b:", "c: # x", "- ", "-")).map((parts) => parts.join("")),
  fc.tuple(indent, fc.constant("- "), word).map((parts) => parts.join("")),
  fc.tuple(indent, word).map((parts) => parts.join("")),
  fc.constantFrom("", "# c", "   # c"),
);

test("whenever it answers, the parser answers the same", () => {
  let answered = 0;
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 5 }), fc.constantFrom("\n", "\r\n"), (lines, eol) => {
      const text = lines.join(eol);
      const simple = readSimpleYaml(text);
      if (simple === null) return;
      answered++;
      const parsed = parseText(yaml, text);
      assert.ok(parsed.ok, `the parser refuses ${JSON.stringify(text)}`);
      assert.deepEqual(simple, parsed.tree, JSON.stringify(text));
    }),
    { numRuns: 3000 },
  );
  assert.ok(answered > 100, `only ${answered} answered`);
});
