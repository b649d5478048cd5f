import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createRedactor } from "../../safety/redact.ts";
import { leaveBrokenLine, safeCut, safePieces } from "./results.ts";

const SECRET = "correct horse battery staple";
const redact = createRedactor({ enabled: true, knownSecrets: () => [SECRET] });

test("wherever a text is cut, no part of a known secret is left at the cut", () => {
  const pieces = fc.array(fc.constantFrom(SECRET, "plain words ", "\n", "😀", "=", "12345"), { maxLength: 60 });
  fc.assert(
    fc.property(pieces, fc.nat(), fc.constantFrom(-1 as const, 1 as const), (parts, request, direction) => {
      const text = parts.join("");
      const place = safeCut(text, request % (text.length + 1), direction, redact);
      const [before, after] = [text.slice(0, place), text.slice(place)];
      assert.equal(redact(before) + redact(after), redact(text));
      assert.ok(before.isWellFormed() && after.isWellFormed());
    }),
  );
});

test("a text cut into pieces of any size is redacted as the whole is", () => {
  const parts = fc.array(fc.constantFrom(SECRET, "plain words ", "\n", "😀", "=", "12345"), { maxLength: 60 });
  fc.assert(
    fc.property(parts, fc.integer({ min: 1, max: 200 }), (texts, size) => {
      const text = texts.join("");
      const pieces = [...safePieces(text, size, redact)];
      assert.equal(pieces.join(""), text);
      assert.equal(pieces.map(redact).join(""), redact(text));
      assert.ok(pieces.every((piece) => piece.isWellFormed()));
    }),
  );
});

test("a cut that harms nothing stays where it was wished", () => {
  const text = "some words on a line\n".repeat(1000);
  assert.equal(safeCut(text, 5000, 1, redact), 5000);
  assert.equal(safeCut(text, 5000, -1, redact), 5000);
});

test("a cut inside a key block leaves the block whole on one side", () => {
  const block = `-----BEGIN PRIVATE KEY-----\n${"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=\n".repeat(40)}-----END PRIVATE KEY-----\n`;
  const text = `${"before\n".repeat(500)}${block}${"after\n".repeat(3000)}`;
  const place = safeCut(text, text.indexOf("-----END") - 300, 1, redact);
  assert.doesNotMatch(redact(text.slice(place)), /QUJD/);
});

test("beside a gap the broken line goes, or a stretch where there are no lines", () => {
  assert.equal(leaveBrokenLine("one\ntwo", 6, -1), 4);
  assert.equal(leaveBrokenLine("ne\ntwo", 0, 1), 3);
  const long = "a".repeat(100_000);
  assert.equal(leaveBrokenLine(long, 50_000, -1), 50_000 - 8192);
  assert.equal(leaveBrokenLine(long, 50_000, 1), 50_000 + 8192);
});
