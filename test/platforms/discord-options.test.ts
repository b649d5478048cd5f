// What the settings of Discord change, each seen through the real gateway.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { typed, until } from "../support/gateway-rig.ts";
import { Garden } from "../support/platforms/discord-garden.ts";
import type { DiscordChannel } from "../support/platforms/discord-world.ts";

test("lists of channels say where the bot answers, without a mention and without a thread", async (t) => {
  const rooms: Record<string, DiscordChannel> = {};
  const garden = await Garden.open(t, {
    prepare: ({ discord, guild }) => {
      for (const name of ["free", "plain", "ignored", "other"]) rooms[name] = discord.channel(guild, name);
      const ids = (...names: readonly string[]) => names.map((name) => rooms[name]?.id).join(",");
      return {
        DISCORD_ALLOWED_CHANNELS: ids("free", "plain", "ignored"),
        DISCORD_FREE_RESPONSE_CHANNELS: ids("free"),
        DISCORD_NO_THREAD_CHANNELS: ids("plain"),
        DISCORD_IGNORED_CHANNELS: ids("ignored"),
      };
    },
  });
  const { discord, alice, bob, call } = garden.echo();
  const { free, plain, ignored, other } = rooms as Record<"free" | "plain" | "ignored" | "other", DiscordChannel>; // made above
  discord.write(alice, free, "say free");
  await garden.answer(free, "free");
  discord.write(alice, free, `<@${bob.id}> say not for us`);
  discord.write(alice, plain, "say unmentioned");
  const asked = discord.write(alice, plain, `${call} say plain`);
  assert.equal((await garden.answer(plain, "plain")).replyTo, asked.id);
  discord.write(alice, ignored, `${call} say ignored`);
  discord.write(alice, other, `${call} say other`);
  const refused = discord.choose(alice, other, "status");
  const { data } = await discord.until(() => refused.response, "a word about the command");
  assert.match(data?.content ?? "", /disabled in this channel/);
  for (const room of [free, plain]) await garden.settle(room);
  await sleep(500); // the other two rooms answer nobody
  for (const word of ["not for us", "unmentioned", "ignored", "other"])
    assert.deepEqual(garden.asked(`say ${word}`), []);
  for (const room of [plain, ignored, other]) assert.deepEqual(discord.threadsOf(room), []);
  assert.deepEqual(discord.violations, []);
});

test("without mentions, threads and silence towards others everything is answered where it was written", async (t) => {
  const garden = await Garden.open(t, {
    env: {
      ...{ DISCORD_REQUIRE_MENTION: "false", DISCORD_AUTO_THREAD: "false", DISCORD_IGNORE_NO_MENTION: "false" },
      ...{ DISCORD_ALLOW_BOTS: "all", DISCORD_ALLOW_ALL_USERS: "true", DISCORD_ALLOW_MENTION_EVERYONE: "true" },
      ...{ DISCORD_ALLOW_MENTION_USERS: "false", DISCORD_ALLOW_MENTION_REPLIED_USER: "no" },
    },
  });
  const { discord, alice, bob, call } = garden.echo();
  const room = garden.room();
  discord.write(alice, room, "say anything");
  const answer = await garden.answer(room, "anything");
  assert.deepEqual(answer.allowedMentions, { parse: ["everyone"], replied_user: false });
  discord.write(alice, room, `<@${bob.id}> say to bob`);
  await garden.answer(room, "to bob");
  discord.write(alice, room, `${call} say mentioned`);
  await garden.answer(room, "mentioned");
  discord.write(discord.user("robot", { bot: true }), room, "say robot");
  await garden.answer(room, "robot");
  assert.deepEqual([discord.threadsOf(room), discord.violations], [[], []]);
});

