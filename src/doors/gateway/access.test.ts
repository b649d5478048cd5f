import assert from "node:assert/strict";
import { test } from "node:test";
import {
  accessRules,
  commandRights,
  forStranger,
  isAdmin,
  isAuthorised,
  mayAnswer,
  mayRun,
  type Sender,
} from "./access.ts";
import type { ChatSource } from "./chat.ts";

const dm: ChatSource = { platform: "telegram", chat_type: "dm", chat_id: "7", user_id: "7" };
const group: ChatSource = { platform: "telegram", chat_type: "group", chat_id: "-5", user_id: "7" };

function rules(
  env: Readonly<Record<string, string>> = {},
  extra: Readonly<Record<string, unknown>> = {},
  general = "",
) {
  return accessRules("telegram", {
    env: (name) => env[name],
    forStrangers: general,
    extra,
  });
}

const cases: readonly [string, Readonly<Record<string, string>>, Partial<Sender>, boolean][] = [
  ["nobody, when nothing is said", {}, {}, false],
  ["everybody, when the gateway is open", { GATEWAY_ALLOW_ALL_USERS: "true" }, {}, true],
  ["a listed user", { TELEGRAM_ALLOWED_USERS: "5, 7" }, {}, true],
  ["no other user", { TELEGRAM_ALLOWED_USERS: "5,77" }, {}, false],
  ["a list beats the open gateway", { TELEGRAM_ALLOWED_USERS: "5", GATEWAY_ALLOW_ALL_USERS: "1" }, {}, false],
  [
    "a list for groups closes the open gateway too",
    { TELEGRAM_GROUP_ALLOWED_USERS: "5", GATEWAY_ALLOW_ALL_USERS: "1" },
    {},
    false,
  ],
  ["a user listed for all platforms", { GATEWAY_ALLOWED_USERS: "7" }, {}, true],
  ["a star", { TELEGRAM_ALLOWED_USERS: "*" }, {}, true],
  ["all users of the platform", { TELEGRAM_ALLOW_ALL_USERS: "yes" }, {}, true],
  ["a paired user, whatever the lists say", { TELEGRAM_ALLOWED_USERS: "5" }, { isPaired: true }, true],
  ["a user listed for groups, in a group", { TELEGRAM_GROUP_ALLOWED_USERS: "7" }, { source: group }, true],
  ["but not in a DM", { TELEGRAM_GROUP_ALLOWED_USERS: "7" }, {}, false],
  [
    "everybody in a listed chat",
    { TELEGRAM_GROUP_ALLOWED_CHATS: "-5" },
    { source: { ...group, user_id: undefined } },
    true,
  ],
  ["not in another chat", { TELEGRAM_GROUP_ALLOWED_CHATS: "-6" }, { source: group }, false],
  ["nobody without an id", { TELEGRAM_ALLOW_ALL_USERS: "1" }, { source: { ...dm, user_id: undefined } }, false],
  ["no bot", { TELEGRAM_ALLOWED_USERS: "7" }, { isBot: true }, false],
  [
    "a bot that names us",
    { TELEGRAM_ALLOWED_USERS: "7", TELEGRAM_ALLOW_BOTS: "mentions" },
    { isBot: true, mentionsUs: true },
    true,
  ],
  ["no bot that does not", { TELEGRAM_ALLOWED_USERS: "7", TELEGRAM_ALLOW_BOTS: "mentions" }, { isBot: true }, false],
  ["every bot", { TELEGRAM_ALLOWED_USERS: "7", TELEGRAM_ALLOW_BOTS: "all" }, { isBot: true }, true],
  ["a bot, where everybody may", { TELEGRAM_ALLOW_ALL_USERS: "1" }, { isBot: true }, true],
  ["a bot is a stranger like others", { TELEGRAM_ALLOW_BOTS: "all" }, { isBot: true }, false],
  ["whoever has a listed role", { TELEGRAM_ALLOWED_USERS: "5" }, { allowedByRole: true }, true],
  ["a list of roles closes the open gateway", { GATEWAY_ALLOW_ALL_USERS: "1" }, { allowedByRole: false }, false],
  ["an id is compared whole", { TELEGRAM_ALLOWED_USERS: "7@elsewhere" }, {}, false],
];
for (const [what, env, sender, expected] of cases)
  test(`allowed: ${what}`, () => {
    assert.equal(isAuthorised({ source: dm, isPaired: false, ...sender }, rules(env)), expected);
  });

test("WhatsApp ids are compared in one form, and a transport that proves its sender needs no list", () => {
  const whatsapp = accessRules("whatsapp", {
    env: (name) => (name === "WHATSAPP_ALLOWED_USERS" ? "+4915" : undefined),
    forStrangers: "",
    extra: {},
  });
  const source: ChatSource = { platform: "whatsapp", chat_type: "dm", chat_id: "x", user_id: "4915:2@s.whatsapp.net" };
  assert.equal(isAuthorised({ source, isPaired: false }, whatsapp), true);
  assert.equal(isAuthorised({ source: { ...source, user_id: "4916" }, isPaired: false }, whatsapp), false);
  assert.equal(
    isAuthorised({ source: { ...source, user_id: "" }, isPaired: false }, { ...whatsapp, trustsTransport: true }),
    true,
  );
});

