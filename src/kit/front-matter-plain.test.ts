import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseDocument } from "yaml";
import { type FrontMatter, parsePlainFrontMatter, readPlainYaml } from "./front-matter-plain.ts";

/** As the YAML library reads it, empty values as empty texts. Throws when the library finds an error. */
function byLibrary(yaml: string): unknown {
  const document = parseDocument(yaml, { schema: "failsafe", uniqueKeys: false });
  if (document.errors[0]) throw document.errors[0];
  return JSON.parse(JSON.stringify(document.toJS() ?? {}, (_, value) => value ?? ""));
}

const usual: readonly (readonly [string, FrontMatter])[] = [
  ["name: a\ndescription: b c\n", { name: "a", description: "b c" }],
  ['name: a-b\ndescription: "Use when: x #1"\n', { name: "a-b", description: "Use when: x #1" }],
  ["description: 'say \"hi\"'\nversion: 1.10\n", { description: 'say "hi"', version: "1.10" }],
  ["platforms: [macos, linux]\ntags: []\n", { platforms: ["macos", "linux"], tags: [] }],
  [
    "metadata:\n  hermes:\n    tags: [x]\n  other: y\nlast:\n",
    { metadata: { hermes: { tags: ["x"] }, other: "y" }, last: "" },
  ],
  ["list:\n- a b\n- 'c'\nother:\n  - d\n", { list: ["a b", "c"], other: ["d"] }],
  ["a: 1\n\na: 2", { a: "2" }],
  ["url: https://x.y/z#q\nname: 名前\n", { url: "https://x.y/z#q", name: "名前" }],
  ["", {}],
];
for (const [yaml, fields] of usual) {
  test(`front matter of the usual kind needs no YAML parser: ${JSON.stringify(yaml).slice(0, 60)}`, () => {
    assert.deepEqual(readPlainYaml(yaml), fields);
    assert.deepEqual(byLibrary(yaml), fields);
  });
}

const left = [
  "a: >\n  folded\n",
  "a: |\n  block\n",
  "a: b # comment\n",
  "# comment\na: b\n",
  "a: b\n  goes on\n",
  'a: "x\\n"\n',
  "a: it''s: x\n",
  "a: &anchor b\n",
  "a: *alias\n",
  "a: {b: c}\n",
  "a: [b, [c]]\n",
  "a:\n  - b: c\n",
  "a: b: c\n",
  "a:\tb\n",
  "a: b\r\n",
  "- a\n",
  "  a: b\n",
  "a:\n    b: c\n  d: e\n",
  "? a\n: b\n",
  "__proto__: x\n",
];
for (const yaml of left) {
  test(`this is left to the YAML parser: ${JSON.stringify(yaml)}`, () => assert.equal(readPlainYaml(yaml), null));
}

test("whatever is read without the YAML parser is what that parser reads", () => {
  const indent = fc.constantFrom("", "", "", "  ", "  ", "    ", " ");
  const piece = fc.constantFrom(
    ...[
      "a",
      "b",
      "name",
      "x y",
      "1.10",
      "no",
      "~",
      "null",
      '"q"',
      "'s'",
      "[a, b]",
      "[]",
      "[a b ,c]",
      "- ",
      "-",
      ": ",
      ":",
    ],
    ...[
      " ",
      "  ",
      "#",
      " #",
      "é",
      "\u00a0",
      "<<",
      "&",
      "*",
      "!",
      "|",
      ">",
      "{",
      "}",
      "[",
      "]",
      ",",
      "\\",
      '"',
      "'",
      "?",
      "%",
      "@",
      "`",
    ],
    ...["---", "...", "=", "$", "(", "/", "\u2028", "\t", "😀"],
  );
  const key = fc.constantFrom("a: ", "b: ", "name: ", "list:", "m:", "- ", "-  ", "", "a.b-c_d: ", "1: ", "x:");
  const line = fc.tuple(indent, key, fc.array(piece, { maxLength: 4 })).map(([i, k, p]) => i + k + p.join(""));
  let read = 0;
  fc.assert(
    fc.property(fc.array(line, { maxLength: 6 }), (lines) => {
      const yaml = lines.join("\n");
      const fields = readPlainYaml(yaml);
      if (fields === null) return;
      read++;
      assert.deepEqual(JSON.parse(JSON.stringify(fields)), byLibrary(yaml));
    }),
    { numRuns: 5_000 },
  );
  assert.ok(read > 200, `only ${read} texts were of the plain kind`);
});

test("the body is everything behind the closing line", () => {
  assert.deepEqual(parsePlainFrontMatter("---\nname: a\n---\n\nBody\r\n"), {
    fields: { name: "a" },
    body: "\nBody\r\n",
    present: true,
    problem: null,
  });
  assert.equal(parsePlainFrontMatter("# Title\n")?.present, false);
  assert.equal(parsePlainFrontMatter("---\na: >\n  b\n---\n"), null);
});
