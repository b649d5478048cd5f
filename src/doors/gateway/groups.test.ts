import assert from "node:assert/strict";
import { test } from "node:test";
import { recordedLog } from "../../../test/support/session-store.ts";
import { channelSettings, isForUs } from "./groups.ts";

type Message = Parameters<typeof isForUs>[0];
const said = (more: Partial<Message> = {}): Message => ({ chatId: "c", text: "hello", mentionsUs: false, ...more });

function heard(message: Message, options: Readonly<Record<string, unknown>>, requireMention = true) {
  const option = (key: string) => options[key];
  return isForUs(message, option, { requireMention, prefix: "P" }, recordedLog());
}

const rows: readonly [string, Message, Readonly<Record<string, unknown>>, boolean][] = [
  ["a message that names nobody", said(), {}, false],
  ["a mention", said({ mentionsUs: true }), {}, true],
  ["an answer to us", said({ repliesToUs: true }), {}, true],
  ["a command", said({ isCommand: true }), {}, true],
  ["a thread that we write in", said({ isFollowed: true }), {}, true],
  ["no mention, where none is needed", said(), { require_mention: "no" }, true],
  ["a word that cannot be read, as the default", said(), { require_mention: "perhaps" }, false],
  ["a pattern", said({ text: "hey Hermes" }), { mention_patterns: ["^hey"] }, true],
  ["a pattern that is none, beside one", said({ text: "hey" }), { mention_patterns: ["(", "hey"] }, true],
  ["a pattern far behind in a long text", said({ text: `${"x".repeat(3000)}hey` }), { mention_patterns: "hey" }, false],
  ["a mention in a chat that is not on the list", said({ mentionsUs: true }), { allowed_chats: "d, e" }, false],
  ["a mention in a chat on the list", said({ mentionsUs: true }), { allowed_chats: "d, c" }, true],
  [
    "a mention below a channel on the list",
    said({ mentionsUs: true, parentChatId: "d" }),
    { allowed_chats: "d" },
    true,
  ],
  ["a chat where anything counts", said(), { free_response_chats: ["c"] }, true],
  ["a thread of one", said({ threadId: "t" }), { free_response_chats: ["t"] }, true],
  ["such a chat that is not on the list", said(), { free_response_chats: "*", allowed_chats: "d" }, false],
];
for (const [what, message, options, expected] of rows)
  test(`${expected ? "meant for us" : "not for us"}: ${what}`, () => assert.equal(heard(message, options), expected));

test("a chat has the settings of its thread, then its own, then those above it", () => {
  const settings: Readonly<Record<string, unknown>> = {
    channel_prompts: { t: " ", c: "of the chat", up: "of the one above" },
    channel_skill_bindings: [
      { id: "up", skills: ["a", "b", "a"] },
      { id: 7, skill: "seven" },
    ],
  };
  const of = (...ids: (string | undefined)[]) => channelSettings(ids, (key) => settings[key]);
  assert.deepEqual(of("t", "c", "up"), { channelPrompt: "of the chat", skills: ["a", "b"] });
  assert.deepEqual(of(undefined, "7"), { skills: ["seven"] });
  assert.deepEqual(of("x"), {});
});
