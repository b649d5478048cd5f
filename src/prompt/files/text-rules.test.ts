import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { countCodePoints, strip } from "../../kit/code-points.ts";
import { withoutFrontMatter } from "./context-files.ts";
import { contextFileLimit, decodeText, truncateFile } from "./read.ts";

const limits: readonly (readonly [window: unknown, setting: unknown, chars: number, warned: boolean])[] = [
  [128_000, null, 20_000, false],
  [200_000, null, 30_000, false],
  [1_000_000, undefined, 150_000, false],
  [4_000_000, null, 500_000, false],
  [133_334, null, 20_000, false],
  [133_340, null, 20_001, false],
  [null, null, 20_000, false],
  [0, null, 20_000, false],
  [-5, null, 20_000, false],
  ["200000", null, 20_000, false],
  [1_000_000, 500, 500, false],
  [null, 99.9, 99, false],
  [null, 0.5, 20_000, true],
  [null, 0, 20_000, true],
  [null, -1, 20_000, true],
  [null, true, 20_000, true],
  [null, "500", 20_000, true],
  [null, Number.NaN, 20_000, true],
  [null, Number.POSITIVE_INFINITY, 20_000, true],
];
for (const [window, setting, chars, warned] of limits) {
  test(`window ${window} and setting ${JSON.stringify(setting)} give ${chars} characters`, () => {
    const limit = contextFileLimit(window, setting);
    assert.equal(limit.chars, chars);
    assert.equal(limit.warning !== null, warned);
  });
}

test("a text of exactly the limit is untouched, one more character is cut", () => {
  assert.equal(truncateFile("x".repeat(20_000), 20_000, "A").text, "x".repeat(20_000));
  const cut = truncateFile("x".repeat(20_001), 20_000, "A");
  assert.ok(
    cut.text.includes(
      "\n\n[...truncated A: kept 14000+4000 of 20001 chars. Use file tools to read the full file.]\n\n",
    ),
  );
});

test("shares are whole numbers and count code points", () => {
  assert.match(truncateFile("x".repeat(91), 90, "A").text, /kept 63\+18 of 91 /);
  const cats = truncateFile("🐈".repeat(11), 10, "A").text;
  assert.equal(
    cats,
    `${"🐈".repeat(7)}\n\n[...truncated A: kept 7+2 of 11 chars. Use file tools to read the full file.]\n\n🐈🐈`,
  );
  assert.match(truncateFile("abc", 1, "A").text, /^\n\n\[.*kept 0\+0 of 3 .*\]\n\n$/);
});

test("whatever is cut, head and tail are the text's own and no pair is split", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 60 }), fc.integer({ min: 1, max: 60 }), (text, limit) => {
      const cut = truncateFile(text, limit, "A");
      assert.equal(cut.total, countCodePoints(text));
      if (cut.kept === cut.total) return assert.equal(cut.text, text);
      const [head = "", tail = ""] = cut.text.split(/\n\n\[\.\.\.truncated A: .*?\]\n\n/);
      assert.ok(text.startsWith(head) && text.endsWith(tail) && cut.text.isWellFormed() === text.isWellFormed());
      assert.equal(countCodePoints(head) + countCodePoints(tail), cut.kept);
    }),
  );
});

const frontMatter: readonly (readonly [name: string, text: string, expected: string])[] = [
  ["a mapping", "---\na: 1\nb: [2]\n---\n\n\nbody", "body"],
  ["an empty one", "---\n---\nbody", "body"],
  ["blank lines only", "---\n\n\n---\nbody", "body"],
  ["broken YAML that looks like keys", "---\na: [1\nb: }\n---\nbody", "body"],
  ["no closing line", "---\na: 1\nbody", "---\na: 1\nbody"],
  ["an empty body", "---\na: 1\n---\n", "---\na: 1\n---\n"],
  ["a horizontal rule", "---\nOnce upon a time.\n---\nthe end", "---\nOnce upon a time.\n---\nthe end"],
  ["a list", "---\n- a\n- b\n---\nbody", "---\n- a\n- b\n---\nbody"],
  ["not at the top", "x\n---\na: 1\n---\nbody", "x\n---\na: 1\n---\nbody"],
  ["more dashes", "----\na: 1\n----\nbody", "----\na: 1\n----\nbody"],
  ["a later rule stays", "---\na: 1\n---\nbody\n---\nend", "body\n---\nend"],
  ["a comment first", "---\n# about\na: 1\n---\nbody", "body"],
];
for (const [name, text, expected] of frontMatter) {
  test(`front matter: ${name}`, async () => assert.equal(await withoutFrontMatter(text), expected));
}

test("stripping takes every kind of white space and leaves the byte order mark for the scanner", () => {
  assert.equal(strip(" \t\r\n\x0b\x0c\x1c\x85\u00a0\u2003\u3000a b\u2028\n"), "a b");
  assert.equal(strip("\ufeff a \ufeff"), "\ufeff a \ufeff");
  assert.equal(strip(" \n"), "");
});

test("bytes that are no text are not guessed at", () => {
  assert.equal(decodeText(new Uint8Array([0x80])), null);
  assert.equal(decodeText(new Uint8Array([0xff, 0xfe, 0x00, 0xd8])), null);
  assert.equal(decodeText(new Uint8Array([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf, 0x61])), "\ufeffa");
  assert.equal(decodeText(new TextEncoder().encode("a\r\nb\rc\n\r")), "a\nb\nc\n\n");
});