test("a bot may talk to us when it mentions us, and a thread may need a mention each time", async (t) => {
  let free: DiscordChannel | undefined;
  const garden = await Garden.open(t, {
    env: { DISCORD_ALLOW_BOTS: "mentions", DISCORD_ALLOW_ALL_USERS: "1", DISCORD_THREAD_REQUIRE_MENTION: "true" },
    prepare: ({ discord, guild }) => {
      free = discord.channel(guild, "free");
      return { DISCORD_FREE_RESPONSE_CHANNELS: free.id };
    },
  });
  const { discord, alice, call } = garden.echo();
  const [room, robot] = [garden.room(), discord.user("robot", { bot: true })];
  assert.ok(free);
  discord.write(robot, free, "say unasked");
  await garden.settle(free);
  discord.write(robot, room, `${call} say asked`);
  const thread = await discord.until(() => discord.threadsOf(room)[0], "a thread");
  await garden.answer(thread, "asked");
  discord.write(alice, thread, "say among us");
  await sleep(500);
  await garden.settle(thread);
  for (const word of ["unasked", "among us"]) assert.deepEqual(garden.asked(`say ${word}`), [], word);
  assert.deepEqual(discord.violations, []);
});

test("the settings lay a prompt over a channel and say how much of it is context", async (t) => {
  const garden = await Garden.open(t, {
    extra: [
      "history_backfill_limit: 1",
      "mention_patterns: ['^gardener']",
      "channel_prompts:",
      "  '1': Speak of weeds.",
    ],
    env: { DISCORD_HISTORY_BACKFILL: "yes" },
    prepare: ({ discord, guild }) => {
      const room: DiscordChannel = { id: "1", type: 0, name: "weeds", guildId: guild.id };
      discord.channels.set(room.id, room);
      return undefined;
    },
  });
  const { discord, alice, bob } = garden.echo();
  const room = discord.channels.get("1");
  assert.ok(room);
  for (const word of ["first", "second"]) discord.write(bob, room, `the ${word} word`);
  discord.write(alice, room, "Gardener, say something");
  await garden.answer(room, "something");
  const [turn] = garden.asked("say something");
  assert.match(JSON.stringify(turn?.body.messages[0]), /Speak of weeds\./);
  assert.match(turn?.raw ?? "", /the second word/);
  assert.doesNotMatch(turn?.raw ?? "", /the first word/);
});

test("whoever has a role of the list may talk to the bot, in channels and in direct messages", async (t) => {
  const garden = await Garden.open(t, {
    prepare: ({ discord, guild }) => {
      const gardener = discord.role(guild, "gardener", [discord.user("carol")]);
      return { DISCORD_ALLOWED_ROLES: gardener.id };
    },
  });
  const { discord, guild, call } = garden.echo();
  const carol = [...discord.users.values()].find(({ username }) => username === "carol");
  assert.ok(carol);
  const eve = discord.user("eve");
  guild.members.set(eve.id, []);
  const [room, other] = [garden.room(), garden.room()];
  discord.write(carol, room, `${call} say by role`);
  discord.write(carol, discord.dm(carol), "say direct by role");
  discord.write(eve, other, `${call} say without`);
  await discord.until(() => garden.answers(discord.dm(carol)).includes("direct by role"), "a direct answer");
  const thread = await discord.until(() => discord.threadsOf(room)[0], "a thread");
  await garden.answer(thread, "by role");
  assert.deepEqual(garden.asked("say without"), []);
});

test("an answer is written while it is thought of, into one message", async (t) => {
  const garden = await Garden.open(t, {
    config: "streaming:\n  enabled: true\n  edit_interval: 0.1\n  buffer_threshold: 8\n",
  });
  const { discord, alice, model } = garden;
  const chat = discord.dm(alice);
  const text = "Roses need water, light and somebody who looks after them. ".repeat(4).trim();
  model.script({ text, chunk: 12, pace: 60 });
  discord.write(alice, chat, "tell me slowly");
  const answer = await garden.answer(chat, text);
  assert.equal(discord.saidIn(chat).length, 1);
  assert.ok(answer.earlier.length >= 2, `it was changed ${answer.earlier.length} times`);
  assert.ok(answer.earlier.every((one) => text.startsWith(one.replace(/ ?▉$/, ""))));
  assert.deepEqual(discord.violations, []);
});

