// XMPP through the real gateway: Prosody on loopback, people with clients of their own, a scripted model.
import assert from "node:assert/strict";
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type XmlElement, xml } from "@xmpp/client";
import { withEngine } from "../support/engines/require.ts";
import {
  answerTurns,
  gatewayHome,
  lastSaid,
  ModelServer,
  type RunningGateway,
  startGateway,
  typed,
  until,
} from "../support/gateway-rig.ts";
import {
  missingXmppServer,
  ROOM,
  XMPP_PASSWORD,
  type XmppPerson,
  type XmppServer,
  xmppServer,
} from "../support/platforms/xmpp-server.ts";
import type { TempHome } from "../support/temp-home.ts";

const BOT = "bot@xmpp.test";
const echo = (model: ModelServer) => answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
const turns = (model: ModelServer) => model.requests.filter(({ body }) => body.tools?.length).map(lastSaid);

const settings = (server: XmppServer) => ({
  ...{ XMPP_JID: BOT, XMPP_PASSWORD, XMPP_SERVICE: server.service, XMPP_ROOMS: ROOM },
  XMPP_ALLOWED_USERS: "ann@xmpp.test",
});

interface World extends AsyncDisposable {
  readonly server: XmppServer;
  readonly model: ModelServer;
  readonly home: TempHome;
  readonly ann: XmppPerson;
  readonly ben: XmppPerson;
  gateway: RunningGateway;
  /** Somebody is told exactly this. */
  hears(person: XmppPerson, text: string, from?: string): Promise<void>;
}

interface WorldOptions {
  readonly server?: Parameters<typeof xmppServer>[0];
  readonly config?: string;
  readonly gateway?: string;
  readonly before?: (ann: XmppPerson) => Promise<void>;
}

async function world({ server: kind = {}, config = "", gateway = "", before }: WorldOptions = {}): Promise<World> {
  const server = await xmppServer(kind);
  const [ann, ben] = [await server.person("ann"), await server.person("ben")];
  const model = await ModelServer.start();
  echo(model);
  const home = await gatewayHome(model, { env: settings(server), config, gateway });
  await before?.(ann);
  const release = async () => {
    await server.release();
    await model.close();
    await home[Symbol.asyncDispose]();
  };
  const started = await startGateway(home).catch(async (error) => {
    await release();
    throw error;
  });
  const self: World = {
    ...{ server, model, home, ann, ben, gateway: started },
    hears: (person, text, from = BOT) =>
      until(`"${text}" in ${JSON.stringify(person.heard(from))}`, () => person.heard(from).includes(text)),
    async [Symbol.asyncDispose]() {
      await self.gateway.kill();
      await release();
    },
  };
  return self;
}

