// Mattermost through the real gateway, against a server on loopback that judges requests by the rules of its API.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  answerTurns,
  type GatewayHomeOptions,
  gatewayHome,
  lastSaid,
  ModelServer,
  type RunningGateway,
  startGateway,
  until,
} from "../support/gateway-rig.ts";
import { ANN, BOB, BOT, DM, MattermostServer, TOWN } from "../support/platforms/mattermost-server.ts";
import type { TempHome } from "../support/temp-home.ts";

interface World extends AsyncDisposable {
  readonly server: MattermostServer;
  readonly model: ModelServer;
  readonly home: TempHome;
  gateway: RunningGateway;
  written(part: string, channel?: string): Promise<MattermostServer["posts"][number]>;
}

async function world(
  options: Partial<GatewayHomeOptions> = {},
  prepare?: (server: MattermostServer) => void,
): Promise<World> {
  const model = await ModelServer.start();
  const server = await MattermostServer.start();
  prepare?.(server);
  answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
  const home = await gatewayHome(model, {
    ...options,
    env: {
      ...{ MATTERMOST_URL: server.web.url, MATTERMOST_TOKEN: BOT.token },
      ...{ MATTERMOST_ALLOWED_USERS: `${ANN},${BOB}`, ...options.env },
    },
  });
  const self: World = {
    ...{ server, model, home, gateway: await startGateway(home) },
    async written(part, channel) {
      const find = () => server.written(channel).find(({ message }) => message.includes(part));
      await until(`"${part}" is written`, () => find() !== undefined).catch((error: Error) => {
        const texts = server.written(channel).map(({ message }) => message);
        throw new Error(`${error.message}; there: ${JSON.stringify(texts)}; offences: ${server.offences}`);
      });
      return find() ?? assert.fail();
    },
    async [Symbol.asyncDispose]() {
      await self.gateway.kill();
      await server.close();
      await model.close();
      await home[Symbol.asyncDispose]();
      assert.deepEqual(server.offences, []);
    },
  };
  return self;
}

const countOf = ({ server }: World, part: string) =>
  server.written().filter(({ message }) => message.includes(part)).length;

