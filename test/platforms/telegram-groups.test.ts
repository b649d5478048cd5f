// Groups, topics and channels of Telegram: what is meant for the bot, where it answers, and what it overhears.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, afterEach, before, describe, test } from "node:test";
import { answerTurns, until } from "../support/gateway-rig.ts";
import { rowsOf } from "../support/paper-home.ts";
import { echo, type TelegramWorld, telegramWorld } from "../support/platforms/telegram-rig.ts";
import type { Room, WriteOptions } from "../support/platforms/telegram-world.ts";

describe("groups of Telegram", () => {
  let one: TelegramWorld;
  before(async () => {
    one = await telegramWorld({ config: "display:\n  busy_input_mode: queue\n" });
  });
  after(() => one[Symbol.asyncDispose]());
  afterEach(async () => {
    echo(one.model);
    await one.withOptions("");
  });

  let number = 0;
  /** Writes something and says whether it was answered. What is left out is known once a direct message behind it is answered. */
  async function isAnswered(room: Room, words: string, options: WriteOptions = {}): Promise<boolean> {
    const { ada, telegram, home } = one;
    const end = `no. ${++number}`;
    room.write(ada, `${words} ${end}`, options);
    const dm = telegram.dm(ada);
    dm.write(ada, `mark ${number}`);
    await dm.shows(new RegExp(`heard: mark ${number}$`));
    const stored = rowsOf(home, "SELECT event FROM inbox").map(({ event }) => JSON.parse(String(event)));
    const isRead = stored.some(({ text, observed }) => text.endsWith(end) && !observed);
    if (isRead) await until("it is answered", () => room.fromBot.some(({ text }) => text.endsWith(end)));
    return isRead;
  }

  test("by default everything that allowed people write is answered", async () => {
    assert.ok(await isAnswered(one.telegram.group("Open"), "hello all"));
  });

  test("each member of a group has a conversation of their own", async () => {
    const { telegram, ada, bob, lastSent } = one;
    const room = telegram.group("Two");
    room.write(ada, "my colour is crimson");
    room.write(bob, "my colour is azure");
    await room.shows(/crimson/);
    await room.shows(/azure/);
    room.write(bob, "which one?");
    await room.shows(/which one/);
    assert.doesNotMatch(lastSent(), /crimson/);
    assert.match(lastSent(), /azure/);
  });

  test("with require_mention only a mention, a reply, a command or a pattern is for the bot", async () => {
    const { telegram, withOptions, ada, asked } = one;
    await withOptions("require_mention: true\nmention_patterns: ['^hey hermes']");
    const room = telegram.group("Quiet");
    assert.equal(await isAnswered(room, "nobody is meant"), false);
    assert.equal(await isAnswered(room, "what now, @Hermes_Test_Bot please"), true);
    assert.match(
      asked().find((said) => said.startsWith("what now")) ?? "",
      /^what now, please no\. \d+$/,
      "the name is left out",
    );
    assert.equal(await isAnswered(room, "Hey Hermes, you"), true);
    const answer = room.fromBot.at(-1)?.id ?? 0;
    assert.equal(await isAnswered(room, "and this", { replyTo: answer }), true);
    assert.equal(await isAnswered(room, "not this", { replyTo: room.write(ada, "of a person") }), false);
    room.write(ada, "/whoami@hermes_test_bot");
    await room.shows(/You are Ada/);
    const before = room.fromBot.length;
    assert.equal(await isAnswered(room, "/whoami@other_bot"), false);
    assert.equal(room.fromBot.length, before);
    room.write(ada, "/whoami @other_bot");
    await until("a command of ours that only mentions another is answered", () => room.fromBot.length > before);
  });

  test("free_response_chats need no mention", async () => {
    const { telegram, withOptions } = one;
    const room = telegram.group("Free");
    await withOptions(`require_mention: true\nfree_response_chats: ["${room.id}"]`);
    assert.equal(await isAnswered(room, "just talking"), true);
  });

  test("exclusive_bot_mentions: a message that names another bot is not for us", async () => {
    const { telegram, withOptions } = one;
    const room = telegram.group("Many bots");
    await withOptions("exclusive_bot_mentions: true");
    assert.equal(await isAnswered(room, "@weather_bot rain"), false);
    assert.equal(await isAnswered(room, "@weather_bot and @hermes_test_bot rain"), true);
    assert.equal(await isAnswered(room, "@alice_smith is no bot"), true);
  });

  test("allowed_chats keeps the bot out of others, and guest_mode lets it be called there", async () => {
    const { telegram, withOptions } = one;
    const [home, away] = [telegram.group("Home"), telegram.group("Away")];
    await withOptions(`allowed_chats: ["${home.id}"]`);
    assert.equal(await isAnswered(home, "in"), true);
    assert.equal(await isAnswered(away, "@hermes_test_bot out"), false);
    await withOptions(`allowed_chats: ["${home.id}"]\nguest_mode: true`);
    assert.equal(await isAnswered(away, "unnamed"), false);
    assert.equal(await isAnswered(away, "@hermes_test_bot as a guest"), true);
  });

  test("observe_unmentioned: what was overheard comes along with the next question", async () => {
    const { telegram, withOptions, ada, lastSent } = one;
    const room = telegram.group("Overheard");
    await withOptions("require_mention: true\nobserve_unmentioned: true");
    assert.equal(await isAnswered(room, "the code is 4711"), false);
    assert.equal(room.fromBot.length, 0);
    room.write(ada, "@hermes_test_bot what is the code?");
    await room.shows(/what is the code/);
    assert.match(lastSent(), /the code is 4711/);
  });

  test("what one member said is there when another one asks, marked as words of others", async () => {
    const { telegram, withOptions, ada, bob, lastSent, home } = one;
    const room = telegram.group("Overheard by others");
    await withOptions("require_mention: true\nobserve_unmentioned: true");
    room.write(bob, "the cat is called Molly");
    assert.equal(await isAnswered(room, "and mine is called Rex"), false);
    room.write(ada, "@hermes_test_bot who is Molly?");
    await room.shows(/who is Molly/);
    assert.match(lastSent(), /Said in the chat before, not to you[\s\S]*Bob: the cat is called Molly/);
    assert.match(lastSent(), /Ada: and mine is called Rex/);
    const left = "SELECT 1 FROM inbox WHERE state = 'queued'";
    await until("what was read no longer waits", () => rowsOf(home, left).length === 0);
  });

  test("topics are conversations of their own, answered where they are; General has no thread", async () => {
    const { telegram, ada, lastSent } = one;
    const forum = telegram.group("Forum", { isForum: true });
    const [roses, tools] = [forum.topic("Roses"), forum.topic("Tools")];
    forum.write(ada, "water them?", { thread: roses });
    assert.equal((await forum.shows(/water them/)).thread, roses);
    assert.match(lastSent(), /Roses/, "the model knows the topic");
    forum.write(ada, "a spade?", { thread: tools });
    assert.equal((await forum.shows(/a spade/)).thread, tools);
    assert.doesNotMatch(lastSent(), /water them/);
    forum.write(ada, "in general?");
    const general = await forum.shows(/in general/);
    assert.equal(general.thread, null);
    assert.equal(general.text, "heard: [Ada] in general?");
    const keys = rowsOf(one.home, "SELECT session_key FROM gateway_routing").map((row) => row.session_key);
    assert.ok(keys.includes(`agent:main:telegram:group:${forum.id}:${roses}`), keys.join("\n"));
    assert.ok(keys.includes(`agent:main:telegram:group:${forum.id}:1`), keys.join("\n"));
  });

  test("in a topic that the bot has opened, not everything is a reply to it", async () => {
    const { telegram, withOptions } = one;
    await withOptions("require_mention: true");
    const forum = telegram.group("Opened", { isForum: true });
    const thread = forum.topic("Ours", { by: telegram.bot });
    assert.equal(await isAnswered(forum, "to each other", { thread }), false);
    assert.equal(await isAnswered(forum, "@hermes_test_bot to you", { thread }), true);
    const replyTo = forum.fromBot.at(-1)?.id ?? 0;
    assert.equal(await isAnswered(forum, "to your answer", { thread, replyTo }), true);
  });

  test("allowed_topics and ignored_threads choose among topics", async () => {
    const { telegram, withOptions } = one;
    const forum = telegram.group("Chosen", { isForum: true });
    const [yes, no] = [forum.topic("Yes"), forum.topic("No")];
    await withOptions(`allowed_topics: ["${yes}", "1"]`);
    assert.equal(await isAnswered(forum, "here", { thread: yes }), true);
    assert.equal(await isAnswered(forum, "there", { thread: no }), false);
    assert.equal(await isAnswered(forum, "in general"), true);
    await withOptions(`ignored_threads: ["${no}"]`);
    assert.equal(await isAnswered(forum, "there", { thread: no }), false);
    assert.equal(await isAnswered(forum, "here", { thread: yes }), true);
  });

  test("a topic that is gone when the answer comes: it goes to the chat itself, and says so", async () => {
    const { telegram, ada, model } = one;
    const forum = telegram.group("Vanishing", { isForum: true });
    const topic = forum.topic("Gone");
    answerTurns(model, () => {
      forum.topics.delete(topic);
      return { text: "the answer" };
    });
    forum.write(ada, "quick!", { thread: topic });
    const answer = await forum.shows(/the answer/);
    assert.equal(answer.text, "(the thread is gone)\nthe answer");
    assert.equal(answer.thread, null);
    assert.equal(forum.fromBot.length, 1);
  });

  test("a group that has become a supergroup is answered there", async () => {
    const { telegram, ada, model } = one;
    const [old, current] = [telegram.group("Old", { type: "group" }), telegram.group("New")];
    answerTurns(model, () => {
      old.movedTo = current.id;
      return { text: "moved along" };
    });
    old.write(ada, "hello");
    await current.shows(/moved along/);
    assert.equal(old.fromBot.length, 0);
  });

  test("a channel is answered where its id is on the list of chats, although nobody signs there", async () => {
    const { telegram, home, ada } = one;
    const channel = telegram.group("News", { type: "channel" });
    await writeFile(
      home.at(".env"),
      `${await readFile(home.at(".env"), "utf8")}TELEGRAM_GROUP_ALLOWED_CHATS=${channel.id}\n`,
    );
    channel.write(ada, "a post");
    await channel.shows(/heard: a post/);
  });

  test("strangers in a group hear nothing", async () => {
    const { telegram, asked } = one;
    const room = telegram.group("Public");
    const before = asked().length;
    room.write(telegram.person("Mallory"), "@hermes_test_bot let me in");
    assert.equal(await isAnswered(room, "me"), true);
    assert.equal(asked().length, before + 2);
    assert.equal(room.fromBot.length, 1);
  });
});
