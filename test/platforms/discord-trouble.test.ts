// Discord in trouble: limits, broken answers, cut sockets, a killed gateway. Nothing is lost, and nothing comes twice.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { typed, until } from "../support/gateway-rig.ts";
import { Garden } from "../support/platforms/discord-garden.ts";
import type { DiscordFault } from "../support/platforms/discord-wire.ts";
import type { DiscordChannel } from "../support/platforms/discord-world.ts";
import { oneOf } from "../support/sample.ts";

const SEND = "POST /channels/{channel_id}/messages";

describe("a bot on Discord, in trouble", () => {
  let garden: Garden;
  let chat: DiscordChannel;
  const ends: (() => unknown)[] = [];

  before(async () => {
    garden = await Garden.open({ after: (work) => ends.push(work) });
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });
  beforeEach(() => {
    garden.model.clear();
    garden.echo();
    chat = garden.discord.dm(garden.alice);
  });

  const count = (text: string) => garden.answers(chat).filter((one) => one === text).length;

  type Fault = readonly [string, Omit<DiscordFault, "route">];
  const limited: Fault = ["a rate limit delays a message", { kind: "rate_limited", retryAfter: 0.7 }];
  const notTaken: readonly Fault[] = [
    ["a 502 before the message is taken", { kind: "status", status: 502, times: 2 }],
    ["a connection that breaks before the message is taken", { kind: "reset" }],
    ["silence", { kind: "hang" }],
  ];
  const taken: readonly Fault[] = [
    ["a 503 behind which the message was taken", { kind: "status", status: 503, accepted: true }],
    ["a connection that breaks behind a message that was taken", { kind: "reset", accepted: true }],
    ["silence behind a message that was taken", { kind: "hang", accepted: true }],
  ];
  for (const [what, fault] of [limited, ...oneOf(notTaken, "discord, not taken"), ...oneOf(taken, "discord, taken")])
    test(`${what}: it arrives, and once`, async () => {
      const { discord, alice } = garden;
      const text = `through ${what}`;
      discord.fault({ route: SEND, ...fault });
      discord.write(alice, chat, `say ${text}`);
      await garden.answer(chat, text);
      await garden.settle();
      assert.equal(count(text), 1);
      if (fault.kind === "rate_limited") {
        const [first, second] = discord.callsTo(SEND).filter(({ body }) => body.content === text);
        assert.deepEqual([first?.status, second?.status, first?.body.nonce], [429, 200, second?.body.nonce]);
        assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= 700, "it is sent when Discord allows it again");
      }
    });

  test("events that nobody can read hold up nobody", async () => {
    const { discord, alice } = garden;
    for (const type of [
      "MESSAGE_CREATE",
      "MESSAGE_UPDATE",
      "MESSAGE_DELETE",
      "INTERACTION_CREATE",
      "GUILD_CREATE",
      "CHANNEL_UPDATE",
    ])
      for (const content of [
        null,
        {},
        [],
        "x",
        { id: null, channel_id: chat.id },
        { id: "5", author: null, channel_id: chat.id },
      ])
        discord.socket.dispatch(type, content);
    discord.write(alice, chat, "say after the broken ones");
    await garden.answer(chat, "after the broken ones");
    assert.doesNotMatch(garden.gateway.lines.join("\n"), /an error was not caught/);
  });

  test("a message whose nonce Discord has forgotten is found in the channel and not sent again", async () => {
    const { discord, alice } = garden;
    discord.nonceSeconds = 0;
    discord.fault({ route: SEND, kind: "status", status: 502, accepted: true });
    discord.write(alice, chat, "say a word for long");
    await garden.answer(chat, "a word for long");
    await garden.settle();
    assert.equal(count("a word for long"), 1);
    discord.nonceSeconds = 300;
  });

  test("a message is not doubled where the channel cannot be read, as Discord remembers its nonce", async () => {
    const { discord, alice, model } = garden;
    model.script({ text: "only one", delay: 500 });
    discord.write(alice, chat, "speak");
    await discord.until(() => garden.asked("speak").length > 0, "the turn");
    discord.socket.hold();
    discord.fault({ route: SEND, kind: "hang", accepted: true });
    discord.fault({ route: "GET /channels/{channel_id}/messages", kind: "status", status: 500, times: 6 });
    await discord.until(
      () => discord.callsTo(SEND).filter(({ body }) => body.content === "only one").length === 2,
      "2",
    );
    discord.socket.release();
    await garden.settle();
    assert.equal(garden.answers(chat).filter((one) => one.includes("only one")).length, 1);
  });

  test("an equal answer to another question is sent, although one like it is in the channel", async () => {
    const { discord, alice } = garden;
    discord.write(alice, chat, "say the same");
    await garden.answer(chat, "the same");
    discord.fault({ route: SEND, kind: "reset" });
    discord.write(alice, chat, "say the same");
    await discord.until(() => count("the same") === 2, "the second one");
  });

  test("a reply to a thread that is gone goes to the channel, and says so", async () => {
    const { discord, alice, call, model } = garden;
    const room = garden.room();
    model.script({ text: "late", delay: 800 });
    discord.write(alice, room, `${call} tell me`);
    const thread = await discord.until(() => discord.threadsOf(room)[0], "a thread");
    discord.removeChannel(thread);
    await garden.answer(room, "(the thread is gone)\nlate");
  });

  test("a thread whose opening was not confirmed is used all the same", async () => {
    const { discord, alice, call } = garden;
    const room = garden.room();
    discord.fault({ route: "POST /channels/{channel_id}/messages/{message_id}/threads", kind: "hang", accepted: true });
    discord.write(alice, room, `${call} say inside`);
    const thread = await discord.until(() => discord.threadsOf(room)[0], "a thread");
    await garden.answer(thread, "inside");
  });

  test("without the right to open threads it answers in the channel", async () => {
    const { discord, alice, call } = garden;
    const room = garden.room();
    discord.refusals.set(`threads:${room.id}`, 50013);
    discord.write(alice, room, `${call} say here then`);
    await garden.answer(room, "here then");
  });

  test("a channel that takes no messages is given up at once, with the reason in the status", async () => {
    const { discord, alice, call, home } = garden;
    const room = garden.room();
    discord.refusals.set(room.id, 50013);
    discord.refusals.set(`threads:${room.id}`, 50013);
    discord.write(alice, room, `${call} say unheard`);
    await discord.until(() => discord.callsTo(SEND).some(({ status }) => status === 403), "the refusal");
    await sleep(1000);
    const tries = discord
      .callsTo(SEND)
      .filter(({ path, body }) => path.channel_id === room.id && body.content === "unheard");
    assert.equal(tries.length, 1);
    const { stdout } = await typed(home, ["gateway", "status", "--json"]);
    assert.ok(JSON.parse(stdout).outbox.dead > 0, stdout);
  });

  test("a closed socket is resumed, and what was written meanwhile is answered once", async () => {
    const { discord, alice } = garden;
    const before = discord.socket.log.length;
    for (const code of [4000, 1001]) {
      discord.socket.close(code);
      await discord.until(() => discord.socket.connections === 0, "the end of the connection");
      discord.write(alice, chat, `say over ${code}`);
      await garden.answer(chat, `over ${code}`);
    }
    const did = discord.socket.log.slice(before).filter((what) => what !== "heartbeat");
    assert.deepEqual(did, ["resume", "resume"]);
    discord.socket.askToReconnect();
    await discord.until(() => discord.socket.log.filter((what) => what === "resume").length >= 3, "a resume");
    await garden.settle();
    for (const code of [4000, 1001]) assert.equal(count(`over ${code}`), 1);
  });

  test("when the session is lost, what was written meanwhile is read from the history", async () => {
    const { discord, alice, bob, call } = garden;
    const [room, untouched] = [garden.room(), garden.room()];
    await garden.settle();
    discord.write(alice, room, `${call} say before`);
    const thread = await discord.until(() => discord.threadsOf(room)[0], "a thread");
    await garden.answer(thread, "before");
    discord.socket.forgetSessions();
    discord.socket.cut();
    discord.write(alice, chat, "say direct");
    discord.write(bob, thread, "say in the thread");
    discord.write(bob, untouched, "say unmentioned");
    discord.write(bob, untouched, `${call} say in a new channel`);
    await garden.answer(chat, "direct");
    await garden.answer(thread, "in the thread");
    const opened = await discord.until(() => discord.threadsOf(untouched)[0], "a thread in the new channel");
    await garden.answer(opened, "in a new channel");
    await garden.settle();
    assert.deepEqual([count("direct"), garden.asked("say unmentioned")], [1, []]);
    assert.equal(garden.answers(thread).length, 2);
  });

  test("events that come twice or in the wrong order are read once each", async () => {
    const { discord, alice, bob } = garden;
    const other = discord.dm(bob);
    discord.socket.repeats = true;
    discord.socket.hold();
    for (const word of ["one", "two", "three"]) discord.write(alice, chat, `say reordered ${word}`);
    discord.write(bob, other, "say beside");
    discord.socket.release({ reversed: true });
    await garden.answer(other, "beside");
    const isAnswered = (word: string) => garden.turns().some(({ raw }) => raw.includes(`reordered ${word}`));
    await until("all are read", () => ["one", "two", "three"].every(isAnswered));
    discord.socket.repeats = false;
    await garden.settle();
    assert.equal(garden.answers(other).filter((one) => one === "beside").length, 1);
    for (const word of ["one", "two", "three"]) assert.ok(count(`reordered ${word}`) <= 1, word);
  });

  test("no request broke the vendor's rules", () => {
    assert.deepEqual(garden.discord.violations, []);
  });
});

