import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { stringify } from "yaml";
import { parseFrontMatter } from "./front-matter.ts";
import { type FrontMatter, type FrontMatterValue, parsePlainFrontMatter } from "./front-matter-plain.ts";

const plain = (fields: FrontMatter) => JSON.parse(JSON.stringify(fields));

const cases: readonly (readonly [string, string, unknown, string])[] = [
  ["two fields and a body", "---\nname: a\ndescription: b c\n---\nBody\n", { name: "a", description: "b c" }, "Body\n"],
  ["CRLF and blanks behind the dashes", "---  \r\nname: a\r\n--- \r\nBody\r\n", { name: "a" }, "Body\r\n"],
  ["a byte order mark", "\ufeff---\nname: a\n---\nBody", { name: "a" }, "Body"],
  ["no body at all", "---\nname: a\n---", { name: "a" }, ""],
  ["nothing between the lines", "---\n---\nBody", {}, "Body"],
  ["values stay text", "---\nversion: 1.10\nname: no\nempty:\n---\n", { version: "1.10", name: "no", empty: "" }, ""],
  [
    "lists and mappings",
    "---\nplatforms: [macos, linux]\nm:\n  h:\n    tags: [x]\n---\n",
    { platforms: ["macos", "linux"], m: { h: { tags: ["x"] } } },
    "",
  ],
  ["the later of two equal keys", "---\na: 1\na: 2\n---\n", { a: "2" }, ""],
  ["a block with dashes in it", "---\na: |\n  x\n  ---\n  y\n---\nB", { a: "x\n---\ny\n" }, "B"],
];
for (const [name, text, fields, body] of cases) {
  test(`front matter is read: ${name}`, () => {
    const parsed = parseFrontMatter(text);
    assert.deepEqual([plain(parsed.fields), parsed.body, parsed.present, parsed.problem], [fields, body, true, null]);
  });
}

test("a text without front matter is all body", () => {
  for (const text of ["", "# Title\n", " ---\na: b\n---\n", "----\na: b\n---\n"]) {
    assert.deepEqual(parseFrontMatter(text), { fields: {}, body: text, present: false, problem: null });
  }
});

test("front matter that is never closed is a problem, not a crash", () => {
  const { present, problem, body } = parseFrontMatter("---\nname: a\n");
  assert.equal(present, false);
  assert.match(problem ?? "", /closing/);
  assert.equal(body, "---\nname: a\n");
});

test("broken YAML gives its plain lines and says what is wrong", () => {
  const { fields, problem, body } = parseFrontMatter('---\nname: a\ndescription: "x: [y"\nbad: [1\n---\nBody');
  assert.deepEqual(plain(fields), { name: "a", description: "x: [y", bad: "[1" });
  assert.match(problem ?? "", /^YAML: /);
  assert.equal(body, "Body");
});

test("a list where a mapping belongs is a problem", () => {
  assert.match(parseFrontMatter("---\n- a\n- b\n---\n").problem ?? "", /not a list of/);
});

test("a flood of aliases is refused", () => {
  const levels = Array.from({ length: 12 }, (_, i) => `a${i}: &a${i} [${`*a${i - 1},`.repeat(9)}]`).slice(1);
  const { problem } = parseFrontMatter(`---\na0: &a0 [x]\n${levels.join("\n")}\n---\n`);
  assert.match(problem ?? "", /YAML/);
});

test("a key named __proto__ changes nothing but the fields", () => {
  const { fields } = parseFrontMatter("---\n__proto__:\n  polluted: yes\n---\n");
  assert.equal(Object.getPrototypeOf(fields), Object.prototype);
  assert.equal((fields as Record<string, unknown>).polluted, undefined);
});

const word = fc.string({ unit: "grapheme", maxLength: 20 });
const { value } = fc.letrec<{ value: FrontMatterValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    word,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(word, tie("value"), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

test("what is rendered is read back the same", () => {
  const fields = fc.dictionary(word, value, { maxKeys: 6, noNullPrototype: true });
  fc.assert(
    fc.property(fields, fc.string({ unit: "grapheme" }), (tree, body) => {
      const parsed = parseFrontMatter(`---\n${stringify(tree, { lineWidth: 0 })}---\n${body}`);
      assert.deepEqual([parsed.fields, parsed.body, parsed.problem], [tree, body, null]);
    }),
    { numRuns: 300 },
  );
});

test("no text makes the reader throw, and nothing behind the front matter is lost", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("-", "\n", ":", " ", "a", "[", "&", "*", "'", '"', "\r") }),
      (text) => {
        const { body } = parseFrontMatter(`---\n${text}`);
        assert.ok(`---\n${text}`.endsWith(body));
      },
    ),
  );
});

test("without the YAML parser, too, the body is everything behind the closing line", () => {
  assert.deepEqual(parsePlainFrontMatter("---\nname: a\n---\n\nBody\r\n"), {
    fields: { name: "a" },
    body: "\nBody\r\n",
    present: true,
    problem: null,
  });
  assert.equal(parsePlainFrontMatter("# Title\n")?.present, false);
  assert.equal(parsePlainFrontMatter("---\na: >\n  b\n---\n"), null);
});