describe("Mattermost", () => {
  let one: World;
  before(async () => {
    one = await world({ config: "display:\n  busy_input_mode: queue\n" });
  });
  after(() => one[Symbol.asyncDispose]());
  afterEach(() => answerTurns(one.model, (request) => ({ text: `heard: ${lastSaid(request)}` })));

  test("a direct message is answered as it is written, flat and in Markdown", async () => {
    const { server, model, gateway } = one;
    assert.ok(gateway.lines.includes("[Mattermost] connected as @hermes"));
    answerTurns(model, () => ({ text: "# Plan\n**bold** [docs](http://example.com)", delay: 700 }));
    server.say(DM, "hello");
    const { message, root_id: root } = await one.written("docs", DM);
    assert.equal(message, "# Plan\n**bold** [docs](http://example.com)");
    assert.equal(root, "");
    assert.deepEqual(server.typing[0], { channel_id: DM, parent_id: "" });
  });

  test("the next message finds the conversation; a thread is one of its own", async () => {
    const { server, model } = one;
    const root = server.say(DM, "my word is apple");
    await one.written("my word is apple", DM);
    server.say(DM, "flat again");
    await one.written("flat again", DM);
    server.say(DM, "in the thread", { root });
    assert.equal((await one.written("in the thread", DM)).root_id, root);
    const last = (part: string) => JSON.stringify(model.requests.findLast((one) => lastSaid(one).includes(part))?.body);
    assert.match(last("flat again"), /my word is apple/);
    assert.doesNotMatch(last("in the thread"), /flat again/);
  });

  test("a channel needs a mention, and its thread none any more", async () => {
    const { server, model } = one;
    server.say(TOWN, "just talking");
    const root = server.say(TOWN, "@hermes what is up");
    const answer = await one.written("heard: [ann] what is up", TOWN);
    assert.equal(answer.root_id, root);
    server.say(TOWN, "and now", { root, user: BOB });
    await one.written("heard: [bob] and now", TOWN);
    assert.equal(JSON.stringify(model.requests.map(({ body }) => body)).includes("just talking"), false);
  });

  test("system messages, bots and strangers are not answered", async () => {
    const { server } = one;
    const before = server.written().length;
    server.say(DM, "ann joined", { type: "system_join_channel" });
    server.say(DM, "beep", { props: { from_bot: "true" } });
    server.say(TOWN, "@hermes let me in", { user: "evel".padEnd(26, "0") });
    server.say(DM, "marker");
    await one.written("heard: marker", DM);
    assert.equal(server.written().length, before + 1);
  });

  test("a command is written with a blank in front or behind our name", async () => {
    const { server } = one;
    server.say(DM, " /whoami");
    await one.written("You are ann", DM);
    server.say(TOWN, "@hermes /whoami");
    await one.written("You are ann", TOWN);
  });

  test("a long answer comes in parts of at most 4000 signs", async () => {
    const { server, model } = one;
    answerTurns(model, () => ({ text: `${"Ω".repeat(7000)} the end` }));
    server.say(DM, "tell me more");
    await one.written("the end", DM);
    const parts = server.written(DM).filter(({ message }) => message.includes("Ω"));
    assert.equal(parts.length, 2);
    for (const { message } of parts) assert.ok([...message].length <= 4000);
  });

  test("a message that is edited before its turn is read as edited, one that is deleted is not read", async () => {
    const { server, model } = one;
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    answerTurns(model, async (request) => {
      if (lastSaid(request).includes("first in line")) await held;
      return { text: `heard: ${lastSaid(request)}` };
    });
    server.say(DM, "first in line");
    await until("the turn runs", () => model.requests.some((one) => lastSaid(one).includes("first in line")));
    const second = server.say(DM, "secnd with an eror");
    const third = server.say(DM, "never mind this");
    await one.written("Got it", DM);
    server.rewrite(second, "second without error");
    server.erase(third);
    await sleep(300);
    release();
    await one.written("heard: second without error", DM);
    server.say(DM, "second marker");
    await one.written("heard: second marker", DM);
    assert.equal(countOf(one, "eror") + countOf(one, "never mind"), 0);
  });

  test("a rate limit and a broken front delay an answer and do not double it", async () => {
    const { server } = one;
    const limit = { status: 429, headers: { "x-ratelimit-reset": "1" }, body: {} };
    server.web.faults.push({ on: /POST .*\/posts$/, what: limit }, { on: /POST .*\/posts$/, what: { status: 502 } });
    const began = Date.now();
    server.say(DM, "be patient");
    await one.written("be patient", DM);
    assert.ok(Date.now() - began >= 1000);
    assert.equal(countOf(one, "be patient"), 1);
  });

  for (const forgets of [false, true])
    test(`an answer that arrived although nobody said so is not written twice${forgets ? ", even when the server forgot" : ""}`, async () => {
      const { server } = one;
      server.forgetsPending = forgets;
      server.web.faults.push({ on: /POST .*\/posts$/, what: "lose answer" });
      const said = `did it arrive ${forgets}`;
      server.say(DM, said);
      await one.written(said, DM);
      server.say(DM, `marker after ${forgets}`);
      await one.written(`marker after ${forgets}`, DM);
      assert.equal(countOf(one, said), 1);
      assert.equal(countOf(one, "(recovered)"), 0);
    });

  test("the answer to a thread that is gone goes to the channel", async () => {
    const { server, model } = one;
    answerTurns(model, (request) => {
      const post = server.posts.find(({ message }) => message.includes("is the thread gone"));
      if (post) post.delete_at = Date.now();
      return { text: `heard: ${lastSaid(request)}` };
    });
    server.say(TOWN, "@hermes is the thread gone");
    const { root_id: root } = await one.written("(the thread is gone)\nheard: [ann] is the thread gone", TOWN);
    assert.equal(root, "");
  });

  test("a channel that was archived is given up, and others still get their answers", async () => {
    const { server, model } = one;
    const old = "old".padEnd(26, "0");
    server.channel(old, "O", "old");
    answerTurns(model, (request) => {
      const channel = server.channels.get(old);
      if (channel && lastSaid(request).includes("archive me")) channel.delete_at = 1;
      return { text: `heard: ${lastSaid(request)}` };
    });
    const tries = () =>
      server.web.calls.filter(({ json }) => json.channel_id === old && String(json.message).includes("archive me"));
    server.say(old, "@hermes archive me");
    await until("it was tried", () => tries().length > 0);
    server.say(DM, "still there?");
    await one.written("still there?", DM);
    assert.equal(tries().length, 1);
  });

  test("a file is fetched and read, and one of the answer is uploaded into the thread", async () => {
    const { server, model, home } = one;
    server.say(DM, "read this", { files: [server.file("notes.txt", Buffer.from("the answer is 42\n"))] });
    await one.written("read this", DM);
    const request = model.requests.findLast((one) => lastSaid(one).includes("read this"));
    assert.match(JSON.stringify(request?.body), /the answer is 42/);
    await home.write("../project/report.txt", "all is well\n");
    answerTurns(model, () => ({ text: `Here it is.\nMEDIA:${home.project}/report.txt` }));
    const root = server.say(DM, "a thread for the report");
    await one.written("Here it is", DM);
    server.say(DM, "send me the report", { root });
    await until("a file in the thread", () =>
      server.written(DM).some((post) => post.root_id === root && post.file_ids.length > 0),
    );
    const post = server.written(DM).find((one) => one.root_id === root && one.file_ids.length > 0) ?? assert.fail();
    assert.equal(String(server.files.get(post.file_ids[0] ?? "")?.bytes), "all is well\n");
  });

  test("an upload that breaks off leaves nothing, and is made again", async () => {
    const { server, model, home } = one;
    await home.write("../project/second.txt", "second\n");
    answerTurns(model, () => ({ text: `MEDIA:${home.project}/second.txt` }));
    server.web.faults.push({ on: /POST .*\/files$/, what: "lose answer" });
    server.say(DM, "one more file");
    const named = () =>
      server.written(DM).filter(({ file_ids: [id = ""] }) => server.files.get(id)?.name === "second.txt");
    await until("the file", () => named().length > 0);
    await sleep(300);
    assert.equal(named().length, 1);
  });

  test("what was written while the network was gone is read from the history, in order", async () => {
    const { server, gateway } = one;
    const lines = gateway.lines.length;
    server.cut();
    server.say(DM, "in the gap, one");
    server.say(DM, "in the gap, two");
    await one.written("in the gap, two", DM);
    const texts = server
      .written(DM)
      .map(({ message }) => message)
      .filter((text) => text.includes("in the gap"));
    assert.deepEqual(texts, ["heard: in the gap, one", "heard: in the gap, two"]);
    // A socket that breaks is no news.
    assert.equal(gateway.lines.length, lines);
  });

  test("frames that nobody knows do no harm", async () => {
    const { server } = one;
    server.event("something_new", { post: "?" });
    server.event("posted", { post: "not json" });
    server.event("posted", {});
    server.say(DM, "still alive?");
    await one.written("still alive?", DM);
  });
});

