// IRC through the real gateway: ngIRCd on loopback, people with clients of their own, a scripted model.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { withEngine } from "../support/engines/require.ts";
import { answerTurns, gatewayHome, lastSaid, ModelServer, startGateway, until } from "../support/gateway-rig.ts";
import {
  accountServer,
  type IrcPerson,
  type IrcServer,
  ircServer,
  missingIrcServer,
} from "../support/platforms/irc-server.ts";

const BOT = "hermes-bot";
const echo = (model: ModelServer) => answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
const turns = (model: ModelServer) => model.requests.filter(({ body }) => body.tools?.length).map(lastSaid);

const settings = (port: number) => ({
  ...{ IRC_SERVER: "127.0.0.1", IRC_PORT: String(port), IRC_USE_TLS: "false", IRC_FLOOD_DELAY: "0.02" },
  ...{ IRC_CHANNEL: "#team", IRC_ALLOWED_USERS: "ann,Ben" },
});

interface Releasable {
  readonly port: number;
  release(): Promise<void>;
}

/** A home for a gateway in front of a model that repeats what it hears. The server goes with it. */
async function homeAt(server: Releasable, env: Readonly<Record<string, string>> = {}) {
  const model = await ModelServer.start();
  echo(model);
  const home = await gatewayHome(model, { env: { ...settings(server.port), ...env } });
  const release = async () => {
    await server.release();
    await model.close();
    await home[Symbol.asyncDispose]();
  };
  return { model, home, release, [Symbol.asyncDispose]: release };
}

/** The same with the gateway running. */
async function gatewayAt(server: Releasable, env: Readonly<Record<string, string>> = {}) {
  const { model, home, release } = await homeAt(server, env);
  const gateway = await startGateway(home).catch(async (error) => {
    await release();
    throw error;
  });
  return {
    ...{ model, home, gateway },
    async [Symbol.asyncDispose]() {
      await gateway.kill();
      await release();
    },
  };
}

/** A server that others release. */
const only = ({ port }: Releasable): Releasable => ({ port, release: async () => undefined });

