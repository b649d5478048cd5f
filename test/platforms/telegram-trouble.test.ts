// What goes wrong between Telegram and the gateway, and that nothing is lost by it, nothing said twice.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { answerTurns, startGateway, typed, until } from "../support/gateway-rig.ts";
import { rowsOf } from "../support/paper-home.ts";
import { echo, saidIn, type TelegramWorld, telegramWorld } from "../support/platforms/telegram-rig.ts";
import type { Room } from "../support/platforms/telegram-world.ts";

describe("Telegram in trouble", () => {
  let one: TelegramWorld;
  let chat: Room;
  before(async () => {
    one = await telegramWorld({ config: "display:\n  busy_input_mode: queue\n" });
    chat = one.telegram.dm(one.ada);
  });
  after(() => one[Symbol.asyncDispose]());
  afterEach(() => echo(one.model));

  const times = (room: Room, part: RegExp) => room.fromBot.filter(({ text }) => part.test(text)).length;
  const log = () => readFile(one.home.at("logs", "gateway.log"), "utf8").catch(() => "");

  test("updates that nobody can read hold up nobody, not even the chat they came from", async () => {
    const { telegram, ada } = one;
    const message = { message_id: 1, date: 1, from: { id: ada.id }, chat: { id: ada.id, type: "private" } };
    for (const broken of [
      {},
      { from: null },
      { chat: null },
      { text: 5 },
      { text: {}, entities: [null] },
      { date: -1e300, text: "x" },
    ])
      telegram.announceBroken({ message: { ...message, ...broken } });
    for (const fields of [{ message: [] }, { callback_query: {} }, { edited_message: {} }, { update_id: "none" }])
      telegram.announceBroken(fields as never);
    telegram.dm(ada).write(ada, "after the broken ones");
    await telegram.dm(ada).shows(/heard: .*after the broken ones/s);
  });

  test("a limit of messages is waited for, and the parts stay in order", async () => {
    const { telegram, ada, model } = one;
    answerTurns(model, () => ({ text: `limited ${"word ".repeat(1200)}end` }));
    const parameters = { retry_after: 1 };
    telegram.breakNext("sendMessage", {
      kind: "answer",
      code: 429,
      description: "Too Many Requests: retry after 1",
      parameters,
    });
    const started = Date.now();
    chat.write(ada, "much");
    await chat.shows(/end \(2\/2\)$/);
    assert.ok(Date.now() - started >= 1000);
    assert.deepEqual(
      chat.fromBot.slice(-2).map(({ text }) => text.slice(-5)),
      ["(1/2)", "(2/2)"],
    );
    assert.equal(times(chat, /^limited/), 1);
  });

  test("what Telegram cannot parse is sent as it was written", async () => {
    const { telegram, ada, model } = one;
    answerTurns(model, () => ({ text: "so **strange**" }));
    telegram.breakNext("sendMessage", {
      kind: "answer",
      code: 400,
      description: "Bad Request: can't parse entities: Character '.' is reserved",
    });
    chat.write(ada, "odd");
    const answer = await chat.shows(/strange/);
    assert.equal(answer.text, "so **strange**");
    assert.deepEqual(answer.entities, []);
  });

  for (const [name, fault] of [
    ["an error of the server", { kind: "answer", code: 502, description: "Bad Gateway" }],
    ["an error in front of the server", { kind: "html", code: 502 }],
  ] as const)
    test(`${name} is tried again until the answer is there, once`, async () => {
      const { telegram, ada } = one;
      telegram.breakNext("sendMessage", fault, 2);
      chat.write(ada, `behind ${name}`);
      await chat.shows(new RegExp(`heard: behind ${name}$`));
      await sleep(300);
      assert.equal(times(chat, new RegExp(`behind ${name}`)), 1);
    });

  for (const kind of ["silence", "cut"] as const)
    test(`a message that may have arrived (${kind}) is sent once more, and says so`, async () => {
      const { telegram, ada } = one;
      telegram.breakNext("sendMessage", { kind });
      chat.write(ada, `perhaps ${kind}`);
      await chat.shows(new RegExp(`^\\(recovered\\) heard: perhaps ${kind}$`));
      await sleep(300);
      assert.equal(times(chat, new RegExp(`perhaps ${kind}$`)), 2);
      assert.equal(times(chat, new RegExp(`^heard: perhaps ${kind}$`)), 1);
    });

  test("without a connection nothing has arrived: the answer comes once, without a mark", async () => {
    const { telegram, ada, model } = one;
    answerTurns(model, async () => {
      await telegram.down();
      return { text: "after the outage" };
    });
    chat.write(ada, "unplug it");
    await until("it was tried", async () => /ECONNREFUSED/.test(await log()));
    await sleep(300);
    await telegram.up();
    await chat.shows(/^after the outage$/);
    echo(model);
    chat.write(ada, "and messages come in again");
    await until("it is heard", () => one.asked().includes("and messages come in again"));
    assert.equal(times(chat, /after the outage/), 1);
  });

  test("a message that is gone is answered without quoting it", async () => {
    const { ada, model } = one;
    const asked = chat.write(ada, "delete me");
    answerTurns(model, () => {
      chat.delete(asked);
      return { text: "to what was deleted" };
    });
    assert.equal((await chat.shows(/^to what was deleted$/)).replyTo, null);
  });

  test("who has blocked the bot is not written to again, and the status says why", async () => {
    const { telegram, bob, home, model } = one;
    const room = telegram.dm(bob);
    answerTurns(model, () => {
      room.closed = { code: 403, description: "Forbidden: bot was blocked by the user" };
      return { text: "to nobody" };
    });
    const sent = telegram.of("sendMessage").length;
    room.write(bob, "then I leave");
    await until("it is given up", () => rowsOf(home, "SELECT error FROM outbox WHERE state = 'dead'").length > 0);
    assert.match(String(rowsOf(home, "SELECT error FROM outbox WHERE state = 'dead'")[0]?.error), /bot was blocked/);
    await sleep(300);
    assert.ok(telegram.of("sendMessage").length - sent <= 2, "at most one try, and one to say so");
    room.closed = null;
  });

  test("an update that comes twice is one turn, also after a restart", async () => {
    const { telegram, ada, asked } = one;
    chat.write(ada, "only once");
    await chat.shows(/heard: only once/);
    telegram.repeatLast();
    await one.gateway.stop();
    one.gateway = await startGateway(one.home);
    telegram.repeatLast();
    chat.write(ada, "next");
    await chat.shows(/heard: next/);
    assert.equal(asked().filter((text) => text === "only once").length, 1);
    assert.equal(times(chat, /only once/), 1);
  });

  test("a message that waits is changed also by an edit after a restart", async () => {
    const { ada, model } = one;
    const { promise, resolve } = Promise.withResolvers<void>();
    answerTurns(model, async (request) => {
      if (saidIn(request).includes("hold still")) await promise;
      return { text: `heard: ${saidIn(request)}` };
    });
    chat.write(ada, "hold still");
    await until("the first turn runs", () => one.asked().at(-1) === "hold still");
    const second = chat.write(ada, "tpyo after restart");
    await until("it is stored", () => one.telegram.pending === 0);
    await one.gateway.kill();
    one.gateway = await startGateway(one.home);
    await until(
      "the first turn runs again",
      () => one.asked().filter((said) => said.includes("hold still")).length > 1,
    );
    chat.edit(second, "typo after restart");
    await until("the edit is read", () => one.telegram.pending === 0);
    resolve();
    await chat.shows(/heard: typo after restart$/);
    assert.ok(!one.asked().includes("tpyo after restart"));
  });

  test("updates in the wrong order are all read", async () => {
    const { telegram, ada, bob, model } = one;
    const hold = Promise.withResolvers<void>();
    telegram.reversed = true;
    telegram.breakNext("getUpdates", { kind: "slow", ms: 300 });
    answerTurns(model, async (request) => {
      await hold.promise;
      return { text: `heard: ${saidIn(request)}` };
    });
    telegram.dm(bob).write(bob, "from bob");
    chat.write(ada, "from ada");
    hold.resolve();
    await telegram.dm(bob).shows(/heard: from bob/);
    await chat.shows(/heard: from ada/);
    telegram.reversed = false;
    await until("all are acknowledged", () => telegram.pending === 0);
  });

  test("while a file is on its way, other chats are answered", async () => {
    const { telegram, ada, bob, asked } = one;
    telegram.breakNext("file", { kind: "slow", ms: 2500 });
    chat.attach(ada, "document", Buffer.from("%PDF-1"), { name: "slow.pdf", caption: "a slow one" });
    chat.write(ada, "behind the file");
    telegram.dm(bob).write(bob, "me first");
    await telegram.dm(bob).shows(/heard: me first/);
    assert.ok(!asked().some((text) => text.includes("a slow one")), "the file is still on its way");
    await until(
      "both are heard",
      () =>
        asked().some((text) => /a slow one[\s\S]*behind the file/.test(text)) || asked().includes("behind the file"),
    );
    const order = asked().filter((text) => /a slow one|behind the file/.test(text));
    assert.match(order[0] ?? "", /a slow one/);
    await until("all are acknowledged", () => telegram.pending === 0);
  });

  test("killed while a file is on its way: the message is read again", async () => {
    const { telegram, ada, bob, asked } = one;
    telegram.breakNext("file", { kind: "slow", ms: 5000 });
    chat.attach(ada, "document", Buffer.from("%PDF-1"), { name: "kill.pdf", caption: "not lost" });
    telegram.dm(bob).write(bob, "meanwhile");
    await telegram.dm(bob).shows(/heard: meanwhile/);
    const polls = telegram.of("getUpdates").length;
    await until("it has polled again", () => telegram.of("getUpdates").length > polls + 1);
    await one.gateway.kill();
    assert.ok(!asked().some((text) => text.includes("not lost")));
    one.gateway = await startGateway(one.home);
    await until("it is heard", () => asked().some((text) => text.startsWith("not lost\n[Document: kill.pdf")));
    assert.equal(asked().filter((text) => text === "meanwhile").length, 1);
  });

  test("another program that polls is borne for a while, then the bot connects again", async () => {
    const { telegram, ada, gateway } = one;
    const conflict = {
      kind: "answer",
      code: 409,
      description: "Conflict: terminated by other getUpdates request",
    } as const;
    telegram.breakNext("getUpdates", conflict, 3);
    chat.write(ada, "in between");
    await chat.shows(/heard: in between/);
    assert.doesNotMatch(gateway.lines.join("\n"), /failed: another program/);
    telegram.breakNext("getUpdates", conflict, 6);
    await gateway.waitFor(/^\[Telegram\] failed: another program reads the messages of this bot; .*; retry in/);
    chat.write(ada, "after the conflict");
    await chat.shows(/heard: after the conflict/);
  });

  test("killed with two messages waiting and two more on their way: all are answered once, in order", async () => {
    const { telegram, ada, model } = one;
    const { promise, resolve } = Promise.withResolvers<void>();
    answerTurns(model, async (request) => {
      await promise;
      return { text: `heard: ${saidIn(request)}` };
    });
    chat.write(ada, "first before the kill");
    await until("the first runs", () => one.asked().includes("first before the kill"));
    chat.write(ada, "second before the kill");
    await until("both are stored", () => telegram.pending === 0);
    await one.gateway.kill();
    resolve();
    chat.write(ada, "third while down");
    chat.write(ada, "fourth while down");
    one.gateway = await startGateway(one.home);
    await chat.shows(/heard: [\s\S]*fourth while down/);
    const heard = chat.fromBot.map(({ text }) => text).filter((text) => /kill|down/.test(text));
    assert.deepEqual(
      heard.flatMap((text) => text.match(/first|second|third|fourth/g) ?? []),
      ["first", "second", "third", "fourth"],
    );
  });
});

