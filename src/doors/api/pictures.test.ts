import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { PictureStream, withPictures } from "./pictures.ts";

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "hermes-pictures-"));
  await writeFile(join(folder, "dot.png"), PIXEL);
  await writeFile(join(folder, "secret.png"), "PASSWORD=1");
  await writeFile(join(folder, "large.png"), Buffer.concat([PIXEL, Buffer.alloc(5_000_001)]));
});
after(() => rm(folder, { recursive: true }));

test("a picture is shown; what is none, is too large or is missing stays a line of text", async () => {
  const shown = await withPictures(`See:\nMEDIA:${folder}/dot.png\nand MEDIA:${folder}/dot.png.`);
  const picture = `![dot.png](data:image/png;base64,${PIXEL.toString("base64")})`;
  assert.equal(shown, `See:\n${picture}\nand ${picture}.`);
  for (const name of ["secret.png", "large.png", "missing.png", "notes.txt"]) {
    const text = `MEDIA:${folder}/${name}`;
    assert.equal(await withPictures(text), text);
  }
  for (const text of ["no MEDIA: here", "MEDIA:relative.png", "MEDIA"]) assert.equal(await withPictures(text), text);
});

test("however a text is cut into pieces, the same comes out, and only the beginning of a tag is held back", async () => {
  const words = fc.constantFrom("MEDIA:", `MEDIA:${"X"}`, "\n", " ", "M", "ME", "text", "/no/such.png", "PICTURE");
  await fc.assert(
    fc.asyncProperty(fc.array(words, { maxLength: 12 }), fc.array(fc.nat(40)), async (parts, cuts) => {
      const text = parts.join("").replaceAll("PICTURE", `MEDIA:${folder}/dot.png\n`);
      const places = [...new Set([0, ...cuts.map((cut) => cut % (text.length + 1)), text.length])].sort(
        (a, b) => a - b,
      );
      const stream = new PictureStream();
      let shown = "";
      for (const [at, place] of places.entries()) {
        const piece = text.slice(places[at - 1] ?? 0, place);
        shown += await stream.take(piece, place === text.length);
      }
      assert.equal(shown, await withPictures(text));
    }),
    { numRuns: 300 },
  );
  const stream = new PictureStream();
  assert.equal(await stream.take("hello ME", false), "hello ");
  assert.equal(await stream.take("mory", false), "MEmory");
});
