// Discord, from the outside: the real gateway between a look-alike of Discord and a scripted model.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { Garden } from "../support/platforms/discord-garden.ts";
import type { DiscordChannel } from "../support/platforms/discord-world.ts";

const SEND = "POST /channels/{channel_id}/messages";

describe("a bot on Discord", () => {
  let garden: Garden;
  let room: DiscordChannel;
  const ends: (() => unknown)[] = [];

  before(async () => {
    garden = await Garden.open(
      { after: (work) => ends.push(work) },
      { env: { DISCORD_REACTIONS: "true" }, config: "display:\n  busy_input_mode: queue\n" },
    );
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });
  beforeEach(() => {
    garden.model.clear();
    garden.echo();
    room = garden.room({ topic: "plants" });
  });

  test("a mention in a channel opens a thread named after it, and is answered there", async () => {
    const { discord, alice, call } = garden;
    discord.write(alice, room, `${call} say Water.`);
    const thread = await discord.until(() => discord.threadsOf(room)[0], "a thread");
    assert.equal(thread.name, "say Water.");
    await garden.answer(thread, "Water.");
    assert.deepEqual(garden.answers(room), []);
    assert.match(garden.asked("Water.")[0]?.raw ?? "", /Garden \/ #room-/);
  });

  test("a thread goes on without a mention, with the same system text", async () => {
    const { discord, alice, bob, call } = garden;
    discord.write(alice, room, `${call} say one`);
    const thread = await discord.until(() => discord.threadsOf(room)[0], "a thread");
    await garden.answer(thread, "one");
    discord.write(alice, thread, "say two");
    await garden.answer(thread, "two");
    discord.write(bob, thread, "say three");
    await garden.answer(thread, "three");
    const [first, second, third] = ["one", "two", "three"].map((word) => garden.asked(`say ${word}`)[0]?.body.messages);
    assert.deepEqual(second?.[0], first?.[0]);
    assert.deepEqual(third?.[0], first?.[0]);
    assert.equal(third?.length, 6);
    assert.match(JSON.stringify(third?.at(-1)), /\[bob\] say three/);
  });

  test("what is written in a channel without a mention is nobody's business of ours", async () => {
    const { discord, alice } = garden;
    discord.write(alice, room, "say nothing");
    await garden.settle(room);
    assert.deepEqual(garden.asked("say nothing"), []);
    assert.deepEqual(garden.answers(room), []);
  });

  test("what others said in the channel since its last word is context, fenced as text from outside", async () => {
    const { discord, alice, bob, call } = garden;
    discord.write(bob, room, "too old");
    discord.write(discord.bot, room, "an earlier word of the bot");
    discord.write(bob, room, `<@${alice.id}> roses need water`);
    discord.write(alice, room, `${call} say is that so?`);
    const thread = await discord.until(() => discord.threadsOf(room)[0], "a thread");
    await garden.answer(thread, "is that so?");
    const asked = JSON.stringify(garden.asked("is that so?")[0]?.body.messages.at(-1));
    assert.match(asked, /Messages of others, for context:.{0,200}bob: @Alice roses need water.{0,200}is that so/);
    assert.doesNotMatch(asked, /too old/);
  });

  test("a file that comes with a message is kept, and a text is read", async () => {
    const { discord, alice } = garden;
    const chat = discord.dm(alice);
    const files = [{ name: "list.txt", bytes: Buffer.from("roses, tulips"), contentType: "text/plain" }];
    discord.write(alice, chat, "say read", { files });
    await garden.answer(chat, "read");
    assert.match(JSON.stringify(garden.turns().at(-1)?.body.messages.at(-1)), /list\.txt.{0,400}roses, tulips/);
  });

  test("a voice message is listened to, and a forwarded text is somebody else's", async () => {
    const { discord, alice } = garden;
    const chat = discord.dm(alice);
    const sound = Buffer.concat([Buffer.from("OggS"), Buffer.alloc(200)]);
    discord.write(alice, chat, "", { flags: 1 << 13, files: [{ name: "voice-message.ogg", bytes: sound }] });
    await discord.until(() => garden.turns()[0]?.raw.includes("voice message that could not be transcribed"), "a note");
    const lists = { attachments: [], embeds: [], components: [], mentions: [], mention_roles: [] };
    const times = { timestamp: new Date().toISOString(), edited_timestamp: null };
    const snapshot = { message: { content: "water at noon", type: 0, flags: 0, ...lists, ...times } };
    discord.write(alice, chat, "", { extra: { message_snapshots: [snapshot] } });
    const read = () => garden.turns().find(({ raw }) => raw.includes("Forwarded: water at noon"));
    assert.match((await discord.until(read, "the forwarded text")).raw, /Messages of others, for context/);
  });

  test("what cannot be fetched or read is named, and the turn runs", async () => {
    const { discord, alice } = garden;
    const chat = discord.dm(alice);
    const missing = {
      id: "1",
      filename: "gone.bin",
      size: 5,
      url: discord.apiUrl.replace("/api", "/attachments/1/gone.bin"),
      proxy_url: "http://x",
    };
    const poll = {
      ...{ question: { text: "Which flower?" }, answers: [], allow_multiselect: false, layout_type: 1 },
      ...{ expiry: "2030-01-01T00:00:00.000Z", results: { answer_counts: [], is_finalized: false } },
    };
    const extra = { attachments: [missing], poll, sticker_items: [{ id: "1", name: "Wave", format_type: 1 }] };
    discord.write(alice, chat, "say still here", { extra });
    await discord.until(() => garden.turns().length > 0, "a turn");
    const asked = JSON.stringify(garden.turns()[0]?.body.messages.at(-1));
    assert.match(asked, /\[file not fetched: gone\.bin \(5 bytes\): /);
    assert.match(asked, /\[unsupported: poll\] Which flower\?/);
    assert.match(asked, /\[unsupported: sticker\] Wave/);
  });

  test("a file of an answer is sent as one", async () => {
    const { discord, alice, model, home } = garden;
    const chat = discord.dm(alice);
    await home.write("cache/documents/my roses.md", "# Roses");
    model.script({ text: `Here it is.\nMEDIA:${home.at("cache/documents/my roses.md")}` });
    discord.write(alice, chat, "send it");
    const sent = await discord.until(() => discord.saidIn(chat).find(({ files }) => files.length > 0), "a file");
    assert.deepEqual([sent.files[0]?.name, sent.files[0]?.bytes.toString()], ["my_roses.md", "# Roses"]);
    await garden.answer(chat, "Here it is.");
  });

  test("a direct message is answered without a mention, as a reply to it", async () => {
    const { discord, bob } = garden;
    const chat = discord.dm(bob);
    const message = discord.write(bob, chat, "say hello");
    const answer = await garden.answer(chat, "hello");
    assert.equal(answer.replyTo, message.id);
  });

  test("a stranger is not answered in a channel, and no thread is opened for one", async () => {
    const { discord, call } = garden;
    const eve = discord.user("eve");
    discord.write(eve, room, `${call} say secrets`);
    await garden.settle(room);
    assert.deepEqual([garden.asked("secrets"), discord.threadsOf(room).length, garden.answers(room)], [[], 1, []]);
  });

  test("its role is a name of the bot too", async () => {
    const { discord, alice, guild } = garden;
    const role = guild.roles.find(({ botId }) => botId !== undefined);
    discord.write(alice, room, `<@&${role?.id}> say yes`);
    const thread = await discord.until(() => discord.threadsOf(room)[0], "a thread");
    await garden.answer(thread, "yes");
  });

  test("an answer to one of its messages is for the bot, and stays in the channel", async () => {
    const { discord, alice } = garden;
    const word = discord.write(discord.bot, room, "an earlier word of the bot");
    discord.write(alice, room, "say again", { replyTo: word });
    const answer = await garden.answer(room, "again");
    assert.deepEqual([answer.replyTo !== undefined, discord.threadsOf(room)], [true, []]);
    assert.match(JSON.stringify(garden.asked("say again")[0]?.body.messages), /an earlier word of the bot/);
  });

  test("own messages, webhooks, notices and other bots are not answered", async () => {
    const { discord, alice, call } = garden;
    const robot = discord.user("robot", { bot: true });
    discord.write(robot, room, `${call} say robot`);
    discord.write(discord.bot, room, `${call} say myself`);
    discord.write(alice, room, `${call} say hook`, { webhookId: discord.newId() });
    discord.write(alice, room, `${call} say pinned`, { type: 6 });
    await garden.settle(room);
    assert.equal(discord.threadsOf(room).length, 1);
    for (const word of ["robot", "myself", "hook", "pinned"]) assert.deepEqual(garden.asked(`say ${word}`), [], word);
  });

  test("a long answer comes in parts of at most 2000 characters, in order", async () => {
    const { discord, alice, model } = garden;
    const long = Array.from({ length: 300 }, (_, at) => `line ${at} 🌹🌹🌹🌹🌹`).join("\n");
    model.script({ text: long });
    const direct = discord.dm(alice);
    const before = discord.saidIn(direct).length;
    discord.write(alice, direct, "tell me everything");
    await discord.until(() => garden.answers(direct).at(-1)?.includes("line 299"), "the last part");
    const parts = garden.answers(direct).slice(before);
    assert.ok(parts.length > 2 && parts.every((part) => [...part].length <= 2000));
    const lines = parts.join("\n").match(/line \d+ /g);
    assert.deepEqual(
      lines,
      Array.from({ length: 300 }, (_, at) => `line ${at} `),
    );
  });

  test("nobody is notified by what the agent writes but the people it names and the one it answers", async () => {
    const { discord, alice } = garden;
    const chat = discord.dm(alice);
    discord.write(alice, chat, "say @everyone look");
    const answer = await garden.answer(chat, "@everyone look");
    assert.deepEqual(answer.allowedMentions, { parse: ["users"], replied_user: true });
  });

  test("typing is shown while the model works", async () => {
    const { discord, alice, model } = garden;
    const typed = () => discord.callsTo("POST /channels/{channel_id}/typing").length;
    const before = typed();
    const chat = discord.dm(alice);
    model.script({ text: "slow", delay: 700 });
    discord.write(alice, chat, "think");
    await garden.answer(chat, "slow");
    assert.ok(typed() > before);
  });

  test("a message that is changed before its turn is read as it is then, one that is deleted is not read", async () => {
    const { discord, alice, model } = garden;
    const chat = discord.dm(alice);
    model.script({ text: "first", delay: 1500 });
    discord.write(alice, chat, "begin");
    await discord.until(() => garden.asked("begin").length > 0, "the first turn");
    const changed = discord.write(alice, chat, "say wrong");
    const withdrawn = discord.write(alice, chat, "say withdrawn");
    await new Promise((resolve) => setTimeout(resolve, 400));
    discord.unfurl(changed);
    discord.change(changed, { content: "say right" });
    discord.remove(withdrawn);
    await garden.answer(chat, "right");
    await garden.settle();
    assert.deepEqual([garden.asked("say wrong"), garden.asked("say withdrawn")], [[], []]);
  });

  test("a question has buttons; pressing one answers it, tells the presser, and takes the buttons away", async () => {
    const { discord, alice, call } = garden;
    discord.write(alice, room, `${call} say something to forget`);
    const thread = await discord.until(() => discord.threadsOf(room)[0], "a thread");
    await garden.answer(thread, "something to forget");
    discord.write(alice, thread, "/new");
    const question = await discord.until(() => discord.saidIn(thread).find((one) => one.components.length > 0), "?");
    const strange = discord.press(discord.user("eve"), question, "Yes, once");
    const refused = await discord.until(() => strange.followUps[0], "a word to the stranger");
    assert.equal(refused.content, "You may not answer this.");
    const pressed = discord.press(alice, question, "Yes, once");
    const told = await discord.until(() => pressed.followUps[0], "a word to the presser");
    assert.deepEqual([pressed.response, told.content, told.flags], [{ type: 6 }, "Yes, once", 64]);
    await discord.until(() => question.components.length === 0, "the buttons gone");
    assert.match(question.content, /→ Yes, once/);
  });

  test("a slash command of the menu is acknowledged to the person alone and answered in the chat", async () => {
    const { discord, alice } = garden;
    assert.ok(discord.commands.some(({ name }) => name === "status"));
    const chosen = discord.choose(alice, room, "status");
    const response = await discord.until(() => chosen.response, "an acknowledgement");
    assert.deepEqual([response.type, response.data?.flags, response.data?.content], [4, 64, "Received: `/status`"]);
    const answer = await discord.until(() => discord.saidIn(room)[0], "the answer");
    assert.match(answer.content, /Session/i);
    assert.deepEqual(discord.threadsOf(room), []);
  });

  test("what follows a slash command goes with it", async () => {
    const { discord, alice } = garden;
    const chosen = discord.choose(alice, discord.dm(alice), "queue", "say from the queue");
    await discord.until(() => chosen.response, "an acknowledgement");
    await garden.answer(discord.dm(alice), "from the queue");
  });

  test("a reaction shows that work began and how it ended", async () => {
    const { discord, alice, call } = garden;
    const message = discord.write(alice, room, `${call} say done`);
    await discord.until(() => message.reactions.join() === "✅", "nothing but the mark of an end");
  });

  test("no request and no answer broke the vendor's rules", () => {
    assert.deepEqual(garden.discord.violations, []);
    assert.ok(garden.discord.callsTo(SEND).every(({ body }) => body.enforce_nonce === true));
  });
});