await withEngine("an IRC server", missingIrcServer, () => {
  describe("IRC", () => {
    let irc: IrcServer;
    let model: ModelServer;
    let bot: Awaited<ReturnType<typeof gatewayAt>>;
    let ann: IrcPerson;
    let ben: IrcPerson;
    let eve: IrcPerson;

    before(async () => {
      irc = await ircServer();
      ann = await irc.person("Ann");
      // Whoever is first may throw others out.
      await ann.enter("#team");
      ben = await irc.person("Ben");
      await ben.enter("#team");
      eve = await irc.person("eve");
      await eve.enter("#team");
      bot = await gatewayAt(irc);
      ({ model } = bot);
      await bot.gateway.waitFor(/^\[IRC\] connected as hermes-bot on 127\.0\.0\.1$/);
    });
    after(() => bot?.[Symbol.asyncDispose]());
    beforeEach(() => {
      for (const person of [ann, ben, eve]) person.lines.length = 0;
      echo(model);
    });

    const hears = (person: IrcPerson, text: string) =>
      until(`"${text}" in ${JSON.stringify(person.lines)}`, () => person.heard(BOT).includes(text));

    test("a private message is answered privately, and remembered", async () => {
      ann.say(BOT, "my name is Ann");
      await hears(ann, "heard: my name is Ann");
      ann.say(BOT, "what is my name?");
      await hears(ann, "heard: what is my name?");
      assert.match(JSON.stringify(model.last.body.messages), /my name is Ann/);
      assert.deepEqual(ben.heard(BOT), []);
    });

    test("in a channel only lines that begin with the nick are answered, in the channel", async () => {
      ann.say("#team", "hello everybody");
      ben.say("#team", `I like ${BOT}`);
      ann.say("#team", `${BOT}: are you \x02there\x02?`);
      await hears(ben, "heard: are you there?");
      assert.deepEqual(ben.heard(BOT, "#team"), ["heard: are you there?"]);
      assert.deepEqual(turns(model), ["are you there?"]);
    });

    test("a stranger is heard by nobody", async () => {
      eve.say(BOT, "let me in");
      eve.say("#team", `${BOT}: let me in`);
      ben.say(BOT, "I am known");
      await hears(ben, "heard: I am known");
      assert.deepEqual(turns(model), ["I am known"]);
      assert.deepEqual(eve.heard(BOT), []);
    });

    test("a long answer comes in order, in lines of at most 400 bytes", async () => {
      const words = Array.from({ length: 300 }, (_, at) => `wörd${at}`);
      answerTurns(model, () => ({ text: `# Words\n\n**${words.join(" ")}**\n\n[end](https://x.test/)` }));
      ann.say(BOT, "long");
      await until("the end", () => ann.heard(BOT).some((line) => line.includes("https://x.test/")));
      const lines = ann.heard(BOT);
      for (const line of lines) assert.ok(Buffer.byteLength(line) <= 400, line);
      const text = lines.map((line) => line.replace(/ ?\(\d+\/\d+\)$/, "")).join(" ");
      assert.equal(text.replaceAll("**", ""), `Words ${words.join(" ")} end (https://x.test/)`);
    });

    test("a text cannot speak to the server", async () => {
      answerTurns(model, () => ({ text: "one\r\nQUIT :gone\rNICK evil\n\u0000\u0001ACTION dances\u0001" }));
      ann.say(BOT, "try it");
      await hears(ann, "ACTION dances");
      assert.deepEqual(ann.heard(BOT), ["one", "QUIT :gone", "NICK evil", "ACTION dances"]);
    });

    test("commands begin with an exclamation mark", async () => {
      ann.say(BOT, "!status");
      await until("the status", () => ann.heard(BOT).some((line) => line.includes("fake-model")));
      assert.deepEqual(turns(model), []);
    });

    test("an answer to somebody who is gone is given up, and others still come", async () => {
      ben.say(BOT, "I leave at once");
      ben.write("NICK benjamin");
      await until("the turn", () => turns(model).length === 1);
      ann.say(BOT, "still there?");
      await hears(ann, "heard: still there?");
      ben.write("NICK Ben");
    });

    test("who was thrown out comes back", async () => {
      ann.write(`KICK #team ${BOT} :out`);
      await ann.waitFor(new RegExp(`^:${BOT}!\\S+ JOIN :?#team`), 20_000);
      ann.say("#team", `${BOT}, again`);
      await hears(ann, "heard: again");
    });

    test("a part that was being sent when the line broke comes once more and says so", async () => {
      await using slow = await gatewayAt(only(irc), { IRC_NICKNAME: "slow", IRC_FLOOD_DELAY: "0.5" });
      answerTurns(slow.model, () => ({ text: "one\ntwo\nthree\nfour\nfive" }));
      ann.say("slow", "count");
      await until("the first line", () => ann.heard("slow").includes("one"));
      await irc.stop();
      await irc.start();
      ann = await irc.person("Ann");
      await ann.enter("#team");
      await until("the last line", () => ann.heard("slow").includes("five"), 30_000);
      assert.deepEqual(ann.heard("slow"), ["(recovered) one", "two", "three", "four", "five"]);
      // The first bot was thrown off the server by this too.
      const connected = () => bot.gateway.lines.filter((line) => /^\[IRC\] (?:re)?connected/.test(line)).length;
      await until("the first bot is back", () => connected() >= 2);
      ann.say(BOT, "back?");
      await until("its answer", () => ann.heard(BOT).includes("heard: back?"));
    });
  });

  describe("an IRC connection", () => {
    test("another nick is used while ours is taken, and answers to both", async () => {
      const irc = await ircServer();
      await irc.person(BOT);
      const ann = await irc.person("ann");
      await ann.enter("#team");
      await using it = await gatewayAt(irc);
      await it.gateway.waitFor(/connected as hermes-bot_ on/);
      ann.say("#team", `${BOT}_: hello`);
      await until("an answer", () => ann.heard(`${BOT}_`).includes("heard: hello"));
      ann.say("#team", `${BOT}: and hello`);
      await until("another", () => ann.heard(`${BOT}_`).includes("heard: and hello"));
    });

    test("a server with short nicks gets a short one, and its password", async () => {
      const irc = await ircServer({ nickLength: 9, password: "let me in" });
      await using it = await gatewayAt(irc, { IRC_SERVER_PASSWORD: "let me in" });
      await it.gateway.waitFor(/connected as hermes-bo on/);
    });

    test("a wrong password and a line that anybody can read are refused with a sentence", async () => {
      const irc = await ircServer({ password: "let me in" });
      await using wrong = await homeAt(irc, { IRC_SERVER_PASSWORD: "no" });
      await using open = await homeAt(only(irc), { IRC_SERVER: "irc.example.org" });
      const gateway = await startGateway(wrong.home, { ready: null });
      assert.equal((await gateway.result).code, 1);
      assert.match(gateway.lines.join("\n"), /refused the password of the server .*; check IRC_SERVER_PASSWORD/);
      const plain = await startGateway(open.home, { ready: null });
      const result = await plain.result;
      assert.match(plain.lines.join("\n") + result.stderr, /IRC_USE_TLS is off/);
    });

    test("with accounts we log in by SASL, people are known by theirs, and a repeated line is one message", async () => {
      const server = await accountServer({ name: BOT, password: "secret", sasl: true });
      await using it = await gatewayAt(server, {
        ...{ IRC_NICKSERV_PASSWORD: "secret", IRC_IDENTIFY_BY: "account", IRC_ALLOWED_USERS: "annacc" },
      });
      const login = Buffer.from(`${BOT}\0${BOT}\0secret`).toString("base64");
      assert.ok(server.lines.includes(`AUTHENTICATE ${login}`));
      assert.ok(server.lines.indexOf("CAP END") < server.lines.indexOf("JOIN #team"));
      const tags = `@account=annacc;msgid=m1;time=${new Date().toISOString()}`;
      server.say(`:annacc!u@h PRIVMSG ${BOT} :I only took the nick`);
      server.say(`${tags} :ann!u@h PRIVMSG ${BOT} :it is me`);
      server.say(`${tags} :ann!u@h PRIVMSG ${BOT} :it is me`);
      await until("an answer", () => server.lines.includes("PRIVMSG ann :heard: it is me"));
      await sleep(300);
      assert.deepEqual(turns(it.model), ["it is me"]);
    });

    test("a line that left just before the server hung up comes once more and says so", async () => {
      const server = await accountServer({ name: BOT, password: "secret", sasl: false });
      await using _ = await gatewayAt(server);
      server.hangUpAt(/^PRIVMSG ann :heard: did it arrive/);
      server.say(`:ann!u@h PRIVMSG ${BOT} :did it arrive?`);
      await until("the repeat", () => server.lines.includes("PRIVMSG ann :(recovered) heard: did it arrive?"));
      server.say(`:ann!u@h PRIVMSG ${BOT} :next`);
      await until("the next", () => server.lines.includes("PRIVMSG ann :heard: next"));
      assert.deepEqual(
        server.lines.filter((line) => line.startsWith("PRIVMSG ann")),
        ["heard: did it arrive?", "(recovered) heard: did it arrive?", "heard: next"].map(
          (text) => `PRIVMSG ann :${text}`,
        ),
      );
    });

    test("without SASL NickServ is told the password, before any channel is joined", async () => {
      const server = await accountServer({ name: BOT, password: "secret", sasl: false });
      await using _ = await gatewayAt(server, { IRC_NICKSERV_PASSWORD: "secret" });
      const told = server.lines.indexOf("PRIVMSG NickServ :IDENTIFY secret");
      assert.ok(told !== -1 && told < server.lines.indexOf("JOIN #team"), server.lines.join("\n"));
    });

    test("a refused login is told once, without the password", async () => {
      const server = await accountServer({ name: BOT, password: "secret", sasl: true });
      await using it = await homeAt(server, { IRC_NICKSERV_PASSWORD: "wrong-secret" });
      const gateway = await startGateway(it.home, { ready: null });
      assert.equal((await gateway.result).code, 1);
      assert.match(gateway.lines.join("\n"), /refused the password of hermes-bot; check IRC_NICKSERV_PASSWORD/);
      assert.doesNotMatch(gateway.lines.join("\n"), /wrong-secret/);
    });
  });
});
