import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChatSource } from "./chat.ts";
import type { KnownChat, PlatformEntry } from "./contract.ts";
import type { GatewaySettings } from "./settings.ts";
import { resolveTarget } from "./targets.ts";

/** Ids of the second platform contain colons. */
const entryOf = (name: string, pattern: RegExp) =>
  ({
    name,
    label: name,
    parseTarget: (id: string) => {
      const found = pattern.exec(id);
      return found ? { chatId: found[1] ?? "", ...(found[2] ? { threadId: found[2] } : {}) } : null;
    },
  }) as PlatformEntry; // what targets look at
const plain = entryOf("plain", /^(\d+)(?::(\d+))?$/);
const rooms = entryOf("rooms", /^(![\w]+:[\w.]+)(?::(\$\w+))?$/);
const off = entryOf("off", /^(.+)$/);

const settings = {
  home: { paths: { profile: "work" } },
  enabled: ({ name }: PlatformEntry) => ({ on: name !== "off" }),
  homeChannel: ({ name }: PlatformEntry) =>
    name === "plain" ? { target: { chatId: "1", threadId: "2" }, name: "Home" } : null,
} as unknown as GatewaySettings; // the questions that are asked

const CHATS: readonly KnownChat[] = [
  { id: "10", name: "#general", type: "channel", guild: "One" },
  { id: "20", name: "#general", type: "channel", guild: "Two" },
  { id: "30", name: "random", type: "channel" },
  { id: "40", name: "Ann", type: "dm" },
];
const options = { settings, entries: [plain, rooms, off], directory: async () => ({ plain: CHATS }) };
const origin: ChatSource = { platform: "plain", chat_type: "dm", chat_id: "7", thread_id: "8" };

const LEAD: readonly [target: string, origin: ChatSource | undefined, chat: string, thread: string | undefined][] = [
  ["plain", undefined, "1", "2"],
  ["PLAIN:99", undefined, "99", undefined],
  ["plain:99:3", undefined, "99", "3"],
  ["rooms:!a:b.c", undefined, "!a:b.c", undefined],
  ["rooms:!a:b.c:$e", undefined, "!a:b.c", "$e"],
  ["origin", origin, "7", "8"],
  ["origin", undefined, "1", "2"],
  ["plain", origin, "7", "8"],
  ["all", undefined, "1", "2"],
  ["plain:#random", undefined, "30", undefined],
  ["plain:ann", undefined, "40", undefined],
  ["plain:Ann (dm)", undefined, "40", undefined],
  ["plain:ran", undefined, "30", undefined],
  ["plain:Two/general", undefined, "20", undefined],
];

for (const [target, from, chat, thread] of LEAD)
  test(`"${target}"${from ? " in a chat" : ""} leads to ${chat}`, async () => {
    const answer = await resolveTarget(target, options, from);
    assert.ok(answer.type === "chats", JSON.stringify(answer));
    assert.deepEqual([answer.chats[0]?.target.chatId, answer.chats[0]?.target.threadId], [chat, thread]);
  });

const FAIL: readonly [target: string, code: string, words: RegExp][] = [
  ["nowhere:1", "unknown_platform", /plain, rooms, off/],
  ["off:1", "not_configured", /hermes -p work gateway setup off/],
  ["rooms", "no_target", /\/sethome/],
  ["plain:#nobody", "no_target", /--list plain/],
  ["plain:#general", "no_target", /One\/#general \(10\), Two\/#general \(20\)/],
];

for (const [target, code, words] of FAIL)
  test(`"${target}" leads nowhere, and says why`, async () => {
    const answer = await resolveTarget(target, options);
    assert.ok(answer.type === "problem", JSON.stringify(answer));
    assert.equal(answer.code, code);
    assert.match(answer.error, words);
  });

test("local is for files only", async () => {
  assert.deepEqual(await resolveTarget("local", options), { type: "local" });
});