test("hermes send writes to a chat and to a topic, with a gateway and without one", async () => {
  await using world = await telegramWorld();
  const { telegram, home, ada } = world;
  const chat = telegram.dm(ada);
  const forum = telegram.group("Forum", { isForum: true });
  const topic = forum.topic("News");
  const send = async (target: string, text: string) => {
    const { code, stdout, stderr } = await typed(home, ["send", "-t", `telegram:${target}`, "--json", text]);
    assert.equal(code, 0, stdout + stderr);
  };
  await send(String(ada.id), "from the *command* line");
  const first = await chat.shows(/^from the command line$/);
  assert.deepEqual(
    first.entities.map(({ type }) => type),
    ["italic"],
  );
  await world.gateway.stop();
  await send(`${forum.id}:${topic}`, "without a gateway");
  assert.equal((await forum.shows(/^without a gateway$/)).thread, topic);
  assert.equal(telegram.of("getMe").length, 1, "the second one never connected");
});

test("at the first start nothing old is read; what is written while the gateway is down is", async () => {
  await using world = await telegramWorld({
    prepare: (telegram, ada) => {
      telegram.dm(ada).write(ada, "very old");
      telegram.dm(ada).write(ada, "old");
    },
  });
  const { telegram, ada, asked } = world;
  const chat = telegram.dm(ada);
  await world.gateway.stop();
  chat.write(ada, "while it was down");
  world.gateway = await startGateway(world.home);
  await chat.shows(/heard: while it was down/);
  assert.deepEqual(asked(), ["while it was down"]);
});

