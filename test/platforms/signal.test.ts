// Signal through the real gateway, with a daemon on loopback that behaves as signal-cli does.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
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
  typed,
  until,
} from "../support/gateway-rig.ts";
import { type SentMessage, SignalServer } from "../support/platforms/signal-server.ts";
import type { TempHome } from "../support/temp-home.ts";

const ANN = "+4915111111111";
const BOB = "+4915122222222";
const EVE = "+4915166666666";
const FAMILY = "R3JvdXAgbnVtYmVyIG9uZQ==";
const { ACCOUNT } = SignalServer;

interface World extends AsyncDisposable {
  readonly server: SignalServer;
  readonly model: ModelServer;
  readonly home: TempHome;
  gateway: RunningGateway;
  /** A message of the bot that holds this part. */
  written(part: string): Promise<SentMessage>;
}

async function world(options: Partial<GatewayHomeOptions> & { extra?: string } = {}): Promise<World> {
  const model = await ModelServer.start();
  const server = await SignalServer.start();
  server.groups.set(FAMILY, "Family");
  echo(model);
  const settings = `request_timeout: 1\n${options.extra ?? ""}`.trim().replace(/^/gm, "      ");
  const home = await gatewayHome(model, {
    ...options,
    config: `platforms:\n  signal:\n    extra:\n${settings}\n${options.config ?? ""}`,
    env: {
      ...{ SIGNAL_HTTP_URL: server.url, SIGNAL_ACCOUNT: ACCOUNT, SIGNAL_ALLOWED_USERS: `${ANN},${BOB},${ACCOUNT}` },
      ...options.env,
    },
  });
  const self: World = {
    ...{ server, model, home, gateway: await startGateway(home) },
    async written(part) {
      const find = () => server.sent.find(({ message }) => message.includes(part));
      await until(`"${part}" is written`, () => find() !== undefined).catch((error: Error) => {
        throw new Error(`${error.message}; there: ${JSON.stringify(server.sent.map(({ message }) => message))}`);
      });
      return find() ?? assert.fail();
    },
    async [Symbol.asyncDispose]() {
      await self.gateway.kill();
      await server.close();
      await model.close();
      await home[Symbol.asyncDispose]();
    },
  };
  return self;
}

const echo = (model: ModelServer) => answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
const asked = (model: ModelServer, part: string) => model.requests.filter((one) => lastSaid(one).includes(part));
const count = (server: SignalServer, part: string) =>
  server.sent.filter(({ message }) => message.includes(part)).length;
const ourMention = { mentions: [{ start: 0, length: 1, number: ACCOUNT, uuid: null, name: "Hermes" }] };
const callsOf = (server: SignalServer, method: string) => server.web.calls.filter(({ json }) => json.method === method);

