import assert from "node:assert/strict";
import { createCipheriv, createHash } from "node:crypto";
import { test } from "node:test";
import { readMessage } from "./messages.ts";
import { openCall } from "./webhook.ts";

const US = "ou_bot";
const said = (type: string, content: object, more: object = {}) =>
  readMessage(
    {
      sender: { sender_id: { open_id: "ou_ann", union_id: "on_ann" }, sender_type: "user" },
      message: {
        message_id: "om_1",
        chat_id: "oc_1",
        chat_type: "group",
        message_type: type,
        content: JSON.stringify(content),
        ...more,
      },
    },
    US,
  );

test("mentions become names, and ours is taken away", () => {
  const mentions = [
    { key: "@_user_1", id: { open_id: US }, name: "Hermes" },
    { key: "@_user_2", id: { open_id: "ou_bob" }, name: "Bob" },
  ];
  const read = said("text", { text: "@_user_1 ask @_user_2 and @_all" }, { mentions });
  assert.deepEqual([read?.text, read?.mentionsUs], ["ask @Bob and @all", true]);
});

test("a post is read as Markdown with its pictures", () => {
  const content = [
    [
      { tag: "text", text: "see " },
      { tag: "a", text: "this", href: "https://e.org" },
    ],
    [{ tag: "img", image_key: "img_1" }],
    [{ tag: "code_block", language: "GO", text: "x := 1" }],
  ];
  const read = said("post", { title: "Title", content });
  assert.equal(read?.text, "Title\nsee [this](https://e.org)\n\n\n```go\nx := 1\n```");
  assert.deepEqual(read?.files, [{ key: "img_1", kind: "image", name: undefined }]);
  assert.equal(said("post", { en_us: { title: "T", content: [[{ tag: "text", text: "x" }]] } })?.text, "T\nx");
});

for (const [type, content, expected] of [
  ["image", { image_key: "img_1" }, "photo"],
  ["file", { file_key: "file_1", file_name: "a.pdf" }, "document"],
  ["audio", { file_key: "file_1" }, "voice"],
  ["media", { file_key: "file_1", file_name: "a.mp4" }, "video"],
  ["text", { text: "/help" }, "command"],
] as const)
  test(`a message of the type ${type} is a ${expected}`, () => assert.equal(said(type, content)?.type, expected));

test("kinds that nobody knows are named", () => {
  assert.equal(said("vote", {})?.text, "[unsupported: vote]");
  assert.equal(said("interactive", { title: "A card" })?.text, "[unsupported: interactive] A card");
});

test("a thread is known by the message at its root", () => {
  assert.equal(said("text", { text: "x" }, { thread_id: "omt_1", root_id: "om_0" })?.thread, "om_0");
  assert.equal(said("text", { text: "x" }, { root_id: "om_0", parent_id: "om_0" })?.thread, undefined);
});

// Calls to the webhook.

const NOW = Date.parse("2026-01-01T00:00:00Z");
const KEY = "an encrypt key";
const TOKEN = "a verification token";

function encrypted(value: object): Buffer {
  const iv = Buffer.alloc(16, 7);
  const cipher = createCipheriv("aes-256-cbc", createHash("sha256").update(KEY).digest(), iv);
  const bytes = Buffer.concat([iv, cipher.update(JSON.stringify(value)), cipher.final()]);
  return Buffer.from(JSON.stringify({ encrypt: bytes.toString("base64") }));
}

function signed(body: Buffer, { key = KEY, at = NOW / 1000 } = {}) {
  const hash = createHash("sha256").update(`${at}nonce${key}`).update(body).digest("hex");
  return { "x-lark-request-timestamp": String(at), "x-lark-request-nonce": "nonce", "x-lark-signature": hash };
}

const event = { schema: "2.0", header: { token: TOKEN, event_type: "x" }, event: { a: 1 } };
const both = { encryptKey: KEY, verificationToken: TOKEN };
const isRefused = (opened: ReturnType<typeof openCall>) => "reply" in opened && opened.reply.status === 401;

test("an encrypted and signed event is opened", () => {
  const body = encrypted(event);
  assert.deepEqual(openCall({ body, headers: signed(body) }, both, NOW), { event });
});

test("an event with a wrong signature, an old one, none, or a wrong token is refused", () => {
  const body = encrypted(event);
  for (const headers of [signed(body, { key: "another" }), signed(body, { at: NOW / 1000 - 7200 }), {}])
    assert.ok(isRefused(openCall({ body, headers }, both, NOW)));
  const other = encrypted({ ...event, header: { token: "wrong" } });
  assert.ok(isRefused(openCall({ body: other, headers: signed(other) }, both, NOW)));
  const plain = Buffer.from(JSON.stringify(event));
  assert.ok(isRefused(openCall({ body: plain, headers: signed(plain) }, both, NOW)), "encryption is not optional");
  assert.ok(
    isRefused(
      openCall({ body: Buffer.from("no JSON"), headers: {} }, { encryptKey: "", verificationToken: TOKEN }, NOW),
    ),
  );
});

test("the address is proved to who knows the keys", () => {
  const proof = { type: "url_verification", challenge: "abc", token: TOKEN };
  assert.deepEqual(openCall({ body: encrypted(proof), headers: {} }, both, NOW), {
    reply: { status: 200, body: { challenge: "abc" } },
  });
  const plain = Buffer.from(JSON.stringify(proof));
  const only = { encryptKey: "", verificationToken: TOKEN };
  assert.deepEqual(openCall({ body: plain, headers: {} }, only, NOW), {
    reply: { status: 200, body: { challenge: "abc" } },
  });
  assert.ok(
    isRefused(openCall({ body: Buffer.from(JSON.stringify({ ...proof, token: "x" })), headers: {} }, only, NOW)),
  );
});
