import assert from "node:assert/strict";
import { test } from "node:test";
import { splitFor } from "../../answer.ts";
import type { ChatMessage } from "../../contract.ts";
import { splitMessage } from "../../split.ts";
import { addressesOf, entry, webhookOf } from "./entry.ts";
import { menuOf, parsePress } from "./sending.ts";

const options = (values: Readonly<Record<string, unknown>>) => (key: string, variable?: string) =>
  (variable === undefined ? undefined : values[variable]) ?? values[key];

const targets: readonly (readonly [string, object | null])[] = [
  ["123456", { chatId: "123456" }],
  ["-1001234567890", { chatId: "-1001234567890" }],
  ["-1001234567890:17", { chatId: "-1001234567890", threadId: "17" }],
  ["@some_channel", { chatId: "@some_channel" }],
  ["@abc", null],
  ["@1abc", null],
  ["12a", null],
  ["123:", null],
  ["name", null],
];
for (const [written, target] of targets)
  test(`${written} is ${target === null ? "no chat of Telegram" : JSON.stringify(target)}`, () => {
    assert.deepEqual(entry.parseTarget(written), target);
  });

const TOKEN = { TELEGRAM_BOT_TOKEN: "1:abc" };
const HOOK = { ...TOKEN, webhook_url: "https://a.example/t", webhook_secret: "s" };
const problems: readonly (readonly [string, Readonly<Record<string, unknown>>, RegExp | null])[] = [
  ["a token", TOKEN, null],
  ["a token with blanks in it", { token: "1:a b" }, /TELEGRAM_BOT_TOKEN is not a token/],
  ["an own server in this network", { ...TOKEN, base_url: "http://192.168.1.5:8081/bot" }, null],
  ["plain HTTP on the internet", { ...TOKEN, TELEGRAM_BASE_URL: "http://a.example" }, /TELEGRAM_BASE_URL must/],
  ["another protocol", { ...TOKEN, base_file_url: "ftp://a.example" }, /TELEGRAM_BASE_FILE_URL must/],
  ["a webhook with a secret", HOOK, null],
  ["a webhook without a secret", { ...HOOK, webhook_secret: "" }, /TELEGRAM_WEBHOOK_SECRET is needed/],
  ["a secret that Telegram refuses", { ...HOOK, webhook_secret: "a b" }, /TELEGRAM_WEBHOOK_SECRET/],
  ["a webhook that is no address", { ...HOOK, webhook_url: "here" }, /TELEGRAM_WEBHOOK_URL/],
  ["a webhook on no port", { ...HOOK, TELEGRAM_WEBHOOK_PORT: "x" }, /TELEGRAM_WEBHOOK_PORT/],
];
for (const [name, values, problem] of problems)
  test(`the settings with ${name} are ${problem === null ? "fine" : "not"}`, () => {
    const said = entry.check?.(options(values)) ?? null;
    if (problem === null) assert.equal(said, null);
    else assert.match(said ?? "", problem);
  });

test("without a token Telegram is not set up", () => {
  assert.equal(entry.identity(options({})), null);
  assert.equal(entry.identity(options({ token: " 1:abc " })), "1:abc");
});

test("addresses of other programs' homes are cut to what is ours", () => {
  const own = { base_url: "http://127.0.0.1:8081/bot", base_file_url: "http://127.0.0.1:8081/file/bot/" };
  assert.deepEqual(addressesOf(options(own)), {
    api: "http://127.0.0.1:8081",
    files: "http://127.0.0.1:8081",
    isOwn: true,
  });
  assert.deepEqual(addressesOf(options({})), {
    ...{ api: "https://api.telegram.org", files: "https://api.telegram.org", isOwn: false },
  });
  assert.equal(addressesOf(options({ base_url: "http://127.0.0.1:1/" })).files, "http://127.0.0.1:1");
});

test("a webhook listens on this machine and port 8443 unless the settings say otherwise", () => {
  assert.deepEqual(webhookOf(options(HOOK)), {
    url: "https://a.example/t",
    host: "127.0.0.1",
    port: 8443,
    secret: "s",
  });
  assert.equal(webhookOf(options({})), null);
});