test("a gateway that was killed reads what was written meanwhile, and answers it once and in order", async (t) => {
  const garden = await Garden.open(t, {
    prepare: ({ discord, alice, guild, call }) => {
      discord.write(alice, discord.channel(guild, "old"), `${call} say ancient`, { ago: 60_000 });
      return undefined;
    },
  });
  const { discord, alice, bob, call } = garden.echo();
  const [chat, room, quiet] = [discord.dm(alice), garden.room(), garden.room()];
  discord.write(alice, room, `${call} say before`);
  const thread = await discord.until(() => discord.threadsOf(room)[0], "a thread");
  await garden.answer(thread, "before");
  discord.write(alice, chat, "say hello");
  await garden.answer(chat, "hello");
  assert.deepEqual(garden.asked("say ancient"), [], "nothing old is read at the first connect ever");
  await garden.gateway.kill();
  discord.write(alice, chat, "say too old", { ago: 25 * 3600 * 1000 });
  for (const word of ["one", "two", "three"]) {
    discord.write(alice, chat, `say missed ${word}`);
    await sleep(1100); // texts that follow each other at once are one turn
  }
  const withdrawn = discord.write(alice, chat, "say withdrawn");
  discord.remove(withdrawn);
  discord.write(bob, thread, "say missed there");
  discord.write(bob, quiet, "say to nobody");
  await garden.start();
  await garden.answer(thread, "missed there");
  await garden.answer(chat, "missed three");
  await garden.settle();
  assert.deepEqual(garden.answers(chat).slice(0, 4), ["hello", "missed one", "missed two", "missed three"]);
  assert.deepEqual(garden.answers(thread), ["before", "missed there"]);
  for (const word of ["ancient", "too old", "withdrawn", "to nobody"])
    assert.deepEqual(garden.asked(`say ${word}`), [], word);
  await garden.gateway.stop();
  await garden.start();
  await garden.settle();
  assert.equal(garden.answers(thread).length, 2, "a restart repeats nothing");
  assert.deepEqual(discord.violations, []);
});