test("a first start without any message remembers that it was one", async () => {
  await using world = await telegramWorld();
  const { telegram, ada } = world;
  await world.gateway.kill();
  telegram.dm(ada).write(ada, "the very first");
  world.gateway = await startGateway(world.home);
  await telegram.dm(ada).shows(/heard: the very first/);
});

test("a token that Telegram does not accept turns the platform off, with what to do, and without the token", async () => {
  await using world = await telegramWorld({
    env: { TELEGRAM_BOT_TOKEN: "999:wrong-token-abcdef" },
    ready: /^\[Telegram\] off: /,
  });
  const line = world.gateway.lines.find((one) => one.startsWith("[Telegram] off: ")) ?? "";
  assert.match(line, /does not accept the token; copy it again from @BotFather and set TELEGRAM_BOT_TOKEN/);
  assert.ok(!world.gateway.lines.join("\n").includes("wrong-token"));
});

test("an answer that is written bit by bit is one message, formatted at its end", async () => {
  await using world = await telegramWorld({ config: "streaming:\n  enabled: true\n  edit_interval: 0.1\n" });
  const { telegram, ada, model } = world;
  const chat = telegram.dm(ada);
  const words = Array.from({ length: 60 }, (_, n) => `word${n}.`).join(" ");
  answerTurns(model, () => ({ text: `**Begin** ${words} *end*!`, pace: 15 }));
  chat.write(ada, "stream");
  const answer = await chat.shows(/word59\. end!$/);
  assert.ok(answer.past.length > 2, "it was seen growing");
  assert.ok(
    answer.past.some((text) => text.startsWith("**Begin**") && text.endsWith("▉")),
    "unformatted, with a cursor",
  );
  assert.deepEqual(
    answer.entities.map(({ type }) => type),
    ["bold", "italic"],
  );
  assert.equal(chat.fromBot.length, 1);
  const parameters = { retry_after: 1 };
  telegram.breakNext(
    "editMessageText",
    { kind: "answer", code: 429, description: "Too Many Requests: retry after 1", parameters },
    3,
  );
  answerTurns(model, () => ({ text: `Second ${words} done.`, pace: 15 }));
  chat.write(ada, "once more");
  await chat.shows(/^Second[\s\S]*done\.$/);
});