describe("Signal", () => {
  let one: World;
  before(async () => {
    one = await world({ extra: "reactions: true", config: "display:\n  busy_input_mode: queue\n" });
  });
  after(() => one[Symbol.asyncDispose]());
  afterEach(() => {
    echo(one.model);
    one.server.failing.clear();
  });

  test("a message is answered in styled text, shown as read, and typing is shown meanwhile", async () => {
    const { server, model } = one;
    answerTurns(model, () => ({ text: "# Plan\n**bold** and `code`\n- one" }));
    const timestamp = server.say(ANN, "what is the plan", { name: "Ann" });
    const sent = await one.written("Plan");
    assert.deepEqual([sent.to, sent.message], [ANN, "Plan\nbold and code\n• one"]);
    assert.deepEqual(sent.styles, ["0:4:BOLD", "5:4:BOLD", "14:4:MONOSPACE"]);
    assert.deepEqual(sent.quote, { timestamp, author: ANN, message: "what is the plan" });
    await until("it is shown as read", () => callsOf(server, "sendReceipt").length > 0);
    assert.deepEqual(callsOf(server, "sendReceipt")[0]?.json.params, {
      ...{ account: ACCOUNT, recipient: [ANN], targetTimestamp: [timestamp], type: "read" },
    });
    assert.ok(callsOf(server, "sendTyping").length > 0);
  });

  test("work is marked beside the message, and the mark changes when it is done", async () => {
    const { server } = one;
    const timestamp = server.say(ANN, "mark this");
    await one.written("mark this");
    const marks = () =>
      callsOf(server, "sendReaction").flatMap(({ json }) => {
        const { emoji, targetTimestamp, targetAuthor } = Object(json.params);
        return targetTimestamp === timestamp && targetAuthor === ANN ? [emoji] : [];
      });
    await until("both marks were there", () => marks().length === 2);
    assert.deepEqual(marks(), ["👀", "✅"]);
  });

  test("a group needs a mention, which is not part of the text, and gets its answer", async () => {
    const { server, model } = one;
    server.say(ANN, "just talking", { group: FAMILY });
    server.say(ANN, "￼ what is for dinner", { group: FAMILY, data: ourMention });
    const sent = await one.written("what is for dinner");
    assert.equal(sent.to, `group:${FAMILY}`);
    assert.equal(sent.message, "heard: what is for dinner");
    assert.deepEqual(asked(model, "just talking"), []);
    assert.match(JSON.stringify(asked(model, "dinner")[0]?.body), /group: Family/);
  });

  test("a reply to us needs no mention in a group, and carries what it answers", async () => {
    const { server, model } = one;
    const quote = { id: 1_700_000_000_000, author: ACCOUNT, authorNumber: ACCOUNT, text: "pasta" };
    server.say(BOB, "with cheese please", { group: FAMILY, data: { quote } });
    await one.written("with cheese please");
    assert.match(lastSaid(asked(model, "with cheese")[0] ?? assert.fail()), /Replying to: "pasta"/);
  });

  test("a stranger is not answered", async () => {
    const { server, model } = one;
    server.say(EVE, "let me in");
    server.say(ANN, "after the stranger");
    await one.written("after the stranger");
    assert.deepEqual(asked(model, "let me in"), []);
    assert.equal(
      server.sent.some(({ to }) => to === EVE),
      false,
    );
  });

  test("a note to oneself is a message, what we send ourselves is none", async () => {
    const { server, model } = one;
    const sentMessage = {
      destination: ACCOUNT,
      destinationNumber: ACCOUNT,
      timestamp: Date.now(),
      message: "note to self",
    };
    const own = { source: ACCOUNT, sourceNumber: ACCOUNT, sourceUuid: null, sourceName: "Me", timestamp: Date.now() };
    server.emit({ ...own, syncMessage: { sentMessage } });
    server.emit({
      ...own,
      syncMessage: { sentMessage: { ...sentMessage, destination: BOB, destinationNumber: BOB, message: "to Bob" } },
    });
    server.emit({ ...own, dataMessage: { timestamp: Date.now() + 2000, message: "to Bob, notified" } });
    assert.equal((await one.written("note to self")).to, ACCOUNT);
    // In the same conversation, so that what was wrongly heard would be answered before it.
    server.emit({
      ...own,
      syncMessage: { sentMessage: { ...sentMessage, timestamp: Date.now() + 5000, message: "another note" } },
    });
    await one.written("another note");
    assert.deepEqual(asked(model, "to Bob"), []);
  });

  test("files come with the message, and what cannot be had is said", async () => {
    const { server, model } = one;
    const file = {
      id: server.attachment(Buffer.from("the text of the file")),
      contentType: "text/plain",
      filename: "notes.txt",
      size: 20,
    };
    const gone = { id: "gone", contentType: "application/pdf", filename: "gone.pdf", size: 9 };
    server.say(ANN, "read both", { data: { attachments: [file, gone] } });
    await one.written("read both");
    const text = lastSaid(asked(model, "read both")[0] ?? assert.fail());
    assert.match(text, /the text of the file/);
    assert.match(text, /\[not received: gone\.pdf \(9 bytes\): Could not find attachment\]/);
  });

  test("stickers and contacts are not passed over in silence", async () => {
    const { server, model } = one;
    server.say(ANN, null, { data: { sticker: { packId: "ab", stickerId: 3 } } });
    await until("the sticker is named", () => asked(model, "[unsupported: sticker]").length === 1);
    server.say(ANN, null, { data: { contacts: [{ name: { display: "Carla" } }] } });
    await until("the contact is named", () => asked(model, "[unsupported: contact] Carla").length === 1);
  });

  test("a file of an answer is sent whole, with its name", async () => {
    const { server, model, home } = one;
    const path = join(home.dir, "cache", "documents", "report.txt");
    await mkdir(join(home.dir, "cache", "documents"), { recursive: true });
    await writeFile(path, "all of the report");
    answerTurns(model, () => ({ text: `here\nMEDIA:${path}` }));
    server.say(ANN, "the report please");
    const find = () => server.sent.flatMap(({ attachments }) => attachments).find(({ name }) => name === "report.txt");
    await until("it is sent", () => find() !== undefined);
    const attachment = find();
    assert.deepEqual(
      [attachment?.name, attachment?.type, String(attachment?.bytes)],
      ["report.txt", "text/plain", "all of the report"],
    );
  });

  test("what is edited or deleted before its turn begins is answered as it is then", async () => {
    const { server, model } = one;
    const gate = Promise.withResolvers<void>();
    answerTurns(model, async (request) => {
      if (lastSaid(request).includes("something slow")) await gate.promise;
      return { text: `heard: ${lastSaid(request)}` };
    });
    server.say(ANN, "something slow");
    await until("the turn runs", () => asked(model, "something slow").length === 1);
    const edited = server.say(ANN, "with a tipo");
    const deleted = server.say(ANN, "never mind this one");
    await until("both are stored", () =>
      callsOf(server, "sendReceipt").some(({ json }) => JSON.stringify(json).includes(String(deleted))),
    );
    server.edit(ANN, edited, "with a typo");
    server.delete(ANN, deleted);
    const last = server.say(ANN, "the last one");
    await until("all of it is read", () =>
      callsOf(server, "sendReceipt").some(({ json }) => JSON.stringify(json).includes(String(last))),
    );
    gate.resolve();
    await one.written("the last one");
    assert.equal(count(server, "with a typo"), 1);
    assert.equal(count(server, "tipo") + count(server, "never mind"), 0);
  });

  test("events that come twice and in the wrong order are answered once", async () => {
    const { server, model } = one;
    server.say(ANN, "only one answer");
    await one.written("only one answer");
    const before = model.requests.length;
    server.repeatEvents();
    server.say(ANN, "behind the repeats");
    await one.written("behind the repeats");
    assert.equal(count(server, "only one answer"), 1);
    assert.equal(asked(model, "behind the repeats").length, 1);
    assert.ok(model.requests.length <= before + 2);
  });

  test("a stream that ends is opened again where it stopped", async () => {
    const { server } = one;
    server.endStreams();
    server.say(ANN, "said in between");
    await one.written("said in between");
    assert.equal(count(server, "said in between"), 1);
    assert.ok(server.web.callsOf(/GET \/api\/v1\/events/).at(-1)?.headers["last-event-id"]);
  });

  test("an answer whose fate is unknown is sent once more with a mark, and no more", async () => {
    const { server, model } = one;
    answerTurns(model, () => ({ text: "did it arrive" }));
    const on = ({ body }: { body: Buffer }) => body.includes("did it arrive");
    server.web.faults.push({ on, what: "lose answer" }, { on, what: "hang" });
    server.say(ANN, "unsure");
    await until("it came with a mark", () => count(server, "(recovered) did it arrive") === 1);
    await sleep(1500);
    assert.deepEqual(
      server.sent.flatMap(({ message }) => (message.includes("did it arrive") ? [message] : [])),
      ["did it arrive", "(recovered) did it arrive"],
    );
  });

  test("a limit is waited for, trouble is tried again, and nothing is there twice", async () => {
    const { server, model } = one;
    answerTurns(model, () => ({ text: "in spite of all" }));
    server.failing.set(BOB, "RATE_LIMIT_FAILURE");
    server.say(BOB, "try hard");
    await until("it was tried", () => callsOf(server, "send").some(({ body }) => body.includes("in spite")));
    server.failing.set(BOB, "NETWORK_FAILURE");
    const tries = callsOf(server, "send").length;
    await until("it is tried again", () => callsOf(server, "send").length > tries);
    server.failing.clear();
    await one.written("in spite of all");
    await sleep(300);
    assert.equal(count(server, "in spite of all"), 1);
  });

  test("a receiver whose safety number changed is told about in the log, and others go on", async () => {
    const { server, home } = one;
    server.failing.set(BOB, "IDENTITY_FAILURE");
    server.say(BOB, "cannot be answered");
    await until("it is in the log", async () =>
      (await readFile(join(home.dir, "logs", "gateway.log"), "utf8")).includes(
        "safety number of the receiver has changed",
      ),
    );
    server.say(ANN, "others go on");
    await one.written("others go on");
  });
});

