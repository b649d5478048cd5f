import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cursorFrom, ReadMark } from "./missed.ts";

const SECOND = 1000n << 22n;
const id = (seconds: number) => String(BigInt(seconds) * SECOND);

test("the mark follows what is stored, ten seconds behind, and never goes back", () => {
  const mark = new ReadMark(BigInt(id(100)));
  assert.equal(mark.after([id(105)]), id(100), "so soon a message of another channel may still come");
  assert.equal(mark.after([id(130)]), id(120));
  mark.end(id(130));
  mark.moved(id(120));
  assert.equal(mark.after([id(90)]), id(120));
});

test("the mark does not pass a message that is being worked on", () => {
  const mark = new ReadMark(0n);
  mark.begin(id(100));
  mark.begin(id(200));
  assert.equal(BigInt(mark.after([id(200)])), BigInt(id(100)) - 1n);
  mark.end(id(100));
  assert.equal(mark.after([id(200)]), id(190));
});

test("messages that are not for us move the mark once a minute, and at the end", () => {
  const mark = new ReadMark(BigInt(id(1000)));
  mark.begin(id(1040));
  mark.end(id(1040));
  assert.equal(mark.due(), null);
  assert.equal(mark.due({ atOnce: true }), id(1030));
  mark.begin(id(1100));
  mark.end(id(1100));
  assert.equal(mark.due(), id(1090));
});

test("whatever is under way, everything up to the mark has ended", () => {
  const step = fc.record({ at: fc.integer({ min: 1, max: 500 }), ends: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const mark = new ReadMark(0n);
      const open = new Set<number>();
      for (const { at, ends } of steps) {
        if (!ends || !open.has(at)) {
          mark.begin(id(at));
          open.add(at);
          continue;
        }
        const before = mark.value;
        mark.moved(mark.after([id(at)]));
        mark.end(id(at));
        open.delete(at);
        assert.ok(mark.value >= before);
        const passed = [...open].filter((one) => BigInt(id(one)) <= mark.value && BigInt(id(one)) > before);
        assert.deepEqual(passed, []);
      }
    }),
  );
});

test("a stored mark that is not a number counts as none", () => {
  assert.equal(cursorFrom("123"), 123n);
  for (const odd of [null, "", "12a", "-5", "1".repeat(30)]) assert.equal(cursorFrom(odd), null);
});