test("an answer that was written for long comes as a new message with a sound, and what was shown of it goes", async () => {
  await using world = await telegramWorld({
    config: "streaming:\n  enabled: true\n  edit_interval: 0.1\n  fresh_final_after_seconds: 0.5\n",
  });
  const { telegram, ada, model } = world;
  const chat = telegram.dm(ada);
  const words = Array.from({ length: 60 }, (_, n) => `word${n}.`).join(" ");
  answerTurns(model, () => ({ text: `**Begin** ${words} *end*!`, pace: 15 }));
  chat.write(ada, "stream");
  const shown = await chat.shows(/▉$/);
  const answer = await chat.shows(/word59\. end!$/);
  assert.notEqual(answer.id, shown.id);
  assert.deepEqual(answer.past, [], "it was not edited");
  assert.equal(answer.silent, false);
  assert.ok(shown.silent);
  assert.deepEqual(
    chat.fromBot.map(({ id }) => id),
    [answer.id],
  );
  const description = "Bad Request: message can't be deleted";
  telegram.breakNext("deleteMessage", { kind: "answer", code: 400, description });
  answerTurns(model, () => ({ text: `Second ${words} done.`, pace: 15 }));
  chat.write(ada, "once more");
  await chat.shows(/^Second[\s\S]*done\.$/);
  assert.equal(chat.fromBot.filter(({ text }) => text.startsWith("Second")).length, 1, "nothing is there twice");
});