await withEngine("an XMPP server", missingXmppServer, () => {
  describe("XMPP", () => {
    let it: World;
    before(async () => {
      it = await world({
        server: { files: true },
        before: async (ann) => {
          await ann.say(BOT, "before the bot existed");
        },
      });
      await it.gateway.waitFor(/^\[XMPP\] connected as bot@xmpp\.test$/);
      await it.ann.enter(ROOM);
      await it.ben.enter(ROOM);
    });
    after(() => it?.[Symbol.asyncDispose]());
    beforeEach(() => {
      it.ann.messages.length = 0;
      it.ben.messages.length = 0;
      echo(it.model);
    });

    test("a message is answered and remembered, in whatever script it is written", async () => {
      // Long enough to come in many pieces.
      const text = "漢字とかな ".repeat(5000);
      answerTurns(it.model, () => ({ text: "noted" }));
      await it.ann.say(BOT, text);
      await it.hears(it.ann, "noted");
      assert.ok(turns(it.model)[0]?.trim() === text.trim(), `it is: ${turns(it.model)[0]?.slice(0, 100)}`);
      echo(it.model);
      await it.ann.say(BOT, "what did I say?");
      await it.hears(it.ann, "heard: what did I say?");
      assert.ok(JSON.stringify(it.model.last.body.messages).includes("漢字とかな"));
      assert.ok(!it.model.requests.some(({ raw }) => raw.includes("before the bot existed")));
    });

    test("answers are styled, carry an id of their own, and say that somebody is at work", async () => {
      answerTurns(it.model, async () => {
        await sleep(700);
        return { text: "# Head\n\n**bold** *it* `x` & <b> \u0001 [docs](https://x.test/)\n\n```js\n**raw**\n```" };
      });
      await it.ann.say(BOT, "format it");
      const answer = await it.ann.waitFor((one) => one.getChild("body") !== undefined, "the answer");
      assert.equal(
        answer.getChildText("body"),
        "*Head*\n\n*bold* _it_ `x` & <b> \ufffd docs (https://x.test/)\n\n```\n**raw**\n```",
      );
      assert.equal(answer.getChild("origin-id")?.attrs.id, answer.attrs.id);
      assert.ok(it.ann.messages.some((one) => one.getChild("composing")));
    });

    test("in a room only those who are meant are answered, and by the room", async () => {
      await it.ann.say(ROOM, "hello everybody", { type: "groupchat" });
      await it.ben.say(ROOM, "bot: I am a stranger", { type: "groupchat" });
      await it.ann.say(ROOM, "bot: and you?", { type: "groupchat" });
      await it.hears(it.ben, "heard: and you?", `${ROOM}/bot`);
      assert.deepEqual(turns(it.model), ["and you?"]);
      await it.ann.say(ROOM, "ask @bot then", { type: "groupchat" });
      await it.hears(it.ben, "heard: ask @bot then", `${ROOM}/bot`);
    });

    test("who is written to aside in a room answers aside", async () => {
      await it.ann.say(`${ROOM}/bot`, "psst");
      await it.hears(it.ann, "heard: psst", `${ROOM}/bot`);
      assert.deepEqual(it.ben.heard(`${ROOM}/bot`), []);
    });

    test("who may talk to the bot may see that it is there, and nobody else", async () => {
      const sees = (person: XmppPerson) =>
        person.presences.some(({ attrs }) => attrs.type === undefined && attrs.from?.startsWith(`${BOT}/`));
      await it.ben.send(xml("presence", { to: BOT, type: "subscribe" }));
      await it.ann.send(xml("presence", { to: BOT, type: "subscribe" }));
      await until("ann sees it", () => sees(it.ann));
      assert.equal(sees(it.ben), false);
    });

    test("what is encrypted is named, not left unanswered", async () => {
      const more = xml("encrypted", { xmlns: "eu.siacs.conversations.axolotl" });
      await it.ann.say(BOT, "I sent you an OMEMO encrypted message", { more });
      await it.hears(it.ann, "heard: [unsupported: encrypted message]");
    });

    test("nobody can pass a message off as one out of the archive", async () => {
      const forged = xml("message", { from: "ann@xmpp.test", to: BOT }, xml("body", {}, "forged"));
      const forwarded = xml("forwarded", { xmlns: "urn:xmpp:forward:0" }, forged);
      await it.ben.send(
        xml(
          "message",
          { to: BOT },
          xml("result", { xmlns: "urn:xmpp:mam:2", queryid: "hermes-1", id: "x" }, forwarded),
        ),
      );
      await it.ann.say(BOT, "real");
      await it.hears(it.ann, "heard: real");
      assert.deepEqual(turns(it.model), ["real"]);
    });

    test("a message whose receipt is lost is found in the archive and not repeated", async () => {
      it.server.breakAfterNextMessage();
      await it.ann.say(BOT, "one");
      await it.hears(it.ann, "heard: one");
      await it.ann.say(BOT, "two");
      await it.hears(it.ann, "heard: two");
      it.server.breakAfterNextMessage();
      await it.ann.say(ROOM, "bot: three", { type: "groupchat" });
      await it.hears(it.ann, "heard: three", `${ROOM}/bot`);
      await it.ann.say(ROOM, "bot: four", { type: "groupchat" });
      await it.hears(it.ann, "heard: four", `${ROOM}/bot`);
      await sleep(500);
      assert.deepEqual(it.ann.heard(BOT), ["heard: one", "heard: two"]);
      assert.deepEqual(it.ann.heard(`${ROOM}/bot`), ["heard: three", "heard: four"]);
    });

    test("what was written while the gateway was down is answered once, in chats and rooms", async () => {
      await it.gateway.kill();
      await it.ann.say(BOT, "missed one");
      await it.ann.say(ROOM, "bot: missed in the room", { type: "groupchat" });
      await it.ann.say(ROOM, "not for the bot", { type: "groupchat" });
      await it.ann.say(BOT, "missed two");
      // A name in the room was somebody else's when this was written.
      const takes = (nick: string, type?: string) =>
        xml("presence", { to: `${ROOM}/${nick}`, type }, xml("x", { xmlns: "http://jabber.org/protocol/muc" }));
      await it.ben.send(takes("ben"));
      await until("Ben sees Ann", () => it.ben.presences.some(({ attrs }) => attrs.from === `${ROOM}/ann`));
      await it.ann.send(takes("ann", "unavailable"));
      const left = ({ attrs }: XmlElement) => attrs.from === `${ROOM}/ann` && attrs.type === "unavailable";
      const departures = () => it.ben.presences.filter(left).length;
      await until("Ann has left", () => departures() === 1);
      await it.ben.send(takes("ann"));
      await it.ben.say(ROOM, "bot: as if by Ann", { type: "groupchat" });
      await it.ben.waitFor((stanza) => stanza.getChildText("body") === "bot: as if by Ann", "what Ben wrote");
      await it.ben.send(takes("ann", "unavailable"));
      await until("the name is free", () => departures() === 2);
      await it.ann.enter(ROOM);
      it.gateway = await startGateway(it.home);
      await it.hears(it.ann, "heard: missed two");
      await it.hears(it.ann, "heard: missed in the room", `${ROOM}/bot`);
      await it.gateway.stop();
      it.gateway = await startGateway(it.home);
      await it.ann.say(BOT, "and live");
      await it.hears(it.ann, "heard: and live");
      await sleep(300);
      assert.deepEqual(it.ann.heard(BOT), ["heard: missed one", "heard: missed two", "heard: and live"]);
      assert.deepEqual(it.ann.heard(`${ROOM}/bot`), ["heard: missed in the room"]);
      assert.ok(!turns(it.model).some((text) => text.includes("as if by Ann")));
    });

    test("files are taken, and handed out by the upload service of the server", async () => {
      const report = it.home.at("cache", "documents", "report.txt");
      await mkdir(dirname(report), { recursive: true });
      await writeFile(report, "the report");
      answerTurns(it.model, () => ({ text: `Here.\nMEDIA:${report}` }));
      await it.ann.say(BOT, "send me the report");
      const sent = await it.ann.waitFor((one) => one.getChild("x", "jabber:x:oob") !== undefined, "the file");
      const url = sent.getChild("x", "jabber:x:oob")?.getChildText("url") ?? "";
      assert.equal(sent.getChildText("body"), url);
      assert.equal(await (await fetch(url)).text(), "the report");
      echo(it.model);
      await it.ann.say(BOT, url, { more: xml("x", { xmlns: "jabber:x:oob" }, xml("url", {}, url)) });
      await until("the turn", () => turns(it.model).length === 1);
      assert.match(turns(it.model)[0] ?? "", /report\.txt/);
    });

    test("a login with a wrong password is refused once, without naming it", async () => {
      const home = await gatewayHome(it.model, { env: { ...settings(it.server), XMPP_PASSWORD: "wrong-secret" } });
      try {
        const gateway = await startGateway(home, { ready: null });
        assert.equal((await gateway.result).code, 1);
        assert.match(gateway.lines.join("\n"), /refused the login of bot@xmpp\.test; check XMPP_JID and XMPP_PASSWORD/);
        assert.doesNotMatch(gateway.lines.join("\n"), /wrong-secret/);
      } finally {
        await home[Symbol.asyncDispose]();
      }
    });

    test("a server that is restarted finds the bot back in its chats and rooms", async () => {
      await it.server.stop();
      await it.server.start();
      const ann = await it.server.person("ann");
      await ann.enter(ROOM);
      await ann.say(BOT, "are you back?");
      await it.hears(ann, "heard: are you back?");
      const rejoined = () => it.gateway.lines.filter((line) => /^\[XMPP\] (?:re)?connected/.test(line)).length >= 2;
      await until("it is back", rejoined);
      await ann.say(ROOM, "bot: here too?", { type: "groupchat" });
      await it.hears(ann, "heard: here too?", `${ROOM}/bot`);
    });
  });

  describe("an XMPP server without an archive", () => {
    let it: World;
    before(async () => {
      // A turn that is held holds the others.
      it = await world({ server: { archive: false }, gateway: "  max_concurrent_turns: 1\n" });
    });
    after(() => it?.[Symbol.asyncDispose]());
    beforeEach(() => {
      it.ann.messages.length = 0;
      it.ben.messages.length = 0;
      echo(it.model);
    });

    test("hands out what it kept, and an answer whose receipt is lost comes marked", async () => {
      await it.gateway.stop();
      await it.ann.say(BOT, "while away");
      it.gateway = await startGateway(it.home);
      await it.hears(it.ann, "heard: while away");
      it.server.breakAfterNextMessage();
      await it.ann.say(BOT, "again");
      await it.hears(it.ann, "(recovered) heard: again");
      assert.deepEqual(it.ann.heard(BOT), ["heard: while away", "heard: again", "(recovered) heard: again"]);
    });

    test("keeps what was read but not stored, and hands it out again", async () => {
      const store = new DatabaseSync(it.home.at("state.db"), { timeout: 10_000 });
      store.exec("BEGIN IMMEDIATE");
      await it.ann.say(BOT, "do not lose me");
      // The server asks within this time whether it arrived.
      await sleep(1500);
      await it.gateway.kill();
      store.exec("ROLLBACK");
      store.close();
      it.gateway = await startGateway(it.home);
      await it.hears(it.ann, "heard: do not lose me");
    });

    test("lets hermes send write to people and rooms, and keeps what waits for the gateway", async () => {
      await it.ben.enter(ROOM);
      await it.gateway.stop();
      await it.ann.say(BOT, "for the gateway");
      for (const [to, text] of [
        ["ann@xmpp.test", "hello Ann"],
        [ROOM, "hello room"],
      ] as const) {
        const sent = await typed(it.home, ["send", "-t", `xmpp:${to}`, text]);
        assert.equal(sent.code, 0, sent.stderr);
      }
      await it.hears(it.ann, "hello Ann");
      await it.hears(it.ben, "hello room", `${ROOM}/bot`);
      const lost = await typed(it.home, ["send", "-t", "xmpp:nobody@xmpp.test", "hello"]);
      assert.equal(lost.code, 1);
      it.gateway = await startGateway(it.home);
      await it.hears(it.ann, "heard: for the gateway");
    });

    test("can have a message corrected or withdrawn before its turn, by whoever wrote it", async () => {
      await it.ann.enter(ROOM);
      await it.ben.enter(ROOM);
      const held = Promise.withResolvers<void>();
      answerTurns(it.model, async (request) => {
        if (lastSaid(request) === "first") await held.promise;
        return { text: `heard: ${lastSaid(request)}` };
      });
      await it.ann.say(BOT, "first");
      await until("the first turn", () => turns(it.model).length === 1);
      const typo = xml("replace", { xmlns: "urn:xmpp:message-correct:0", id: "typo" });
      await it.ann.say(ROOM, "bot: secnod", { type: "groupchat", id: "typo" });
      // Only who wrote it can change it.
      await it.ben.say(ROOM, "bot: hijacked", { type: "groupchat", more: typo });
      await it.ann.say(ROOM, "bot: second", { type: "groupchat", more: typo });
      await it.ann.say(`${ROOM}/bot`, "not meant", { id: "gone" });
      await it.ann.say(`${ROOM}/bot`, "", {
        more: xml("retract", { xmlns: "urn:xmpp:message-retract:1", id: "gone" }),
      });
      // Nor who takes the name of whoever wrote it.
      await it.ann.say(ROOM, "bot: third", { type: "groupchat", id: "third" });
      await it.ben.waitFor((stanza) => stanza.getChildText("body") === "bot: third", "what Ann wrote");
      const taken = (nick: string, type?: string) => xml("presence", { to: `${ROOM}/${nick}`, type });
      await it.ann.send(taken("ann", "unavailable"));
      const isGone = () =>
        it.ben.presences.some(({ attrs }) => attrs.from === `${ROOM}/ann` && attrs.type === "unavailable");
      await until("Ann has left", isGone);
      await it.ben.send(taken("ann"));
      const third = xml("replace", { xmlns: "urn:xmpp:message-correct:0", id: "third" });
      await it.ben.say(ROOM, "bot: hijacked again", { type: "groupchat", more: third });
      await it.ben.waitFor((stanza) => stanza.getChildText("body") === "bot: hijacked again", "what Ben wrote");
      await it.ben.send(taken("ben"));
      await sleep(300);
      held.resolve();
      await until("the third turn", () => turns(it.model).length > 2);
      await it.ann.enter(ROOM);
      await sleep(300);
      assert.deepEqual(turns(it.model), ["first", "second", "third"]);
    });

    test("sees streamed answers as corrections of one message where that is on", async () => {
      await it.gateway.stop();
      await appendFile(
        it.home.at("config.yaml"),
        "streaming:\n  enabled: true\n  edit_interval: 0.1\n  buffer_threshold: 5\n",
      );
      it.gateway = await startGateway(it.home);
      const words = Array.from({ length: 12 }, (_, at) => `word${at}`).join(" ");
      answerTurns(it.model, () => ({ text: words, pace: 60 }));
      await it.ann.say(BOT, "stream");
      const last = await it.ann.waitFor((one) => one.getChildText("body") === words, "the whole answer");
      const [first] = it.ann.messages.filter((one) => one.getChild("body"));
      const corrected = it.ann.messages.flatMap((one) => one.getChild("replace")?.attrs.id ?? []);
      assert.deepEqual([...new Set(corrected)], [first?.attrs.id]);
      assert.equal(last.getChild("replace")?.attrs.id, first?.attrs.id);
    });
  });

  describe("an XMPP login", () => {
    test("is encrypted where the server can, and only with a certificate somebody vouches for", async () => {
      const server = await xmppServer({ tls: true });
      const model = await ModelServer.start();
      const home = await gatewayHome(model, { env: settings(server) });
      try {
        const refused = await startGateway(home, { ready: null });
        assert.equal((await refused.result).code, 1);
        assert.match(refused.lines.join("\n"), /certificate that is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/);
        const gateway = await startGateway(home, { env: { NODE_EXTRA_CA_CERTS: server.certificate } });
        await gateway.waitFor(/^\[XMPP\] connected as bot@xmpp\.test$/);
        await gateway.stop();
      } finally {
        await server.release();
        await model.close();
        await home[Symbol.asyncDispose]();
      }
    });
  });
});