test("a gateway that is killed while it sends does not send twice", async (t) => {
  const garden = await Garden.open(t);
  const { discord, alice } = garden.echo();
  const chat = discord.dm(alice);
  for (const nonceSeconds of [300, 0]) {
    discord.nonceSeconds = nonceSeconds;
    const text = `once with ${nonceSeconds}`;
    discord.fault({ route: SEND, kind: "hang", accepted: true });
    discord.write(alice, chat, `say ${text}`);
    await garden.answer(chat, text);
    await garden.gateway.kill();
    await garden.start();
    await garden.settle();
    assert.equal(garden.answers(chat).filter((one) => one.includes(text)).length, 1, text);
  }
  assert.deepEqual(discord.violations, []);
});

test("a token that is revoked while the bot runs ends the platform, and what waits is kept", async (t) => {
  const garden = await Garden.open(t);
  const { discord, alice, model } = garden.echo();
  const chat = discord.dm(alice);
  model.script({ text: "not lost", delay: 700 });
  discord.write(alice, chat, "speak");
  await discord.until(() => garden.asked("speak").length > 0, "the turn");
  discord.isRevoked = true;
  await garden.gateway.waitFor(/^\[Discord\] off: Discord refused the token/);
  await garden.gateway.stop();
  discord.isRevoked = false;
  await garden.start();
  await garden.answer(chat, "not lost");
  assert.equal(garden.answers(chat).filter((one) => one.includes("not lost")).length, 1);
});

test("an answer that somebody deletes while it is written is written again", async (t) => {
  const garden = await Garden.open(t, { config: "streaming:\n  enabled: true\n  edit_interval: 0.1\n" });
  const { discord, alice, model } = garden;
  const chat = discord.dm(alice);
  const text = "Roses need water, light and somebody who looks after them. ".repeat(4).trim();
  model.script({ text, chunk: 12, pace: 80 });
  discord.write(alice, chat, "tell me slowly");
  discord.remove(await discord.until(() => discord.saidIn(chat)[0], "the beginning"));
  await discord.until(() => garden.answers(chat).join("").includes("looks after them."), "the answer");
});

test("with missed_messages: false nothing that was missed is read", async (t) => {
  const garden = await Garden.open(t, { extra: ["missed_messages: false"] });
  const { discord, alice } = garden.echo();
  const chat = discord.dm(alice);
  discord.write(alice, chat, "say hello");
  await garden.answer(chat, "hello");
  await garden.gateway.stop();
  discord.write(alice, chat, "say missed");
  await garden.start();
  await garden.settle();
  assert.deepEqual(garden.asked("say missed"), []);
});

test("a Discord that is not reached is tried again until it is", async (t) => {
  const garden = await Garden.open(t, {
    prepare: ({ discord }) => {
      discord.fault({ route: "GET /gateway/bot", kind: "status", status: 503, times: 3 });
      return undefined;
    },
    ready: /^\[Discord\] failed: .*retry in/,
  });
  await garden.gateway.waitFor(/^\[Discord\] connected as hermes/);
  await garden.echo().settle();
});

test("a connection that only looks alive is replaced", async (t) => {
  const garden = await Garden.open(t, {
    prepare: ({ discord }) => {
      discord.socket.heartbeatInterval = 400;
      discord.socket.isSilent = true;
      return undefined;
    },
  });
  const { discord } = garden.echo();
  await discord.until(() => discord.socket.log.includes("resume"), "a new connection");
  discord.socket.isSilent = false;
  await sleep(500);
  await garden.settle();
});
