import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cases } from "../../../test/fixtures/fuzzy-replace.ts";
import { type FuzzyResult, fuzzyReplace, isAlreadyApplied } from "./replace.ts";
import { strategyNames } from "./strategies.ts";

for (const one of cases) {
  test(`fuzzyReplace: ${one.name}`, () => {
    const result = fuzzyReplace(one.text, one.old, one.new, { replaceAll: one.all === true });
    if (typeof one.gives === "string") {
      assert.equal(result.ok ? result.strategy : result.code, one.gives);
      return;
    }
    assert.ok(result.ok, result.ok ? "" : result.message);
    const [strategy, text, count = 1] = one.gives;
    assert.deepEqual({ strategy: result.strategy, text: result.text, count: result.count }, { strategy, text, count });
  });
}

test("the nine strategies are tried in this order", () => {
  assert.equal(
    strategyNames.join(" "),
    "exact line_trimmed whitespace_normalized indentation_flexible escape_normalized trimmed_boundary unicode_normalized block_anchor context_aware",
  );
});

function messageOf(result: FuzzyResult): string {
  assert.ok(!result.ok);
  return result.message;
}

test("each refusal begins with the sentence models know", () => {
  const begins = [
    [fuzzyReplace("a", "", "b"), "old_string cannot be empty"],
    [fuzzyReplace("a", " ", "b"), "old_string is only whitespace"],
    [fuzzyReplace("a", "b", "b"), "old_string and new_string are identical"],
    [fuzzyReplace("a", "zzz", "b"), "Could not find a match for old_string in the file"],
    [fuzzyReplace(" x('a')", "x(\\'a\\')", "y(\\'a\\')"), "Escape-drift detected"],
  ] as const;
  for (const [result, start] of begins) assert.ok(messageOf(result).startsWith(start), messageOf(result));
});

test("several matches are listed with line numbers, five at most", () => {
  const long = `x${"y".repeat(100)}`;
  const message = messageOf(fuzzyReplace(`x1\n  x2\n${long}\nx4\nx5\nx6\nx7`, "x", "z"));
  assert.equal(
    message,
    [
      "Found 7 matches for old_string. Provide more context to make it unique, or use replace_all=True.",
      "  L1: x1",
      "  L2: x2",
      `  L3: ${long.slice(0, 77)}...`,
      "  L4: x4",
      "  L5: x5",
      "  ... and 2 more",
    ].join("\n"),
  );
});

test("what was not found comes with the nearest sections", () => {
  const text = Array.from({ length: 30 }, (_, n) => (n === 14 ? "  return compute(value);" : `line ${n}`)).join("\n");
  const message = messageOf(fuzzyReplace(text, "return computed(values) + other\nsecond", "x"));
  assert.match(
    message,
    /\n {2}13\| line 12\n {2}14\| line 13\n {2}15\| {3}return compute\(value\);\n {2}16\| line 15\n/,
  );
  assert.doesNotMatch(message, / {2}12\| /);
  assert.doesNotMatch(message, / {2}19\| /);
});

test("a line that differs in white space only is shown with its white space visible", () => {
  const message = messageOf(fuzzyReplace("\tif a:\n\t\tfoo()\n", "    if a:\n        bar(1, 2, 3)", "x"));
  assert.match(message, /old_string: ····if a:\n {2}file: {7}→if a:/);
});

test("nothing similar gives no hint", () => {
  assert.equal(messageOf(fuzzyReplace("1\n2\n3", "abcdef", "x")), "Could not find a match for old_string in the file.");
});

test("only similar regions come with a warning that names the strategy", () => {
  const result = fuzzyReplace("const value = compute(a, b);", "const valeu = compute(a, b);", "x");
  assert.match((result.ok && result.warning) || "", /only similar.*context_aware/);
  const exact = fuzzyReplace("abc", "b", "x");
  assert.ok(exact.ok && exact.warning === undefined);
});

test("of several matches the first can be asked for", () => {
  const result = fuzzyReplace("a b a", "a", "x", { takeFirst: true });
  assert.ok(result.ok && result.text === "x b a" && result.count === 1);
});

const applied: [string, string, string, string, boolean][] = [
  ["done before", "const b = 22;", "const a = 1;", "const b = 22;", true],
  ["old still there", "const a = 1;\nconst b = 22;", "const a = 1;", "const b = 22;", false],
  ["new too short to tell", "x = 1", "y", "x = 1", false],
  ["new absent", "zzz", "const a = 1;", "const b = 22;", false],
  ["identical and present", "const a = 1;", "const a = 1;", "const a = 1;", true],
  ["identical and absent", "zzz", "const a = 1;", "const a = 1;", false],
  ["other line endings", "const b = 2;\r\nnext();", "old text", "const b = 2;\nnext();", true],
];
for (const [name, text, old, request, expected] of applied) {
  test(`isAlreadyApplied: ${name}`, () => assert.equal(isAlreadyApplied(text, old, request), expected));
}

const line = fc.string({ unit: fc.constantFrom("a", "b", " ", "\t", "“", "—", "'", "\\", "x", "😀"), maxLength: 8 });
const document = fc
  .array(line, { maxLength: 12 })
  .chain((lines) =>
    fc
      .array(fc.constantFrom("\n", "\r\n"), { minLength: lines.length, maxLength: lines.length })
      .map((breaks) => lines.map((text, index) => text + breaks[index]).join("")),
  );

test("a unique exact match is replaced exactly", () => {
  fc.assert(
    fc.property(document, document, fc.string({ unit: "grapheme", maxLength: 10 }), (before, after, request) => {
      const marker = "<<here>>";
      fc.pre(!request.includes("\n") && request !== marker);
      const result = fuzzyReplace(`${before}${marker}${after}`, marker, request);
      assert.ok(result.ok && result.strategy === "exact");
      assert.equal(result.text, `${before}${request}${after}`);
    }),
  );
});

test("whatever strategy decides, the text outside the matched region stays byte for byte", () => {
  fc.assert(
    fc.property(document, document, document, (before, after, request) => {
      const region = "  begin “x”\n    alpha  beta gamma\n  end — z";
      const asked = [
        'begin "x"\nalpha  beta gamma\nend -- z',
        "  begin “x”\n    alpha beta gamma\n  end — z",
        "begin “x”\nalpha  beta gamma\nend — z",
        "begin “x”\nalpho  betta gamma\nend — z",
        "begin “xy”\nalpha  beta gamma\nend — zz",
      ];
      for (const old of asked) {
        const head = `${before}`;
        const tail = `\n${after}`;
        const result = fuzzyReplace(head + region + tail, old, request);
        if (!result.ok) continue;
        // The match may begin at the start of its line at most.
        const lineStart = head.slice(0, head.lastIndexOf("\n") + 1);
        assert.ok(result.text.startsWith(lineStart), old);
        assert.ok(result.text.endsWith(tail), old);
      }
    }),
  );
});

test("a refusal never carries a text", () => {
  fc.assert(
    fc.property(document, document, document, (text, old, request) => {
      const result = fuzzyReplace(text, old, request);
      assert.ok(result.ok || !("text" in result));
    }),
  );
});
