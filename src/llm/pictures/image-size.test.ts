import assert from "node:assert/strict";
import { test } from "node:test";
import { COMMON_LIMIT, imageSize, isLargeImage, STRICT_LIMIT } from "./fit.ts";

const bytes = (...parts: (number | string)[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from([part]))));
const png = (width: number, height: number) => {
  const head = Buffer.alloc(24);
  head.write("\x89PNG\r\n\x1a\n", "latin1");
  head.writeUInt32BE(width, 16);
  head.writeUInt32BE(height, 20);
  return head;
};
const dataUrl = (content: Buffer) => `data:image/png;base64,${content.toString("base64")}`;

const cases: readonly [name: string, content: Buffer, size: { width: number; height: number } | null][] = [
  ["PNG", png(9000, 20), { width: 9000, height: 20 }],
  ["GIF", bytes("GIF89a", 0x20, 0x03, 0x58, 0x02), { width: 800, height: 600 }],
  [
    "JPEG behind a block of notes",
    bytes("\xff\xd8\xff\xe0\x00\x04ab\xff\xc2\x00\x11\x08", 0x02, 0x58, 0x03, 0x20, "\x03\x01\x11\x00"),
    { width: 800, height: 600 },
  ],
  ["WebP", bytes("RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0", 0x1f, 3, 0, 0x57, 2, 0), { width: 800, height: 600 }],
  [
    "lossless WebP",
    bytes("RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f", 0x1f, 0xc3, 0x95, 0, "\0\0\0\0\0\0\0"),
    { width: 800, height: 600 },
  ],
  ["something else", Buffer.from("hello, this is no picture at all"), null],
  ["nothing", Buffer.alloc(0), null],
];
for (const [name, content, size] of cases) {
  test(`the size of a picture is read from its first bytes: ${name}`, () => assert.deepEqual(imageSize(content), size));
}

test("a picture is large from 4 MB or 8000 pixels on; addresses are not looked into", () => {
  assert.equal(isLargeImage(dataUrl(png(8000, 8000)), COMMON_LIMIT), false);
  assert.equal(isLargeImage(dataUrl(png(8000, 8000)), STRICT_LIMIT), true);
  assert.equal(isLargeImage(dataUrl(png(8001, 1)), COMMON_LIMIT), true);
  assert.equal(isLargeImage(dataUrl(Buffer.alloc(4 * 1024 * 1024 + 3)), COMMON_LIMIT), true);
  assert.equal(isLargeImage("https://example.com/huge.png", STRICT_LIMIT), false);
});