test("a stranger is offered to pair in a DM where nothing is listed, and hears nothing elsewhere", () => {
  assert.equal(forStranger(dm, rules()), "pair");
  assert.equal(forStranger(group, rules()), "silence");
  assert.equal(forStranger(dm, rules({ TELEGRAM_ALLOWED_USERS: "5" })), "silence");
  assert.equal(forStranger(dm, rules({ TELEGRAM_ALLOWED_USERS: "5" }, { unauthorized_dm_behavior: "pair" })), "pair");
  assert.equal(
    forStranger(dm, rules({ TELEGRAM_UNAUTHORIZED_DM_BEHAVIOR: "ignore" }, { unauthorized_dm_behavior: "pair" })),
    "silence",
  );
  assert.equal(forStranger(dm, rules({}, {}, "ignore")), "silence");
  for (const list of ["GATEWAY_ALLOWED_USERS", "TELEGRAM_GROUP_ALLOWED_USERS", "TELEGRAM_GROUP_ALLOWED_CHATS"])
    assert.equal(forStranger(dm, rules({ [list]: "5" })), "silence", list);
  assert.equal(forStranger(dm, rules({ TELEGRAM_ALLOWED_USERS: "5" }, {}, "pair")), "pair");
});

test("commands: without admins everybody may everything; else admins do, others what is listed, help and whoami", () => {
  const reset = { name: "new", permission: "user" } as const;
  const restart = { name: "restart", permission: "admin" } as const;
  assert.equal(commandRights(dm, {}), null);
  assert.equal(mayRun(restart, "7", null), true);
  const listed = commandRights(dm, { allow_admin_from: "1, 2", user_allowed_commands: ["/New"] });
  assert.equal(isAdmin("1", listed), true);
  assert.equal(isAdmin("7", listed), false);
  assert.equal(mayRun(restart, "2", listed), true);
  assert.equal(mayRun(reset, "7", listed), true);
  assert.equal(mayRun(restart, "7", listed), false);
  assert.equal(mayRun({ name: "help", permission: "user" }, "7", listed), true);
  const open = commandRights(dm, { allow_admin_from: [1], user_allowed_commands: "*" });
  assert.equal(mayRun(reset, "7", open), true);
  assert.equal(mayRun(restart, "7", open), false);
  assert.equal(
    isAdmin("1", commandRights(dm, { group_allow_admin_from: "1" })),
    true,
    "a DM falls back to the group's list",
  );
  assert.equal(isAdmin("7", commandRights(dm, { group_allow_admin_from: "1" })), false);
  assert.equal(commandRights(group, { allow_admin_from: "1" }), null, "but not the other way round");
});

test("a single admin written as a number is an admin, and nobody else is", () => {
  const dm: ChatSource = { platform: "p", chat_type: "dm", chat_id: "501", user_id: "501" };
  const rights = commandRights(dm, { allow_admin_from: 501 });
  assert.deepEqual([isAdmin("501", rights), isAdmin("502", rights)], [true, false]);
});

const club = { platform: "telegram", chat_type: "group", chat_id: "-5", user_id: "7" } as const;
const admins = commandRights(club, { group_allow_admin_from: "1" });
const answerers: readonly [string, Parameters<typeof mayAnswer>, boolean][] = [
  ["whoever asked for the work", [club, club, null], true],
  ["in another chat too", [{ ...club, chat_type: "dm", chat_id: "7" }, club, admins], true],
  ["under their other id", [{ ...club, user_id: "x", user_id_alt: "7" }, club, null], true],
  ["not another member, also where nobody named admins", [{ ...club, user_id: "8" }, club, null], false],
  ["not another member beside admins", [{ ...club, user_id: "8" }, club, admins], false],
  ["an admin", [{ ...club, user_id: "1" }, club, admins], true],
  ["nobody of another platform with the same id", [{ ...club, platform: "signal" }, club, null], false],
  ["nobody without an id", [{ ...club, user_id: undefined }, club, null], false],
  ["anybody, where the platform does not say who asked", [club, { ...club, user_id: undefined }, null], true],
];
for (const [who, [writer, asker, rights], expected] of answerers)
  test(`a question is answered by ${who}`, () => assert.equal(mayAnswer(writer, asker, rights), expected));

for (const platform of ["email", "xmpp"])
  test(`addresses of ${platform} are compared without regard to capital letters`, () => {
    const env = (name: string) => (name === `${platform.toUpperCase()}_ALLOWED_USERS` ? "Ann@Example.ORG" : undefined);
    const rules = accessRules(platform, { env, forStrangers: "", extra: {} });
    const from = (user_id: string) =>
      isAuthorised({ source: { platform, chat_type: "dm", chat_id: user_id, user_id }, isPaired: false }, rules);
    assert.deepEqual([from("ann@example.org"), from("ANN@example.org"), from("bob@example.org")], [true, true, false]);
  });
