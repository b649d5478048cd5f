import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { entry } from "./entry.ts";
import { readCall } from "./incoming.ts";

const call = (value: object, id = "1") => ({
  object: "whatsapp_business_account",
  entry: [{ changes: [{ field: "messages", value: { metadata: { phone_number_id: id }, ...value } }] }],
});

test("nothing that comes makes the reader fail", () => {
  fc.assert(
    fc.property(
      fc.jsonValue(),
      fc.constantFrom("text", "image", "interactive", "contacts", "location"),
      (junk, type) => {
        for (const body of [junk, { entry: junk }, call({ messages: junk, contacts: junk, statuses: junk })])
          readCall(body, "1");
        readCall(call({ messages: [{ id: "a", from: "b", type, [type]: junk, context: junk, errors: junk }] }), "1");
        readCall(call({ statuses: [{ id: junk, status: "failed", errors: junk }] }), "1");
      },
    ),
  );
});

test("only changes of our number are read", () => {
  const messages = [{ id: "m", from: "49170", timestamp: "5", type: "text", text: { body: "hi" } }];
  assert.equal(readCall(call({ messages }), "1").messages.length, 1);
  assert.equal(readCall(call({ messages }, "2"), "1").messages.length, 0);
});

test("a report names its message, its key and why it failed", () => {
  const errors = [{ code: 131047, title: "Re-engagement message", error_data: { details: "more than 24 hours" } }];
  const status = {
    id: "wamid.1",
    status: "failed",
    recipient_id: "49170",
    biz_opaque_callback_data: "inbox:1#0",
    errors,
  };
  assert.deepEqual(
    readCall(call({ statuses: [status, { id: "wamid.2", status: "read", recipient_id: "1" }] }), "1").reports,
    [
      { messageId: "wamid.1", key: "inbox:1#0", to: "49170", failure: { code: 131047, words: "more than 24 hours" } },
      { messageId: "wamid.2", key: "", to: "1", failure: null },
    ],
  );
});

const targets: readonly (readonly [string, string | null])[] = [
  ["+49 170 1234567", "491701234567"],
  ["491701234567", "491701234567"],
  ["491701234567:3@s.whatsapp.net", "491701234567"],
  ["120363040000000000@g.us", null],
  ["12345", null],
  ["hello", null],
  ["", null],
];

for (const [text, chatId] of targets)
  test(`the target ${JSON.stringify(text)} is ${chatId ?? "none of WhatsApp's"}`, () => {
    assert.equal(entry.parseTarget(text)?.chatId ?? null, chatId);
  });