test("what was written while the gateway was down is answered, what was written before its first start is not", async () => {
  const before = "long before";
  await using one = await world({}, (server) => server.say(DM, before));
  const { server } = one;
  server.say(DM, "a talk begins");
  await one.written("a talk begins", DM);
  await one.gateway.stop();
  server.say(DM, "anybody home?");
  server.say(TOWN, "not for us");
  server.say(TOWN, "@hermes for us");
  const gone = server.say(DM, "never mind");
  server.erase(gone);
  one.gateway = await startGateway(one.home);
  await one.written("heard: anybody home?", DM);
  await one.written("heard: [ann] for us", TOWN);
  await sleep(500);
  for (const never of [before, "not for us", "never mind"]) assert.equal(countOf(one, never), 0, never);
  for (const once of ["a talk begins", "anybody home?", "[ann] for us"]) assert.equal(countOf(one, once), 1, once);
});

test("a gateway that is killed while it waits for an answer does not say it twice", async () => {
  await using one = await world();
  const { server } = one;
  server.forgetsPending = true;
  server.web.faults.push({ on: /POST .*\/posts$/, what: "hang" });
  server.say(DM, "kill me now");
  await one.written("kill me now", DM);
  await one.gateway.kill();
  one.gateway = await startGateway(one.home);
  server.say(DM, "after the kill");
  await one.written("after the kill", DM);
  await sleep(300);
  assert.equal(countOf(one, "kill me now"), 1);
  assert.equal(countOf(one, "(recovered)"), 0);
});

