import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decode, encode } from "jpeg-js";
import { PNG } from "pngjs";
import { COMMON_LIMIT, imageSize } from "./fit.ts";
import { smallerPicture } from "./smaller.ts";

type Colour = readonly [red: number, green: number, blue: number, opacity: number];

function png(width: number, height: number, colourAt: (x: number, y: number) => Colour): Buffer {
  const picture = new PNG({ width, height });
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) picture.data.set(colourAt(x, y), (y * width + x) * 4);
  return PNG.sync.write(picture);
}

const noise = (x: number, y: number): Colour => {
  const value = Math.imul((x * 73_856_093) ^ (y * 19_349_663), 2_654_435_761) >>> 8;
  return [value & 255, (value >> 8) & 255, (value >> 16) & 255, 255];
};

const near = (actual: ArrayLike<number>, expected: readonly number[]) =>
  assert.ok(
    expected.every((value, index) => Math.abs((actual[index] ?? -99) - value) <= 12),
    `${Array.from(actual).slice(0, 3)} is not about ${expected}`,
  );

test("a picture keeps its shape and its colours, and nothing is larger than the limit", () => {
  const halves = png(600, 300, (x) => (x < 300 ? [200, 30, 30, 255] : [30, 30, 200, 255]));
  const small = smallerPicture(halves, { bytes: 50_000, side: 200 });
  assert.ok(small);
  assert.deepEqual(imageSize(small), { width: 200, height: 100 });
  const { data } = decode(small, { useTArray: true });
  near(data.subarray((50 * 200 + 20) * 4), [200, 30, 30]);
  near(data.subarray((50 * 200 + 180) * 4), [30, 30, 200]);
});

test("what is see-through becomes white", () => {
  const small = smallerPicture(
    png(300, 300, () => [0, 0, 0, 0]),
    COMMON_LIMIT,
  );
  near(decode(small ?? Buffer.alloc(0), { useTArray: true }).data, [255, 255, 255]);
});

test("bytes decide too: a picture within the pixels shrinks until it is light enough", () => {
  const heavy = png(900, 900, noise);
  const small = smallerPicture(heavy, { bytes: 60_000, side: 2000 });
  assert.ok(small && small.length <= 60_000, String(small?.length));
  assert.ok((imageSize(small)?.width ?? 900) < 900);
});

test("the way up of a photograph is kept", () => {
  const exif = Buffer.from("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", "latin1");
  const data = Buffer.alloc(400 * 300 * 4, 128);
  const photo = encode({ width: 400, height: 300, data, exifBuffer: exif } as Parameters<typeof encode>[0], 90).data;
  const small = smallerPicture(photo, { bytes: 100_000, side: 250 });
  assert.ok(small?.includes(Buffer.from("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06", "latin1")));
});

test("what is no PNG or JPEG, is broken, or would fill the memory gives no picture", () => {
  const bomb = png(300, 300, noise);
  bomb.writeUInt32BE(60_000, 16);
  bomb.writeUInt32BE(60_000, 20);
  for (const bytes of [Buffer.alloc(0), Buffer.from("GIF89a____________"), bomb]) {
    assert.equal(smallerPicture(bytes, COMMON_LIMIT), null);
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        assert.equal(smallerPicture(Buffer.from(bytes), COMMON_LIMIT), null);
      } catch (error) {
        assert.ok(!(error instanceof assert.AssertionError)); // the thread ends with what a codec throws
      }
    }),
  );
});
