import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { judgeMessage, judgeUpload, type UploadedFile } from "../../../../../test/support/platforms/whatsapp-rules.ts";
import type { WebReply } from "../../web-calls.ts";
import { envelope, planFile, questionContent, readButton, refusal, textContent } from "./outgoing.ts";

const target = { chatId: "15551230001" };
const none: ReadonlyMap<string, UploadedFile> = new Map();

test("every text that fits is taken", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 4096 }), fc.string({ maxLength: 2000 }), (text, key) => {
      fc.pre(text.trim() !== "");
      assert.equal(judgeMessage(envelope(target, key, textContent(text)), none), null);
    }),
  );
});

const label = fc.string({ minLength: 1, maxLength: 90 }).filter((text) => text.trim() !== "");

test("a question with up to ten choices is taken, whatever its choices are called", () => {
  const labels = fc.uniqueArray(label, { minLength: 1, maxLength: 10 });
  fc.assert(
    fc.property(labels, fc.string({ maxLength: 3000 }), (names, text) => {
      const buttons = names.map((name, at) => ({ label: name, choice: String(at) }));
      const content = questionContent(text, { id: "abc123", buttons });
      assert.ok(content);
      assert.equal(judgeMessage(envelope(target, "inbox:1#0", content), none), null);
    }),
  );
});

test("three choices are buttons, four are a list, and labels that look the same when cut are a list", () => {
  const kind = (...labels: readonly string[]) => {
    const buttons = labels.map((name, at) => ({ label: name, choice: String(at) }));
    const content = questionContent("?", { id: "q", buttons });
    return (content?.interactive as { type: string } | undefined)?.type; // made by us
  };
  assert.equal(kind("a", "b", "c"), "button");
  assert.equal(kind("a", "b", "c", "d"), "list");
  assert.equal(kind("the same long beginning one", "the same long beginning two"), "list");
  assert.equal(kind(...Array.from({ length: 11 }, (_, at) => `c${at}`)), undefined);
});

test("a press leads back to its question and choice", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[\w-]{1,40}$/), fc.string({ minLength: 1, maxLength: 40 }), (id, choice) => {
      const content = questionContent("?", { id, buttons: [{ label: "x", choice }] });
      assert.ok(content);
      const { action } = content.interactive as { action: { buttons: { reply: { id: string } }[] } }; // made by us
      assert.deepEqual(readButton(action.buttons[0]?.reply.id ?? ""), { questionId: id, choice });
    }),
  );
});

test("a button that is not ours is no press", () => {
  for (const id of ["", "q|", "q|x", "q||y", "other|a|b", "yes"]) assert.equal(readButton(id), null, id);
});

const MB = 1024 * 1024;
const files: readonly (readonly [string, number, string])[] = [
  ["photo.JPG", 1, "image image/jpeg"],
  ["photo.png", 6 * MB, "document image/png"],
  ["clip.mp4", 10 * MB, "video video/mp4"],
  ["clip.mp4", 20 * MB, "document video/mp4"],
  ["talk.ogg", 1, "audio audio/ogg"],
  ["notes.md", 1, "document text/plain"],
  ["paper.pdf", 99 * MB, "document application/pdf"],
];

for (const [name, size, plan] of files)
  test(`${name} of ${size} bytes is sent as ${plan}, which is taken`, () => {
    const made = planFile({ path: `/x/${name}`, kind: "document", name, caption: "c".repeat(2000) }, size);
    assert.ok(typeof made !== "string", String(made));
    assert.equal(`${made.kind} ${made.mediaType}`, plan);
    const form = new FormData();
    form.set("messaging_product", "whatsapp");
    form.set("type", made.mediaType);
    form.set("file", new File(["x"], name, { type: made.mediaType }));
    assert.equal(judgeUpload(form), null);
    const uploaded = new Map([["1", { type: made.mediaType, bytes: Buffer.alloc(0), name }]]);
    assert.equal(judgeMessage(envelope(target, "k", made.content("1")), uploaded), null);
  });

test("what WhatsApp does not take is refused with its name", () => {
  const plan = (name: string, size = 1) => planFile({ path: name, kind: "document", name }, size);
  assert.match(String(plan("archive.zip")), /does not take files of the kind \.zip/);
  assert.match(String(plan("noextension")), /without an extension/);
  assert.match(String(plan("huge.pdf", 101 * MB)), /larger than the 100 MB/);
});

const answers: readonly (readonly [number, number, string])[] = [
  [400, 131047, "refused"],
  [400, 131026, "refused"],
  [400, 100, "refused"],
  [404, 33, "refused"],
  [400, 130429, "rate_limited"],
  [400, 131056, "rate_limited"],
  [429, 4, "rate_limited"],
  [401, 190, "unreachable"],
  [500, 131000, "unreachable"],
  [503, 131016, "unreachable"],
];

for (const [status, code, failed] of answers)
  test(`status ${status} with error ${code} is ${failed}`, () => {
    const json = { error: { code, message: "words", error_data: { details: "more words" } } };
    const reply: WebReply = { status, headers: new Map(), text: "", json };
    assert.equal(refusal(reply, "15551230001", 0).failed, failed);
  });

test("an answer that is no JSON is judged by its status", () => {
  const reply = (status: number): WebReply => ({ status, headers: new Map(), text: "<html>", json: undefined });
  assert.equal(refusal(reply(502), "1", 0).failed, "unreachable");
  assert.equal(refusal(reply(400), "1", 0).failed, "refused");
});
