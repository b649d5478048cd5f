import assert from "node:assert/strict";
import { test } from "node:test";
import { PNG } from "pngjs";
import { aRequest, aTarget } from "../../../test/support/model-target.ts";
import type { ContentPart, Message } from "../messages.ts";
import { FitPictures, imageSize, STRICT_LIMIT } from "./fit.ts";

const picture = (bytes: Buffer, type = "png"): ContentPart => ({
  type: "image_url",
  image_url: { url: `data:image/${type};base64,${bytes.toString("base64")}` },
});
const wide = picture(PNG.sync.write(new PNG({ width: 3000, height: 20 })));
const tiny = picture(PNG.sync.write(new PNG({ width: 2, height: 2 })));
/** Says it is 3000 wide; there is no codec for it here. */
const webp = picture(
  Buffer.from("RIFF....WEBPVP8X............\u00b7\u000b\u0000\u0001\u0000\u0000................", "latin1").fill(
    0,
    20,
    24,
  ),
  "webp",
);
const asking = (...messages: Message[]) => aRequest(aTarget("chat_completions"), { messages });
const never = new AbortController().signal;

const urlsOf = ({ content }: Message) =>
  Array.isArray(content) ? content.map((part) => (part.type === "image_url" ? part.image_url.url : part.text)) : [];

test("without a limit the request is the same object", async () => {
  const request = asking({ role: "user", content: [wide] });
  assert.equal((await new FitPictures().fit(request, null, never)).request, request);
});

test("large pictures become smaller JPEGs, the others stay, and the same bytes go out every time", async () => {
  const pictures = new FitPictures();
  const request = asking(
    { role: "user", content: [{ type: "text", text: "see" }, wide, tiny] },
    { role: "user", content: [tiny] },
  );
  const { request: fit, lost } = await pictures.fit(request, STRICT_LIMIT, never);
  assert.equal(lost, 0);
  const [first, second] = fit.messages;
  const [text, copy = "", same] = urlsOf(first as Message);
  assert.equal(text, "see");
  assert.match(copy, /^data:image\/jpeg;base64,/);
  assert.deepEqual(imageSize(Buffer.from(copy.slice(copy.indexOf(",") + 1), "base64")), { width: 2000, height: 13 });
  assert.equal(same, urlsOf({ role: "user", content: [tiny] })[0]);
  assert.equal(second, request.messages[1]);
  const again = await pictures.fit(asking(...request.messages), STRICT_LIMIT, never);
  assert.equal(again.request.messages[0], first);
  const anew = await new FitPictures().fit(request, STRICT_LIMIT, never);
  assert.deepEqual(anew.request.messages, fit.messages);
});

test("a picture nobody can make smaller is left out in words, and told once", async () => {
  const pictures = new FitPictures();
  const request = asking({ role: "user", content: [webp] });
  const first = await pictures.fit(request, STRICT_LIMIT, never);
  assert.match(urlsOf(first.request.messages[0] as Message)[0] ?? "", /^\[picture left out: too large/);
  assert.deepEqual([first.lost, first.newlyLost], [1, 1]);
  const second = await pictures.fit(request, STRICT_LIMIT, never);
  assert.deepEqual([second.lost, second.newlyLost], [1, 0]);
});

test("what requests carry no more is forgotten", async () => {
  const pictures = new FitPictures();
  const request = asking({ role: "user", content: [webp] });
  await pictures.fit(request, STRICT_LIMIT, never);
  await pictures.fit(asking({ role: "user", content: [tiny] }), STRICT_LIMIT, never);
  assert.equal((await pictures.fit(request, STRICT_LIMIT, never)).newlyLost, 1);
});

test("an interrupt ends the work", async () => {
  const stop = new AbortController();
  const request = asking({ role: "user", content: [wide] });
  const fitting = new FitPictures().fit(request, STRICT_LIMIT, stop.signal);
  stop.abort();
  assert.equal((await fitting).request, request);
});