const waits: readonly (readonly [Partial<ChatMessage>, number])[] = [
  [{ text: "x".repeat(320) }, 0.18],
  [{ text: "x".repeat(321) }, 0.24],
  [{ text: "x".repeat(1024) }, 0.24],
  [{ text: "x".repeat(1025) }, 0.3],
  [{ text: "x".repeat(3999) }, 0.3],
  [{ text: "x".repeat(4000) }, 1],
  [{ text: "", type: "photo", album: "7" }, 0.8],
  [{ text: "/new", type: "command" }, 0],
];
for (const [part, seconds] of waits)
  test(`${part.type ?? "text"} of ${part.text?.length} characters${part.album ? " in an album" : ""} waits ${seconds} s for more`, () => {
    const message: ChatMessage = {
      ...{ type: "text", text: "", updateId: "1", sentAt: 0, source: { platform: "telegram", chat_type: "dm" } },
      ...part,
    };
    assert.equal(entry.batchSeconds?.(message), seconds);
  });

test("a message soon after the start of a turn does not interrupt it", () => {
  assert.equal(entry.followUpSeconds?.(options({})), 3);
  assert.equal(entry.followUpSeconds?.(options({ HERMES_TELEGRAM_FOLLOWUP_GRACE_SECONDS: "0.5" })), 0.5);
});

test("a press says which choice of which question it is; data of others is none", () => {
  assert.deepEqual(parsePress("ea:once:0a1b"), { choice: "once", questionId: "0a1b" });
  assert.deepEqual(parsePress("cl:a%3Ab:x:y"), { choice: "a:b", questionId: "x:y" });
  for (const data of ["", "ea:once:", "zz:once:1", "once", "cl:%E0%A4%A:1"]) assert.equal(parsePress(data), null);
});

const named = (...names: string[]) => menuOf(names.map((name) => ({ name, description: "does it" })));
const commandsOf = (...names: string[]) => named(...names).shown.map(({ command }) => command);

test("names of a menu are written as Telegram takes them; what has no letters is left out", () => {
  assert.deepEqual(commandsOf("My Skill!", "a--b", "中文", "_x_", "reload-mcp"), ["myskill", "a_b", "x", "reload_mcp"]);
});

test("what everybody needs comes first, whatever the order", () => {
  assert.deepEqual(commandsOf("zebra", "stop", "model", "help", "new", "apple").slice(0, 4), [
    "help",
    "new",
    "stop",
    "model",
  ]);
});

test("names that are the same once they are cut get a digit at their end; the same name twice is one", () => {
  const long = "a".repeat(40);
  const cut = commandsOf(long, `${long}b`, `${long}c`, "x", "x", "X");
  assert.deepEqual(cut, ["a".repeat(32), `${"a".repeat(31)}0`, `${"a".repeat(31)}1`, "x"]);
  const many = Array.from({ length: 15 }, (_, n) => `${long}${n}`);
  assert.equal(commandsOf(...many).length, 11, "one, and ten with a digit");
});

test("thirty are shown, and the others are counted", () => {
  const { shown, hidden } = named(...Array.from({ length: 140 }, (_, n) => `c${n}`));
  assert.equal(shown.length, 30);
  assert.equal(hidden, 110);
});

test("a description is never empty and never too long", () => {
  const { shown } = menuOf([
    { name: "a", description: " " },
    { name: "b", description: "é".repeat(300) },
  ]);
  assert.deepEqual(
    shown.map(({ description }) => description.length),
    [1, 256],
  );
});

test("of a table that is longer than a message every row says which value is which", () => {
  const rows = Array.from({ length: 200 }, (_, at) => `| host${at} | ${"b".repeat(at % 9)} | down |`);
  const text = ["The hosts:", "| Host | Name | State |", "|---|---|---|", ...rows].join("\n");
  const sent = splitMessage(text, splitFor(entry)).map((part) => entry.format?.(part) ?? part);
  assert.ok(sent.length > 1);
  for (const part of sent) {
    assert.ok(part.length <= entry.maxLength);
    assert.doesNotMatch(part, /\|/);
    assert.match(part, /\n\n\\\(\d\/\d\\\)$/);
  }
  const hosts = sent.join("\n").match(/^\*host\d+\*(?:\n• Name: b+)?\n• State: down$/gm);
  assert.equal(hosts?.length, 200);
});
