import assert from "node:assert/strict";
import { test } from "node:test";
import { type ChatSource, canonicalId, isShared, sessionKeyOf } from "./chat.ts";

const usual = { perUserInGroups: true, perUserInThreads: false };
const keys: readonly [string, ChatSource, string][] = [
  ["a DM", { platform: "telegram", chat_type: "dm", chat_id: "1", user_id: "1" }, "agent:main:telegram:dm:1"],
  [
    "a thread of a DM",
    { platform: "slack", chat_type: "dm", chat_id: "D1", thread_id: "17.2" },
    "agent:main:slack:dm:D1:17.2",
  ],
  ["a DM without a chat", { platform: "api", chat_type: "dm", thread_id: "t" }, "agent:main:api:dm:t"],
  ["a DM without anything", { platform: "api", chat_type: "dm" }, "agent:main:api:dm"],
  [
    "a member of a group",
    { platform: "telegram", chat_type: "group", chat_id: "-5", user_id: "7" },
    "agent:main:telegram:group:-5:7",
  ],
  [
    "the other id first",
    { platform: "x", chat_type: "group", chat_id: "g", user_id: "7", user_id_alt: "b" },
    "agent:main:x:group:g:b",
  ],
  ["nobody known", { platform: "x", chat_type: "channel", chat_id: "c" }, "agent:main:x:channel:c"],
  [
    "a thread, which is shared",
    { platform: "discord", chat_type: "thread", chat_id: "c", thread_id: "t", user_id: "7" },
    "agent:main:discord:thread:c:t",
  ],
  [
    "ids with colons",
    { platform: "matrix", chat_type: "group", chat_id: "!r:hs", user_id: "@u:hs" },
    "agent:main:matrix:group:!r:hs:@u:hs",
  ],
  [
    "a phone number",
    { platform: "whatsapp", chat_type: "dm", chat_id: "+4915:3@s.whatsapp.net" },
    "agent:main:whatsapp:dm:4915",
  ],
];

for (const [what, source, key] of keys)
  test(`the key of ${what}`, () => {
    assert.equal(sessionKeyOf(source, usual), key);
  });

test("settings make groups shared and threads personal", () => {
  const group: ChatSource = { platform: "x", chat_type: "group", chat_id: "g", user_id: "7" };
  const thread: ChatSource = { ...group, chat_type: "thread", thread_id: "t" };
  assert.equal(sessionKeyOf(group, { ...usual, perUserInGroups: false }), "agent:main:x:group:g");
  assert.equal(sessionKeyOf(thread, { ...usual, perUserInThreads: true }), "agent:main:x:thread:g:t:7");
  assert.equal(isShared(group, usual), false);
  assert.equal(isShared(group, { ...usual, perUserInGroups: false }), true);
  assert.equal(isShared(thread, usual), true);
  assert.equal(isShared(thread, { ...usual, perUserInThreads: true }), false);
  assert.equal(isShared({ ...thread, chat_type: "dm" }, { perUserInGroups: false, perUserInThreads: false }), false);
});

test("one person of WhatsApp has one id, a group its own", () => {
  for (const id of [" +4915", "4915", "4915:12@s.whatsapp.net", "4915@lid"])
    assert.equal(canonicalId("whatsapp_cloud", id), "4915");
  assert.equal(canonicalId("whatsapp", "12-34@g.us"), "12-34@g.us");
  assert.equal(canonicalId("matrix", "@u:hs"), "@u:hs");
  assert.equal(canonicalId("matrix", ""), undefined);
});
