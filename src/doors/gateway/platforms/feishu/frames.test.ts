import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeFrame, encodeFrame, Pieces } from "./frames.ts";

test("a frame has the bytes that Protocol Buffers give it", () => {
  const frame = {
    sequence: 1n,
    log: 300n,
    service: 2,
    method: 1,
    headers: [["a", "b"]],
    payload: Buffer.from("hi"),
  } as const;
  assert.equal(Buffer.from(encodeFrame(frame)).toString("hex"), "080110ac02180220012a060a016112016242026869");
});

test("every frame is read as it was written", () => {
  const frames = fc.record({
    ...{ sequence: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), log: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) },
    ...{ service: fc.nat(), method: fc.nat({ max: 1 }), headers: fc.array(fc.tuple(fc.string(), fc.string())) },
    payload: fc.uint8Array(),
  });
  fc.assert(
    fc.property(frames, (frame) => {
      const read = decodeFrame(encodeFrame(frame));
      assert.deepEqual(
        { ...read, payload: Buffer.from(read?.payload ?? []) },
        { ...frame, payload: Buffer.from(frame.payload) },
      );
    }),
  );
});

test("bytes that are no frame are refused and break nothing", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => void decodeFrame(bytes)));
  assert.equal(decodeFrame(Buffer.from([0x0a, 0x7f, 1])), null);
});

test("pieces become an event when the last of them is there, in whatever order", () => {
  const pieces = new Pieces();
  const add = (index: number, text: string) => pieces.add("m", { count: 3, index }, Buffer.from(text));
  assert.equal(add(2, "c"), null);
  assert.equal(add(0, "a"), null);
  assert.equal(add(0, "a"), null, "a piece that comes twice is still one piece");
  assert.equal(String(add(1, "b")), "abc");
  assert.equal(String(pieces.add("n", { count: 1, index: 0 }, Buffer.from("x"))), "x");
});
