import assert from "node:assert/strict";
import { truncate } from "node:fs/promises";
import { test } from "node:test";
import { PNG } from "pngjs";
import { tempTree } from "../../../test/support/temp-tree.ts";
import { imageSize } from "../../llm/pictures/fit.ts";
import { MAX_ENCODED } from "./pictures.ts";
import { type PictureError, pictureFile, pictureOf, withPaths } from "./user-pictures.ts";

const png = (width: number, height: number) => PNG.sync.write(new PNG({ width, height }), { deflateLevel: 0 });
const SMALL = png(2, 2);
const naming = { name: "a.png", shownAs: "a.png" };
const bytes = (...parts: (string | number[] | Buffer)[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part))));

const WEBP = bytes("RIFF", [24, 0, 0, 0], "WEBPVP8X", [10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0]);
const JPEG = bytes([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xd9]);

const judged: readonly [what: string, content: Buffer, verdict: "sent" | PictureError["kind"]][] = [
  ["a PNG", SMALL, "sent"],
  ["a PNG with something behind it", bytes(SMALL, "trailer"), "sent"],
  ["a PNG that breaks off", SMALL.subarray(0, -14), "broken"],
  ["a PNG without a size", bytes(SMALL.subarray(0, 16), Buffer.alloc(8), SMALL.subarray(24)), "broken"],
  ["a JPEG", JPEG, "sent"],
  ["a JPEG that breaks off", JPEG.subarray(0, -2), "broken"],
  ["a WebP", WEBP, "sent"],
  ["a WebP that breaks off", WEBP.subarray(0, -4), "broken"],
  ["a GIF", bytes("GIF89a", [2, 0, 2, 0]), "sent"],
  ["a GIF that breaks off", bytes("GIF89a", [2]), "broken"],
  ["a bitmap", bytes("BM", Buffer.alloc(40)), "unsupported"],
  ["an SVG", bytes("<svg xmlns='http://www.w3.org/2000/svg'></svg>"), "unsupported"],
  ["words", bytes("not a picture"), "broken"],
  ["nothing", Buffer.alloc(0), "broken"],
  ["a GIF larger than any server takes", bytes("GIF89a", [2, 0, 2, 0], Buffer.alloc(16 * 2 ** 20)), "too_large"],
];
for (const [what, content, verdict] of judged) {
  test(`${what}: ${verdict}`, async () => {
    const outcome = await pictureOf(content, naming).then(
      () => "sent",
      (error: PictureError) => error.kind,
    );
    assert.equal(outcome, verdict);
  });
}

test("a picture larger than any server takes is sent as a smaller copy", async () => {
  const { part } = await pictureOf(png(2500, 2200), naming);
  const url = part.type === "image_url" ? part.image_url.url : "";
  assert.match(url.slice(0, 30), /^data:image\/jpeg;base64,/);
  assert.ok(url.length < MAX_ENCODED);
  const size = imageSize(Buffer.from(url.slice(url.indexOf(",") + 1), "base64"));
  assert.deepEqual(size, { width: 2500, height: 2200 });
});

test("a file is named in what is said about it; one that is far too large is not read at all", async (t) => {
  const { at, root } = await tempTree(t, { "a.png": SMALL, "huge.png": "", "folder/x": "" });
  const { name, path } = await pictureFile(at("a.png"));
  assert.deepEqual([name, path], ["a.png", at("a.png")]);
  await truncate(at("huge.png"), 51 * 2 ** 20);
  const refused = { name: "PictureError" };
  await assert.rejects(pictureFile(at("huge.png")), { ...refused, kind: "too_large" });
  await assert.rejects(pictureFile(at("gone.png")), {
    ...refused,
    message: `cannot read the image ${root}/gone.png: there is no such file.`,
  });
  await assert.rejects(pictureFile(at("folder")), /cannot read the image .*folder: it is not a file\./);
});

test("paths are told behind the text, without anything that could end the line", () => {
  const part = { type: "image_url", image_url: { url: "data:," } } as const;
  const pictures = [
    { name: "a", path: "/x/a.png", part },
    { name: "b", part },
    { name: "c", path: "/x/c\n].png", part },
  ];
  assert.deepEqual(withPaths({ text: "look" }, pictures), {
    text: "look\n\n[Attached: /x/a.png, /x/c?].png]",
    persistText: "look",
  });
  assert.equal(withPaths({ text: "long", persistText: "typed" }, pictures).persistText, "typed");
});
