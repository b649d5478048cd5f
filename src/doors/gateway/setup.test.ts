import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { gatewayUser } from "../../../test/support/gateway-command.ts";
import { TelegramServer } from "../../../test/support/platforms/telegram-server.ts";
import { define } from "./cli.ts";

const TOKEN = "123456:abcdefghijklmnopqrstuvwxyz0123456";

test("a platform is picked from a list with its state, asked for its variables, and what to do next is said", async (t) => {
  const { home, typed } = await gatewayUser(t);
  const { code, out, err, hidden } = await typed(define, { args: ["setup"], answers: ["Telegram", TOKEN, "", ""] });
  assert.equal(code, 0, err);
  assert.match(err, /Telegram {2}not set up/);
  assert.match(out, /BotFather/);
  assert.equal(await readFile(home.at(".env"), "utf8"), `TELEGRAM_BOT_TOKEN=${TOKEN}\n`);
  assert.match(out, /✓ Saved TELEGRAM_BOT_TOKEN in /);
  assert.match(out, /hermes gateway run[\s\S]*write to the bot[\s\S]*hermes pairing approve telegram CODE/);
  assert.deepEqual(hidden.length, 1);
  assert.match(hidden[0] ?? "", /^TELEGRAM_BOT_TOKEN, /);
  const again = await typed(define, { args: ["setup"], answers: ["Telegram", "", "", ""] });
  assert.match(again.err, /Telegram {2}set up/);
  assert.match(again.err, /TELEGRAM_BOT_TOKEN, the token of the bot \(Enter = keep \S+\): /);
  assert.ok(!again.err.includes(TOKEN), "the token is masked");
  assert.equal(await readFile(home.at(".env"), "utf8"), `TELEGRAM_BOT_TOKEN=${TOKEN}\n`);
});

test("who is named may write, and needs no pairing", async (t) => {
  const { home, typed } = await gatewayUser(t);
  const { code, out } = await typed(define, { args: ["setup", "Telegram"], answers: [TOKEN, "42, 43", ""] });
  assert.equal(code, 0);
  assert.match(await readFile(home.at(".env"), "utf8"), /^TELEGRAM_ALLOWED_USERS="42, 43"$/m);
  assert.doesNotMatch(out, /pairing approve/);
});

const wrong: readonly (readonly [typed: string, told: RegExp])[] = [
  [`${TOKEN} ${TOKEN}`, /A token has no spaces/],
  ["a\u001b[Ab", /control characters/],
  [`TELEGRAM_BOT_TOKEN=${TOKEN}`, /Only the value, without TELEGRAM_BOT_TOKEN=/],
];
for (const [input, told] of wrong)
  test(`${JSON.stringify(input.slice(0, 24))} is told to be wrong and asked for again`, async (t) => {
    const { home, typed } = await gatewayUser(t);
    const { code, err } = await typed(define, { args: ["setup", "telegram"], answers: [input, TOKEN, "", ""] });
    assert.equal(code, 0);
    assert.match(err, told);
    assert.equal(await readFile(home.at(".env"), "utf8"), `TELEGRAM_BOT_TOKEN=${TOKEN}\n`);
  });

test("what is needed and missing is asked for again, and Ctrl+C saves nothing", async (t) => {
  const { home, typed } = await gatewayUser(t);
  const { code, err } = await typed(define, { args: ["setup", "telegram"], answers: ["", "42", "", null] });
  assert.equal(code, 1);
  assert.match(err, /TELEGRAM_BOT_TOKEN is needed\. Ctrl\+C cancels/);
  assert.match(err, /Setup cancelled; nothing was saved\./);
  await assert.rejects(readFile(home.at(".env"), "utf8"), { code: "ENOENT" });
});

test("an answer that does not fit is told by the platform, and only that one is asked for again", async (t) => {
  const { home, typed } = await gatewayUser(t);
  const answers = ["bot@example.com", "secret", "localhost/x", "localhost", "", "", "", "localhost"];
  const { code, err } = await typed(define, { args: ["setup", "email"], answers });
  assert.equal(code, 0, err);
  assert.match(err, /⚠ EMAIL_IMAP_HOST "localhost\/x" is not a host/);
  assert.match(await readFile(home.at(".env"), "utf8"), /^EMAIL_IMAP_HOST=localhost$/m);
});