test("an answer that is streamed grows by edits and ends as it should", async () => {
  await using one = await world({ config: "streaming:\n  enabled: true\n  edit_interval: 0.05\n" });
  const { server, model } = one;
  const text = `**streamed** ${"word ".repeat(60)}end`;
  answerTurns(model, () => ({ text, pace: 15 }));
  server.say(DM, "slowly please");
  const post = await one.written("streamed", DM);
  await until("its last form", () => post.message === text);
  assert.ok(server.web.callsOf(/PUT .*\/patch$/).length > 1);
  assert.equal(server.written(DM).length, 1);
});

test("a flat channel and strict mode", async () => {
  await using one = await world({ env: { MATTERMOST_REPLY_IN_THREAD: "false", MATTERMOST_STRICT_MENTION: "true" } });
  const { server } = one;
  const root = server.say(TOWN, "@hermes flat please");
  assert.equal((await one.written("flat please", TOWN)).root_id, "");
  server.say(TOWN, "@hermes now below", { root });
  assert.equal((await one.written("now below", TOWN)).root_id, root);
  server.say(TOWN, "no mention", { root });
  server.say(TOWN, "@hermes a mention", { root });
  await one.written("a mention", TOWN);
  assert.equal(countOf(one, "no mention"), 0);
});

test("a token that is withdrawn while it is used is said, with what to do", async () => {
  await using one = await world();
  const { server } = one;
  server.isTokenValid = false;
  server.cut();
  server.say(DM, "while nobody could sign in");
  await one.gateway.waitFor(/\[Mattermost\].*refused the token/);
  server.isTokenValid = true;
});

test("missed_messages: false leaves what was missed where it is", async () => {
  const config = "platforms:\n  mattermost:\n    extra:\n      missed_messages: false\n";
  await using one = await world({ config });
  one.server.say(DM, "hello");
  await one.written("hello", DM);
  one.server.cut();
  one.server.say(DM, "while you were out");
  await until("it is connected again", () => one.server.connections === 1);
  one.server.say(DM, "back again");
  await one.written("back again", DM);
  assert.equal(countOf(one, "while you were out"), 0);
});

test("a post that could not be taken is read again, and only once", async () => {
  await using one = await world();
  const { server } = one;
  server.say(DM, "hello");
  await one.written("hello", DM);
  const fresh = "fresh".padEnd(26, "0");
  server.channel(fresh, "P", "fresh");
  server.web.faults.push({ on: /GET .*\/channels\/fresh0+$/, what: { status: 500, body: {} } });
  server.say(fresh, "@hermes come here");
  server.say(DM, "meanwhile");
  await one.written("come here", fresh);
  await one.written("meanwhile", DM);
  await sleep(300);
  assert.equal(countOf(one, "come here"), 1);
  assert.equal(countOf(one, "meanwhile"), 1);
});

test("other bots are answered where that is allowed, and we never answer ourselves", async () => {
  const env = { MATTERMOST_ALLOW_BOTS: "all", MATTERMOST_ALLOW_ALL_USERS: "true" };
  await using one = await world({ env });
  one.server.say(DM, "beep", { props: { from_bot: "true" } });
  await one.written("beep", DM);
  await sleep(500);
  assert.equal(one.server.written().length, 1);
});

test("a token that is refused is said once, with what to do", async () => {
  const model = await ModelServer.start();
  const server = await MattermostServer.start();
  const home = await gatewayHome(model, { env: { MATTERMOST_URL: server.web.url, MATTERMOST_TOKEN: "wrong" } });
  const gateway = await startGateway(home, { ready: null });
  assert.match(await gateway.waitFor(/\[Mattermost\].*refused the token/), /MATTERMOST_TOKEN/);
  await gateway.kill();
  await server.close();
  await model.close();
  await home[Symbol.asyncDispose]();
});
