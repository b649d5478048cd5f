import assert from "node:assert/strict";
import { createCipheriv } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { decrypted, readMessage } from "./messages.ts";

const from = { userid: "ann" };

test("a text, speech and a mixture are read as what they say", () => {
  const said = (more: object) => readMessage({ msgid: "m", chattype: "single", from, ...more });
  assert.equal(said({ msgtype: "text", text: { content: " hi " } })?.text, "hi");
  assert.equal(said({ msgtype: "voice", voice: { content: "spoken" } })?.text, "spoken");
  assert.equal(said({ msgtype: "text", text: { content: "/help" } })?.type, "command");
  assert.equal(said({ msgtype: "hologram" })?.text, "[unsupported: hologram]");
  const mixed = said({
    msgtype: "mixed",
    mixed: {
      msg_item: [
        { msgtype: "text", text: { content: "see" } },
        { msgtype: "image", image: { url: "https://e.org/i", aeskey: "k" } },
      ],
    },
    quote: { msgtype: "text", text: { content: "the earlier" } },
  });
  assert.deepEqual([mixed?.text, mixed?.quote], ["see", "the earlier"]);
  assert.deepEqual(mixed?.files, [{ url: "https://e.org/i", key: "k", kind: "image" }]);
});

test("in a group our name in front is not part of the text", () => {
  const said = readMessage({
    msgid: "m",
    chattype: "group",
    chatid: "c1",
    from,
    msgtype: "text",
    text: { content: "@Hermes do it" },
  });
  assert.deepEqual([said?.text, said?.source.chat_id, said?.source.chat_type], ["do it", "c1", "group"]);
});

/** As WeCom does it: filled up to a multiple of 32 bytes. */
function encrypted(bytes: Buffer, key: Buffer): Buffer {
  const fill = 32 - (bytes.length % 32);
  const cipher = createCipheriv("aes-256-cbc", key, key.subarray(0, 16)).setAutoPadding(false);
  return Buffer.concat([cipher.update(Buffer.concat([bytes, Buffer.alloc(fill, fill)])), cipher.final()]);
}

test("every file comes out as it went in, and not with another key", () => {
  const key = Buffer.from("one key of thirty-two bytes here");
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const locked = encrypted(Buffer.from(bytes), key);
      assert.deepEqual(decrypted(locked, key.toString("base64")), Buffer.from(bytes));
    }),
  );
  const locked = encrypted(Buffer.from("a secret that is longer than one block"), key);
  assert.throws(
    () => decrypted(locked, Buffer.from("another of thirty-two bytes here").toString("base64")),
    /cannot be decrypted/,
  );
  assert.throws(() => decrypted(locked, "c2hvcnQ="), /key is not valid/);
});