test("what was written while the gateway was down is answered", async () => {
  await using one = await world();
  const { server, home } = one;
  server.say(ANN, "before");
  await one.written("heard: before");
  await one.gateway.stop();
  server.say(ANN, "while you were out");
  one.gateway = await startGateway(home);
  await one.written("while you were out");
  assert.equal(count(server, "heard: before"), 1);
});

test("hermes send reaches a number and a group without a gateway", async () => {
  await using one = await world();
  const { server, home } = one;
  await one.gateway.stop();
  for (const [target, text] of [
    [`signal:${BOB.slice(1)}`, "to **Bob**"],
    [`signal:group:${FAMILY}`, "to the family"],
  ] as const) {
    const { code, stdout, stderr } = await typed(home, ["send", "-t", target, "--json", text]);
    assert.equal(code, 0, stderr + stdout);
  }
  assert.deepEqual(
    server.sent.map(({ to, message, styles }) => [to, message, ...styles]),
    [
      [BOB, "to Bob", "3:3:BOLD"],
      [`group:${FAMILY}`, "to the family"],
    ],
  );
});

test("an account that signal-cli does not have turns the platform off with a line that says what to do", async () => {
  const model = await ModelServer.start();
  const server = await SignalServer.start();
  const home = await gatewayHome(model, { env: { SIGNAL_HTTP_URL: server.url, SIGNAL_ACCOUNT: "+499999999" } });
  const gateway = await startGateway(home, { ready: null });
  try {
    assert.match(
      await gateway.waitFor(/^\[Signal\] off: /),
      /has no account \S+; register or link it there, or set SIGNAL_ACCOUNT$/,
    );
  } finally {
    await gateway.kill();
    await server.close();
    await model.close();
    await home[Symbol.asyncDispose]();
  }
});

test("a daemon that is not running yet is waited for", async () => {
  await using one = await world();
  const { server } = one;
  server.web.faults.push({ on: /GET \/api\/v1\/events/, what: { status: 503 }, times: 6 });
  server.endStreams();
  await until("it has noticed", () => server.readers === 0);
  await until("it reads again", () => server.readers === 1, 30_000);
  server.say(ANN, "back again");
  await one.written("back again");
});