test("what was being written into a message that somebody deletes is said in another", async () => {
  await using world = await telegramWorld({
    config: "streaming:\n  enabled: true\n  edit_interval: 60\n  buffer_threshold: 100000\n",
  });
  const { telegram, ada, model } = world;
  const chat = telegram.dm(ada);
  answerTurns(model, () => ({ text: "Half of it is gone soon, the rest is not.", pace: 60 }));
  chat.write(ada, "stream");
  chat.delete((await chat.shows(/▉$/)).id);
  await chat.shows(/^Half of it is gone soon, the rest is not\.$/);
  assert.equal(chat.fromBot.length, 1);
});

test("a last edit that may have arrived is repeated without harm: Telegram says that nothing changed", async () => {
  await using world = await telegramWorld({
    config: "streaming:\n  enabled: true\n  edit_interval: 60\n  buffer_threshold: 100000\n",
  });
  const { telegram, ada, model, home } = world;
  const chat = telegram.dm(ada);
  telegram.breakNext("editMessageText", { kind: "silence" });
  answerTurns(model, () => ({ text: "All of it, in the end.", pace: 15 }));
  chat.write(ada, "stream");
  await chat.shows(/in the end\.$/);
  await until("it is known to be sent", () => rowsOf(home, "SELECT 1 FROM outbox WHERE state <> 'sent'").length === 0);
  assert.deepEqual(
    chat.fromBot.map(({ text }) => text),
    ["All of it, in the end."],
  );
  assert.deepEqual(
    telegram.of("editMessageText").map(({ status }) => status),
    [200, 400],
  );
});

describe("a webhook of Telegram", () => {
  const SECRET = "a-secret_1";
  const env = {
    TELEGRAM_WEBHOOK_URL: "https://bot.example/telegram",
    TELEGRAM_WEBHOOK_SECRET: SECRET,
    TELEGRAM_WEBHOOK_PORT: "0",
  };
  let one: TelegramWorld;
  before(async () => {
    one = await telegramWorld({ env, prepare: (telegram, ada) => void telegram.dm(ada).write(ada, "old") });
    const line = await one.gateway.waitFor(/^\[Telegram\] connected as @hermes_test_bot, listening on http:/);
    one.telegram.proxy = /http:\S+/.exec(line)?.[0] ?? null;
  });
  after(() => one[Symbol.asyncDispose]());

  test("a message that Telegram brings is answered, and taken when it is stored", async () => {
    const { telegram, ada, asked } = one;
    telegram.dm(ada).write(ada, "by webhook");
    await telegram.dm(ada).shows(/heard: by webhook/);
    assert.equal(telegram.pending, 0);
    assert.deepEqual(asked(), ["by webhook"], "nothing old");
    telegram.repeatLast();
    telegram.dm(ada).write(ada, "and another");
    await telegram.dm(ada).shows(/heard: and another/);
    assert.deepEqual(asked(), ["by webhook", "and another"]);
    assert.deepEqual(telegram.webhook, { url: env.TELEGRAM_WEBHOOK_URL, secret: SECRET });
  });

  test("whoever does not know the secret is turned away before anything is read", async () => {
    const { telegram, ada, asked } = one;
    const chat = { id: ada.id, type: "private", first_name: "Ada" };
    const update = { update_id: 1, message: { message_id: 1, date: 1, chat, from: ada, text: "forged" } };
    assert.equal(await telegram.callWebhook(update, undefined), 401);
    assert.equal(await telegram.callWebhook(update, "another"), 401);
    assert.equal((await fetch(`${telegram.proxy}/elsewhere`, { method: "POST" })).status, 404);
    assert.equal((await fetch(`${telegram.proxy}/telegram`)).status, 405);
    assert.equal(await telegram.callWebhook("not an update", SECRET), 400);
    assert.ok(!asked().includes("forged"));
  });

  test("without a secret the platform stays off and says so", async () => {
    await using world = await telegramWorld({
      env: { ...env, TELEGRAM_WEBHOOK_SECRET: "" },
      ready: /TELEGRAM_WEBHOOK_SECRET is needed/,
    });
    assert.equal(world.telegram.calls.length, 0);
  });
});