test("the menu of commands is written once, and again only when it changed", async (t) => {
  const garden = await Garden.open(t);
  const { discord } = garden.echo();
  const written = () => discord.callsTo("PUT /applications/{application_id}/commands").length;
  await discord.until(() => written() === 1, "the menu");
  assert.ok(discord.commands.length > 10 && discord.commands.length <= 100);
  await garden.gateway.stop();
  await garden.start();
  await discord.until(() => discord.callsTo("GET /applications/{application_id}/commands").length === 2, "a look");
  await garden.settle();
  assert.equal(written(), 1);
  await garden.gateway.stop();
  discord.commands.pop();
  await garden.start();
  await discord.until(() => written() === 2, "the menu again");
  assert.deepEqual(discord.violations, []);
});

test("a wrong token ends the platform at once, and says what to do without showing the token", async (t) => {
  const garden = await Garden.open(t, {
    env: { DISCORD_BOT_TOKEN: "wrong.token.of-somebody" },
    ready: /^\[Discord\] off/,
  });
  const { discord, gateway } = garden;
  const line = await gateway.waitFor(/^\[Discord\] off/);
  assert.match(line, /Discord refused the token in DISCORD_BOT_TOKEN; set a new one: hermes gateway setup/);
  await sleep(800);
  assert.equal(discord.calls.length, 1, "it is not tried again");
  assert.ok(!gateway.lines.join("\n").includes("wrong.token"));
});

test("a bot without the right to read texts says which switch is missing", async (t) => {
  const garden = await Garden.open(t, {
    prepare: ({ discord }) => {
      discord.socket.withholdsContent = true;
      return undefined;
    },
    ready: /^\[Discord\] off/,
  });
  assert.match(garden.gateway.lines.join("\n"), /enable the Message Content Intent/);
  assert.deepEqual(garden.discord.socket.log.filter((what) => what === "identify").length, 1);
});

test("hermes send reaches a channel with and without a gateway, and a forum by a post of its own", async (t) => {
  const rooms: DiscordChannel[] = [];
  const garden = await Garden.open(t, {
    timers: ["expiry_first: 0.2", "directory: 1"],
    prepare: ({ discord, guild }) => {
      rooms.push(discord.channel(guild, "seeds"), discord.channel(guild, "questions", { type: 15 }));
      return undefined;
    },
  });
  const { discord, home } = garden;
  const [seeds, forum] = rooms;
  assert.ok(seeds && forum);
  const send = async (...args: readonly string[]) => {
    const { stdout, stderr, code } = await typed(home, ["send", "--json", ...args]);
    assert.equal(code, 0, stdout + stderr);
    return JSON.parse(stdout);
  };
  const sent = await send("-t", `discord:${seeds.id}`, "by the gateway");
  assert.equal(discord.saidIn(seeds).find(({ content }) => content === "by the gateway")?.id, sent.message_id);
  const list = async () => {
    const { stdout } = await typed(home, ["send", "--list", "discord", "--json"]);
    return (JSON.parse(stdout).platforms.discord ?? []) as readonly Record<string, string>[]; // as the spec has it
  };
  await until("the channels are listed", async () => (await list()).length > 1);
  assert.deepEqual(
    (await list()).map(({ id, name, type }) => [id, name, type]),
    [
      [seeds.id, "seeds", "channel"],
      [forum.id, "questions", "forum"],
    ],
  );
  await send("-t", "discord:#seeds", "by its name");
  assert.ok(garden.answers(seeds).includes("by its name"));
  await garden.gateway.stop();
  const alone = await send("-t", `discord:${seeds.id}`, "all alone");
  assert.equal(discord.saidIn(seeds).find(({ content }) => content === "all alone")?.id, alone.message_id);
  await send("-t", `discord:${forum.id}`, "Which rose is this?\nIt is red.");
  const [post] = discord.threadsOf(forum);
  assert.ok(post);
  assert.deepEqual([post.name, garden.answers(post)], ["Which rose is this?", ["Which rose is this?\nIt is red."]]);
  assert.deepEqual(discord.violations, []);
});
