import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { OutputBuffer } from "./output.ts";
import { MarkerFilter } from "./shell-script.ts";

test("whatever is printed in whatever pieces: kept and dropped characters add up, and the ends are true", () => {
  const text = fc
    .array(fc.string({ unit: "grapheme", maxLength: 40 }), { maxLength: 30 })
    .map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, fc.integer({ min: 20, max: 400 }), fc.integer({ min: 1, max: 50 }), (whole, limit, size) => {
      const bytes = Buffer.from(whole);
      const buffer = new OutputBuffer(limit);
      for (let at = 0; at < bytes.length; at += size) buffer.push(bytes.subarray(at, at + size));
      const { text: kept, omitted, headChars } = buffer.read();
      assert.equal(kept.length + omitted, whole.length);
      assert.ok(whole.startsWith(kept.slice(0, headChars)));
      assert.ok(whole.endsWith(kept.slice(headChars)));
      assert.ok(Buffer.byteLength(kept) <= Math.max(limit, 0));
      if (bytes.length <= limit) assert.equal(kept, whole);
    }),
  );
});

test("blocks that are used again do not mix old output into new", () => {
  const buffer = new OutputBuffer(200_000);
  for (let i = 0; i < 2000; i++) buffer.push(Buffer.from(`${i}`.padStart(999, ".").concat("\n")));
  const { text, omitted, headChars } = buffer.read();
  assert.equal(text.length + omitted, 2_000_000);
  const numbers = text
    .slice(headChars)
    .split("\n")
    .slice(1, -1)
    .map((line) => Number(line.replaceAll(".", "")));
  assert.deepEqual(
    numbers,
    Array.from({ length: numbers.length }, (_, index) => 2000 - numbers.length + index),
  );
});

test("the marker disappears from a stream however it is cut", () => {
  const marker = "__HERMES_CWD_ab__";
  const stream = `\n__HER\nreal\n\n${marker}/some/place${marker}\nlate`;
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 80, maxLength: 80 }), (sizes) => {
      const filter = new MarkerFilter(marker);
      let seen = "";
      let at = 0;
      for (const size of sizes) {
        seen += filter.push(stream.slice(at, at + size));
        at += size;
      }
      assert.equal(seen + filter.end(), "\n__HER\nreal\nlate");
    }),
  );
});