test("a token that the platform refuses is not kept: it is asked for again until Telegram knows the bot", async (t) => {
  const telegram = await TelegramServer.start();
  t.after(() => telegram[Symbol.asyncDispose]());
  const { home, typed } = await gatewayUser(t);
  const env = { TELEGRAM_BASE_URL: telegram.url };
  const answers = [TOKEN, "", "", telegram.token];
  const { code, out, err } = await typed(define, { args: ["setup", "telegram"], answers, env });
  assert.equal(code, 0, err);
  assert.match(
    err,
    /⚠ Telegram does not accept TELEGRAM_BOT_TOKEN; copy it again from @BotFather: Unauthorized\. Ctrl\+C cancels/,
  );
  assert.match(out, /✓ Telegram knows the bot: @hermes_test_bot\n✓ Saved TELEGRAM_BOT_TOKEN in /);
  assert.equal(await readFile(home.at(".env"), "utf8"), `TELEGRAM_BOT_TOKEN=${telegram.token}\n`);
  const script = await (await gatewayUser(t)).typed(define, {
    args: ["setup", "telegram"],
    env: { ...env, TELEGRAM_BOT_TOKEN: TOKEN },
  });
  assert.equal(script.code, 1);
  assert.match(script.err, /Telegram is not usable: Telegram does not accept TELEGRAM_BOT_TOKEN/);
});

test("what cannot be asked is kept, and told", async (t) => {
  const { home, typed } = await gatewayUser(t);
  const { code, err } = await typed(define, { args: ["setup", "telegram"], answers: [TOKEN, "", ""] });
  assert.equal(code, 0);
  assert.match(
    err,
    /⚠ Telegram could not be asked: 127\.0\.0\.1:9 refused the connection.* The gateway tries it again/,
  );
  assert.match(await readFile(home.at(".env"), "utf8"), /^TELEGRAM_BOT_TOKEN=/);
});

test("a platform that was disabled is enabled again", async (t) => {
  const { home, typed } = await gatewayUser(t, { "config.yaml": "platforms:\n  telegram:\n    enabled: false\n" });
  await typed(define, { args: ["setup", "telegram"], answers: [TOKEN, "", ""] });
  assert.match(await readFile(home.at("config.yaml"), "utf8"), /enabled: true/);
});

test("a terminal that cannot move its cursor gets names to type", async (t) => {
  const { typed } = await gatewayUser(t);
  const run = { args: ["setup"], answers: ["telegram", TOKEN, "", ""], env: { TERM: "dumb" } };
  const { code, out } = await typed(define, run);
  assert.equal(code, 0);
  assert.match(out, /^ {2}telegram: not set up$/m);
});

test("without a terminal the platforms are listed, or what to set for one of them", async (t) => {
  const { typed } = await gatewayUser(t);
  const list = await typed(define, { args: ["setup"] });
  assert.equal(list.code, 0);
  assert.match(list.out, /^telegram +not set up$/m);
  const one = await typed(define, { args: ["setup", "telegram"] });
  assert.equal(one.code, 1);
  assert.match(one.out, /hermes config set TELEGRAM_BOT_TOKEN +VALUE +missing: the token/);
  assert.match(one.out, /hermes config set TELEGRAM_ALLOWED_USERS +VALUE +optional/);
  assert.match(one.err, /Telegram is not set up: TELEGRAM_BOT_TOKEN is needed\.$/m);
  const ready = await typed(define, { args: ["setup", "telegram"], env: { TELEGRAM_BOT_TOKEN: TOKEN } });
  assert.equal(ready.code, 0);
  assert.match(ready.out, /Telegram is set up\. Next:/);
});

test("a platform that does not exist is told with the nearest one, exit 2", async (t) => {
  const { typed } = await gatewayUser(t);
  const { code, err } = await typed(define, { args: ["setup", "telegramm"] });
  assert.equal(code, 2);
  assert.match(err, /no platform "telegramm"\. Did you mean "telegram"\? Platforms: .*slack/);
});
