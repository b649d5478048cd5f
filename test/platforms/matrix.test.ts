// Matrix through the real gateway: matrix-js-sdk talks to a homeserver on loopback, which judges every call by the client-server API.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { answerTurns, lastSaid, typed, until } from "../support/gateway-rig.ts";
import {
  ANN,
  asked,
  BOB,
  bodies,
  EVE,
  echo,
  held,
  mention,
  type World,
  world,
} from "../support/platforms/matrix-rig.ts";
import { MatrixServer } from "../support/platforms/matrix-server.ts";

const { BOT } = MatrixServer;

describe("Matrix", () => {
  let one: World;
  before(async () => {
    one = await world({ extra: "reactions: true", config: "display:\n  busy_input_mode: queue\n" });
  });
  after(() => one[Symbol.asyncDispose]());
  afterEach(() => echo(one.model));

  test("a message of a direct chat is answered there, as text and as HTML, and marked as read", async () => {
    const { server, model, dm } = one;
    answerTurns(model, () => ({ text: "# Plan\n**bold** and `code`\n\n| a |\n|---|\n| 1 |" }));
    const id = server.say(dm, ANN, "what is the plan");
    const { content } = await one.written("Plan");
    assert.equal(content.msgtype, "m.text");
    assert.equal(content.format, "org.matrix.custom.html");
    assert.match(
      String(content.formatted_body),
      /^<h1>Plan<\/h1>\n<p><strong>bold<\/strong> and <code>code<\/code><\/p>\n<table>/,
    );
    assert.deepEqual(content["m.mentions"], {}, "an answer rings nobody's bell");
    await until("it is read", () =>
      server.web.callsOf(/receipt/).some(({ path }) => decodeURIComponent(path).endsWith(id)),
    );
    assert.equal(server.web.callsOf(/typing/).length > 0, true);
    assert.deepEqual(asked(model, "before the bot"), [], "what was said before the first connect is not read");
  });

  test("work is marked beside the message, and the mark changes when it is done", async () => {
    const { server, dm } = one;
    const id = server.say(dm, ANN, "mark this");
    await one.written("mark this");
    const marks = () =>
      server.sent(dm, "m.reaction").map(({ content }) => content["m.relates_to"] as { event_id: string; key: string });
    await until("both marks were there", () => marks().filter(({ event_id }) => event_id === id).length === 2);
    assert.deepEqual(
      marks().flatMap(({ event_id, key }) => (event_id === id ? [key] : [])),
      ["👀", "✅"],
    );
    await until("the first one is gone", () => server.sent(dm, "m.room.redaction").length > 0);
  });

  test("a message to a person goes to the room that is theirs, which is made once", async () => {
    const { server, home } = one;
    for (const text of ["hello new one", "hello again"]) {
      const sent = await typed(home, ["send", "-t", "matrix:@new:test", "--json", text]);
      assert.equal(sent.code, 0, sent.stderr);
    }
    const room = server.rooms.at(-1) ?? "";
    await one.written("hello new one", room);
    await one.written("hello again", room);
    assert.equal(server.web.callsOf(/createRoom/).length, 1);
  });

  test("a group needs a mention, by the list of mentions or by the name in front", async () => {
    const { server, model, team } = one;
    server.say(team, ANN, "just talking");
    server.say(team, ANN, mention("Hermes: by the list"));
    server.say(team, BOB, "hermes, by the name");
    await one.written("heard: by the list", team);
    await one.written("heard: by the name", team);
    assert.deepEqual(asked(model, "just talking"), []);
  });

  test("in a group people have conversations of their own", async () => {
    const { server, model, team } = one;
    server.say(team, ANN, mention("my word is apple"));
    await one.written("my word is apple", team);
    server.say(team, BOB, mention("say the word"));
    await one.written("say the word", team);
    assert.doesNotMatch(JSON.stringify(asked(model, "say the word")[0]?.body), /apple/);
  });

  test("a thread is answered in the thread, is shared, and needs no mention once we are in it", async () => {
    const { server, team } = one;
    const root = server.say(team, ANN, "a thing to discuss");
    const relates = {
      rel_type: "m.thread",
      event_id: root,
      is_falling_back: true,
      "m.in_reply_to": { event_id: root },
    };
    const asked = server.say(team, ANN, { ...mention("Hermes what do you say"), "m.relates_to": relates });
    const { content } = await one.written("what do you say", team);
    assert.deepEqual(content["m.relates_to"], {
      ...{ rel_type: "m.thread", event_id: root, is_falling_back: false },
      "m.in_reply_to": { event_id: asked },
    });
    server.say(team, BOB, { msgtype: "m.text", body: "and I say no", "m.relates_to": relates });
    await one.written("[Bob] and I say no", team);
  });

  test("a reply carries what it answers, without the quote of older clients", async () => {
    const { server, model, dm } = one;
    const first = server.say(dm, ANN, "the first thing");
    await one.written("the first thing");
    const body = "> <@ann:test> the first thing\n\nwhat about it";
    server.say(dm, ANN, { msgtype: "m.text", body, "m.relates_to": { "m.in_reply_to": { event_id: first } } });
    await one.written("what about it");
    assert.match(lastSaid(asked(model, "what about it")[0] ?? assert.fail()), /Replying to: "the first thing"/);
    assert.equal(asked(model, "> <@ann").length, 0);
  });

  test("a reply to one of our messages needs no mention", async () => {
    const { server, team } = one;
    server.say(team, ANN, mention("say something"));
    const { event_id: id } = await one.written("say something", team);
    server.say(team, ANN, {
      msgtype: "m.text",
      body: "go on please",
      "m.relates_to": { "m.in_reply_to": { event_id: id } },
    });
    await one.written("go on please", team);
  });

  test("a command is typed with an exclamation mark, and only if there is one of that name", async () => {
    const { server, dm } = one;
    server.say(dm, ANN, "!status");
    await one.written("Session");
    server.say(dm, ANN, "!wow that is great");
    await one.written("heard: !wow");
  });

  test("a file comes with its type, and what cannot be fetched is said", async () => {
    const { server, model, dm } = one;
    const url = server.file(Buffer.from("the text of the file"), "text/plain");
    server.say(dm, ANN, { msgtype: "m.file", body: "read this", filename: "notes.txt", url, info: { size: 20 } });
    await one.written("read this");
    assert.match(lastSaid(asked(model, "read this")[0] ?? assert.fail()), /the text of the file/);
    const gone = {
      msgtype: "m.file",
      body: "and this",
      filename: "gone.pdf",
      url: "mxc://test/gone",
      info: { size: 9 },
    };
    server.say(dm, ANN, gone);
    await one.written("and this");
    assert.match(lastSaid(asked(model, "and this")[0] ?? assert.fail()), /\[not received: gone\.pdf \(9 bytes\): /);
    for (const { headers } of server.web.callsOf(/media\/download/))
      assert.equal(headers.authorization, `Bearer ${MatrixServer.TOKEN}`);
  });

  test("a poll is not passed over in silence", async () => {
    const { server, model, dm } = one;
    server.say(dm, ANN, { "m.poll": { question: { "m.text": [{ body: "Pizza?" }] } } }, "m.poll.start");
    await until("the model is asked", () => asked(model, "[unsupported: poll] Pizza?").length === 1);
  });

  test("a file of an answer is uploaded and shown", async () => {
    const { server, model, dm, home } = one;
    const path = join(home.dir, "cache", "images", "made.png");
    const bytes = Buffer.from(
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
      "base64",
    );
    await mkdir(join(home.dir, "cache", "images"), { recursive: true });
    await writeFile(path, bytes);
    answerTurns(model, () => ({ text: `here it is\nMEDIA:${path}` }));
    server.say(dm, ANN, "a picture please");
    const { content } = await one.written("made.png");
    assert.equal(content.msgtype, "m.image");
    assert.deepEqual(content.info, { mimetype: "image/png", size: bytes.length });
    assert.deepEqual(server.mediaOf(String(content.url))?.bytes, bytes);
  });

  test("a long answer comes in parts that keep their code", async () => {
    const { server, model, dm } = one;
    const code = Array.from({ length: 300 }, (_, index) => `  line ${index} of the code`).join("\n");
    answerTurns(model, () => ({ text: `Look:\n\`\`\`ts\n${code}\n\`\`\`` }));
    server.say(dm, ANN, "long one");
    await one.written("line 299 of");
    const parts = server.sent(dm).filter(({ content }) => /line \d+ of the code/.test(String(content.body)));
    assert.equal(parts.length, 2);
    for (const { content } of parts) {
      assert.ok(String(content.body).length <= 4000);
      assert.match(String(content.formatted_body), /<pre><code class="language-ts">/);
    }
    const lines = parts.flatMap(({ content }) => String(content.body).match(/line \d+ of the code/g) ?? []);
    assert.equal(lines.length, 300);
  });

  test("what is edited or deleted before its turn begins is answered as it is then, and forged edits are not", async () => {
    const { server, model, dm } = one;
    const gate = held(model, "the first is done");
    server.say(dm, ANN, "something slow");
    await until("the turn runs", () => asked(model, "something slow").length === 1);
    const edited = server.say(dm, ANN, "with a tipo");
    const deleted = server.say(dm, ANN, "never mind this one");
    const forged = server.say(dm, ANN, "as I wrote it");
    const moderated = server.say(dm, ANN, "what a moderator removes");
    await until("all of them are stored", () =>
      server.web.callsOf(/receipt/).some(({ path }) => decodeURIComponent(path).endsWith(moderated)),
    );
    server.edit(dm, ANN, edited, "with a typo");
    server.redact(dm, ANN, deleted);
    server.edit(dm, EVE, forged, "as Eve likes it");
    // Redactions that no homeserver let through: of a stranger, and from a room of his own.
    server.redact(dm, EVE, forged);
    server.redact(one.team, BOB, forged);
    server.moderators.add(BOB);
    server.redact(dm, BOB, moderated);
    const seen = server.say(dm, ANN, "the last one");
    await until("the changes were read", () =>
      server.web.callsOf(/receipt/).some(({ path }) => decodeURIComponent(path).endsWith(seen)),
    );
    echo(model);
    gate.resolve();
    // Texts that were written in one breath may be one turn.
    await until("the last one is answered", () =>
      bodies(server, dm).some((text) => /heard:[\s\S]*the last one/.test(text)),
    );
    const said = bodies(server, dm).slice(-3).join("\n");
    assert.match(said, /heard: with a typo/);
    assert.match(said, /as I wrote it/);
    assert.doesNotMatch(said, /tipo|never mind|Eve|moderator/);
  });

  test("a name that another member has too is told with the id of whoever shows it", async () => {
    const { server, model } = one;
    const room = server.room({ [ANN]: "Ann", [BOB]: "A nn\u200b" }, { name: "Two Anns" });
    server.say(room, BOB, mention("who am I"));
    await one.written("heard: who am I", room);
    const turn = asked(model, "who am I").findLast(({ body }) => body.tools?.length);
    const system = String(turn?.body.messages[0].content);
    assert.match(system, /You talk with A nn ?\(@bob:test\)\./);
  });

  test("an invitation of somebody who may write is accepted, and what they wrote with it is answered", async () => {
    const { server } = one;
    const room = server.room({ [ANN]: "Ann" }, { withoutBot: true });
    server.say(room, ANN, "said to myself, long ago");
    server.member(room, BOT, "invite", { sender: ANN, is_direct: true });
    server.say(room, ANN, "welcome to this room");
    await one.written("heard: welcome to this room", room);
    assert.equal(
      bodies(server, room).some((body) => body.includes("long ago")),
      false,
    );
  });

  test("an invitation of a stranger is left alone", async () => {
    const { server } = one;
    const room = server.room({ [EVE]: "Eve" }, { withoutBot: true });
    server.member(room, BOT, "invite", { sender: EVE, is_direct: true });
    const mine = server.room({ [ANN]: "Ann" }, { withoutBot: true });
    server.member(mine, BOT, "invite", { sender: ANN });
    await until("the one behind it is accepted", () => server.membership(mine) === "join");
    assert.equal(server.membership(room), "invite");
    const log = await readFile(join(one.home.dir, "logs", "gateway.log"), "utf8");
    assert.match(log, /an invitation of @eve:test .* was not accepted; to allow it add them to MATRIX_ALLOWED_USERS/);
  });

  test("an encrypted room is told so, once, and nothing of ours goes into it", async () => {
    const { server } = one;
    const room = server.room({ [ANN]: "Ann" }, { encrypted: true });
    const secret = { algorithm: "m.megolm.v1.aes-sha2", ciphertext: "x" };
    server.say(room, ANN, secret, "m.room.encrypted");
    server.say(room, ANN, secret, "m.room.encrypted");
    const { content } = await one.written("I cannot read encrypted messages", room);
    assert.equal(content.msgtype, "m.notice");
    await sleep(300);
    const tries = server.web.callsOf(/PUT .*\/send\//).filter(({ body }) => body.includes("cannot read encrypted"));
    assert.equal(tries.length, 1);
  });

  test("an answer does not go into a room that was encrypted meanwhile", async () => {
    const { server, model } = one;
    const room = server.room({ [ANN]: "Ann" });
    const gate = held(model, "this is a secret");
    server.say(room, ANN, "tell me a secret");
    await until("the turn runs", () => asked(model, "tell me a secret").length === 1);
    server.state(room, ANN, "m.room.encryption", { algorithm: "m.megolm.v1.aes-sha2" });
    server.say(room, ANN, { algorithm: "m.megolm.v1.aes-sha2", ciphertext: "x" }, "m.room.encrypted");
    await one.written("I cannot read encrypted messages", room);
    gate.resolve();
    await until("it is in the log", async () =>
      (await readFile(join(one.home.dir, "logs", "gateway.log"), "utf8")).includes("cannot write encrypted messages"),
    );
    assert.equal(server.sent(room).length, 1);
  });

  test("a message that was accepted and not confirmed is not there twice", async () => {
    const { server, model, dm } = one;
    answerTurns(model, () => ({ text: "only once please" }));
    const on = ({ method, body }: { method: string; body: Buffer }) => method === "PUT" && body.includes("only once");
    server.web.faults.push({ on, what: "lose answer" }, { on, what: "hang" });
    server.say(dm, ANN, "unsure");
    const sends = () =>
      server.web.callsOf(/PUT .*\/send\/m.room.message/).filter(({ body }) => body.includes("only once"));
    await until("it was repeated", () => sends().length === 3);
    assert.equal(new Set(sends().map(({ path }) => path)).size, 1, "always the same transaction");
    await sleep(300);
    assert.deepEqual(
      bodies(server, dm).filter((body) => body.includes("only once")),
      ["only once please"],
    );
  });

  test("a limit is waited for, and a server in trouble is asked again", async () => {
    const { server, model, dm } = one;
    answerTurns(model, () => ({ text: "in spite of all" }));
    const limit = {
      status: 429,
      body: { errcode: "M_LIMIT_EXCEEDED", error: "Too Many Requests", retry_after_ms: 400 },
    };
    const on = ({ method, body }: { method: string; body: Buffer }) => method === "PUT" && body.includes("in spite");
    server.web.faults.push({ on, what: limit }, { on, what: { status: 502, body: "Bad Gateway" } });
    server.say(dm, ANN, "try hard");
    await one.written("in spite of all");
    assert.equal(bodies(server, dm).filter((body) => body.includes("in spite")).length, 1);
  });

  test("a connection that breaks in the middle of reading loses and repeats nothing", async () => {
    const { server, model, dm } = one;
    server.web.faults.push(
      { on: /GET .*\/sync/, what: "drop" },
      { on: /GET .*\/sync/, what: { status: 500, body: "x" } },
    );
    server.web.dropConnections();
    server.say(dm, ANN, "said while it was broken");
    await one.written("said while it was broken");
    assert.equal(asked(model, "said while it was broken").length, 1);
  });

  test("the token is in no log and on no line", async () => {
    const log = await readFile(join(one.home.dir, "logs", "gateway.log"), "utf8");
    assert.doesNotMatch(log + one.gateway.lines.join("\n"), new RegExp(MatrixServer.TOKEN));
  });
});
